"""`march inspect`: what is chosen, what a terminal shows, and what is said of a bad run."""

import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from orchestration.inspect.page import render_run
from orchestration.inspect.run import (
    Run,
    Wanted,
    as_audited,
    choose,
    few,
    open_run,
    read_answers,
    read_entries,
    totals,
)
from orchestration.inspect.terminal import COLUMNS, print_answers, print_overview
from pipeline.record.rollout_files import rollouts_file, write_rollouts
from pipeline.record.rollout_rows import rollout_rows
from reward.types import Outcome
from tests.march_cli import march, refused
from tests.rollout_runs import evil_run, picnic_run, step_log, trained_answer, write_run
from tests.test_report import Page


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return picnic_run(tmp_path)


@pytest.fixture
def evil(tmp_path: Path) -> Run:
    return open_run(evil_run(tmp_path))


def chosen(folder: Path, steps: tuple[int, int] | None = None, **wanted: object) -> list[tuple[int, int]]:
    entries = choose(read_entries(open_run(folder), steps), Wanted(**wanted))  # type: ignore[arg-type]
    return [(entry.step, entry.place) for entry in entries]


def overview(run: Run, width: int) -> str:
    console = Console(record=True, width=width)
    print_overview(run, console)
    return console.export_text()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"steps": (2, 2)}, [(2, 1), (2, 2), (2, 3), (2, 4)]),
        ({"steps": (2, 3), "outcome": Outcome.SUPPORTED}, [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2)]),
        ({"query_id": "q2"}, [(1, 2), (2, 2), (3, 2)]),
    ],
)
def test_answers_that_fit_are_chosen(run_dir: Path, wanted: dict[str, Any], found: object) -> None:
    assert chosen(run_dir, **wanted) == found


def test_the_worst_are_the_false_accepts_then_the_refuted(run_dir: Path) -> None:
    first = chosen(run_dir, worst=True)
    assert first[:3] == [(2, 3), (1, 1), (1, 3)]
    assert first[3:6] == [(3, 4), (2, 4), (1, 4)]  # without a verdict, the latest first


def test_a_page_of_a_few_has_the_worst_of_all_steps_in_their_order(run_dir: Path) -> None:
    entries = read_entries(open_run(run_dir))
    assert [(one.step, one.place) for one in few(entries, 4)] == [(1, 1), (1, 3), (2, 3), (3, 4)]
    assert few(entries, 100) == entries


@pytest.mark.parametrize("width", [80, 140])
def test_the_overview_fits_the_terminal_and_shows_every_step(run_dir: Path, width: int) -> None:
    text = overview(open_run(run_dir), width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "picnics" in text and "Only a test." in text and "\u2026" not in text
    rows = [line.split() for line in text.splitlines() if re.match(r" ?[123] ", line)]
    assert [row[:4] for row in rows] == [
        ["1", "-0.50", "25%", "50%"],
        ["2", "0.00", "75%", "0%"],
        ["3", "0.00", "50%", "0%"],
    ]
    assert "12 answers of 3 steps kept" in text
    assert "true = faithful" in " ".join(text.split())


def test_every_figure_of_a_long_run_fits_80_columns() -> None:
    figures = {column.key: -0.25 for column in COLUMNS} | {"rollouts/kept": 64.0}
    text = overview(Run(Path("run"), "long", "", [{"step": i, **figures} for i in range(1, 2001)]), 80)
    assert all(len(line) <= 80 for line in text.splitlines()) and "\u2026" not in text
    assert "the last 25 of 2,000 steps" in text
    assert [line.split()[0] for line in text.splitlines() if "-0.25" in line] == [
        str(step) for step in range(1976, 2001)
    ]


def test_the_best_and_the_last_look_at_the_held_out_rows_are_shown() -> None:
    rates = {"held_out/num_answers": 50.0, "held_out/unscored_rate": 0.02, "held_out/supported_rate": 0.75}
    steps: list[dict[str, float]] = [{"step": float(step), "audit/reward": 0.0} for step in range(1, 7)]
    assert "held out" not in overview(Run(Path("run"), "r", "", steps), 140)
    for place, score in ((1, 0.25), (3, 0.5), (5, 0.5)):
        steps[place] |= {**rates, "held_out/right_rate": score, "held_out/score": score}
    text = overview(Run(Path("run"), "r", "", steps), 140)
    assert "held out, best, step 4: 75% supported, 50% right, 2% unscored; held out, last, step 6" in text


def test_a_run_without_an_oracle_has_no_columns_of_it(tmp_path: Path) -> None:
    run = open_run(write_run(tmp_path / "run", [[trained_answer()]]))
    assert "true" not in overview(run, 140)
    page = render_run(run, read_answers(run, read_entries(run)), totals(read_entries(run)))
    assert 'id="filter-truth"' not in page and "truth:" not in page


def test_what_was_kept_is_counted(tmp_path: Path) -> None:
    run = open_run(write_run(tmp_path / "run", [[trained_answer()] * 5] * 2))
    assert "10 answers of 2 steps kept" in overview(run, 140)
    step_log(tmp_path / "none").write(1, {}, [])
    none = open_run(tmp_path / "none")
    assert read_entries(none) == [] and "0 answers of 1 step kept" in overview(none, 140)
    assert "0 answers of 1 step kept" in shown(none, 140)


def shown(run: Run, width: int, steps: tuple[int, int] | None = None, **wanted: object) -> str:
    entries = choose(read_entries(run, steps), Wanted(**wanted))  # type: ignore[arg-type]
    console = Console(record=True, width=width)
    print_answers(run, read_answers(run, entries[:1]), totals(entries), console)
    return console.export_text()


@pytest.mark.parametrize("width", [80, 140])
def test_an_answer_is_shown_with_its_claims(run_dir: Path, width: int) -> None:
    text = shown(open_run(run_dir), width, steps=(2, 2), worst=True)
    assert all(len(line) <= width for line in text.splitlines())
    for part in (
        "SUPPORTED q3",
        "step 2, answer 3; truth: wrong, but accepted",
        "checker: 100 + 22 tokens, weights 3, reward 0, advantage +0.50",
        "claim 1 of 5: 500: contradicted",
        "466 (2), 600 (1)",
        "july, Summer, characters 28 to 44",
        "In July the picnic in Kabul raised 466 euros",
        "1 of 4 answers that fit",
    ):
        assert part in text, part


def test_an_unscored_answer_is_masked_and_has_no_reward(run_dir: Path) -> None:
    text = shown(open_run(run_dir), 100, outcome=Outcome.UNSCORED)
    assert "solver: 100 + 22 tokens, masked" in text and "UNSCORED, no reward" in text


def test_without_documents_the_quoted_evidence_is_shown(tmp_path: Path) -> None:
    (row,) = rollout_rows([trained_answer()], step=1)
    run = open_run(write_run(tmp_path / "run", [[trained_answer()]]))
    write_rollouts(rollouts_file(tmp_path / "run", 1), [row.model_copy(update={"documents": None})], step=1)
    text = shown(run, 100)
    assert "texts were not kept" in text
    assert re.search(r"july, characters 28 to 44\s+raised 466 euros", text)
    page = render_run(run, read_answers(run, read_entries(run)), totals(read_entries(run)))
    assert "The texts of documents were not kept" in page


def test_no_terminal_obeys_a_run(evil: Run) -> None:
    text = overview(evil, 300) + shown(evil, 300)
    assert "\x1b" not in text
    assert "[red]x[/red]" in overview(evil, 300)  # markup stays text


def test_answers_are_the_ones_that_were_audited(run_dir: Path) -> None:
    run = open_run(run_dir)
    (row,) = read_answers(run, choose(read_entries(run, (1, 1)), Wanted(query_id="q2")))
    audited = as_audited(row)
    assert audited.query.documents[0].title == "Summer" and audited.response == row.response


def test_a_step_that_did_not_end_is_not_read(run_dir: Path) -> None:
    rollouts_file(run_dir, 4).write_bytes(b"half")
    assert len(read_entries(open_run(run_dir))) == 12


def test_a_run_without_a_step_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text("{}")
    assert march("inspect", tmp_path) == 0
    assert "no step is finished yet" in " ".join(capsys.readouterr().out.split())
    assert march("inspect", tmp_path, "--worst") == 0
    assert "0 of 0 answers that fit are shown (none)" in capsys.readouterr().out
    assert march("inspect", tmp_path, "--html", tmp_path / "page.html") == 0
    assert "No step is finished yet" in (tmp_path / "page.html").read_text()
    assert "no finished step" in refused(capsys, "inspect", tmp_path, "--step", "1")


def test_the_command_shows_steps_answers_and_writes_a_page(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert march("inspect", run_dir) == 0
    assert "12 answers of 3 steps kept" in capsys.readouterr().out
    assert march("inspect", run_dir, "--step", "1-2", "--outcome", "refuted", "--limit", 1) == 0
    assert "1 of 2 answers that fit" in capsys.readouterr().out
    assert march("inspect", run_dir, "--worst", "--limit", 2, "--html", tmp_path / "page.html") == 0
    line = " ".join(capsys.readouterr().out.split())
    assert line.endswith("page.html: 2 of 12 answers; 10 more fit and are not on it (--limit)")
    articles = Page((tmp_path / "page.html").read_text()).all("article")
    assert [one["id"] for one in articles] == ["row-2-3", "row-1-1"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--step", "x"], "--step: 'x' is no step"),
        (["--step", "9"], "--step: 9-9: the run has steps 1 to 3"),
        (["--html", "steps.jsonl"], "--html: steps.jsonl does not end in .html"),
    ],
)
def test_a_wrong_choice_is_one_line(
    run_dir: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert says in refused(capsys, "inspect", run_dir, *arguments)


def test_a_bad_run_is_one_line_that_names_the_file(
    run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "nowhere: no such folder" in refused(capsys, "inspect", tmp_path / "nowhere")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "has no run.json and no steps.jsonl" in refused(capsys, "inspect", empty)
    path = rollouts_file(run_dir, 2)
    path.write_bytes(path.read_bytes()[:-9])
    assert "step-000002.parquet: not a whole Parquet file" in refused(capsys, "inspect", run_dir, "--worst")
    assert march("inspect", run_dir, "--step", 1) == 0  # the others can still be looked at
    path.unlink()
    assert "step-000002.parquet: no such file" in refused(capsys, "inspect", run_dir, "--worst")
    (run_dir / "rollouts" / "step-000003.parquet").replace(path)
    (run_dir / "steps.jsonl").write_text('{"step": 2, "rollouts/kept": 3}\n')
    assert "holds 4 answers, but steps.jsonl says 3" in refused(capsys, "inspect", run_dir, "--worst")
    (run_dir / "steps.jsonl").write_text("{torn\n")
    assert "steps.jsonl: a line is not JSON" in refused(capsys, "inspect", run_dir)
    (run_dir / "run.json").write_text("[")
    assert "run.json: not JSON" in refused(capsys, "inspect", run_dir)

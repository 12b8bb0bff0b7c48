"""The ablations' harness: what is a cell, when it is run, what is kept, and what the rows say. Trainings are
played; the statistics are held against tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.ablations import __main__ as command
from bench.ablations import cell as cells
from bench.ablations import page, results
from bench.ablations.compare import Interval, decide, find, mean_interval, pooled_rate
from bench.ablations.plan import Cell, Comparison, Plan, load_plan
from bench.ablations.plot import draw
from bench.ablations.results import Figures, Row, Trained, append_row, figures_of, read_rows, trained_of
from pipeline.record.run import TrainingFailedError
from pipeline.settings.recipe import TINY_POLICY, Recipe, load_recipe
from pipeline.tiny.manifest import read_manifest
from pipeline.tiny.supervised import parse_arguments, stages_of
from tests.test_demo_report import evaluation, judged

PLAN = load_plan()
TRAINED = Trained(
    num_answers=640, supported=0.9, false_accept=0.01, unscored=0.0, solver_kl=0.1, num_checker_turns=2500
)


def figures(
    faithful: int = 90, *, false_accept: int = 0, checker: float = 0.9, right: tuple[int, ...] | None = None
) -> Figures:
    return Figures(
        num_worlds=100, faithful=faithful, false_accept=false_accept, false_reject=0, supported=90,
        right=right, unscored=0, checker=checker, consensus=0.95, coverage=1.0, numbers=2.0, claims=2.0,
    )  # fmt: skip


def row(arm: str = "base", seed: int = 0, *, after: Figures | None = None, **changes: Any) -> Row:
    known = {
        "arm": arm, "seed": seed, "settings": "d1gest", "code": "c0de",
        "date": "2026-01-01", "wall_s": 360.0, "before": figures(60), "after": after or figures(),
        "trained": TRAINED,
    }  # fmt: skip
    return Row.model_validate(known | changes)


def failed(**changes: Any) -> Row:
    none = {"before": None, "after": None, "trained": None}
    return Row.model_validate(row().model_dump() | none | {"failure": "it died", "num_failures": 1} | changes)


# What a cell is.


@pytest.mark.parametrize("arm", PLAN.arms)
def test_every_arm_is_a_recipe_that_loads(arm: str) -> None:
    recipe = load_recipe(PLAN.recipe, Cell(plan=PLAN, arm=arm, seed=3).overrides("/start"))
    steps = PLAN.arms[arm].steps or PLAN.steps
    assert (recipe.seed, recipe.model, recipe.data.max_steps) == (3, "/start", steps)
    assert recipe.checkpoint.every > steps
    assert Recipe.model_validate_json(recipe.model_dump_json()) == recipe, "the worker reads it from a file"
    if recipe.reward.sampler is not None:
        assert recipe.reward.sampler.model == "/start"


@pytest.mark.parametrize("start", PLAN.starts)
def test_every_start_is_a_recipe_that_can_be_made(start: str) -> None:
    arguments = PLAN.starts[start].arguments
    base, errors = stages_of(parse_arguments([*arguments, "--out", "x"]))
    assert not arguments or (base.num_steps >= 100 and errors.num_steps == 0), "errors would not be natural"


def test_cells_differ_by_digest_and_those_of_one_start_and_world_share_their_first_measurement() -> None:
    all_cells = list(PLAN.cells())
    assert len(all_cells) == len(PLAN.arms) * len(PLAN.seeds) == len({cell.digest for cell in all_cells})
    shared = {name: Cell(plan=PLAN, arm=name, seed=0).start_digest for name in PLAN.arms}
    assert shared["base"] == shared["plain"] == shared["frozen"]
    assert shared["harder"] == shared["harder_solver_only"]
    assert len({shared[name] for name in ("base", "undertrained", "harder", "long", "ambiguous")}) == 5


def test_a_digest_knows_settings_but_neither_folders_nor_names() -> None:
    cell = Cell(plan=PLAN, arm="base", seed=0)
    before = cell.digest
    changed = PLAN.model_copy(update={"steps": PLAN.steps + 1})
    assert Cell(plan=changed, arm="base", seed=0).digest != before
    renamed = PLAN.arms["base"].model_copy(update={"about": "something else"})
    said = PLAN.model_copy(update={"arms": {**PLAN.arms, "base": renamed}})
    assert Cell(plan=said, arm="base", seed=0).digest == before
    tracked = renamed.model_copy(update={"set": ("tracking.experiment=other", "checkpoint.keep=5")})
    assert (
        Cell(plan=PLAN.model_copy(update={"arms": {**PLAN.arms, "base": tracked}}), arm="base", seed=0).digest
        == before
    )


def test_cells_come_block_by_block_and_seed_by_seed() -> None:
    first = [(cell.arm, cell.seed) for cell in PLAN.cells()][: len(PLAN.blocks[0]) + 1]
    assert first == [*((arm, PLAN.seeds[0]) for arm in PLAN.blocks[0]), (PLAN.blocks[0][0], PLAN.seeds[1])]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"blocks": (("base",),)}, "blocks: must name every arm once"),
        ({"starts": {}}, "start"),
        (
            {
                "comparisons": (
                    {"question": "?", "arm": "x", "figure": "faithful", "claim": "higher", "by": "paper"},
                )
            },
            "no arms",
        ),
        (
            {"arms": PLAN.model_dump()["arms"] | {"base": {"about": "longer", "steps": PLAN.steps + 1}}},
            "differ in steps",
        ),
    ],
)
def test_a_plan_that_does_not_fit_together_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Plan.model_validate(PLAN.model_dump() | changes)


# What is kept.


def test_rows_have_figures_or_a_reason(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neither figures nor a failure"):
        row(trained=None)
    with pytest.raises(ValueError, match="a failure has no figures"):
        row(failure="it died")
    append_row(failed(), folder=tmp_path)
    append_row(row(after=figures(80)), folder=tmp_path)
    append_row(row(seed=1), folder=tmp_path)
    newest = read_rows("base", folder=tmp_path)
    assert (newest[0].failure, newest[0].after, newest[1].seed) == (None, figures(80), 1)
    assert len((tmp_path / "base.jsonl").read_text().splitlines()) == 3, "what failed stays on record"


def test_figures_are_those_of_the_evaluation_and_of_the_last_quarter_of_the_steps() -> None:
    kept = figures_of(evaluation(faithful=0.5, false_accept=0.1))
    assert (kept.num_worlds, kept.faithful, kept.false_accept, kept.supported) == (40, 20, 4, 24)
    assert kept.checker == pytest.approx(5 / 6, abs=1e-4)
    assert kept.right is None and kept.faithful_rate == 0.5
    steps = [{"oracle/false_accept_rate": 0.0, "checker/num_trained": 60.0}] * 6
    steps += [{"oracle/false_accept_rate": 0.1, "checker/num_trained": 60.0}] * 2
    kept_steps = trained_of(steps, answers_per_step=64)
    assert (kept_steps.num_answers, kept_steps.false_accept, kept_steps.num_checker_turns) == (128, 0.1, 480)


def test_several_tries_are_kept_by_world_and_tell_the_share() -> None:
    asked_once = evaluation(faithful=0.5)
    answers = tuple(
        judged(i, faithful=i < 20, accepted=True, num_faithful=(i < 10) * 2 + (i < 30)) for i in range(40)
    )
    setup = asked_once.setup.model_copy(update={"num_tries": 3})
    kept = figures_of(asked_once.model_copy(update={"answers": answers, "setup": setup}))
    assert kept.right == (10, 20, 0, 10) and kept.faithful == 20
    assert kept.faithful_rate == pytest.approx(50 / 120)


@pytest.mark.parametrize("arm", PLAN.arms)
def test_committed_rows_can_be_read(arm: str) -> None:
    assert all(row.arm == arm for row in read_rows(arm).values())


def test_the_page_equals_the_data() -> None:
    rendered = page.render(PLAN, page.rows_of_today(PLAN))
    assert page.PAGE.read_text() == rendered, "run `python -m bench.ablations --page`"


# What the rows say.


def comparison(**changes: Any) -> Comparison:
    known = {
        "question": "?",
        "arm": "base",
        "against": "plain",
        "figure": "faithful",
        "claim": "higher",
        "by": "paper",
    }
    return Comparison.model_validate(known | changes)


def test_the_interval_is_students() -> None:
    found = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])  # t(0.975, 4) = 2.776, standard error 0.7071
    assert (found.value, found.low, found.high) == pytest.approx((3.0, 1.0368, 4.9632), abs=1e-3)
    assert mean_interval([0.0, 0.0, 0.0]) == Interval(0.0, 0.0, 0.0)


def test_the_rate_is_pooled_with_wilsons_interval_where_seeds_are_alike() -> None:
    for counts, totals in (([5], [10]), ([1] * 5, [2] * 5)):
        found = pooled_rate(counts, totals)
        assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.2366, 0.7634), abs=1e-4)
    assert pooled_rate([0] * 5, [400] * 5).high == pytest.approx(0.0019, abs=1e-4)


def test_the_rate_of_seeds_that_differ_has_students_interval() -> None:
    """Five models, and not 2,000 independent answers."""
    found, rates = pooled_rate([31, 45, 27, 10, 15], [400] * 5), [31, 45, 27, 10, 15]
    student = mean_interval([rate / 400 for rate in rates])
    assert (found.low, found.high) == pytest.approx((student.low, student.high))
    assert (found.low, found.high) == pytest.approx((0.021, 0.107), abs=1e-3)


@pytest.mark.parametrize(
    ("low", "high", "claim", "verdict"),
    [
        (0.01, 0.05, "higher", "yes"),
        (0.01, 0.05, "lower", "no"),
        (-0.05, -0.01, "lower", "yes"),
        (-0.05, -0.01, "higher", "no"),
        (-0.01, 0.05, "higher", "undecided"),
        (0.0, 0.0, "lower", "undecided"),
    ],
)
def test_verdicts_follow_the_rule(low: float, high: float, claim: str, verdict: str) -> None:
    assert decide(Interval((low + high) / 2, low, high), comparison(claim=claim)) == verdict


def test_differences_are_paired_by_seed_and_failures_are_no_figures() -> None:
    base = {seed: row(seed=seed, after=figures(90 + seed)) for seed in range(5)}
    plain = {seed: row("plain", seed, after=figures(80 + 2 * seed)) for seed in range(5)}
    found = find(comparison(), {"base": base, "plain": plain}, PLAN)
    assert found.differences == pytest.approx((0.10, 0.09, 0.08, 0.07, 0.06))
    assert (found.verdict, len(found.differences)) == ("yes", 5)
    plain[2] = failed(arm="plain", seed=2)
    found = find(comparison(), {"base": base, "plain": plain}, PLAN)
    assert (found.verdict, len(found.differences)) == ("4 of 5 seeds run", 4)
    assert find(comparison(), {}, PLAN).verdict == "0 of 5 seeds run"


def test_two_arms_are_a_pair_only_from_the_same_weights() -> None:
    base = {seed: row(seed=seed, after=figures(90), start="a" if seed < 3 else "b") for seed in range(5)}
    plain = {seed: row("plain", seed, after=figures(80), start="a") for seed in range(5)}
    found = find(comparison(), {"base": base, "plain": plain}, PLAN)
    assert (found.verdict, len(found.differences)) == ("3 of 5 seeds run", 3)
    assert len(find(comparison(against=None), {"base": base}, PLAN).differences) == 5


def test_without_another_arm_the_start_is_what_it_is_held_against() -> None:
    base = {seed: row(seed=seed, after=figures(70 + seed)) for seed in range(5)}
    found = find(comparison(against=None), {"base": base}, PLAN)
    assert found.differences == pytest.approx((0.10, 0.11, 0.12, 0.13, 0.14)) and found.verdict == "yes"


@pytest.mark.parametrize("num_seeds", [0, 1, 5])
def test_page_and_plot_are_the_same_for_the_same_rows(tmp_path: Path, num_seeds: int) -> None:
    rows = {arm: {s: row(arm, s, after=figures(80 + s)) for s in range(num_seeds)} for arm in PLAN.arms}
    text = page.render(PLAN, rows)
    assert ("seeds run" not in text) if num_seeds == 5 else (f"{num_seeds} of 5 seeds run" in text)
    findings = [find(one, rows, PLAN) for one in PLAN.comparisons]
    draw(findings, tmp_path / "a.svg")
    draw(findings, tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_how_a_start_errs_comes_from_rows_with_several_tries() -> None:
    several = row(seed=0).model_copy(update={"before": figures(60, right=(25, 0, 25, 50))})
    rows: dict[str, dict[int, Row]] = {arm: {} for arm in PLAN.arms} | {
        "base": {0: several},
        "plain": {0: row("plain")},
    }
    text = page.render(PLAN, rows)
    assert "| 66.7% | 50.0% | 25.0% | 25.0% | 0.0%" in text
    without = page.render(PLAN, rows | {"base": {}})
    assert "| 60.0% |  |  |  | 0.0%" in without


# When a cell is run.


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, int]]:
    """Cells end at once and rows go to a folder of the test; holds what was run."""
    ran: list[tuple[str, int]] = []

    def run_cell(cell: Cell, scratch: Path) -> Row:
        ran.append((cell.arm, cell.seed))
        return row(cell.arm, cell.seed, settings=cell.digest)

    monkeypatch.setattr(cells, "run_cell", run_cell)
    monkeypatch.setattr(command, "SCRATCH", tmp_path / "scratch")
    monkeypatch.setattr(command, "read_rows", lambda arm: read_rows(arm, folder=tmp_path))
    monkeypatch.setattr(command, "append_row", lambda row: append_row(row, folder=tmp_path))
    monkeypatch.setattr(page, "write", lambda plan: None)
    return ran


TWO = ["--arms", "base", "plain", "--seeds", "0", "1"]


def test_a_call_runs_what_is_missing_and_the_next_one_nothing(
    played: list[tuple[str, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(TWO) == 0
    assert played == [("base", 0), ("plain", 0), ("base", 1), ("plain", 1)]
    assert command.main(TWO) == 0 and len(played) == 4
    printed = capsys.readouterr().out
    assert "[4/4] plain seed 1" in printed and "4 of 4 cells are there; 0 to run" in printed


def test_no_cell_is_begun_that_would_end_too_late(
    played: list[tuple[str, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([*TWO, "--max-hours", "0.11"]) == 0  # 396 s: less than the guess for one cell
    assert played == [] and "the same command goes on with base seed 0" in capsys.readouterr().out


def test_a_cell_of_other_settings_is_run_again_and_said_so(
    played: list[tuple[str, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append_row(row(settings="of yesterday"), folder=tmp_path)
    command.main(["--arms", "base", "--seeds", "0"])
    assert played == [("base", 0)]
    assert "base seed 0: its settings changed since 2026-01-01; it is run again" in capsys.readouterr().out


def test_a_failed_cell_is_tried_again_once_and_then_left(
    played: list[tuple[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(cell: Cell, scratch: Path) -> Row:
        played.append((cell.arm, cell.seed))
        return failed(settings=cell.digest)

    monkeypatch.setattr(cells, "run_cell", fail)
    one = ["--arms", "base", "--seeds", "0"]
    assert [command.main(one) for _ in range(3)] == [1, 1, 0]
    assert len(played) == 2 and read_rows("base", folder=tmp_path)[0].num_failures == 2
    assert command.main([*one, "--retry"]) == 1 and len(played) == 3


def test_a_cell_that_is_killed_leaves_nothing(
    played: list[tuple[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(cell: Cell, scratch: Path) -> Row:
        raise KeyboardInterrupt

    monkeypatch.setattr(cells, "run_cell", killed)
    with pytest.raises(KeyboardInterrupt):
        command.main(TWO)
    assert list(tmp_path.glob("*.jsonl")) == []


# How a cell is run.


class Stage:
    """Plays the training and the modules that a cell starts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.modules: list[str] = []
        self.on_training: Callable[[Path], None] = lambda folder: None
        monkeypatch.setattr(cells, "train", self.train)
        monkeypatch.setattr(cells, "_run_module", self.run_module)

    def train(self, recipe: str, *, run_dir: Path, overrides: list[str]) -> int:
        assert not run_dir.exists(), "a cell has one life"
        run_dir.mkdir()
        self.on_training(run_dir)
        steps = [{"step": step, "oracle/false_accept_rate": 0.0} for step in range(4)]
        (run_dir / "steps.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
        return 0

    def run_module(self, line: list[str], log: Path) -> None:
        name = line[0].rpartition(".")[2]
        self.modules.append(name)
        if name == "evaluate":
            trained = Path(line[1]).name == "model"
            measured = evaluation(faithful=0.9 if trained else 0.6)
            Path(line[2]).parent.mkdir(parents=True, exist_ok=True)
            Path(line[2]).write_text(measured.model_dump_json())
        else:
            folder = Path(line[line.index("--out") + 1])
            folder.mkdir(parents=True)
            (folder / "manifest.json").write_text("{}")
            (folder / "model.safetensors").write_bytes(b"weights")


def test_a_cell_measures_trains_and_measures_and_shares_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stage = Stage(monkeypatch)
    done = cells.run_cell(Cell(plan=PLAN, arm="base", seed=0), tmp_path)
    assert done.before and done.after and (done.before.faithful, done.after.faithful) == (24, 36)
    assert done.failure is None and done.settings == Cell(plan=PLAN, arm="base", seed=0).digest
    assert done.preset == "paper"
    assert read_manifest(TINY_POLICY).files["model.safetensors"].startswith(done.start)
    cells.run_cell(Cell(plan=PLAN, arm="plain", seed=0), tmp_path)
    assert stage.modules == ["evaluate"] * 3, "the second cell took the first one's start"


def test_natural_starts_are_trained_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stage = Stage(monkeypatch)
    for arm in ("harder", "long"):
        cells.run_cell(Cell(plan=PLAN, arm=arm, seed=0), tmp_path)
    assert stage.modules.count("supervised") == 1
    assert cells.start_model(PLAN.starts["injected"], tmp_path) == TINY_POLICY


def test_a_training_that_stops_is_a_failure_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(folder: Path) -> None:
        (folder / "train.log").write_text("...\nValueError: the reason\n\n")
        raise TrainingFailedError(f"33 of 64 answers have no reward (log: {folder}/train.log)")

    stage = Stage(monkeypatch)
    stage.on_training = stop
    done = cells.run_cell(Cell(plan=PLAN, arm="base", seed=0), tmp_path)
    assert done.failure is not None and done.failure.startswith(
        "33 of 64 answers have no reward (log: /runs/base"
    )
    assert done.failure.endswith("ValueError: the reason")
    assert (done.before, done.after, done.trained, done.num_failures) == (None, None, None, 1)


def test_what_a_killed_call_left_is_thrown_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    left = tmp_path / "runs" / "base-0-killed" / "training"
    left.mkdir(parents=True)
    (left / "run.json").write_text("half")
    Stage(monkeypatch)
    assert cells.run_cell(Cell(plan=PLAN, arm="base", seed=0), tmp_path).failure is None
    assert not left.exists() and len(list((tmp_path / "runs").iterdir())) == 1


def test_results_lie_with_those_of_the_other_benchmarks() -> None:
    assert results.FOLDER.parent.name == "results"

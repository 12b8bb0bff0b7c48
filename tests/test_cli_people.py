"""What `march audit` does for people and for CI: settings, comparison, review, explanation, a threshold."""

import csv
import json
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from orchestration.cli import app
from tests.audit_jobs import shop_file, shop_row
from tests.march_cli import DATA, MARCH, ShopModel, march, refused, serve_shop, write_rows


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a running `ShopModel`."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve_shop() as address:
        yield address


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Thirty rows, every fifth with a wrong price."""
    return write_rows(tmp_path)


def test_settings_of_a_model_that_are_set_have_no_effect_either(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--set", "early_stop=true", "--set", "number_words=false", "--seed", 3)
    assert march("audit", rows, "--out", tmp_path / "out.jsonl", *options) == 0
    assert capsys.readouterr().err == (
        "march: --set early_stop has no effect without --model\nmarch: --seed has no effect without --model\n"
    )
    settings = json.loads((tmp_path / "out.summary.json").read_text())["settings"]
    assert settings["audit"]["number_words"] is False


def test_settings_reach_the_audit(shop: str, rows: Path, tmp_path: Path) -> None:
    options = ("--model", shop, "--model-name", "shop", "--prompts", "compact", "--limit", 2)
    settings = ("--voters", 5, "--seed", 7, "--set", "checker.temperature=0.2", "--set", "uncovered=ignore")
    assert march("audit", rows, "--out", tmp_path / "out.jsonl", *options, *settings) == 0
    audit = json.loads((tmp_path / "out.summary.json").read_text())["settings"]["audit"]
    assert (audit["voters"], audit["seed"], audit["uncovered"]) == (5, 7, "ignore")
    assert audit["checker"]["temperature"] == 0.2


def test_folders_that_are_made_are_named(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page = tmp_path / "a" / "out.jsonl", tmp_path / "b" / "c" / "page.html"
    assert march("audit", rows, "--out", out, "--html", page) == 0
    assert capsys.readouterr().out.endswith(f"\nNew folders: {out.parent}, {page.parent}\n")
    assert march("audit", rows, "--out", out, "--html", page) == 0
    assert "New folders" not in capsys.readouterr().out


@pytest.mark.parametrize("columns", [40, 60])
def test_in_a_narrow_terminal_words_and_figures_are_whole(
    columns: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    row = shop_row(100) | {"response": "On 3 June 1987 Ann Miller paid 100 euros."}
    assert march("audit", shop_file(tmp_path, [row]), "--out", tmp_path / "out.jsonl") == 0
    shown = capsys.readouterr().out
    assert "supported" in shown and "33.3%" in shown and "\u2026" not in shown
    assert ("names" in shown.partition("Claims")[2].partition("Numbers")[0]) == (columns == 60)


def test_keys_that_are_not_used_are_counted_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [shop_row(100) | {"model": "m", "": 0}, shop_row(101) | {"model": "m", "sc\x1bore": 1}]
    command = ("audit", shop_file(tmp_path, rows), "--out", tmp_path / "out.jsonl")
    for _ in ("audited", "audited before"):
        assert march(*command) == 0
        assert "\n3 keys of rows are not used: '', model, sc\ufffdore\n" in capsys.readouterr().out
    summary = json.loads((tmp_path / "out.summary.json").read_text())
    assert summary["unused_keys"] == {"": 1, "model": 2, "sc\x1bore": 1}


@pytest.mark.parametrize(("share", "code", "says"), [("0.8", 0, "Passed"), ("0.801", 3, "Failed")])
def test_a_share_of_supported_rows_can_be_demanded(
    share: str, code: int, says: str, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert march("audit", rows, "--out", tmp_path / "out.jsonl", "--fail-under", share) == code
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        f"{says} --fail-under {share}: 0.800 of 30 rows are SUPPORTED (6 REFUTED, 0 NO_CLAIMS, 0 UNSCORED)"
    )


def test_a_share_is_the_decimal_that_was_given(tmp_path: Path) -> None:
    """55 of 100 are 0.55, though 0.55 * 100 is more than 55 in binary."""
    rows = [shop_row(100 + i, said=None if i < 55 else 7) for i in range(100)]
    path = shop_file(tmp_path, rows)
    assert march("audit", path, "--out", tmp_path / "out.jsonl", "--fail-under", 0.55) == 0


def test_the_name_of_a_part_is_no_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [shop_row(100 + i) | {"task_type": "[/QA]\x1b[2J", "human_spans": []} for i in range(2)]
    assert march("audit", shop_file(tmp_path, rows), "--out", tmp_path / "out.jsonl") == 0
    shown = capsys.readouterr().out
    assert "[/QA]" in shown and "\x1b[2J" not in shown


def test_rows_that_say_nothing_or_could_not_be_scored_are_no_success(
    shop: str, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = tmp_path / "silent.jsonl"
    silent.write_text(rows.read_text().splitlines()[0].replace("It is 100 euros.", "Yes."))
    assert march("audit", silent, "--out", tmp_path / "a.jsonl", "--fail-under", 0.01) == 3
    monkeypatch.setattr(ShopModel, "do_POST", lambda self: self.reply({"choices": []}))
    options = ("--model", shop, "--model-name", "shop", "--prompts", "compact", "--limit", 2)
    assert march("audit", rows, "--out", tmp_path / "b.jsonl", *options, "--fail-under", 0.01) == 3


def test_two_runs_are_compared(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert march("audit", rows, "--out", tmp_path / "before.jsonl") == 0
    fixed = tmp_path / "fixed.jsonl"
    fixed.write_text(rows.read_text().replace("It is 7 euros", "It is 104 euros", 1))
    options = ("--compare", tmp_path / "before.summary.json")
    capsys.readouterr()
    assert march("audit", fixed, "--out", tmp_path / "after.jsonl", *options) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Compared with before.jsonl" in printed and "REFUTED 6 5 -1" in printed
    assert "30 rows have the same query and documents, 1 of them another answer; 1 turned" in printed
    assert "Refuted of the 30 rows that both audits scored: 20.0% before, 16.7% now" in printed
    assert "settings" not in printed
    assert march("audit", fixed, "--out", tmp_path / "b.jsonl", *options, "--set", "kinds=[number]") == 0
    assert "The audits were made with other settings" in " ".join(capsys.readouterr().out.split())


def test_claims_go_out_for_review_and_come_back(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, sheet = tmp_path / "out.jsonl", tmp_path / "review.csv"
    command = ("audit", rows, "--out", out, "--review", sheet)
    assert march(*command) == 0
    assert march(*command) == 0  # an empty review may be written again
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        claims = list(csv.DictReader(file))
    for claim in claims[:10]:
        claim["human"] = "supported"
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, claims[0])
        writer.writeheader()
        writer.writerows(claims)
    capsys.readouterr()
    assert march("review", sheet, out) == 0
    printed = capsys.readouterr().out
    assert "10 of 30 claims reviewed" in printed
    assert "Agreement 0.800" in printed and "r4, claim 1: audit" in printed
    assert "holds 10 reviewed claims" in refused(capsys, *command)


def test_one_rows_path_is_explained_with_and_without_an_output(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert march("audit", rows, "--explain", "r4") == 0
    printed = capsys.readouterr().out
    assert "REFUTED r4" in printed and "Audited now; nothing was written" in printed
    assert march("audit", rows, "--out", out) == 0
    before = out.read_bytes()
    capsys.readouterr()
    assert march("audit", rows, "--out", out, "--explain", "r4") == 0
    assert f"From {out}" in capsys.readouterr().out.replace("\n", "")
    assert out.read_bytes() == before


@pytest.mark.parametrize(("name", "delimiter"), [("in.csv", ","), ("in.tsv", "\t")])
def test_a_table_is_audited_by_its_name(name: str, delimiter: str, tmp_path: Path) -> None:
    with (tmp_path / name).open("w", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(
            [["id", "query", "response", "context"], ["a", "How much?", "5 euros.", "It costs 5 euros."]]
        )
    assert march("audit", tmp_path / name, "--out", tmp_path / "out.jsonl", "--fail-under", 1) == 0


def test_no_help_is_cut_at_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in get_command(app).commands:
        assert march(name, "--help") == 0
        assert "…" not in capsys.readouterr().out, name


def test_help_costs_next_to_nothing() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*MARCH, "audit", "--help"], check=True, capture_output=True, cwd=DATA.parents[1])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert cpu_s < 1.5  # 0.4 on a machine that does nothing else


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_cannot_show_a_sign_ends_no_command(encoding: str) -> None:
    """The arrow of what to fix ended `march doctor`."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    command = [*MARCH, "doctor", "--only", "machine"]
    done = subprocess.run(
        command, env=environment, capture_output=True, encoding=encoding, cwd=DATA.parents[1]
    )
    assert done.returncode in (0, 1) and done.stderr == "" and "found, \\u2192 what to fix" in done.stdout

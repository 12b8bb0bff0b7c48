"""Tables in a terminal of 80 columns and in a pipe: no figure is cut, and no digest takes many lines."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import pytest
from rich.console import Console

from orchestration.commands.promote_view import ModelReport, print_models, print_report
from orchestration.promotion.records import GateReport, GateResult, GateState
from orchestration.registry.store import ModelVersion
from orchestration.terminal.messages import table_console
from pipeline.artifacts.local import LocalBackend
from pipeline.artifacts.store import ArtifactStore
from pipeline.artifacts.terminal import print_garbage, print_manifests
from pipeline.artifacts.upkeep import find_garbage
from pipeline.evaluate.compare import Choice
from pipeline.evaluate.report import print_choice
from pipeline.statistics import MacroAverage
from reward.offline.bootstrap import Interval

DIGEST = "0123456789abcdef" * 4


@pytest.fixture
def narrow() -> Console:
    return Console(file=io.StringIO(), width=80)


def shown(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_averages_of_long_names_are_whole(narrow: Console) -> None:
    names = [f"runs/retrain/shop/evaluate-bf05cba803bca512/eval{number}" for number in (1, 2)]
    near = Interval(low=0.905, high=0.985)
    one = MacroAverage(value=0.952, interval=near, parts={})
    averages = dict.fromkeys(names, one)
    missing = dict.fromkeys(names, 0.0)
    print_choice(Choice(best=names[0], averages=averages, behind={}, missing=missing), narrow)
    lines = shown(narrow)
    assert sum("95.2" in line and "90.5 to 98.5" in line for line in lines) == 2, lines
    assert all(name in "".join("".join(line[:40].split()) for line in lines) for name in names)


def test_the_gates_figures_are_whole(narrow: Console) -> None:
    figures = {"candidate/tiny/accuracy": 0.91234, "documents": 123.0}
    one = GateResult(gate="slice shops", state=GateState.INCONCLUSIVE, reason="so few of them changed " * 9)
    gates = (one.model_copy(update={"figures": figures, "bound": "a lower bound above " * 5}),)
    print_report(GateReport(gates=gates, policy_sha256=""), narrow)
    text = "\n".join(shown(narrow))
    assert "0.912" in text and "accuracy" in text and "inconclusive" in text, text


def test_a_version_is_two_or_three_lines_and_whole_in_a_pipe(
    narrow: Console, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"file:///srv/shop/runs/artifacts/manifests/sha256/01/{DIGEST}"
    version = ModelVersion("12", uri, DIGEST, ("champion", "previous"), {}, 0)
    report = ModelReport("shop-solver", [version])
    print_models([report], narrow)
    assert "cdef" in shown(narrow)[-1], "the address is not cut at its end"
    assert len(shown(narrow)) <= 4 and any("12" in line and DIGEST[:12] in line for line in shown(narrow))
    monkeypatch.delenv("COLUMNS", raising=False)
    print_models([report], table_console())
    assert uri in capsys.readouterr().out


@pytest.mark.parametrize("reports", [[], [ModelReport("nomodel", [])]], ids=["none", "unknown"])
def test_where_no_version_is_the_list_says_what_makes_one(
    reports: list[ModelReport], narrow: Console
) -> None:
    print_models(reports, narrow)
    assert shown(narrow) == ["no version is registered; `march model register MODEL WEIGHTS` registers one"]


def test_what_is_stored_is_a_few_lines(narrow: Console, tmp_path: Path) -> None:
    store = ArtifactStore(LocalBackend(tmp_path))
    digest = store.publish(kind="evaluation").digest
    store.move(f"retrain/shop/evaluate_champion/{DIGEST}", digest, expected=None)
    print_manifests(store, narrow)
    [row] = [index for index, line in enumerate(shown(narrow)) if digest[:12] in line]
    assert len(shown(narrow)) - row <= 4


def test_what_can_go_is_counted_in_whole_lines(narrow: Console, tmp_path: Path) -> None:
    store = ArtifactStore(LocalBackend(tmp_path))
    none = find_garbage(store, grace=timedelta(0))
    print_garbage(none, narrow)
    said = "0 pointers, 0 manifests, 0 objects, 0 unfinished uploads; 0.0 MB"
    assert shown(narrow) == ["0 kept, beside what is within the grace", said]

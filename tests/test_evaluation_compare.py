"""The best checkpoint of several, and the names of all figures."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from orchestration.registry.evaluated import metrics_of
from pipeline.evaluate.compare import choose_best, compare
from pipeline.evaluate.report import print_choice
from pipeline.evaluate.results import Counts, read_manifest
from pipeline.statistics import OVERALL, by_slice, estimates, macro_average
from reward.offline.files import file_sha256
from tests.promotion_evidence import evidence, write_evidence


def whole(
    folder: Path,
    passed: Callable[[int], float | None],
    *,
    num_items: int = 100,
    counts: Counts | None = None,
) -> Path:
    """An evaluation with its average, as a file."""
    found = evidence(passed, num_items=num_items, counts=counts)
    primary = {"shops": estimates(found.items["shops"])["right"]}
    manifest = found.manifest.model_copy(update={"average": macro_average(primary)})
    return write_evidence(folder, replace(found, manifest=manifest))


def test_the_best_checkpoint_and_those_that_cannot_be_told_from_it(tmp_path: Path) -> None:
    runs: dict[str, Callable[[int], float | None]] = {
        "step20": lambda index: 0.0,
        "step40": lambda index: float(index % 10 < 8 and index >= 3),
        "step60": lambda index: float(index % 10 < 8),
        "step80": lambda index: float(index % 10 < 8),
    }
    folders = {name: str(whole(tmp_path / name, passed)) for name, passed in runs.items()}
    found = choose_best([Path(folder) for folder in folders.values()])
    assert found.best == folders["step60"]
    assert found.averages[folders["step60"]].value == pytest.approx(0.8)
    assert found.behind[folders["step20"]].value == pytest.approx(0.8)
    console = Console(file=io.StringIO(), width=200)
    print_choice(found, console)
    near = f"Cannot be distinguished from it: {folders['step40']}, {folders['step80']}\n"
    assert near in console.file.getvalue()


def test_a_checkpoint_whose_hard_answers_are_missing_is_not_the_best(tmp_path: Path) -> None:
    every = whole(tmp_path / "step20", lambda index: float(index < 80))
    hard = whole(tmp_path / "step40", lambda index: float(index < 54) if index < 60 else None)
    found = choose_best([every, hard])
    assert found.best == str(every) and found.missing[str(hard)] == pytest.approx(0.4)
    console = Console(file=io.StringIO(), width=200)
    print_choice(found, console)
    assert f"{hard} (40.0% missing)" in console.file.getvalue()
    assert f"Not chosen, since more than 5% is missing: {hard}" in console.file.getvalue()
    with pytest.raises(ValueError, match=r"none has an average with at most 5% missing \(.*step40: 40.0%"):
        choose_best([hard])


def test_lost_answers_of_items_with_a_score_are_missing_too(tmp_path: Path) -> None:
    lost = Counts(num_items=100, num_generations=600, num_unfinished=200)
    every = whole(tmp_path / "step20", lambda index: float(index < 80))
    half = whole(tmp_path / "step40", lambda index: float(index < 85), counts=lost)
    assert choose_best([every, half]).best == str(every)
    assert choose_best([every, half]).missing[str(half)] == 0.25


def test_a_best_one_that_is_worse_on_what_both_have_is_said_to_be(tmp_path: Path) -> None:
    best = whole(tmp_path / "step20", lambda index: float(index < 54))
    hard = whole(tmp_path / "step40", lambda index: 1.0 if index < 60 else None)
    console = Console(file=io.StringIO(), width=200)
    print_choice(choose_best([best, hard]), console)
    assert f"On the items that both have it is worse than: {hard}" in console.file.getvalue()
    assert "Cannot be distinguished" not in console.file.getvalue()


def test_checkpoints_are_compared_on_the_items_that_all_have(tmp_path: Path) -> None:
    """Easy items that one lacks would lower its mean, hard ones raise it."""
    one = whole(tmp_path / "step20", lambda index: float(index < 50))
    other = whole(tmp_path / "step40", lambda index: float(index < 49) if index < 96 else None)
    found = choose_best([one, other])
    assert found.best == str(one)
    assert [average.value for average in found.averages.values()] == [50 / 96, 49 / 96]


def test_other_items_under_the_same_names_are_not_compared(tmp_path: Path) -> None:
    folders = []
    for name, digest in (("a", "1" * 64), ("b", "2" * 64)):
        folder = whole(tmp_path / name, lambda index: float(index % 10 < 8))
        items = folder / "shops" / "items.jsonl"
        lines = [json.loads(line) | {"sha256": digest} for line in items.read_text().splitlines()]
        items.write_text("".join(json.dumps(line) + "\n" for line in lines))
        results = json.loads((folder / "results.json").read_text())
        results["benchmarks"]["shops"] |= {"results_sha256": file_sha256(items), "items_sha256": digest}
        (folder / "results.json").write_text(json.dumps(results))
        folders.append(folder)
    with pytest.raises(ValueError, match=r"item .* of shops is another one"):
        compare(*folders)
    with pytest.raises(ValueError, match="shops has other items"):
        choose_best(folders)


def test_without_an_average_there_is_no_best(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none has an average"):
        choose_best([whole(tmp_path / "one", lambda index: None)])


def test_mlflow_has_every_figure_with_its_ends(tmp_path: Path) -> None:
    manifest = read_manifest(whole(tmp_path / "one", lambda index: float(index % 2)))
    items = evidence(lambda index: float(index % 2), num_items=100).items
    estimated = {"shops": {part: estimates(found) for part, found in by_slice(items["shops"]).items()}}
    estimated["calibration"] = manifest.benchmarks["calibration"].estimates
    figures = {
        name: one.model_copy(update={"estimates": estimated[name]})
        for name, one in manifest.benchmarks.items()
    }
    found = metrics_of(manifest.model_copy(update={"benchmarks": figures}))
    east, kappa = estimated["shops"]["east"]["right"], estimated["calibration"][OVERALL]["cohens_kappa"]
    assert east.interval is not None and kappa.interval is not None and manifest.average is not None
    assert (found["shops/right"], found["shops/east/right"]) == (0.5, east.value)
    assert found["shops/east/right/high"] == east.interval.high
    assert found["calibration/cohens_kappa/low"] == kappa.interval.low
    assert found["average"] == manifest.average.value and found["shops/num_items"] == 100.0
    assert "average/right" not in found

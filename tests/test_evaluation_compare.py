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
from pipeline.evaluate.results import read_manifest
from pipeline.statistics import OVERALL, by_slice, estimates, macro_average
from reward.offline.files import file_sha256
from tests.promotion_evidence import evidence, write_evidence


def whole(folder: Path, passed: Callable[[int], float | None], *, num_items: int = 100) -> Path:
    """An evaluation with its average, as a file."""
    found = evidence(passed, num_items=num_items)
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

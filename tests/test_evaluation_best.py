"""Two models on the same items, and the best checkpoint of several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.evaluate.compare import choose_best
from pipeline.evaluate.statistics import estimates, macro_average
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
    assert found.not_told_apart == (folders["step40"], folders["step80"])


def test_without_an_average_there_is_no_best(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none has an average"):
        choose_best([whole(tmp_path / "one", lambda index: None)])

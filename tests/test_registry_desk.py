"""Decisions by a real desk over a registry in memory: what stands, what is asked of whom, what failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.registry.decisions import LostRaceError
from orchestration.retrain import decision
from orchestration.retrain.stages import Stage, StageRequest
from orchestration.retrain.workshop import Workshop
from tests.memory_registry import MemoryRegistry, desk_over, promote
from tests.retrainings import rig


@pytest.mark.parametrize("evaluated", [None, "3"], ids=["nobody", "another"])
def test_an_evaluation_of_another_champion_refuses_nobody(
    evaluated: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = MemoryRegistry()
    desk = desk_over(registry, tmp_path / "history")
    promote(desk, "4")
    monkeypatch.setattr(decision, "open_desk", lambda *_given, **_named: desk)
    request = StageRequest(
        job=rig(tmp_path).place.plan.job.model_copy(update={"work": tmp_path / "work"}),
        stage=Stage.PROMOTE,
        key="k" * 64,
        inputs={"version": "1"},
        materials={"champion": evaluated},
        attempt=1,
    )
    with pytest.raises(LostRaceError, match="its evaluation is not of this one"):
        decision.promote(Workshop(request))
    assert len(registry.log) == 1

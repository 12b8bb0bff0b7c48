"""Learning rate and gradient norm of a step: of the updates that it took, policy and critic alike."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline import cpu

cpu.install()

from pipeline.record.metrics import STATUS_NAMES  # noqa: E402
from pipeline.training.updates import Updates  # noqa: E402


class Engine:
    """DeepSpeed's engine and scheduler: each optimizer step has the next norm, and then the next rate."""

    def __init__(self, *norms: float | None) -> None:
        self.norms, self.rates = list(norms), [0.3, 0.2, 0.1]
        self.norm: float | None = 0.0
        self.ends_step = False

    def set_gradient_accumulation_boundary(self, ends_step: bool) -> None:
        self.ends_step = ends_step

    def train(self) -> None:
        if self.ends_step:
            self.norm = self.norms.pop(0)
            self.rates.pop(0)

    def get_global_grad_norm(self) -> float | None:
        return self.norm

    def get_last_lr(self) -> list[float]:
        return self.rates[:1]


def figures(*norms: float | None, steps: list[int], passes: int) -> dict[str, Any]:
    """Of as many passes over micro-batches, of which `steps` says whether an update ends them."""
    engine = Engine(*norms)
    updates, buffer = Updates(engine, engine), SimpleNamespace(dynamic_optimizer_step=steps)
    for _ in range(passes):
        for place in range(len(steps)):
            with updates.micro_batch(buffer, place):  # type: ignore[arg-type]
                engine.train()
    of_openrlhf = {"policy_loss": 1.0, "actor_lr": 9.0, "actor_grad_norm": 9.0}
    return updates.figures(of_openrlhf, "actor")


def test_they_are_means_over_the_passes_and_not_over_micro_batches() -> None:
    found = figures(1.0, 3.0, steps=[0, 0, 1], passes=2)
    assert found == pytest.approx({"policy_loss": 1.0, "actor_lr": 0.25, "actor_grad_norm": 2.0})
    assert set(found) <= set(STATUS_NAMES)


def test_a_step_without_an_update_has_no_figure_of_one() -> None:
    assert figures(steps=[0, 0], passes=1) == {}


def test_a_norm_that_deepspeed_does_not_measure_is_no_number() -> None:
    assert math.isnan(figures(None, steps=[1], passes=1)["actor_grad_norm"])

"""`summary.json`: what a demo came to, for programs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from pipeline.models.cache import read_origin
from pipeline.settings.recipe import Recipe
from reward.types import Record


class Summary(Record):
    """`summary.json`: the demo's result for programs. Rates are shares in [0, 1]."""

    recipe: str = Field(default="tiny", description="Name or path, as `march train` takes it.")
    seed: int
    steps: int
    command: str = Field(default="", description="The same demo again.")
    preset: str | None = Field(default=None, description="Of the recipe; None where it names none.")
    model: str = Field(description="Where the training started.")
    rows_held_out: int = Field(description="Rows that both measurements rest on.")
    solver_right_before: float
    solver_right_after: float
    checker_right_before: float = Field(description="Single votes of the Checker by itself.")
    checker_right_after: float
    proposer_covers_before: float | None = Field(description="Answers whose every mention is asked about.")
    proposer_covers_after: float | None
    unscored_before: float
    unscored_after: float
    claims_per_answer_before: float
    claims_per_answer_after: float
    oracle_faithfulness_before: float
    oracle_faithfulness_after: float
    false_accept_before: float
    false_accept_after: float
    checker_accuracy_before: float = Field(description="As `checker_right_before`.")
    checker_accuracy_after: float
    reward_before: float | None = Field(description="None when no answer was scored.")
    reward_after: float | None
    num_checker_trajectories: int = Field(description="Checker rows that were trained, all steps together.")
    wall_s: float = Field(
        description="All phases of all calls; the time of a call that was killed is not counted."
    )
    mlflow_run_id: str
    goal_met: bool
    finding: str
    note: str
    phases_s: dict[str, float]
    intervals: dict[str, tuple[float, float]] = Field(description="95% intervals of the figures above.")


def first_model(recipe: Recipe) -> str:
    """What the training started from; for the result of a warm-up, what that started from."""
    origin = read_origin(Path(recipe.model_path))
    return origin.location if origin is not None and origin.source == "warmup" else recipe.model


def command_again(name: str, seed: int, steps: int, overrides: Sequence[str]) -> str:
    """The same demo again."""
    own = [one for one in overrides if not one.startswith(("seed=", "data.max_steps=", "model="))]
    words = ["--recipe", name] if name != "tiny" else []
    words += ["--seed", str(seed), "--steps", str(steps), *(word for one in own for word in ("--set", one))]
    return shlex.join(["march", "demo", *words, "--run-dir", f"runs/{Path(name).stem}-again"])

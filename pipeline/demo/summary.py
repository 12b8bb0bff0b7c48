"""`summary.json`: what a demo came to, for programs."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from pipeline.demo.evaluation import MEASURES, NUM_ROWS, Estimate, Evaluation
from pipeline.models.cache import read_origin
from pipeline.settings.recipe import Recipe
from reward.types import Record


class Summary(Record, extra="allow"):
    """`summary.json`: the demo's result for programs.

    Beside these fields it has each of `MEASURES` as `NAME_before` and `NAME_after`: shares in [0, 1], or
    means an answer; null where no answer says anything of it. `checker_accuracy` is `checker_right`, too.
    """

    recipe: str = Field(default="tiny", description="Name or path, as `march train` takes it.")
    seed: int
    steps: int
    command: str = Field(default="", description="The same demo again.")
    overrides: tuple[str, ...] = Field(default=(), description="Settings over the recipe, as given.")
    preset: str | None = Field(default=None, description="Of the recipe; None where it names none.")
    model: str = Field(description="Where the training started.")
    rows_held_out: int = Field(description="Rows that both measurements rest on.")
    num_checker_trajectories: int = Field(description="Checker rows that were trained, all steps together.")
    wall_s: float = Field(description="All phases of all calls, but of none that was killed.")
    mlflow_run_id: str
    goal_met: bool
    finding: str
    note: str
    phases_s: dict[str, float]
    intervals: dict[str, tuple[float, float]] = Field(description="95% intervals of the figures.")


def paired(before: Evaluation, after: Evaluation) -> dict[str, Estimate | None]:
    """The figures as the summary names them."""
    both = (("before", before), ("after", after))
    names = {name: name for name in MEASURES} | {"checker_right": "checker_accuracy"}
    return {f"{name}_{when}": one.figures[figure] for name, figure in names.items() for when, one in both}


def first_model(recipe: Recipe) -> str:
    """What the training started from; for the result of a warm-up, what that started from."""
    origin = read_origin(Path(recipe.model_path))
    return origin.location if origin is not None and origin.source == "warmup" else recipe.model


def command_again(name: str, seed: int, steps: int, overrides: Sequence[str], num_rows: int) -> str:
    """The same demo again; `overrides` are the user's own."""
    words = ["--recipe", name] if name != "tiny" else []
    words += ["--seed", str(seed), "--steps", str(steps)]
    words += ["--rows", str(num_rows)] if num_rows != NUM_ROWS else []
    words += [word for one in overrides for word in ("--set", one)]
    return shlex.join(["march", "demo", *words, "--run-dir", f"runs/{Path(name).stem}-again"])

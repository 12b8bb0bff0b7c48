"""`plan.yaml` as values: starts, arms, comparisons, and the cells that they make; nothing heavy is imported.

A cell is known by a digest of its settings: what the recipe says beyond its defaults, the arguments of the
start model, and how it is measured. A default that is added later changes no digest; `code_digest` tells
which sources a row was measured with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from pipeline.demo.evaluation import EVALUATION_SEED
from pipeline.settings.recipe import TINY_POLICY, load_recipe
from pipeline.tiny.manifest import MANIFEST
from pipeline.tiny.recipe import Stage
from pipeline.tiny.supervised import parse_arguments, stages_of
from reward.config import Settings

ROOT = Path(__file__).parent.parent.parent
# Of the recipe, what touches a result; a run is named, tracked and guarded besides.
_RESULT_FIELDS = {"seed", "train_roles", "data", "rollout", "ppo", "audit", "cluster", "reward"}

FigureName = Literal["faithful", "false_accept", "checker", "claims"]


class Start(Settings):
    """A model that reinforcement starts from."""

    about: str
    arguments: tuple[str, ...] = Field(
        default=(), description="Of `python -m pipeline.tiny.supervised`; none for the shipped checkpoint."
    )

    @property
    def digest(self) -> str:
        """Of the recipe that makes it, or of the shipped checkpoint's manifest."""
        if not self.arguments:
            return _digest((TINY_POLICY / MANIFEST).read_text())
        options = parse_arguments([*self.arguments, "--out", "."])
        return _digest([_stage_settings(stage) for stage in stages_of(options)])


class Arm(Settings):
    """The recipe with settings over it."""

    about: str
    start: str = "injected"
    steps: int | None = Field(default=None, ge=1, description="PPO steps; None for the plan's.")
    set: tuple[str, ...] = Field(default=(), description="As `--set` of `march train`.")


class Comparison(Settings):
    """One row of the table of verdicts."""

    question: str
    arm: str
    against: str | None = Field(default=None, description="Another arm; None for the arm's own start.")
    figure: FigureName
    claim: Literal["higher", "lower"] = Field(description="Of `arm` minus `against`.")
    by: Literal["paper", "project"] = Field(description="Whose claim it is.")
    why: str = Field(default="", description="Why we think that it came out so; written when it has.")

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms whose cells it needs."""
        return (self.arm,) if self.against is None else (self.arm, self.against)


class Plan(Settings):
    """The whole of `plan.yaml`."""

    recipe: str
    seeds: tuple[int, ...] = Field(min_length=2)
    steps: int = Field(ge=1, description="PPO steps of a cell whose arm does not say otherwise.")
    worlds: int = Field(ge=1, description="Held-out worlds of a measurement; other ones for each seed.")
    tries: int = Field(
        default=1, ge=1, description="Answers to each world; more only tell the same share more exactly."
    )
    check: tuple[str, ...] = Field(description="Settings of the audit that all arms are measured by.")
    starts: dict[str, Start]
    arms: dict[str, Arm]
    blocks: tuple[tuple[str, ...], ...]
    comparisons: tuple[Comparison, ...]

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        if unknown := {arm.start for arm in self.arms.values()} - set(self.starts):
            raise ValueError(f"arms: start {sorted(unknown)} is not among starts; add or fix it")
        for comparison in self.comparisons:
            if unknown := set(comparison.arms) - set(self.arms):
                raise ValueError(f"comparisons: {sorted(unknown)} are no arms; add or fix them")
            if len({self.arms[name].steps for name in comparison.arms}) > 1:
                raise ValueError(f"comparisons: {' and '.join(comparison.arms)} differ in steps")
        listed = [name for block in self.blocks for name in block]
        if sorted(listed) != sorted(self.arms):
            raise ValueError("blocks: must name every arm once")
        return self

    def cells(self) -> Iterator[Cell]:
        """Every arm with every seed, in the order in which they are worth most."""
        for block in self.blocks:
            for seed in self.seeds:
                yield from (Cell(plan=self, arm=arm, seed=seed) for arm in block)


class Cell(Settings):
    """One arm with one seed."""

    plan: Plan
    arm: str
    seed: int

    @property
    def start(self) -> Start:
        return self.plan.starts[self.plan.arms[self.arm].start]

    def overrides(self, start: str) -> list[str]:
        """The settings over the recipe of a training from the model in the folder `start`."""
        steps = self.plan.arms[self.arm].steps or self.plan.steps
        fixed = [f"model='{start}'", f"data.max_steps={steps}", f"seed={self.seed}"]
        arm = [setting.replace("{start}", start) for setting in self.plan.arms[self.arm].set]
        # A cell that was killed begins again, so no checkpoint is needed.
        return [*fixed, f"checkpoint.every={10 * steps}", *arm]

    @property
    def world(self) -> str:
        """The arm's setting of the worlds; empty for those of the recipe."""
        settings = self.plan.arms[self.arm].set
        return next((setting for setting in settings if setting.startswith("data.world")), "")

    @property
    def evaluation(self) -> list[str]:
        """Arguments of `python -m pipeline.demo.evaluate` beside the model and the file."""
        world = [self.world] if self.world else []
        settings = [part for setting in (*world, *self.plan.check) for part in ("--set", setting)]
        rows, seed = str(self.plan.worlds), str(EVALUATION_SEED + self.seed)
        return ["--recipe", self.plan.recipe, "--rows", rows, "--seed", seed, *settings]

    @property
    def digest(self) -> str:
        """Of all settings; two cells with one digest differ by chance only."""
        recipe = load_recipe(self.plan.recipe, self.overrides("{start}"))
        said = recipe.model_dump(mode="json", include=_RESULT_FIELDS, exclude_defaults=True)
        return _digest([said, self.start.digest, self.evaluation])

    @property
    def start_digest(self) -> str:
        """Of the measurement before training, which arms share; other sources measure again."""
        return _digest([self.start.digest, self.evaluation, self.plan.tries, code_digest()])


@lru_cache(maxsize=1)
def load_plan() -> Plan:
    """Reads the plan.

    Raises:
        ValueError: an unknown key or name.
    """
    text = Path(__file__).with_name("plan.yaml").read_text(encoding="utf-8")
    return Plan.model_validate(yaml.safe_load(text))


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Of the sources and pins that a result depends on."""
    files = [path for room in ("reward", "pipeline") for path in (ROOT / room).rglob("*")]
    sources = sorted(path for path in files if path.suffix in (".py", ".yaml"))
    hashed = hashlib.sha256()
    for path in [*sources, ROOT / "requirements" / "cpu.txt"]:
        hashed.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return hashed.hexdigest()[:12]


def _stage_settings(stage: Stage) -> dict[str, Any]:
    """A stage without its errors and settings of the world that are defaults."""
    settings = asdict(stage)
    settings["errors"] = {name: p for name, p in settings["errors"].items() if p}
    settings["world"] = stage.world.model_dump(mode="json", exclude_defaults=True)
    return settings


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]

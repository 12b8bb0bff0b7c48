"""The stages of a retraining, what each is asked, what it answers, and the keys by which they are known.

A stage's key is the digest of everything that decides its output: digests of its inputs, settings, seeds, and
the version of the code. A result for a key holds for good, whoever made it, so a stage is a function that is
paid for once.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from pydantic import Field, JsonValue

from orchestration.retrain.job import Job
from pipeline.evaluate.plan import digest
from reward.types import Record

KEY_DIGITS = 16  # of a key in names of folders and jobs


class Stage(StrEnum):
    """In their order."""

    PREPARE = "prepare"  # rows
    TRAIN = "train"  # weights, and the record of the run
    EVALUATE = "evaluate"  # the candidate
    EVALUATE_CHAMPION = "evaluate_champion"  # by the same judge, seeds and settings
    PUBLISH = "publish"  # the lineage, which refers to weights, rows and evaluations
    REGISTER = "register"  # a version of the model
    PROMOTE = "promote"  # the gates, and the decision

    @property
    def is_heavy(self) -> bool:
        """Whether a cluster runs it, where one is given."""
        return self in _HEAVY

    @property
    def shelf(self) -> str:
        """Under which name results are kept: an evaluation of a champion is one of a candidate, later."""
        return Stage.EVALUATE.value if self is Stage.EVALUATE_CHAMPION else self.value


_HEAVY = (Stage.PREPARE, Stage.TRAIN, Stage.EVALUATE, Stage.EVALUATE_CHAMPION)


class Spent(Record):
    """What was paid for."""

    hours: float = Field(default=0.0, ge=0, description="Wall time of stages, killed attempts included.")
    tokens: int = Field(default=0, ge=0)

    def __add__(self, other: Spent) -> Spent:
        return Spent(hours=self.hours + other.hours, tokens=self.tokens + other.tokens)


class StageRequest(Record):
    """What a stage's process is given."""

    job: Job
    stage: Stage
    key: str = Field(description="Digest of all that decides the output.")
    inputs: dict[str, JsonValue] = Field(description="What the key is of.")
    materials: dict[str, JsonValue] = Field(default={}, description="Where its inputs are.")
    attempt: int = Field(ge=1, description="Of this key, over all commands.")
    command_attempt: int = Field(
        ge=1, description="Of this key, by this command; `retries.attempts` is the last."
    )


class StageResult(Record):
    """What a stage made; a manifest of kind "stage" in the store holds it."""

    stage: str = Field(description="Its name.")
    key: str
    outputs: dict[str, str] = Field(default={}, description="Digests of manifests in the store, by name.")
    facts: dict[str, JsonValue] = Field(default={}, description="What later stages and people need of it.")
    tokens: int = 0
    wall_s: float = Field(default=0.0, description="Of the attempt that ended it.")
    attempts: int = 1

    def fact(self, name: str) -> str:
        """A fact that is text."""
        value = self.facts[name]
        assert isinstance(value, str), f"{self.stage}: {name} is {value!r}"
        return value


class StageProgress(Record):
    """How far a stage is, as its process writes it for others to read."""

    label: str = ""
    done: int = 0
    total: int = 0
    tokens: int = Field(default=0, description="Paid for by this attempt.")
    note: str = ""


class StageProblem(Record):
    """Why a stage's process ended without a result."""

    line: str
    transient: bool = Field(description="Whether another attempt may help.")
    exit_code: int = 1


def stage_key(stage: Stage, inputs: Mapping[str, JsonValue]) -> str:
    """The key of a stage by what decides it; alike for every evaluation, whoever is evaluated."""
    return digest(stage.shelf, dict(inputs))


def stage_folder(job: Job, stage: Stage, key: str) -> Path:
    """Where a stage works on this machine; the same for every attempt, so that it can go on."""
    return job.folder / f"{stage.shelf}-{key[:KEY_DIGITS]}"

"""The stages of a retraining: what each is asked, what it answers, and what is known of a retraining.

A stage's key is the digest of everything that decides its output: digests of its inputs, settings, seeds, and
the version of the code. A result for a key holds for good, whoever made it, so a stage is a function that is
paid for once.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from pydantic import ConfigDict, Field, JsonValue

from orchestration.retrain.job import BudgetSettings, Job
from orchestration.retrain.triggers import Cause
from reward.provenance import json_sha256
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
        return self not in (Stage.PUBLISH, Stage.REGISTER, Stage.PROMOTE)

    @property
    def result_name(self) -> str:
        """Under which name results are kept: an evaluation of a champion is one of a candidate, later."""
        return Stage.EVALUATE.value if self is Stage.EVALUATE_CHAMPION else self.value


class ParentWeights(Record):
    """Weights that a training starts from, or that are champion."""

    sha256: str | None = Field(description="None of a model that is known by its name alone.")
    uri: str = Field(description="Folder, address or name.")
    version: str | None = Field(default=None, description="In the registry; None of a recipe's own model.")
    lineage: str | None = Field(default=None, description="Digest of what made it.")


class Spent(Record):
    hours: float = Field(default=0.0, ge=0, description="Wall time of stages, killed attempts included.")
    tokens: int = Field(default=0, ge=0)

    def __add__(self, other: Spent) -> Spent:
        return Spent(hours=self.hours + other.hours, tokens=self.tokens + other.tokens)

    def money(self, budget: BudgetSettings) -> float:
        tokens = self.tokens / 1_000_000 * budget.price_per_million_tokens
        return self.hours * budget.price_per_hour + tokens

    def over(self, budget: BudgetSettings) -> str | None:
        """The bound that is reached, in one line; None while there is something left."""
        money = self.money(budget)
        if budget.hours is not None and self.hours >= budget.hours:
            return f"budget.hours: {self.hours:,.2f} of {budget.hours:,.2f} hours are spent"
        if budget.tokens is not None and self.tokens >= budget.tokens:
            return f"budget.tokens: {self.tokens:,} of {budget.tokens:,} tokens are spent"
        if budget.money is not None and money >= budget.money:
            return f"budget.money: {money:,.2f} of {budget.money:,.2f} are spent"
        return None


class StageResult(Record):
    """What a stage made; a manifest of kind "stage" in the store holds it."""

    model_config = ConfigDict(extra="ignore")  # another release's fields

    stage: str = Field(description="Its name.")
    key: str
    outputs: dict[str, str] = Field(default={}, description="Digests of manifests in the store, by name.")
    facts: dict[str, JsonValue] = Field(default={}, description="What later stages and people need of it.")


class StageRequest(Record):
    """What a stage's process is given."""

    job: Job
    stage: Stage
    key: str = Field(description="Digest of all that decides the output.")
    inputs: dict[str, JsonValue] = Field(description="What the key is of.")
    attempt: int = Field(ge=1, description="Of this key, over all commands.")
    command_attempt: int = Field(ge=1, description="By this command; `retries.attempts` is the last.")
    done: dict[Stage, StageResult] = Field(default={}, description="Of the stages before it.")
    parent: ParentWeights | None = Field(default=None, description="What a training starts from.")
    champion: ParentWeights | None = Field(default=None, description="Evaluated, and decided against.")
    files: dict[str, str] = Field(default={}, description="Manifests of the job's own, for a cluster.")
    redo: bool = Field(default=False, description="What a first attempt finds in its folder is old.")
    max_missing: float = Field(default=0.0, description="Share that the gates let an evaluation lack.")


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
    return json_sha256([stage.result_name, dict(inputs)])


def stage_folder(job: Job, stage: Stage, key: str) -> Path:
    """Where a stage works on this machine; the same for every attempt, so that it can go on."""
    return job.folder / f"{stage.result_name}-{key[:KEY_DIGITS]}"


class StageState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"  # or its machine is gone: look at the last sign of life
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"  # by a person, or by the budget
    NOT_NEEDED = "not needed"  # there is no champion to evaluate


class RetrainingState(StrEnum):
    RUNNING = "running"  # or its machine is gone: look at the last sign of life
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"  # by a person
    STOPPED_BY_BUDGET = "stopped by budget"
    WAITING_FOR_APPROVAL = "waiting for approval"

    @property
    def is_final(self) -> bool:
        """Whether the same command has nothing more to do."""
        return self in (RetrainingState.DONE, RetrainingState.WAITING_FOR_APPROVAL)


class Ending(StrEnum):
    """How a command ended, with its exit code (docs/retraining.md); five say what became of a candidate."""

    code: int

    def __new__(cls, text: str, code: int = 0) -> Ending:
        made = str.__new__(cls, text)
        made._value_, made.code = text, code
        return made

    PROMOTED = "promoted", 0
    WAITS = "waits for approval", 0
    REFUSED = "refused", 3  # as of march model promote
    INCONCLUSIVE = "inconclusive", 4
    UNCHANGED = "unchanged", 0  # the candidate is the champion already
    SUBMITTED = "submitted", 0  # by --submit; it runs elsewhere
    FAILED = "failed", 1
    FIX = "something to fix", 2
    OVER_BUDGET = "over budget", 6
    RUNNING = "already running", 7
    NOT_DUE = "not due", 8
    GAVE_UP = "gave up", 1  # a job that waits for a person does not look well from outside
    INTERRUPTED = "interrupted", 130

    @property
    def is_well(self) -> bool:
        """Whether there is nothing to try again, and nothing for a person."""
        return self.code in (0, 3, 4, 7, 8)


class StageStatus(Record):
    model_config = ConfigDict(extra="ignore")  # another release's fields

    stage: Stage
    state: StageState = StageState.WAITING
    key: str | None = Field(default=None, description="None until its inputs are known.")
    attempts: int = 0
    reused: bool = Field(default=False, description="The result existed before this retraining came to it.")
    wall_s: float = Field(default=0.0, description="Of all attempts.")
    error: str | None = Field(default=None, description="One line, of the last attempt that failed.")
    result: str | None = Field(default=None, description="Digest of its manifest in the store.")
    spent: Spent = Spent()
    ray_job: str | None = Field(default=None, description="That was followed last, on a cluster.")
    spent_before: Spent = Field(default=Spent(), description="Before that Ray job began.")


class Seen(Record):
    """What the last command that took a retraining up found when it began.

    Whether the job is due follows from this, and from how the retraining ended.
    """

    order: int = Field(ge=1, description="Among all commands of the job; no clock says which was the last.")
    attempt: int = Field(ge=1, description="Of those in a row that did not end well, this one included.")
    began_ms: int = Field(description="By that machine's clock.")
    causes: tuple[Cause, ...] = Field(default=(), description="Triggers that it is for; none of one by hand.")
    data: dict[str, str] = Field(default={}, description="Digests of what the data trigger watches.")
    verdicts: dict[str, int] = Field(default={}, description="Lines of the last files of verdicts, by path.")


class Retraining(Record):
    """One retraining, as MLflow has it."""

    id: str = Field(description="Digest of what was given, and of the parent.")
    given: str = Field(description="Digest of data, recipe, evaluation, policy and code.")
    parent: ParentWeights
    job: str
    model: str = Field(description="Name in the registry.")
    run_id: str = Field(description="Of MLflow.")
    is_closed: bool = Field(default=False, description="MLflow calls its run ended, which is written last.")
    state: RetrainingState
    stages: tuple[StageStatus, ...]
    started_ms: int
    ended_ms: int | None = None
    last_sign_ms: int = Field(description="When its process last wrote; by that machine's clock.")
    machine: str = Field(default="", description="Where it ran last.")
    outcome: Ending | None = Field(default=None, description="Of the candidate.")
    version: str | None = Field(default=None, description="Of the candidate in the registry.")
    reason: str = Field(default="", description="Why it ended as it did.")
    cause: str = Field(default="", description="What started it: a person, or a trigger.")
    seen: Seen | None = Field(default=None, description="None of an earlier version's.")
    needs_person: bool = Field(default=False, description="Another attempt alone does not fix why it ended.")

    @property
    def spent(self) -> Spent:
        return sum((one.spent for one in self.stages), Spent())

    def status(self, stage: Stage) -> StageStatus:
        return next(one for one in self.stages if one.stage is stage)

    @property
    def error(self) -> str | None:
        """The line of the stage that failed."""
        return next((one.error for one in self.stages if one.state is StageState.FAILED), None)

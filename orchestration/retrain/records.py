"""What is known of retrainings: their state, their stages, what they took. `march status` shows these."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from orchestration.retrain.stages import Spent, Stage
from orchestration.retrain.triggers import Cause
from reward.types import Record


class StageState(StrEnum):
    """How a stage is going."""

    WAITING = "waiting"
    RUNNING = "running"  # or its machine is gone: look at the last sign of life
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"  # by a person, or by the budget
    NOT_NEEDED = "not needed"  # there is no champion to evaluate


class RetrainingState(StrEnum):
    """How a retraining is going."""

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


class Outcome(StrEnum):
    """What became of the candidate."""

    PROMOTED = "promoted"
    WAITS = "waits for approval"
    REFUSED = "refused"
    INCONCLUSIVE = "inconclusive"
    UNCHANGED = "unchanged"  # the candidate is the champion already


class ParentWeights(Record):
    """What a training starts from."""

    sha256: str | None = Field(description="None of a model that is known by its name alone.")
    uri: str = Field(description="Folder, address or name.")
    version: str | None = Field(default=None, description="In the registry; None of a recipe's own model.")
    lineage: str | None = Field(default=None, description="Digest of what made it.")


class StageStatus(Record):
    """One stage of one retraining."""

    stage: Stage
    state: StageState = StageState.WAITING
    key: str | None = Field(default=None, description="None until its inputs are known.")
    attempts: int = 0
    reused: bool = Field(default=False, description="The result existed before this retraining came to it.")
    started_ms: int | None = Field(default=None, description="Of the first attempt; the writer's clock.")
    wall_s: float = Field(default=0.0, description="Of all attempts.")
    error: str | None = Field(default=None, description="One line, of the last attempt that failed.")
    result: str | None = Field(default=None, description="Digest of its manifest in the store.")
    spent: Spent = Spent()
    figures: dict[str, float] = Field(default={}, description="Of its result, for people.")


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
    outcome: Outcome | None = None
    version: str | None = Field(default=None, description="Of the candidate in the registry.")
    reason: str = Field(default="", description="Why it ended as it did.")
    cause: str = Field(default="", description="What started it: a person, or a trigger.")
    seen: Seen | None = Field(default=None, description="None of an earlier version's.")
    needs_person: bool = Field(
        default=False, description="It ended for something that another attempt alone does not fix."
    )

    @property
    def spent(self) -> Spent:
        """Of all stages and attempts."""
        return sum((one.spent for one in self.stages), Spent())

    @property
    def error(self) -> str | None:
        """The line of the stage that failed."""
        return next((one.error for one in self.stages if one.state is StageState.FAILED), None)

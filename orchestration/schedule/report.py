"""How a `march retrain` ended: its exit code, and what `--json` prints."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from orchestration.retrain.records import Outcome, Retraining
from orchestration.schedule.due import Look
from reward.types import Record


class Ending(StrEnum):
    """How it ended."""

    PROMOTED = "promoted"
    WAITS = "waits for approval"
    UNCHANGED = "unchanged"
    SUBMITTED = "submitted"  # by --submit; it runs elsewhere
    FAILED = "failed"
    FIX = "something to fix"
    REFUSED = "refused"
    INCONCLUSIVE = "inconclusive"
    OVER_BUDGET = "over budget"
    RUNNING = "already running"
    NOT_DUE = "not due"
    GAVE_UP = "gave up"
    INTERRUPTED = "interrupted"

    @property
    def code(self) -> int:
        """The exit code; docs/retraining.md has the table."""
        return _CODES.get(self, 0)

    @property
    def is_well(self) -> bool:
        """Whether there is nothing to try again, and nothing for a person."""
        return self.code == 0 or self in _WELL


_CODES = {
    Ending.FAILED: 1,
    Ending.GAVE_UP: 1,  # a job that waits for a person does not look well from outside
    Ending.FIX: 2,
    Ending.REFUSED: 3,  # as of march model promote
    Ending.INCONCLUSIVE: 4,
    Ending.OVER_BUDGET: 6,
    Ending.RUNNING: 7,
    Ending.NOT_DUE: 8,
    Ending.INTERRUPTED: 130,
}
_WELL = (Ending.REFUSED, Ending.INCONCLUSIVE, Ending.RUNNING, Ending.NOT_DUE)
ENDINGS = {
    Outcome.PROMOTED: Ending.PROMOTED,
    Outcome.WAITS: Ending.WAITS,
    Outcome.REFUSED: Ending.REFUSED,
    Outcome.INCONCLUSIVE: Ending.INCONCLUSIVE,
    Outcome.UNCHANGED: Ending.UNCHANGED,
}


class Report(Record):
    """What a command says of itself."""

    job: str
    ending: Ending
    code: int = Field(description="The exit code, were it not for --exit-zero.")
    line: str = Field(description="For a person.")
    look: Look | None = Field(default=None, description="At the job's triggers; None: it was not reached.")
    retraining: Retraining | None = Field(default=None, description="The one that ended, if it did.")


def report_of(job: str, ending: Ending, line: str, **more: object) -> Report:
    """A report with the code of its ending."""
    return Report.model_validate({"job": job, "ending": ending, "code": ending.code, "line": line, **more})

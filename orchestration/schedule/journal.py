"""What the schedule knows of a job: lines that are appended, and the one state that follows from them.

    FOLDER/NAME/journal.jsonl    triggers that came, retrainings that began and ended, looks at verdicts

Service and retraining are processes of their own; either may be killed and the other goes on. So nothing that
decides is in memory: a trigger stands in the journal before the scheduler forgets it, and is settled only by
the line of a retraining that ended.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from orchestration.registry.history import append_rows, read_rows
from orchestration.retrain.triggers import BackoffSettings
from orchestration.schedule.drift import Drift
from reward.types import Record

JOURNAL_FILE = "journal.jsonl"
# Exit codes of `march retrain`, beside 0 for a decision, whichever it is, and 1 for a failure.
_FOR_A_PERSON = (2, 6)  # a mistake in the settings, or the budget is spent: another attempt ends alike
_BUSY = 7  # somebody runs the job by hand, or on another machine
_INTERRUPTED = (None, 130)


class Cause(StrEnum):
    """What asks for a retraining."""

    CRON = "cron"
    DATA = "data"
    DRIFT = "drift"


class Due(Record):
    """A trigger came."""

    kind: Literal["due"] = "due"
    at: float = Field(description="Seconds since 1970, by the machine's clock.")
    cause: Cause
    detail: str = Field(description="One line for a person.")


class Missed(Record):
    """A time of the cron expression passed without a retraining."""

    kind: Literal["missed"] = "missed"
    at: float
    detail: str


class Seen(Record):
    """The data that was there when the job was first looked at."""

    kind: Literal["seen"] = "seen"
    at: float
    data: dict[str, str]


class Looked(Record):
    """A look at new verdicts."""

    kind: Literal["looked"] = "looked"
    at: float
    drift: Drift


class Began(Record):
    """A retraining was started, for all that was due."""

    kind: Literal["began"] = "began"
    at: float
    causes: tuple[Cause, ...]
    data: dict[str, str] = Field(default={}, description="Digests of what is watched, at this moment.")
    read: dict[str, int] = Field(default={}, description="Lines of the files of verdicts, at this moment.")
    log: str = Field(description="File of its output, in the job's folder.")


class Ended(Record):
    """It ended."""

    kind: Literal["ended"] = "ended"
    at: float
    code: int | None = Field(description="Exit code; None: it was killed, with what watched it.")
    error: str = Field(default="", description="Its last line, if it failed.")

    @property
    def is_well(self) -> bool:
        """Whether it came to its end, whatever the gates said."""
        return self.code == 0


Line = Due | Missed | Seen | Looked | Began | Ended
_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="kind")])


@dataclass(frozen=True)
class JobState:
    """What follows from a journal."""

    due: Mapping[Cause, Due] = field(default_factory=dict)  # not settled yet
    running: Began | None = None
    last: Ended | None = None
    last_began: Began | None = None
    num_failures: int = 0  # in a row
    not_before: float = 0.0  # seconds since 1970: of the next attempt
    gave_up: bool = False  # the last trigger; the next one begins anew
    data: Mapping[str, str] | None = None  # digests that need no retraining; None: never looked at
    read: Mapping[str, int] = field(default_factory=dict)  # lines of verdicts that are settled
    drift: Drift | None = None  # the last one
    looked_at: float = 0.0
    num_looks: int = 0  # that took their share of alpha since the last retraining
    looked: Mapping[str, int] = field(default_factory=dict)  # lines at the last such look
    drift_began: float = -math.inf  # the last retraining for drift
    missed: Missed | None = None
    num_well: int = 0  # retrainings that came to their end, of all time
    num_failed: int = 0

    @property
    def starts_at(self) -> float | None:
        """From when on a retraining may start for what is due; None: nothing is due, or one is running."""
        return self.not_before if self.due and self.running is None else None


def append_line(folder: Path, line: Line) -> None:
    """Appends a line to the journal of the job whose folder this is, durably."""
    append_rows(folder / JOURNAL_FILE, {"": line.model_dump(mode="json")})


def read_state(folder: Path, backoff: BackoffSettings) -> JobState:
    """The state of the job whose folder this is.

    Raises:
        ValueError: a line is none of a journal.
    """
    path = folder / JOURNAL_FILE
    try:
        lines = [_LINE.validate_python(row) for row in read_rows(path)]
    except ValueError as error:
        raise ValueError(f"{path}: a line is none of this version's journal; move the file away") from error
    return replay(lines, backoff)


def replay(lines: Iterable[Line], backoff: BackoffSettings) -> JobState:
    """Works the state out."""
    state = JobState()
    for line in lines:
        state = _after(state, line, backoff)
    return state


def _after(state: JobState, line: Line, backoff: BackoffSettings) -> JobState:
    match line:
        case Due():
            fresh = replace(state, num_failures=0, not_before=0.0, gave_up=False) if state.gave_up else state
            return replace(fresh, due={**fresh.due, line.cause: line})
        case Missed():
            return replace(state, missed=line)
        case Seen():
            return replace(state, data={**line.data, **(state.data or {})})
        case Looked():
            looked = replace(state, drift=line.drift, looked_at=line.at)
            if not line.drift.is_look:
                return looked
            return replace(looked, num_looks=state.num_looks + 1, looked=line.drift.read)
        case Began():
            began = line.at if Cause.DRIFT in line.causes else state.drift_began
            return replace(state, running=line, last_began=line, drift_began=began)
        case Ended():
            return _ended(state, line, backoff)


def _ended(state: JobState, ended: Ended, backoff: BackoffSettings) -> JobState:
    over = replace(state, running=None, last=ended)
    if ended.is_well:
        fresh = replace(over, num_failures=0, not_before=0.0, gave_up=False, num_well=state.num_well + 1)
        return _settled(fresh, state.running)
    if ended.code == _BUSY:
        return replace(over, not_before=ended.at + backoff.first_s)
    failures, over = state.num_failures + 1, replace(over, num_failed=state.num_failed + 1)
    if ended.code in _FOR_A_PERSON or failures >= backoff.attempts:
        settled = _settled(over, state.running)
        gave_up = replace(settled, due={}, num_failures=failures, gave_up=True)
        later = tuple(settled.due.values()) if state.running else ()
        return reduce(lambda found, due: _after(found, due, backoff), later, gave_up)
    wait_s = min(backoff.first_s * 2 ** (failures - 1), backoff.most_s)
    if ended.code in _INTERRUPTED and failures == 1:
        wait_s = 0.0  # the machine went down, most likely: it goes on at once
    return replace(over, num_failures=failures, not_before=ended.at + wait_s)


def _settled(state: JobState, began: Began | None) -> JobState:
    """What came before the retraining began needs no other one."""
    if began is None:
        return state
    due = {cause: one for cause, one in state.due.items() if one.at > began.at}
    data = {**(state.data or {}), **began.data} if began.data else state.data
    return replace(state, due=due, data=data, read=began.read, looked=began.read, num_looks=0)

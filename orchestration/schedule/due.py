"""Whether a job is due: its triggers, held against what its retrainings recorded.

Nothing is kept beside those records, so whoever asks, whenever and wherever, gets the same answer: systemd, a
CronJob, Airflow, a person. docs/scheduling.md has the table of what follows when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field

from orchestration.retrain.job import Job
from orchestration.retrain.records import Retraining, Seen
from orchestration.retrain.triggers import Cause, CronSettings, DataSettings, DriftSettings
from orchestration.schedule.cron import last_time, next_time
from orchestration.schedule.data import data_digests
from orchestration.schedule.drift import Drift, DriftState
from orchestration.schedule.past import Past, read_past
from orchestration.schedule.verdicts import lines_of, look_at, recorded
from reward.types import Record


class Trigger(Record):
    """One trigger of a job, as it is now."""

    cause: Cause
    what: str = Field(description="What it goes by.")
    is_due: bool = False
    detail: str = Field(default="", description="One line: why it is due, or how it is.")
    problem: str = Field(default="", description="Why it cannot be looked at; then it starts nothing.")
    next_at: float | None = Field(default=None, description="Of a cron expression, in seconds since 1970.")
    timezone: str | None = Field(default=None, description="Of the expression.")
    drift: Drift | None = None


class Look(Record):
    """All triggers of a job, as they are now."""

    at: float = Field(description="Seconds since 1970.")
    triggers: tuple[Trigger, ...]
    num_failures: int = Field(description="Commands in a row that did not end well.")
    gave_up: bool = Field(description="After them; a trigger that comes later starts another one.")
    waits_until: float | None = Field(description="Before the next attempt, in seconds since 1970.")
    seen: Seen = Field(description="What a retraining that begins now records.")

    @property
    def is_due(self) -> bool:
        """Whether a retraining starts now."""
        return bool(self.seen.causes) and self.waits_until is None

    @property
    def why(self) -> str:
        """What asks for a retraining, in one line."""
        return "; ".join(f"{one.cause}: {one.detail}" for one in self.triggers if one.is_due)

    def __str__(self) -> str:
        """Why nothing starts, in one line."""
        if self.waits_until is not None:
            again = f"{datetime.fromtimestamp(self.waits_until, UTC):%Y-%m-%d %H:%M:%S} UTC"
            return f"failed {self.num_failures} times in a row; again at {again} ({self.why})"
        said = "; ".join(f"{one.cause}: {one.problem or one.detail}" for one in self.triggers)
        if self.gave_up:
            return f"failed {self.num_failures} times in a row and waits for the next trigger: {said}"
        return f"not due: {said}"

    def unless_changing(self, before: Look) -> Look:
        """This look, where data that has changed again since another one a moment ago is not due yet."""
        if self.seen.data == before.seen.data:
            return self
        triggers = tuple(
            one.model_copy(update={"is_due": False, "detail": "still changing"})
            if one.cause is Cause.DATA
            else one
            for one in self.triggers
        )
        return self.model_copy(update={"triggers": triggers, "seen": _for_these(self.seen, triggers)})


@dataclass(frozen=True)
class Watched:
    """A job, and how what it watches is found."""

    job: Job
    folder: Path  # of its file, from which paths and patterns are seen
    pointed: Callable[[str], str | None]  # what a pointer of its store points to


def look_around(watched: Watched, history: Sequence[Retraining], now: float) -> Look:
    """Looks at all triggers of a job, of which no retraining is running.

    Args:
        watched: The job.
        history: Its retrainings.
        now: Seconds since 1970.
    """
    settings, folder = watched.job.triggers, watched.folder
    past = read_past(history, settings.backoff, now)
    data, verdicts = dict(past.data), dict(past.verdicts)
    found = list[Trigger]()
    if settings.cron is not None:
        found.append(_cron(settings.cron, past, now))
    if settings.data is not None:
        trigger, data = _data(watched, settings.data, past)
        found.append(trigger)
    if settings.drift is not None:
        found.append(_drift(settings.drift, folder, past, now))
        with suppress(OSError):  # the trigger says so; what is settled stays so
            verdicts = recorded(lines_of(folder, settings.drift.verdicts))
    triggers = tuple(_going_on(found, past.goes_on))
    began_ms = int(now * 1000)
    seen = Seen(order=past.order + 1, attempt=past.attempt, began_ms=began_ms, data=data, verdicts=verdicts)
    return Look(
        at=now,
        triggers=triggers,
        num_failures=past.num_failures,
        gave_up=past.gave_up,
        waits_until=past.waits_until,
        seen=_for_these(seen, triggers),
    )


def _cron(cron: CronSettings, past: Past, now: float) -> Trigger:
    coming, came = next_time(cron, now), last_time(cron, now)
    trigger = Trigger(
        cause=Cause.CRON,
        what=cron.expression,
        next_at=coming.timestamp() if coming else None,
        timezone=cron.timezone,
        detail=f"next {coming:%Y-%m-%d %H:%M %Z}" if coming else "never comes again",
    )
    if came is None or (past.began is not None and came.timestamp() <= past.began):
        if past.began is not None and past.began > now:
            began = datetime.fromtimestamp(past.began, UTC)
            detail = f"the clock was set back: the last retraining began at {began:%Y-%m-%d %H:%M} UTC"
            return trigger.model_copy(update={"detail": detail})
        return trigger
    detail = f"{cron.expression} ({cron.timezone}): {came:%Y-%m-%d %H:%M %Z}"
    if now - came.timestamp() > cron.grace_s:
        return trigger.model_copy(update={"detail": f"{detail} was missed and is too long ago"})
    return trigger.model_copy(update={"is_due": True, "detail": detail})


def _data(watched: Watched, settings: DataSettings, past: Past) -> tuple[Trigger, dict[str, str]]:
    """The trigger, and the digests of what it watches."""
    trigger = Trigger(cause=Cause.DATA, what=_what(settings.paths, settings.pointers))
    try:
        data = data_digests(watched.job, settings, watched.folder, watched.pointed)
    except (ValueError, OSError) as error:
        return trigger.model_copy(update={"problem": _line(error)}), dict(past.data)
    changed = [name for name, one in data.items() if past.data.get(name) != one]
    detail = f"changed: {', '.join(changed)}" if changed else "nothing new"
    return trigger.model_copy(update={"is_due": bool(changed), "detail": detail}), {**past.data, **data}


def _drift(settings: DriftSettings, folder: Path, past: Past, now: float) -> Trigger:
    trigger = Trigger(cause=Cause.DRIFT, what=_what(settings.verdicts))
    try:
        lines = lines_of(folder, settings.verdicts)
        found = look_at(folder, settings, settled=past.verdicts, lines=lines)
    except (ValueError, OSError) as error:
        return trigger.model_copy(update={"problem": _line(error)})
    began, cool_s = past.drift_began, settings.cool_down_s
    is_due, detail = found.state is DriftState.DRIFTED, str(found) if lines else "no such file yet"
    if is_due and began is not None and began <= now < began + cool_s:
        is_due, detail = False, f"{detail}; the last retraining for drift is less than {cool_s:,.0f} s ago"
    return trigger.model_copy(update={"is_due": is_due, "detail": detail, "drift": found})


def _going_on(triggers: Sequence[Trigger], causes: Sequence[Cause]) -> Iterator[Trigger]:
    """Triggers of a command that was killed or failed stay due, whatever they say by now."""
    for one in triggers:
        if one.cause in causes and not one.is_due:
            yield one.model_copy(
                update={"is_due": True, "detail": "goes on after an attempt that did not end well"}
            )
        else:
            yield one


def _for_these(seen: Seen, triggers: Sequence[Trigger]) -> Seen:
    return seen.model_copy(update={"causes": tuple(one.cause for one in triggers if one.is_due)})


def _what(*names: Sequence[object]) -> str:
    return ", ".join(str(one) for group in names for one in group) or "the job's data"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())

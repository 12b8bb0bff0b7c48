"""Whether a job is due: its triggers, held against what its retrainings recorded.

Nothing is kept beside those records, so whoever asks, whenever and wherever, gets the same answer: systemd, a
CronJob, Airflow, a person. docs/scheduling.md has the table of what follows when.

Times are those of Debian's cron, as cronsim counts them: 0 is Sunday; a day of the month or a weekday will
do; a time that the clocks leave out comes at the switch, and one that they show twice comes once; only
expressions for every hour follow the clocks through both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cronsim import CronSim
from pydantic import Field

from orchestration.retrain.job import Job
from orchestration.retrain.records import Ending, Retraining, Seen
from orchestration.retrain.triggers import Cause, CronSettings, DataSettings, DriftSettings
from orchestration.schedule.drift import Drift, DriftState, lines_of, look_at, recorded
from orchestration.schedule.past import Past, read_past
from pipeline.artifacts.store import files_of
from pipeline.data.prepare import MANIFEST_FILE, ROWS_FILE, Manifest
from reward.offline.files import file_sha256
from reward.provenance import json_sha256
from reward.types import Record


class Trigger(Record):
    """One trigger of a job, as it is now."""

    cause: Cause
    what: str = Field(description="What it goes by.")
    is_due: bool = False
    detail: str = Field(default="", description="One line: why it is due, or how it is.")
    problem: str = Field(default="", description="Why it cannot be looked at; then it starts nothing.")
    next_at: float | None = Field(default=None, description="Of a cron expression, in seconds since 1970.")
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
        return bool(self.seen.causes) and self.waits_until is None

    @property
    def why(self) -> str:
        """What asks for a retraining, in one line."""
        return "; ".join(f"{one.cause}: {one.detail}" for one in self.triggers if one.is_due)

    def __str__(self) -> str:
        if self.waits_until is not None:
            again = f"{datetime.fromtimestamp(self.waits_until, UTC):%Y-%m-%d %H:%M:%S} UTC"
            why = f" ({self.why})" if self.why else ""  # what asked may not be readable now
            return f"failed {self.num_failures} times in a row; again at {again}{why}"
        said = "; ".join(f"{one.cause}: {one.problem or one.detail}" for one in self.triggers)
        if self.gave_up:
            return f"failed {self.num_failures} times in a row and waits for the next trigger: {said}"
        return f"not due: {said}"

    def unless_changing(self, before: Look) -> Look:
        """This look, where data that has changed again since another one a moment ago is not due yet."""
        if self.seen.data == before.seen.data:
            return self
        changing = {"is_due": False, "detail": "still changing"}
        triggers = tuple(
            one.model_copy(update=changing) if one.cause is Cause.DATA else one for one in self.triggers
        )
        return self.model_copy(update={"triggers": triggers, "seen": _for_these(self.seen, triggers)})


class Report(Record):
    """What a command says of itself."""

    job: str
    ending: Ending
    code: int = Field(description="The exit code, were it not for --exit-zero.")
    line: str = Field(description="For a person.")
    look: Look | None = Field(default=None, description="At the job's triggers; None: it was not reached.")
    retraining: Retraining | None = Field(default=None, description="The one that ended or failed.")


def report_of(job: str, ending: Ending, line: str, **more: object) -> Report:
    return Report.model_validate({"job": job, "ending": ending, "code": ending.code, "line": line, **more})


def look_around(
    job: Job, folder: Path, pointed: Callable[[str], str | None], history: Sequence[Retraining], now: float
) -> Look:
    """Looks at all triggers of a job, of which no retraining is running.

    Paths and patterns are seen from `folder`, that of the job's file; `pointed` says what a pointer of its
    store points to, `history` has its retrainings, `now` is in seconds since 1970.
    """
    settings = job.triggers
    past = read_past(history, settings.backoff, now)
    data, verdicts = dict(past.data), dict(past.verdicts)
    found = list[Trigger]()
    if settings.cron is not None:
        found.append(_cron(settings.cron, past, now))
    if settings.data is not None:
        trigger, data = _data(job, settings.data, folder, pointed, past)
        found.append(trigger)
    if settings.drift is not None:
        trigger, verdicts = _drift(settings.drift, folder, past, now)
        found.append(trigger)
    # Triggers of a command that was killed or failed stay due, whatever they say by now.
    goes_on = {"is_due": True, "detail": "goes on after an attempt that did not end well"}
    triggers = tuple(
        one.model_copy(update=goes_on) if one.cause in past.goes_on and not one.is_due else one
        for one in found
    )
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
    is_due, detail = False, f"next {coming:%Y-%m-%d %H:%M %Z}" if coming else "never comes again"
    if past.began is not None and (came is None or came.timestamp() <= past.began):
        if past.began > now:
            began = datetime.fromtimestamp(past.began, UTC)
            detail = f"the clock was set back: the last retraining began at {began:%Y-%m-%d %H:%M} UTC"
    elif came is not None:
        is_due = now - came.timestamp() <= cron.grace_s
        detail = f"{cron.expression} ({cron.timezone}): {came:%Y-%m-%d %H:%M %Z}"
        detail += "" if is_due else " was missed and is too long ago"
    next_at = coming.timestamp() if coming else None
    return Trigger(cause=Cause.CRON, what=cron.expression, is_due=is_due, detail=detail, next_at=next_at)


def next_time(cron: CronSettings, now: float) -> datetime | None:
    """The first time after `now` (seconds since 1970); None: there is none."""
    coming = CronSim(cron.expression, datetime.fromtimestamp(now, cron.timezone))
    return next((one for one in coming if one.timestamp() > now), None)  # some came in the first of two hours


def last_time(cron: CronSettings, now: float) -> datetime | None:
    """The last time that has come, `now` (seconds since 1970) included; None: there was none."""
    # Added in UTC: a sum in local time forgets which of two equal hours it was.
    after = datetime.fromtimestamp(now, UTC) + timedelta(microseconds=1)
    found = next(CronSim(cron.expression, after.astimezone(cron.timezone), reverse=True), None)
    # In an hour that comes twice, the way back passes over times that the way forth has.
    while found and (later := next_time(cron, found.timestamp())) and later.timestamp() <= now:
        found = later
    return found


def _data(
    job: Job, settings: DataSettings, folder: Path, pointed: Callable[[str], str | None], past: Past
) -> tuple[Trigger, dict[str, str]]:
    what = _what(settings.paths, settings.pointers)
    watched = {str(path): folder / path.expanduser() for path in settings.paths}
    if not (settings.paths or settings.pointers):
        inputs = enumerate(job.data.prepare.inputs if job.data.prepare else ())
        watched = {f"data.prepare.inputs.{place}": one.path for place, one in inputs}
        watched |= {"data.rows": job.data.rows} if job.data.rows else {}
    try:
        asked = {name: _path_digest(path) for name, path in watched.items()}
        asked |= {f"pointer {name}": pointed(name) for name in settings.pointers}
        data = {name: one for name, one in asked.items() if one is not None}
        if not data:
            raise FileNotFoundError(f"nothing is there yet of {', '.join(asked)}")
    except (ValueError, OSError) as error:
        return Trigger(cause=Cause.DATA, what=what, problem=_line(error)), dict(past.data)
    changed = [name for name, one in data.items() if past.data.get(name) != one]
    detail = f"changed: {', '.join(changed)}" if changed else "nothing new"
    found = Trigger(cause=Cause.DATA, what=what, is_due=bool(changed), detail=detail)
    return found, {**past.data, **data}


def _path_digest(path: Path) -> str | None:
    """Of a file or a folder; None: it is not there, or not whole."""
    if path.is_file():
        return file_sha256(path)
    if (path / MANIFEST_FILE).is_file():
        return Manifest.model_validate_json((path / MANIFEST_FILE).read_bytes()).rows_sha256
    if not path.is_dir() or (path / ROWS_FILE).exists():
        return None  # rows without a manifest are being written
    return json_sha256([{name: file_sha256(file) for name, file in files_of(path).items()}])


def _drift(settings: DriftSettings, folder: Path, past: Past, now: float) -> tuple[Trigger, dict[str, int]]:
    what, verdicts = _what(settings.verdicts), dict(past.verdicts)
    try:
        lines = lines_of(folder, settings.verdicts)
        verdicts = recorded(lines)
        found = look_at(folder, settings, settled=past.verdicts, lines=lines)
    except (ValueError, OSError) as error:
        return Trigger(cause=Cause.DRIFT, what=what, problem=_line(error)), verdicts
    began, cool_s = past.drift_began, settings.cool_down_s
    is_due, detail = found.state is DriftState.DRIFTED, str(found) if lines else "no such file yet"
    if is_due and began is not None and began <= now < began + cool_s:
        is_due, detail = False, f"{detail}; the last retraining for drift is less than {cool_s:,.0f} s ago"
    return Trigger(cause=Cause.DRIFT, what=what, is_due=is_due, detail=detail, drift=found), verdicts


def _for_these(seen: Seen, triggers: Sequence[Trigger]) -> Seen:
    return seen.model_copy(update={"causes": tuple(one.cause for one in triggers if one.is_due)})


def _what(*names: Sequence[object]) -> str:
    return ", ".join(str(one) for group in names for one in group) or "the job's data"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())

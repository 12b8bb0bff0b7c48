"""How a status is said, in a terminal and on a page alike."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from zoneinfo import ZoneInfo

from orchestration.retrain.records import Outcome, Retraining, RetrainingState, StageState
from orchestration.retrain.view import outcome_line
from orchestration.schedule.drift import DriftState
from orchestration.schedule.status import JobStatus, ModelStatus, Status, TriggerStatus

_SILENT_S = 300.0  # without a sign of life for so long, a retraining is probably gone
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


class Tone(StrEnum):
    """How a state looks."""

    GOOD = "good"
    BUSY = "busy"
    WARN = "warn"
    BAD = "bad"
    PLAIN = "plain"


@dataclass(frozen=True)
class Said:
    """A state in words."""

    text: str
    tone: Tone = Tone.PLAIN


def span(seconds: float) -> str:
    """A time in one or two units: 45 s, 12 min, 3 h 5 min, 2 d 4 h."""
    for place, (size, unit) in enumerate(_UNITS):
        if seconds >= size:
            big, rest = divmod(int(seconds), size)
            small = rest // _UNITS[place + 1][0] if place + 1 < len(_UNITS) else 0
            return f"{big} {unit}" + (f" {small} {_UNITS[place + 1][1]}" if small else "")
    return f"{max(0, int(seconds))} s"


def ago(at: float, now: float) -> str:
    """How long ago, or in how long."""
    return f"{span(now - at)} ago" if at <= now else f"in {span(at - now)}"


def clock(at: float, timezone: str | None = None) -> str:
    """A time by a zone; None: this machine's."""
    zone = ZoneInfo(timezone) if timezone else None
    return f"{datetime.fromtimestamp(at, UTC).astimezone(zone):%a %Y-%m-%d %H:%M %Z}"


def service_said(status: Status) -> Said:
    """Whether anything starts by itself."""
    if status.is_serving and status.sign is not None:
        return Said(f"running, last sign {ago(status.sign.at, status.at)}", Tone.GOOD)
    last = f"; the last one gave a sign {ago(status.sign.at, status.at)}" if status.sign else ""
    return Said(f"not running, nothing starts by itself{last}", Tone.WARN)


def trigger_said(trigger: TriggerStatus, now: float) -> Said:
    """How a trigger stands."""
    if trigger.problem:
        return Said(f"cannot be looked at: {trigger.problem}", Tone.BAD)
    if trigger.due_since is not None:
        return Said(f"came {ago(trigger.due_since, now)}", Tone.BUSY)
    if trigger.drift is not None:
        tone = Tone.PLAIN if trigger.drift.state is not DriftState.TOO_MANY_UNSCORED else Tone.WARN
        looked = f", {ago(trigger.looked_at, now)}" if trigger.looked_at else ""
        return Said(str(trigger.drift) + looked + _new(trigger), tone)
    if trigger.num_new is not None:
        return Said((trigger.note or "no look yet") + _new(trigger))
    return Said(trigger.note or ("nothing new" if trigger.next_at is None else ""))


def attempt_said(job: JobStatus, now: float) -> Said:
    """What the service does with a job, or did last."""
    one = job.attempt
    if one.running_since is not None:
        return Said(f"retraining since {span(now - one.running_since)}", Tone.BUSY)
    times = "once" if one.num_failures == 1 else f"{one.num_failures} times"
    error = one.last_error.removeprefix("march: ")
    if one.gave_up:
        fix = f"fix it, then march retrain {shown_path(job.file)}, or wait for the next trigger"
        return Said(f"failed {times}, gave up: {error}; {fix}", Tone.BAD)
    if one.num_failures:
        again = f"; again {ago(one.next_at, now)}" if one.next_at and one.next_at > now else ""
        return Said(f"failed {times}: {error}{again}", Tone.BAD)
    if one.last_ended is not None:
        return Said(f"last retraining ended {ago(one.last_ended, now)}", Tone.GOOD)
    return Said("no retraining yet")


def retraining_said(one: Retraining, now: float, model: ModelStatus | None = None) -> Said:
    """How a retraining ended, or how far it is; what a person decided later is the registry's to say."""
    decided = model.decided.get(one.version or "") if model else None
    if one.outcome is Outcome.WAITS and decided:
        return Said(f"version {one.version} was {decided}")
    commands = {waiting.version: waiting.command for waiting in model.waiting} if model else {}
    if one.outcome is Outcome.WAITS and one.version in commands:
        return Said(f"version {one.version} waits: {commands[one.version]}", Tone.WARN)
    if one.outcome is not None:
        tone = {Outcome.PROMOTED: Tone.GOOD, Outcome.REFUSED: Tone.BAD}.get(one.outcome, Tone.WARN)
        return Said(outcome_line(one).removeprefix(f"{one.model} "), tone)
    if one.state is RetrainingState.RUNNING:
        silent_s = now - one.last_sign_ms / 1000
        if silent_s > _SILENT_S:
            return Said(f"no sign of life for {span(silent_s)}; the same command goes on", Tone.WARN)
        return Said(f"running: {running_stage(one)}", Tone.BUSY)
    tone = Tone.BAD if one.state is RetrainingState.FAILED else Tone.WARN
    return Said(": ".join(filter(None, [str(one.state), one.reason or one.error])), tone)


def running_stage(one: Retraining) -> str:
    """The stage that is running."""
    running = (stage.stage for stage in one.stages if stage.state is StageState.RUNNING)
    return str(next(running, "between stages")).replace("_", " ")


def shown_path(path: str) -> str:
    """A path as it is seen from here, if it is below."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _new(trigger: TriggerStatus) -> str:
    return f"; {trigger.num_new:,} new verdicts" if trigger.num_new else ""

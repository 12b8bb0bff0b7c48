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
from orchestration.schedule.due import Trigger
from orchestration.schedule.status import JobStatus, ModelStatus

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


def trigger_said(trigger: Trigger) -> Said:
    """How a trigger is."""
    if trigger.problem:
        return Said(f"cannot be looked at: {trigger.problem}", Tone.BAD)
    if trigger.is_due:
        return Said(f"due: {trigger.detail}", Tone.BUSY)
    is_blind = trigger.drift is not None and trigger.drift.state is DriftState.TOO_MANY_UNSCORED
    return Said(trigger.detail + _new(trigger), Tone.WARN if is_blind else Tone.PLAIN)


def job_said(job: JobStatus, now: float) -> Said:
    """What happens with a job, or happened last."""
    look = job.look
    last = max(job.retrainings, key=lambda one: one.last_sign_ms, default=None)
    if last is not None and last.state is RetrainingState.RUNNING and not _is_silent(last, now):
        return Said(f"retraining since {span(now - last.started_ms / 1000)}", Tone.BUSY)
    if look is not None and look.num_failures and last is not None:
        times = "once" if look.num_failures == 1 else f"{look.num_failures} times"
        error = last.reason or last.error or "killed"
        if look.gave_up:
            fix = f"fix it, then march retrain {shown_path(job.file)}, or wait for the next trigger"
            return Said(f"failed {times}, gave up: {error}; {fix}", Tone.BAD)
        again = f"; again {ago(look.waits_until, now)}" if look.waits_until else ""
        return Said(f"failed {times}: {error}{again}", Tone.BAD)
    if look is not None and look.is_due:
        return Said("due; the next march retrain --if-due starts it", Tone.BUSY)
    if last is not None and last.ended_ms is not None:
        return Said(f"last retraining ended {ago(last.ended_ms / 1000, now)}", Tone.GOOD)
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
        if _is_silent(one, now):
            silent = span(now - one.last_sign_ms / 1000)
            return Said(f"no sign of life for {silent}; the same command goes on", Tone.WARN)
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


def _is_silent(one: Retraining, now: float) -> bool:
    return now - one.last_sign_ms / 1000 > _SILENT_S


def _new(trigger: Trigger) -> str:
    return f"; {trigger.drift.num_new:,} new verdicts" if trigger.drift and trigger.drift.num_new else ""

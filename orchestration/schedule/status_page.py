"""`march status --html`: the same as in the terminal, for a browser; one file that works from a disk."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rich.text import Text

from orchestration.retrain.records import Retraining, StageStatus
from orchestration.retrain.view import spent_line, state_text
from orchestration.schedule.status import (
    JobStatus,
    Status,
    ago,
    due_line,
    is_running,
    retraining_line,
    trigger_line,
)
from reward.offline.page import render_page

_TEMPLATES = Path(__file__).parent / "templates"
_TONES = {"green": "good", "cyan": "busy", "yellow": "warn", "red": "bad"}


def status_page(status: Status) -> str:
    return render_page(
        "status.html",
        folder=_TEMPLATES,
        style=(_TEMPLATES / "status.css").read_text(encoding="utf-8"),
        at=datetime.fromtimestamp(status.at, UTC).strftime("%Y-%m-%d %H:%M:%SZ"),
        jobs=[_shown(job, status.at) for job in status.jobs],
        tone=_tone,
    )


def _shown(job: JobStatus, now: float) -> dict[str, object]:
    return {
        "name": job.name,
        "file": job.file,
        "model_name": job.model_name,
        "missing": job.missing,
        "problems": job.problems,
        "now": None if job.look is None or is_running(job, now) else due_line(job.look),
        "aliases": list(job.model.aliases.items()) if job.model else [],
        "waiting": job.model.waiting if job.model else (),
        "triggers": [
            (trigger.cause, trigger.what, trigger_line(trigger, now))
            for trigger in (job.look.triggers if job.look else ())
        ],
        "retrainings": [_retraining(one, job, now) for one in job.retrainings],
    }


def _retraining(one: Retraining, job: JobStatus, now: float) -> dict[str, object]:
    where = f" on {one.machine}" if one.machine else ""
    return {
        "id": one.id[:8],
        "began": ago(one.started_ms / 1000, now) + where,
        "cause": one.cause,
        "line": retraining_line(one, now, job.model),
        "stages": [_stage(stage) for stage in one.stages],
        "spent": spent_line(one, job.budget),
    }


def _stage(stage: StageStatus) -> dict[str, object]:
    state, detail = state_text(stage), ", ".join(_details(stage))
    return {
        "name": stage.stage.replace("_", " "),
        "state": state.plain,
        "tone": _tone(state),
        "detail": detail,
    }


def _tone(text: Text) -> str:
    """The style's class of what the terminal shows in a colour."""
    return _TONES.get(str(text.style), "")


def _details(stage: StageStatus) -> Iterator[str]:
    if stage.wall_s:
        yield f"{stage.wall_s:,.0f} s"
    if stage.attempts > 1:
        yield f"{stage.attempts} attempts"
    if stage.error:
        yield stage.error

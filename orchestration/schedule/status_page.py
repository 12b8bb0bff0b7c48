"""A status as a page: one HTML file that works from a disk, made of the parts of the audit's page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchestration.retrain.records import Retraining, StageState
from orchestration.retrain.view import spent_line
from orchestration.schedule.status import Status
from orchestration.schedule.status_words import (
    ago,
    clock,
    job_said,
    retraining_said,
    shown_path,
    span,
    trigger_said,
)
from reward.offline.page import render_page

_TEMPLATES = Path(__file__).parent / "templates"


def render_status(status: Status) -> str:
    """Returns the page."""
    return render_page(
        "status.html",
        folder=_TEMPLATES,
        style=(_TEMPLATES / "status.css").read_text(encoding="utf-8"),
        script="",
        status=status,
        ago=lambda at: ago(at, status.at),
        clock=clock,
        shown_path=shown_path,
        job_said=lambda job: job_said(job, status.at),
        trigger_said=trigger_said,
        retraining_said=lambda one, model: retraining_said(one, status.at, model),
        spent_line=spent_line,
        stages=_stages,
    )


def _stages(one: Retraining) -> Iterator[tuple[str, str, str]]:
    """Name, tone and title of each stage."""
    tones = {
        StageState.DONE: "good",
        StageState.RUNNING: "busy",
        StageState.FAILED: "bad",
        StageState.STOPPED: "warn",
    }
    for stage in one.stages:
        told = "reused" if stage.reused else str(stage.state)
        took = f", {span(stage.wall_s)}" if stage.wall_s else ""
        tried = f", {stage.attempts} attempts" if stage.attempts > 1 else ""
        error = f": {stage.error}" if stage.error else ""
        yield (
            str(stage.stage).replace("_", " "),
            tones.get(stage.state, "plain"),
            f"{told}{took}{tried}{error}",
        )

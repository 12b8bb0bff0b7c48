"""A status in the terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from orchestration.retrain.records import Retraining, StageState, StageStatus
from orchestration.retrain.view import spent_line
from orchestration.schedule.due import Trigger
from orchestration.schedule.status import JobStatus, ModelStatus, Status
from orchestration.schedule.status_words import (
    Said,
    Tone,
    ago,
    clock,
    job_said,
    retraining_said,
    shown_path,
    span,
    trigger_said,
)

_STYLES = {Tone.GOOD: "green", Tone.BUSY: "cyan", Tone.WARN: "yellow", Tone.BAD: "red", Tone.PLAIN: ""}
_MARKS = {
    StageState.DONE: ("✓ ", "green"),
    StageState.RUNNING: ("● ", "cyan"),
    StageState.FAILED: ("✗ ", "red"),
    StageState.STOPPED: ("■ ", "yellow"),
    StageState.NOT_NEEDED: ("- ", "dim"),
}
_LABEL_WIDTH = 9


def print_status(status: Status, console: Console) -> None:
    """One block a job."""
    for job in status.jobs:
        console.print(_block(job, status.at))


def _block(job: JobStatus, now: float) -> RenderableType:
    title = Text.assemble((job.name, "bold"), f"  {shown_path(job.file)}")
    parts: list[RenderableType] = [Text(), Rule(title, align="left", style="dim")]
    parts.append(_line("now", _text(job_said(job, now))))
    parts += [_line("unread", Text(problem, style="red")) for problem in job.problems]
    parts += [_line("model", _model(job.model_name, job.model))] if job.model else []
    for one in job.model.waiting if job.model else ():
        asked = Text(f"version {one.version} waits; {one.by} asked at {one.at}", style="yellow")
        parts += [_line("approve", asked), _line("", Text(one.command, style="bold yellow"))]
    parts += [_line(one.cause, _trigger(one, now)) for one in (job.look.triggers if job.look else ())]
    parts += _retrainings(job, now)
    return Group(*parts)


def _trigger(one: Trigger, now: float) -> Text:
    coming = f"next {clock(one.next_at, one.timezone)}, {ago(one.next_at, now)}" if one.next_at else ""
    said = trigger_said(one)
    parts = [Text(one.what), Text(coming), _text(said)]
    return Text("  ").join(part for part in parts if part)


def _retrainings(job: JobStatus, now: float) -> list[RenderableType]:
    """A line each, and the stages of the last one."""
    if not job.retrainings:
        return []
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for name in ("retraining", "began", "cause", "ended", "hours"):
        table.add_column(name, overflow="fold", justify="right" if name == "hours" else "left")
    for one in job.retrainings:
        cause, said = Text(one.cause.partition(":")[0]), retraining_said(one, now, job.model)
        table.add_row(one.id[:8], ago(_at(one), now), cause, _text(said), f"{one.spent.hours:,.2f}")
    last = job.retrainings[0]
    return [
        table,
        _line("stages", Text("  ").join(_stage(stage) for stage in last.stages)),
        _line("spent", Text(spent_line(last, job.budget))),
        _line("cause", Text(last.cause)),
    ]


def _stage(one: StageStatus) -> Text:
    mark, style = _MARKS.get(one.state, ("", "dim"))
    took = f" {span(one.wall_s)}" if one.wall_s and not one.reused else ""
    return Text(f"{mark}{one.stage.replace('_', ' ')}{took}", style=style)


def _model(name: str, model: ModelStatus) -> Text:
    if model.champion is None and model.candidate is None:
        return Text(f"{name}: no version is registered", style="dim")
    aliases = (("champion", model.champion), ("previous", model.previous), ("candidate", model.candidate))
    return Text(f"{name}: " + ", ".join(f"{alias} {version or 'none'}" for alias, version in aliases))


def _line(label: str, said: Text) -> Table:
    """A label and what belongs to it, which may take several lines."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", min_width=_LABEL_WIDTH, no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(label, said)
    return table


def _text(said: Said) -> Text:
    return Text(said.text, style=_STYLES[said.tone])


def _at(one: Retraining) -> float:
    return one.started_ms / 1000

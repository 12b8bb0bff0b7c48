"""What `march status` shows: of each job its triggers, its last retraining, who is champion, what waits.

Everything is read: what triggers watch, MLflow, the registry. What cannot be read is named beside the rest.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from pydantic import Field
from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from orchestration.registry.open import open_decisions
from orchestration.registry.store import CANDIDATE
from orchestration.retrain.job import BudgetSettings, Job, job_file, load_job
from orchestration.retrain.ledger import Ledger
from orchestration.retrain.records import Ending, Retraining, RetrainingState, StageState
from orchestration.retrain.results import open_job_store
from orchestration.retrain.view import approval_of, outcome_line, stages_table
from orchestration.schedule.drift import DriftState
from orchestration.schedule.due import Look, Trigger, look_around
from pipeline.record.tracking import sqlite_file
from reward.types import Record

_NUM_RETRAININGS = 5  # the last ones
_PATIENCE_S = 2.0  # for an MLflow server that does not answer
_SILENT_S = 300.0  # without a sign of life for so long, a retraining is probably gone
_LABEL_WIDTH = 9  # in characters
_GOOD, _BUSY, _WARN, _BAD = "green", "cyan", "yellow", "red"


class WaitingVersion(Record):
    version: str
    by: str = Field(description="Who asked.")
    at: str
    command: str


class ModelStatus(Record):
    champion: str | None = None
    candidate: str | None = None
    previous: str | None = None
    waiting: tuple[WaitingVersion, ...] = ()

    @property
    def aliases(self) -> dict[str, str | None]:
        return {"champion": self.champion, "previous": self.previous, "candidate": self.candidate}


class JobStatus(Record):
    name: str
    file: str
    model_name: str
    budget: BudgetSettings
    look: Look | None = Field(default=None, description="At its triggers; None: MLflow could not be read.")
    model: ModelStatus | None = Field(default=None, description="None: there is no registry yet.")
    missing: str | None = Field(default=None, description="The registry's file, where there is none yet.")
    retrainings: tuple[Retraining, ...] = Field(default=(), description="The last ones, newest first.")
    problems: tuple[str, ...] = Field(default=(), description="What could not be read.")


class Status(Record):
    at: float = Field(description="Seconds since 1970.")
    jobs: tuple[JobStatus, ...]


def read_status(names: Sequence[str]) -> Status:
    """Reads the status of jobs, by their names or files."""
    now = time.time()
    return Status(at=now, jobs=tuple(_job_status(job_file(name).absolute(), now) for name in names))


def _job_status(file: Path, now: float) -> JobStatus:
    job, problems = load_job(str(file)), list[str]()
    look, model, retrainings = None, None, list[Retraining]()
    missing = missing_registry(job.registry.address)
    with _named_problem(problems):
        model = None if missing else _model_status(job)
    with _named_problem(problems):
        if not missing:
            retrainings = Ledger(job.registry.address, patience_s=_PATIENCE_S).retrainings(job.name)
        look = look_around(job, file.parent, lambda name: open_job_store(job).pointed(name), retrainings, now)
    return JobStatus(
        name=job.name,
        file=str(file),
        model_name=job.registry.model,
        budget=job.budget,
        look=look,
        model=model,
        missing=str(missing) if missing else None,
        retrainings=tuple(retrainings[:_NUM_RETRAININGS]),
        problems=tuple(problems),
    )


def _model_status(job: Job) -> ModelStatus:
    name = job.registry.model
    decisions = open_decisions(name, job.registry.address, open_job_store(job))
    state = decisions.state()
    return ModelStatus(
        champion=state.champion.version if state.champion else None,
        previous=state.previous.version if state.previous else None,
        candidate=decisions.registry.aliases(name).get(CANDIDATE),
        waiting=tuple(
            WaitingVersion(version=version, by=one.by, at=one.at, command=approval_of(job, version))
            for one in decisions.waiting()
            if (version := one.about.version)
        ),
    )


def missing_registry(address: str) -> Path | None:
    """The registry's file, if there is none yet: asking would make it."""
    file = sqlite_file(address)
    return None if file is None or file.is_file() else file.absolute()


@contextmanager
def _named_problem(problems: list[str]) -> Iterator[None]:
    """What cannot be read is named; the rest is shown."""
    try:
        yield
    except (ValueError, OSError) as error:
        line = " ".join(str(error).split())
        if line not in problems:
            problems.append(line)


def print_status(status: Status, console: Console) -> None:
    for job in status.jobs:
        console.print(_block(job, status.at))


def _block(job: JobStatus, now: float) -> RenderableType:
    title = Text.assemble((job.name, "bold"), f"  {job.file}")
    parts: list[RenderableType] = [Text(), Rule(title, align="left", style="dim")]
    last = job.retrainings[0] if job.retrainings else None
    if job.look is not None and not is_running(job, now):
        parts.append(_row("now", due_line(job.look)))
    parts += [_row("unread", Text(problem, style=_BAD)) for problem in job.problems]
    if job.model is not None:
        said = ", ".join(f"{alias} {version or 'none'}" for alias, version in job.model.aliases.items())
        parts.append(_row("model", Text(f"{job.model_name}: {said}")))
    if job.missing:
        where = f"{job.model_name}: nothing is retrained yet, as there is no {job.missing}"
        parts.append(_row("model", Text(where, style=_WARN)))
    for one in job.model.waiting if job.model else ():
        asked = Text(f"version {one.version} waits; {one.by} asked at {one.at}", style=_WARN)
        parts += [_row("approve", asked), _row("", Text(one.command, style=f"bold {_WARN}"))]
    for trigger in job.look.triggers if job.look else ():
        parts.append(_row(trigger.cause, Text(f"{trigger.what}  ") + trigger_line(trigger, now)))
    if last is not None:
        where = f" on {last.machine}" if last.machine else ""
        began = f"{last.id[:8]} began {ago(last.started_ms / 1000, now)}{where} ({last.cause})  "
        parts.append(_row("last", Text(began) + retraining_line(last, now, job.model)))
        parts.append(stages_table(last, job.budget))
    return Group(*parts)


def _row(label: str, said: Text) -> Table:
    """A label and what belongs to it, which may take several lines."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", min_width=_LABEL_WIDTH, no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(label, said)
    return table


def is_running(job: JobStatus, now: float) -> bool:
    """Whether a retraining of it gives signs of life."""
    last = job.retrainings[0] if job.retrainings else None
    return last is not None and last.state is RetrainingState.RUNNING and _silent_s(last, now) <= _SILENT_S


def trigger_line(trigger: Trigger, now: float) -> Text:
    if trigger.problem:
        return Text(f"cannot be looked at: {trigger.problem}", _BAD)
    if trigger.is_due:
        return Text(f"due: {trigger.detail}", _BUSY)
    drift = trigger.drift
    new = f"; {drift.num_new:,} new verdicts" if drift and drift.num_new else ""
    if trigger.next_at:
        new += f"{',' if trigger.detail.startswith('next ') else '; next'} {ago(trigger.next_at, now)}"
    is_blind = drift is not None and drift.state is DriftState.TOO_MANY_UNSCORED
    return Text(trigger.detail + new, _WARN if is_blind else "")


def due_line(look: Look) -> Text:
    if look.is_due:
        return Text("due; the next march retrain --if-due starts it", _BUSY)
    return Text(str(look), _BAD) if look.num_failures else Text("not due")


def retraining_line(one: Retraining, now: float, model: ModelStatus | None = None) -> Text:
    """How a retraining ended, or how far it is; what a person decided later is the registry's to say."""
    if one.outcome is Ending.WAITS and model is not None:
        commands = {waiting.version: waiting.command for waiting in model.waiting}
        if one.version not in commands:
            return Text(f"version {one.version} waited for approval and was decided on")
        return Text(f"version {one.version} waits: {commands[one.version]}", _WARN)
    if one.outcome is not None:
        if one.outcome is Ending.PROMOTED and model is not None and model.champion != one.version:
            return Text(f"version {one.version} was promoted, and is not the champion now", _WARN)
        tone = {Ending.PROMOTED: _GOOD, Ending.REFUSED: _BAD}.get(one.outcome, _WARN)
        return Text(outcome_line(one).removeprefix(f"{one.model} "), tone)
    if one.state is RetrainingState.RUNNING:
        if _silent_s(one, now) > _SILENT_S:
            return Text(f"no sign of life for {span(_silent_s(one, now))}; the same command goes on", _WARN)
        running = (stage.stage for stage in one.stages if stage.state is StageState.RUNNING)
        return Text(f"running: {next(running, 'between stages')}".replace("_", " "), _BUSY)
    tone = _BAD if one.state is RetrainingState.FAILED else _WARN
    return Text(": ".join(filter(None, [str(one.state), one.reason or one.error])), tone)


def span(seconds: float) -> str:
    """A time as 0:12:00, or 2 days, 4:00:00."""
    return str(timedelta(seconds=max(0, int(seconds))))


def ago(at: float, now: float) -> str:
    """How long ago, or in how long."""
    return f"{span(now - at)} ago" if at <= now else f"in {span(at - now)}"


def _silent_s(one: Retraining, now: float) -> float:
    return now - one.last_sign_ms / 1000

"""What `march status` shows: of each job its triggers, its retrainings, who is champion, what waits.

Everything is read: journals, MLflow, the registry. What cannot be reached is named beside what can.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field, ValidationError

from orchestration.registry.desk import approval_command, open_desk
from orchestration.registry.log import Action, Effect
from orchestration.registry.store import CANDIDATE
from orchestration.retrain.job import BudgetSettings, Job, job_file, load_job
from orchestration.retrain.ledger import Ledger
from orchestration.retrain.records import Retraining
from orchestration.schedule.cron import CronTimes
from orchestration.schedule.drift import Drift
from orchestration.schedule.job_watch import is_running
from orchestration.schedule.journal import Cause, JobState, read_state
from orchestration.schedule.service import LOCK_FILE, SERVICE_FILE, ServedJob, Sign
from orchestration.schedule.watch import lines_of, num_new
from reward.types import Record

NUM_RETRAININGS = 5
_DECIDED = {Action.APPROVE: "approved", Action.REJECT: "rejected"}
_PATIENCE_S = 2.0  # for an MLflow server that does not answer


class TriggerStatus(Record):
    """One trigger of a job."""

    cause: Cause
    what: str = Field(description="What it goes by.")
    due_since: float | None = Field(default=None, description="Seconds since 1970; None: it has not come.")
    next_at: float | None = Field(default=None, description="Of a cron expression, in seconds since 1970.")
    timezone: str | None = Field(default=None, description="Of the expression.")
    drift: Drift | None = Field(default=None, description="The last look.")
    looked_at: float | None = None
    num_new: int | None = Field(default=None, description="Verdicts since the last look that counted.")
    note: str = ""
    problem: str = Field(default="", description="Why it cannot be looked at.")


class WaitingVersion(Record):
    """A version that waits for a person."""

    version: str
    by: str = Field(description="Who asked.")
    at: str
    command: str


class ModelStatus(Record):
    """A model in the registry."""

    champion: str | None = None
    candidate: str | None = None
    previous: str | None = None
    waiting: tuple[WaitingVersion, ...] = ()
    decided: dict[str, str] = Field(
        default={}, description='What became of versions that waited, e.g. "approved by ana".'
    )


class AttemptStatus(Record):
    """What the service did last."""

    running_since: float | None = None
    log: str | None = Field(default=None, description="File of its output.")
    last_ended: float | None = None
    last_error: str = ""
    num_failures: int = Field(default=0, description="In a row.")
    next_at: float | None = Field(default=None, description="Of the next attempt.")
    gave_up: bool = False


class JobStatus(Record):
    """One job."""

    name: str
    file: str
    model_name: str
    budget: BudgetSettings
    triggers: tuple[TriggerStatus, ...] = ()
    attempt: AttemptStatus = AttemptStatus()
    model: ModelStatus | None = Field(default=None, description="None: there is no registry yet.")
    retrainings: tuple[Retraining, ...] = Field(default=(), description="The last ones, newest first.")
    problems: tuple[str, ...] = Field(default=(), description="What could not be read.")


class Status(Record):
    """All of it."""

    at: float = Field(description="Seconds since 1970.")
    folder: str
    is_serving: bool = Field(description="Whether a service has the folder.")
    sign: Sign | None = Field(default=None, description="Its last sign of life.")
    jobs: tuple[JobStatus, ...]


def read_status(names: Sequence[str], folder: Path) -> Status:
    """Reads how jobs stand.

    Args:
        names: Of jobs, or their files; none: those of the service.
        folder: Of the service.

    Raises:
        FileNotFoundError: there is no such job.
        ValueError: there are no jobs, or one cannot be used.
    """
    sign = _sign(folder)
    served = {one.file: one for one in sign.jobs} if sign else {}
    files = [str(job_file(name).absolute()) for name in names] or list(served)
    if not files:
        raise ValueError(f"JOB: none is named, and no service of {folder} has any; name job files")
    now, is_serving = time.time(), _is_held(folder / LOCK_FILE)
    return Status(
        at=now,
        folder=str(folder),
        is_serving=is_serving,
        sign=sign,
        jobs=tuple(_job_status(Path(file), folder, served.get(file), now, is_serving) for file in files),
    )


def _job_status(
    file: Path, folder: Path, served: ServedJob | None, now: float, is_serving: bool
) -> JobStatus:
    job, problems = load_job(str(file)), list[str]()
    state, model, retrainings = JobState(), None, list[Retraining]()
    with _told(problems):
        state = read_state(folder / job.name, job.triggers.backoff)
    if _has_registry(job.registry.address):
        with _told(problems):
            model = _model_status(job)
            ledger = Ledger(job.registry.address, patience_s=_PATIENCE_S)
            retrainings = ledger.retrainings(job.name, limit=NUM_RETRAININGS)
    return JobStatus(
        name=job.name,
        file=str(file),
        model_name=job.registry.model,
        budget=job.budget,
        triggers=tuple(_triggers(job, file, state, now, served if is_serving else None)),
        attempt=_attempt(state, folder / job.name),
        model=model,
        retrainings=tuple(retrainings),
        problems=tuple(problems),
    )


def _triggers(
    job: Job, file: Path, state: JobState, now: float, served: ServedJob | None
) -> Iterator[TriggerStatus]:
    due_since = {cause: one.at for cause, one in state.due.items()}
    problems = served.problems if served else {}
    cron, data, drift = job.triggers.cron, job.triggers.data, job.triggers.drift
    if cron is not None:
        times = CronTimes(cron)
        coming = times.get_next_fire_time(None, datetime.fromtimestamp(now, UTC))
        yield TriggerStatus(
            cause=Cause.CRON,
            what=cron.expression,
            due_since=due_since.get(Cause.CRON),
            next_at=coming.timestamp() if coming else None,
            timezone=cron.timezone,
            note=f"missed: {state.missed.detail}" if state.missed else "",
        )
    if data is not None:
        names = [*map(str, data.paths), *data.pointers]
        yield TriggerStatus(
            cause=Cause.DATA,
            what=", ".join(names) or "the job's data",
            due_since=due_since.get(Cause.DATA),
            note="no look yet" if state.data is None else "",
            problem=problems.get(Cause.DATA, ""),
        )
    if drift is not None:
        read, unreadable = dict[str, int](), list[str]()
        with _told(unreadable):
            read = lines_of(file.parent, drift.verdicts)
        yield TriggerStatus(
            cause=Cause.DRIFT,
            what=", ".join(drift.verdicts),
            due_since=due_since.get(Cause.DRIFT),
            drift=state.drift,
            looked_at=state.looked_at or None,
            num_new=None if unreadable else num_new(read, state.looked),
            note="" if read else "no such file yet",
            problem=problems.get(Cause.DRIFT) or "".join(unreadable),
        )


def _attempt(state: JobState, folder: Path) -> AttemptStatus:
    running = state.running is not None and is_running(folder)
    began = state.last_began
    return AttemptStatus(
        running_since=began.at if running and began else None,
        log=str(folder / began.log) if began else None,
        last_ended=state.last.at if state.last else None,
        last_error=state.last.error if state.last else "",
        num_failures=state.num_failures,
        next_at=state.starts_at,
        gave_up=state.gave_up,
    )


def _model_status(job: Job) -> ModelStatus:
    name = job.registry.model
    desk = open_desk(name, job.registry.address, job.registry.history)
    state = desk.state()
    return ModelStatus(
        champion=state.champion,
        previous=state.previous,
        candidate=desk.registry.aliases(name).get(CANDIDATE),
        waiting=tuple(
            WaitingVersion(
                version=one.version,
                by=one.by,
                at=one.at,
                command=approval_command(name, one.version, job.registry.policy),
            )
            for one in state.waiting.values()
        ),
        decided={
            one.entry.version: f"{_DECIDED[one.entry.action]} by {one.entry.by}"
            for one in state.history
            if one.effect is Effect.IN_EFFECT and one.entry.action in _DECIDED
        },
    )


def _has_registry(address: str) -> bool:
    """Whether there is something to ask; asking would make a database that is not there."""
    file = address.removeprefix("sqlite:///")
    return file == address or Path(file).is_file()


def _sign(folder: Path) -> Sign | None:
    try:
        return Sign.model_validate_json((folder / SERVICE_FILE).read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise ValueError(f"{folder / SERVICE_FILE}: is of another version; restart the service") from error


def _is_held(lock: Path) -> bool:
    """Whether a service has its lock."""
    if not lock.exists():
        return False
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextmanager
def _told(problems: list[str]) -> Iterator[None]:
    """What cannot be read is named; the rest is shown."""
    try:
        yield
    except (ValueError, OSError) as error:
        problems.append(" ".join(str(error).split()))

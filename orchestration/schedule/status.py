"""What `march status` shows: of each job its triggers, its retrainings, who is champion, what waits.

Everything is read: what triggers watch, MLflow, the registry. What cannot be read is named beside the rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from pydantic import Field

from orchestration.registry.chain import Action
from orchestration.registry.open import approval_command, open_decisions
from orchestration.registry.store import CANDIDATE
from orchestration.retrain.job import BudgetSettings, Job, job_file, load_job
from orchestration.retrain.ledger import Ledger
from orchestration.retrain.records import Retraining
from orchestration.retrain.workshop import open_job_store
from orchestration.schedule.due import Look, Watched, look_around
from reward.types import Record

NUM_RETRAININGS, _NUM_DECISIONS = 5, 50  # the last ones
_DECIDED = {Action.APPROVE: "approved", Action.REJECT: "rejected"}
_PATIENCE_S = 2.0  # for an MLflow server that does not answer


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


class JobStatus(Record):
    """One job."""

    name: str
    file: str
    model_name: str
    budget: BudgetSettings
    look: Look | None = Field(default=None, description="At its triggers; None: MLflow could not be read.")
    model: ModelStatus | None = Field(default=None, description="None: there is no registry yet.")
    retrainings: tuple[Retraining, ...] = Field(default=(), description="The last ones, newest first.")
    problems: tuple[str, ...] = Field(default=(), description="What could not be read.")


class Status(Record):
    """All of it."""

    at: float = Field(description="Seconds since 1970.")
    jobs: tuple[JobStatus, ...]


def read_status(names: Sequence[str]) -> Status:
    """Reads the status of jobs.

    Args:
        names: Of jobs, or their files.

    Raises:
        FileNotFoundError: there is no such job.
        ValueError: one cannot be used.
    """
    now = time.time()
    return Status(at=now, jobs=tuple(_job_status(job_file(name).absolute(), now) for name in names))


def _job_status(file: Path, now: float) -> JobStatus:
    job, problems = load_job(str(file)), list[str]()
    look, model, retrainings = None, None, list[Retraining]()
    is_there = has_registry(job.registry.address)
    with _named_problem(problems):
        model = _model_status(job) if is_there else None
    with _named_problem(problems):
        if is_there:
            retrainings = Ledger(job.registry.address, patience_s=_PATIENCE_S).retrainings(job.name)
        watched = Watched(job, file.parent, lambda pointer: open_job_store(job).pointed(pointer))
        look = look_around(watched, retrainings, now)
    return JobStatus(
        name=job.name,
        file=str(file),
        model_name=job.registry.model,
        budget=job.budget,
        look=look,
        model=model,
        retrainings=tuple(retrainings[:NUM_RETRAININGS]),
        problems=tuple(problems),
    )


def _model_status(job: Job) -> ModelStatus:
    name = job.registry.model
    decisions = open_decisions(name, job.registry.address, open_job_store(job))
    state = decisions.state()
    last = islice(decisions.chain.history(), _NUM_DECISIONS)
    return ModelStatus(
        champion=state.champion.version if state.champion else None,
        previous=state.previous.version if state.previous else None,
        candidate=decisions.registry.aliases(name).get(CANDIDATE),
        waiting=tuple(
            WaitingVersion(
                version=one.about.version,
                by=one.by,
                at=one.at,
                command=approval_command(
                    name,
                    one.about.version,
                    registry=job.registry.uri,
                    store=job.store.location,
                ),
            )
            for one in decisions.waiting()
        ),
        decided={
            one.about.version: f"{_DECIDED[one.action]} by {one.by}"
            for one in reversed([made.decision for made in last])
            if one.action in _DECIDED
        },
    )


def has_registry(address: str) -> bool:
    """Whether there is something to ask; asking would make a database that is not there."""
    file = address.removeprefix("sqlite:///")
    return file == address or Path(file).is_file()


@contextmanager
def _named_problem(problems: list[str]) -> Iterator[None]:
    """What cannot be read is named; the rest is shown."""
    try:
        yield
    except (ValueError, OSError) as error:
        line = " ".join(str(error).split())
        if line not in problems:
            problems.append(line)

"""Job files as the service knows them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from orchestration.registry.decisions import KEY_ENV
from orchestration.registry.store import Registry
from orchestration.retrain.job import Job, job_file, load_job
from orchestration.retrain.lease import LEASES
from orchestration.retrain.workshop import open_job_store
from orchestration.schedule.job_watch import Scheduled

_MARCH = (sys.executable, "-c", "from orchestration.cli import main; main()")


def scheduled_jobs(names: Iterable[str]) -> list[Scheduled]:
    """The jobs of these names or files.

    Raises:
        FileNotFoundError: there is no such job.
        ValueError: a job cannot be used, has no trigger, or two have one name.
    """
    found: dict[str, Scheduled] = {}
    for name in names:
        one = _scheduled(job_file(name).absolute())
        if one.name in found:
            raise ValueError(f"name: {one.name!r} is of {found[one.name].file} and of {one.file}; rename one")
        found[one.name] = one
    return list(found.values())


def check_places(names: Iterable[str]) -> None:
    """Asks each job's store and registry for something small, so that a wrong address is said at once.

    Args:
        names: Of jobs, or their files.

    Raises:
        ValueError: one of them does not answer, or refuses.
    """
    for name in names:
        job = load_job(name)
        registry = Registry(job.registry.address, has_key=bool(os.environ.get(KEY_ENV)))
        registry.aliases(job.registry.model)
        next(iter(open_job_store(job).backend.entries(LEASES)), None)


def _scheduled(file: Path) -> Scheduled:
    job = load_job(str(file))
    triggers = job.triggers
    if triggers.cron is None and triggers.data is None and triggers.drift is None:
        raise ValueError(f"{file.name}: triggers: there is none; add cron, data or drift")
    store = cache(lambda: open_job_store(job))
    return Scheduled(
        name=job.name,
        file=file,
        triggers=triggers,
        paths=_watched(job, file),
        command=(*_MARCH, "retrain", str(file)),
        pointed=lambda pointer: store().pointed(pointer),
    )


def _watched(job: Job, file: Path) -> tuple[Path, ...]:
    """Paths whose digests are looked at; those that the job reads, unless others are named."""
    data = job.triggers.data
    if data is None:
        return ()
    if data.paths or data.pointers:
        return tuple((file.parent / path.expanduser()).resolve() for path in data.paths)
    if job.data.rows is not None:
        return (job.data.rows,)
    if job.data.prepare is not None:
        return tuple(one.path for one in job.data.prepare.inputs)
    raise ValueError(
        f"{file.name}: triggers.data: the job reads no data; name paths or pointers, or remove it"
    )

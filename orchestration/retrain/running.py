"""What runs for a job, from outside: its command here, its jobs on a cluster, the logs of its stages."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from orchestration.retrain.job import Job
from orchestration.retrain.lease import BusyError, Lease, lock_file, only_here
from orchestration.retrain.local_stage import LOG_FILE
from orchestration.retrain.ray_jobs import is_living, jobs_of, open_client
from orchestration.retrain.records import Stage
from orchestration.retrain.results import open_job_store

_LIMIT_S = 120.0  # a command stops its stage, which may be a job of a cluster, and writes that down


def cancel(job: Job) -> list[str]:
    """Stops the command that runs the job here; where none does, jobs that one has left on the cluster.

    Returns:
        What was stopped.

    Raises:
        BusyError: another machine runs it.
        TimeoutError: it does not stop.
    """
    found = list(_holders(job))
    for pid in found:
        os.kill(pid, signal.SIGTERM)  # as a terminal's Ctrl-C: in order, and written down
    until = time.monotonic() + _LIMIT_S
    while found:
        try:
            with only_here(job.folder):
                return [f"process {pid}" for pid in found]
        except BusyError:
            if time.monotonic() > until:
                raise TimeoutError(f"process {found[0]} has not stopped after {_LIMIT_S:.0f} s") from None
            time.sleep(0.2)
    with only_here(job.folder) as here:
        Lease(open_job_store(job).backend, job.name, holder=here, period_s=job.lease_s).demand_free()
        return list(_stopped(job)) if job.cluster is not None else []


def read_log(job: Job, stage: Stage) -> tuple[str, str]:
    """The log of a stage's last attempt, and where it is.

    Raises:
        FileNotFoundError: there is none.
    """
    files = sorted(
        job.folder.glob(f"{stage.result_name}-*/{LOG_FILE}"), key=lambda file: file.stat().st_mtime
    )
    if files:
        return files[-1].read_text(errors="replace"), str(files[-1])
    if job.cluster is not None:
        client = open_client(job.cluster.address)
        jobs = jobs_of(client, job, stage.result_name)
        last = max(jobs, key=lambda one: one.start_time or 0, default=None)
        if last is not None:
            return client.get_job_logs(last.submission_id), f"Ray job {last.submission_id}"
    raise FileNotFoundError(f"{job.folder}: holds no log of {stage}; it has not run here")


def _holders(job: Job) -> Iterator[int]:
    """Processes that have the job's lock open."""
    lock = lock_file(job.folder).resolve()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            has_it = any(one.readlink() == lock for one in (process / "fd").iterdir())
        except OSError:
            continue  # gone, or another user's
        if has_it and int(process.name) != os.getpid():
            yield int(process.name)


def _stopped(job: Job) -> Iterator[str]:
    assert job.cluster is not None
    client = open_client(job.cluster.address)
    for one in jobs_of(client, job):
        if is_living(one):
            client.stop_job(one.submission_id)
            yield f"Ray job {one.submission_id}"

"""`march schedule`: a service that starts retrainings when their triggers come.

    FOLDER/schedule.db            APScheduler's jobs: when each cron expression comes next
    FOLDER/service.json           which jobs are served, and the last sign of life; written by rename
    FOLDER/NAME/journal.jsonl     what happened (`journal.py`)
    FOLDER/NAME/logs/             output of each retraining

The scheduler's times survive a restart; what passed meanwhile is found when it starts. Cron times are written
to the journal in the scheduler's own thread, before the scheduler stores the next one: after a kill a time
may be noted twice, never not at all. Everything else is looked at every few seconds, each job in a thread of
its own.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from apscheduler.events import EVENT_JOB_MISSED, JobExecutionEvent
from apscheduler.executors.debug import DebugExecutor
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from pydantic import Field

from orchestration.retrain.triggers import CronSettings
from orchestration.schedule.cron import CronTimes, cron_came
from orchestration.schedule.job_watch import JobWatch, Scheduled, is_running
from orchestration.schedule.journal import Cause, Missed, append_line
from orchestration.schedule.monitor import ScheduleFigures, monitoring
from orchestration.schedule.options import HOST, OnStop
from reward.offline.files import refuse_unwritable, replace_file
from reward.types import Record

logger = logging.getLogger(__name__)

DATABASE_FILE, SERVICE_FILE, LOCK_FILE = "schedule.db", "service.json", "service.lock"
STEP_S = 5.0
_SILENT_S = 120.0  # without a sign of life for so long, the scheduler has stopped
_LOCK_TRIES = 5  # `march status` takes the lock for an instant, to see whether a service has it
_KEPT, _PASSING = "kept", "passing"  # job stores, each with an executor of its own


class ServedJob(Record):
    """A job of a service."""

    name: str
    file: str
    problems: dict[Cause, str] = Field(default={}, description="Triggers that cannot be looked at, and why.")


class Sign(Record):
    """A service's sign of life."""

    at: float = Field(description="Seconds since 1970.")
    pid: int
    port: int | None
    jobs: tuple[ServedJob, ...]


class Service:
    """The service over some jobs.

    Args:
        jobs: Their names are unique.
        folder: Of its files; one service a folder.
        on_stop: What SIGTERM does to what is running.
        port: Of health and figures; 0: any.
        host: Where those are listened for.
        step_s: How often a job is attended to, in seconds.
    """

    def __init__(
        self,
        jobs: Sequence[Scheduled],
        folder: Path,
        *,
        on_stop: OnStop,
        port: int,
        host: str = HOST,
        step_s: float = STEP_S,
    ) -> None:
        self.folder, self._on_stop, self._step_s = folder, on_stop, step_s
        self._host, self._port = host, port
        self.watches = [JobWatch(job, folder / job.name) for job in jobs]
        self._beat = time.monotonic()
        self._signals = 0
        self._stop = threading.Event()
        self._unwritable: OSError | None = None

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT.

        Raises:
            ValueError: another service has the folder, or its port is taken.
            OSError: the folder cannot be written to, at the start or later.
            RuntimeError: the scheduler stopped; a supervisor starts the service again.
        """
        with only_service(self.folder):
            for one in (signal.SIGTERM, signal.SIGINT):
                signal.signal(one, self._signalled)
            refuse_unwritable(self.folder)
            scheduler = make_scheduler(self.folder, len(self.watches))
            figures = ScheduleFigures(self.watches, lambda name: _next_s(scheduler, name))
            with monitoring(figures, self.is_well, self._port, host=self._host) as port:
                self._port = port
                with _told(self.folder / DATABASE_FILE):
                    start_times(scheduler, self.watches)
                start_steps(scheduler, self.watches, self._beats, self._step_s)
                scheduler.resume()
                self._serve()
            scheduler.shutdown()
            self._end()

    def is_well(self) -> bool:
        """Whether the scheduler gave a sign of life lately."""
        return time.monotonic() - self._beat < _SILENT_S

    def _serve(self) -> None:
        logger.info("serving %d jobs; http://%s:%d/healthz", len(self.watches), self._host, self._port)
        while not self._stop.wait(1.0):
            if not self.is_well():
                raise RuntimeError(
                    "the scheduler gives no sign of life; the service ends, to be started again"
                )

        if self._unwritable is not None:
            raise self._unwritable

    def _end(self) -> None:
        """Waits for what is running, or says what is left."""
        while self._on_stop is OnStop.WAIT and self._running() and self._signals < 2:
            time.sleep(0.2)
        for name in self._running():
            logger.info("%s: its retraining goes on", name)

    def _running(self) -> list[str]:
        return [one.job.name for one in self.watches if is_running(one.folder)]

    def _beats(self) -> None:
        self._beat = time.monotonic()
        jobs = tuple(
            ServedJob(name=one.job.name, file=str(one.job.file), problems=dict(one.problems))
            for one in self.watches
        )
        sign = Sign(at=time.time(), pid=os.getpid(), port=self._port, jobs=jobs)
        try:
            replace_file(self.folder / SERVICE_FILE, sign.model_dump_json(indent=2) + "\n")
        except OSError as error:  # a service that can note nothing must not go on in silence
            self._unwritable = OSError(error.errno, error.strerror, str(self.folder))
            self._stop.set()

    def _signalled(self, number: int, frame: object) -> None:
        self._signals += 1
        self._stop.set()


@contextmanager
def _told(database: Path) -> Iterator[None]:
    """Gives the database's errors (a full disk, a file of another user) one line."""
    from sqlalchemy.exc import OperationalError

    try:
        yield
    except OperationalError as error:
        raise ValueError(f"{database}: {error.orig}; make room, or fix its permissions") from error


def make_scheduler(folder: Path, num_jobs: int) -> BackgroundScheduler:
    """APScheduler over the folder's database, with nothing in it that was not there."""
    folder.mkdir(parents=True, exist_ok=True)
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    return BackgroundScheduler(
        jobstores={
            _KEPT: SQLAlchemyJobStore(url=f"sqlite:///{(folder / DATABASE_FILE).absolute()}"),
            _PASSING: MemoryJobStore(),
        },
        # Cron times are noted in the scheduler's thread, before it stores the next one.
        executors={_KEPT: DebugExecutor(), _PASSING: ThreadPoolExecutor(num_jobs + 1)},
        timezone=UTC,
    )


def start_times(scheduler: BackgroundScheduler, watches: Sequence[JobWatch]) -> None:
    """Starts a scheduler, paused: kept times as they are, changed expressions anew, other jobs' removed."""
    folders = {cron_id(one.job.name): one.folder for one in watches}
    scheduler.add_listener(lambda event: _note_missed(folders, event), EVENT_JOB_MISSED)
    scheduler.start(paused=True)
    for watch in watches:
        if watch.job.triggers.cron is not None:
            keep_cron(scheduler, watch, watch.job.triggers.cron)
    wanted = {cron_id(one.job.name) for one in watches if one.job.triggers.cron is not None}
    for kept in scheduler.get_jobs(jobstore=_KEPT):
        if kept.id not in wanted:
            logger.info("%s: removed from the schedule", kept.id)
            scheduler.remove_job(kept.id, jobstore=_KEPT)


def start_steps(
    scheduler: BackgroundScheduler, watches: Sequence[JobWatch], beats: Callable[[], None], step_s: float
) -> None:
    """Adds what is done every few seconds: each job is attended to, and a sign of life is given."""
    now = datetime.now(UTC)
    steps = [beats, *(partial(_step, watch) for watch in watches)]
    for number, step in enumerate(steps):
        scheduler.add_job(
            step,
            "interval",
            seconds=step_s,
            next_run_time=now,
            id=f"step {number}",
            jobstore=_PASSING,
            executor=_PASSING,
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,
        )


def keep_cron(scheduler: BackgroundScheduler, watch: JobWatch, cron: CronSettings) -> None:
    """Leaves a kept time alone, since a missed one is found by it, unless what it is of is another."""
    times, there = CronTimes(cron), scheduler.get_job(cron_id(watch.job.name), jobstore=_KEPT)
    args = (str(watch.folder.absolute()), times)
    if there is not None and (there.args, there.misfire_grace_time) == (args, cron.latest_s):
        return
    scheduler.add_job(
        cron_came,
        times,
        args=args,
        id=cron_id(watch.job.name),
        jobstore=_KEPT,
        executor=_KEPT,
        misfire_grace_time=cron.latest_s,
        coalesce=True,
        max_instances=1,
        replace_existing=True,
    )


def cron_id(name: str) -> str:
    """Id of a job's cron expression in the scheduler."""
    return f"{name}/cron"


@contextmanager
def only_service(folder: Path) -> Iterator[None]:
    """Holds the folder's lock.

    Raises:
        ValueError: another service has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK_FILE).open("a") as lock:
        for _ in range(_LOCK_TRIES):
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.1)
        else:
            raise ValueError(f"{folder}: another march schedule has it; stop it, or use --folder")
        yield


def _step(watch: JobWatch) -> None:
    """A job that cannot be attended to is shown; the others go on."""
    try:
        watch.step(time.time())
    except Exception:
        logger.exception("%s: cannot be attended to", watch.job.name)


def _note_missed(folders: dict[str, Path], event: JobExecutionEvent) -> None:
    if event.job_id in folders:
        detail = f"{event.scheduled_run_time:%Y-%m-%d %H:%M %Z} was too long ago"
        logger.warning("%s: %s", event.job_id, detail)
        append_line(folders[event.job_id], Missed(at=time.time(), detail=detail))


def _next_s(scheduler: BackgroundScheduler, name: str) -> float | None:
    job = scheduler.get_job(cron_id(name), jobstore=_KEPT)
    return job.next_run_time.timestamp() if job is not None and job.next_run_time else None

"""One job under the service: looks at what is watched, and starts a retraining where one is due."""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from orchestration.retrain.triggers import DataSettings, DriftSettings, Triggers
from orchestration.schedule.attempt import start_attempt
from orchestration.schedule.drift import DriftState
from orchestration.schedule.journal import (
    Began,
    Cause,
    Due,
    Ended,
    JobState,
    Looked,
    Seen,
    append_line,
    read_state,
)
from orchestration.schedule.watch import Digests, changed, lines_of, look_at, num_new

logger = logging.getLogger(__name__)

_LOCK_FILE = "running.lock"


@dataclass(frozen=True)
class Scheduled:
    """A job as the service knows it."""

    name: str
    file: Path  # of the job; patterns are seen from its folder
    triggers: Triggers
    paths: tuple[Path, ...]  # whose digests are watched
    command: tuple[str, ...]  # that retrains it; `--cause TEXT` is added
    pointed: Callable[[str], str | None]  # what a pointer of its artifact store points to


class JobWatch:
    """Attends to one job; everything that must outlive the process is in the journal.

    Args:
        job: The job.
        folder: Of the journal.
    """

    def __init__(self, job: Scheduled, folder: Path) -> None:
        self.job, self.folder = job, folder
        self.problems: dict[Cause, str] = {}  # of the last look
        self._digests = Digests(job.pointed)
        self._data: dict[str, str] = {}  # at the last look
        self._next_look = {Cause.DATA: 0.0, Cause.DRIFT: 0.0}
        self._process: subprocess.Popen[bytes] | None = None

    def state(self) -> JobState:
        """What the journal says."""
        return read_state(self.folder, self.job.triggers.backoff)

    def step(self, now: float) -> None:
        """Does what is to be done at this time (seconds since 1970)."""
        state = self.state()
        if self._process is not None and self._process.poll() is not None:
            self._process = None
            if state.last is not None and not state.last.is_well:
                logger.warning(
                    "%s: retraining ended with %s: %s", self.job.name, state.last.code, state.last.error
                )
        if state.running is not None:
            if is_running(self.folder):
                return
            state = self._over(state)
        self._look(state, now)
        state = self.state()
        if state.starts_at is not None and now >= state.starts_at:
            self._start(state, now)

    def _over(self, state: JobState) -> JobState:
        """Notes a retraining that was killed together with what watched it."""
        if self.state().running == state.running:  # its last line may have come meanwhile
            append_line(self.folder, Ended(at=time.time(), code=None, error="killed"))
        return self.state()

    def _look(self, state: JobState, now: float) -> None:
        data, drift = self.job.triggers.data, self.job.triggers.drift
        if data is not None and self._is_time(Cause.DATA, now, data.every_s):
            with self._told(Cause.DATA):
                self._look_at_data(data, state, now)
        if drift is not None and self._is_time(Cause.DRIFT, now, drift.every_s):
            with self._told(Cause.DRIFT):
                self._look_at_drift(drift, state, now)

    def _look_at_data(self, settings: DataSettings, state: JobState, now: float) -> None:
        """What two looks found alike counts, so that half a file does not."""
        before, self._data = self._data, self._digests.of(self.job.paths, settings.pointers)
        if not self._data:
            raise ValueError(
                f"nothing is there yet of {', '.join(map(str, self.job.paths)) or 'the pointers'}"
            )
        whole = {name: one for name, one in self._data.items() if before.get(name) == one}
        if not whole:
            return
        if state.data is None and not settings.at_first:
            append_line(self.folder, Seen(at=now, data=whole))
            return
        new = changed(whole, state.data or {})
        if new and Cause.DATA not in state.due:
            append_line(self.folder, Due(at=now, cause=Cause.DATA, detail=f"changed: {', '.join(new)}"))

    def _look_at_drift(self, settings: DriftSettings, state: JobState, now: float) -> None:
        if Cause.DRIFT in state.due or now < state.drift_began + settings.cool_down_s:
            return
        read = lines_of(self.job.file.parent, settings.verdicts)
        if num_new(read, state.looked) < settings.min_answers:
            return
        found = look_at(
            self.job.file.parent, settings, settled=state.read, read=read, num_looks=state.num_looks
        )
        if found != state.drift:
            append_line(self.folder, Looked(at=now, drift=found))
        if found.state is DriftState.DRIFTED:
            append_line(self.folder, Due(at=now, cause=Cause.DRIFT, detail=str(found)))

    def _start(self, state: JobState, now: float) -> None:
        """Starts a retraining for all that is due."""
        lock = try_lock(self.folder)
        if lock is None:
            return
        drift, read = self.job.triggers.drift, dict(state.read)
        if drift is not None:
            with suppress(OSError):  # which looks at drift tell; the other triggers go on
                read = lines_of(self.job.file.parent, drift.verdicts)
        log = self.folder / "logs" / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        began = Began(
            at=now,
            causes=tuple(state.due),
            data=self._data,
            read=read,
            log=str(log.relative_to(self.folder)),
        )
        cause = "; ".join(f"{one.cause}: {one.detail}" for one in state.due.values())
        logger.info("%s: retraining for %s", self.job.name, cause)
        try:
            append_line(self.folder, began)
            command = [*self.job.command, "--cause", cause]
            self._process = start_attempt(self.folder, log=log, lock=lock, command=command)
        finally:
            os.close(lock)

    def _is_time(self, cause: Cause, now: float, every_s: float) -> bool:
        if now < self._next_look[cause]:
            return False
        self._next_look[cause] = now + every_s
        return True

    @contextmanager
    def _told(self, cause: Cause) -> Iterator[None]:
        """A look that fails is shown, and says nothing of what it looked for."""
        try:
            yield
        except (ValueError, OSError) as error:
            problem = " ".join(str(error).split())
            if self.problems.get(cause) != problem:
                logger.warning("%s: %s cannot be looked at: %s", self.job.name, cause, problem)
            self.problems[cause] = problem
        else:
            self.problems.pop(cause, None)


def try_lock(folder: Path) -> int | None:
    """A descriptor that holds the job's lock; None: a retraining has it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock
    os.close(lock)
    return None


def is_running(folder: Path) -> bool:
    """Whether a retraining holds the job's lock."""
    lock = try_lock(folder)
    if lock is not None:
        os.close(lock)
    return lock is None

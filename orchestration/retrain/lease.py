"""One retraining of a job at a time: a lock on this machine, and a lease in the store for all machines.

Both save work, nothing more. What keeps two at once from doing harm is that results are content-addressed and
that decisions are compare-and-set (docs/retraining.md).

The holder of a lease writes to it again and again. No clocks are compared: who wants it looks, waits for one
period, and looks again; a lease that did not change meanwhile is a dead holder's and is taken by
compare-and-set. Who is on the machine that holds it need not wait: the lock there says that it is gone.
A holder that cannot reach the store keeps its lease until it reads that somebody else has taken it.
"""

import fcntl
import json
import logging
import math
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestration.retrain.job import Job
from pipeline.artifacts.backend import Backend, Blob, MovedError, UnsafeEndpointError
from pipeline.artifacts.settings import settings_from_environment
from pipeline.artifacts.store import open_store

logger = logging.getLogger(__name__)

_BEATS = 4  # a period: some may be lost
LEASES = "leases/retrain/"


class BusyError(ValueError):
    """Another process runs this job."""


def lock_file(folder: Path) -> Path:
    return folder / ".lock"


@contextmanager
def only_here(folder: Path) -> Iterator[str]:
    """Holds the job's lock on this machine; yields a name for this folder that no other machine has.

    Raises:
        BusyError: another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with lock_file(folder).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(f"{folder}: another `march retrain` of this job runs here") from None
        lock.seek(0)
        name = lock.read().strip()
        if not name:
            name = uuid.uuid4().hex
            lock.write(name)
            lock.flush()
            os.fsync(lock.fileno())
        yield name


class Lease:
    """A job's lease in a store.

    Args:
        holder: Name of this machine's folder of the job.
        period_s: Silence after which a holder counts as gone.
    """

    def __init__(
        self,
        backend: Backend,
        job: str,
        *,
        holder: str,
        period_s: float,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._backend, self._key, self._holder = backend, LEASES + job, holder
        self._period_s, self._sleep = period_s, sleep
        self._writer = uuid.uuid4().hex
        self._lost, self._ended = threading.Event(), threading.Event()
        self._beat = math.inf  # when it was written last, in seconds that go on while a machine sleeps

    @property
    def is_lost(self) -> bool:
        """Whether somebody else has taken it; after a silence, as where a process was stopped, by a look."""
        is_held = not (self._lost.is_set() or self._ended.is_set())
        if is_held and _now() - self._beat > self._period_s:
            self._write_again(self._holder)
        return self._lost.is_set()

    def take(self) -> None:
        """Takes the lease.

        Raises:
            BusyError: another machine holds it.
            UnsafeEndpointError: the store cannot compare and set, so there is none.
        """
        found = self.demand_free()
        with suppress(MovedError):  # of which the answer to an earlier try may have been lost
            self._write(found, self._holder)
        if not self._is_mine(found := self._backend.read(self._key)):
            raise BusyError(f"{self._key}: {_said(found)} was first")

    def demand_free(self) -> Blob | None:
        """Waits for one period where another machine has the lease; None: there was never one.

        Raises:
            BusyError: another machine holds it.
        """
        found = self._backend.read(self._key)
        if _record(found).get("holder") not in (None, self._holder):
            self._sleep(self._period_s)
            again = self._backend.read(self._key)
            if again is None or found is None or again.content != found.content:
                raise BusyError(f"{self._key}: {_said(again)} runs this job")
            logger.warning("%s: %s has been silent for %.0f s", self._key, _said(found), self._period_s)
        return found

    @contextmanager
    def held(self) -> Iterator[None]:
        """Takes the lease, keeps it alive, and gives it back."""
        try:
            self.take()
        except UnsafeEndpointError as error:
            logger.warning("no lease, only this machine's lock: %s", error)
            yield
            return
        beating = threading.Thread(target=self._keep, daemon=True)
        beating.start()
        try:
            yield
        finally:
            self._ended.set()
            beating.join(self._period_s)
            self._write_again(None)

    def _keep(self) -> None:
        while not (self._lost.is_set() or self._ended.wait(self._period_s / _BEATS)):
            self._write_again(self._holder)

    def _write_again(self, holder: str | None) -> None:
        """Writes over what this lease wrote last, unless somebody else has written since."""
        try:
            found = self._backend.read(self._key)
            if self._is_mine(found):
                self._write(found, holder)
            else:
                self._lost.set()
        except (ValueError, OSError) as error:  # the next beat may do better, and reads who has it
            logger.warning("%s: %s", self._key, error)

    def _write(self, over: Blob | None, holder: str | None) -> None:
        content = {"holder": holder, "writer": self._writer, "beat": uuid.uuid4().hex}
        content |= {"machine": platform.node(), "pid": str(os.getpid())}
        self._backend.compare_and_set(self._key, json.dumps(content).encode(), tag=over.tag if over else None)
        self._beat = _now()

    def _is_mine(self, blob: Blob | None) -> bool:
        return _record(blob).get("writer") == self._writer


def lease_of(job: Job, holder: str) -> Lease:
    """A job's lease; no request may outlast a beat, its second try included: the next one is as good."""
    settings = settings_from_environment(job.store.location, job.store.endpoint)
    hasty = {"timeout_s": job.lease_s / _BEATS / 2, "max_attempts": 2}
    store = open_store(settings.model_copy(update=hasty))
    return Lease(store.backend, job.name, holder=holder, period_s=job.lease_s)


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _record(blob: Blob | None) -> dict[str, str | None]:
    return dict(json.loads(blob.content)) if blob else {}


def _said(blob: Blob | None) -> str:
    found = _record(blob)
    return f"{found.get('machine', 'another machine')} (process {found.get('pid', '?')})"

"""One command a run's folder, and the worker that does its work with a log of its own."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pipeline.launch.reward_servers import die_with_parent

LOG_FILE = "train.log"
_ENDS_WITHIN_S = 60.0  # above a worker's grace for its reward servers


def start_worker(
    module: str, folder: Path, lock: IO[str], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts the worker, which holds the run's lock too: it may outlive this process by some seconds.

    Its own children do not get the lock, since `subprocess` closes what it is not asked to pass on.
    """
    with (folder / LOG_FILE).open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, str(folder)],
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(lock.fileno(),),
            preexec_fn=die_with_parent,
            env={**os.environ, **(environment or {})},
        )


@contextmanager
def only_run_in(folder: Path, command: str = "march train") -> Iterator[IO[str]]:
    """Holds the run's lock, until this process and the worker have closed it.

    A worker whose command was killed is waited for, so that whoever starts killed runs again can.

    Raises:
        ValueError: another command has the lock, or its worker does not end.
    """
    with (folder / ".lock").open("a+") as lock:
        until = time.monotonic() + _ENDS_WITHIN_S
        while not _is_taken(lock):
            if _is_alive(lock) or time.monotonic() > until:
                raise ValueError(
                    f"{folder}: another `{command}` runs here, or is still ending; wait for it or use "
                    "another --run-dir"
                )
            time.sleep(0.2)
        lock.truncate(0)
        lock.write(f"{os.getpid()}")
        lock.flush()
        yield lock


def _is_taken(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_alive(lock: IO[str]) -> bool:
    """Whether the process is there that took the lock; no one knows of one that has not said who it is."""
    lock.seek(0)
    pid = lock.read()
    return not pid or Path(f"/proc/{pid}").exists()

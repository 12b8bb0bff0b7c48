"""The process of one retraining: runs a command, and writes down how it ended.

    python -m orchestration.schedule.attempt FOLDER LOG LOCK COMMAND...

It is in a session of its own and outlives the service. LOCK is a file descriptor that holds the job's lock;
the command has it, too, so that nobody starts another one before both are gone.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from orchestration.schedule.journal import Ended, append_line

_TAIL_BYTES, _MOST_CHARS = 4_096, 300


def start_attempt(folder: Path, *, log: Path, lock: int, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Starts the process; it and the command keep the lock.

    Args:
        folder: Of the job's journal.
        log: File that output is appended to.
        lock: File descriptor that holds the job's lock.
        command: What is run.
    """
    wrapped = [sys.executable, "-m", __name__, str(folder), str(log), str(lock), *command]
    return subprocess.Popen(
        wrapped,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(lock,),
        start_new_session=True,
    )


def run_attempt(folder: Path, log: Path, lock: int, command: Sequence[str]) -> Ended:
    """Runs the command to its end."""
    with log.open("ab") as out:
        code = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=(lock,))
    if code < 0:
        return Ended(at=time.time(), code=None, error=f"killed by {signal.Signals(-code).name}")
    return Ended(at=time.time(), code=code, error=last_line(log) if code else "")


def last_line(log: Path) -> str:
    """The last line of a log that is not empty, cut."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:_MOST_CHARS]


def _main() -> None:
    folder, log, lock, *command = sys.argv[1:]
    # A supervisor that ends all processes of the service asks the command, too: its end is waited for.
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, lambda *_: None)
    append_line(Path(folder), run_attempt(Path(folder), Path(log), int(lock), command))


if __name__ == "__main__":
    _main()

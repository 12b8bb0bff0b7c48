"""File locks by which calls that run side by side share the cells: the system frees those of a killed one."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path


@contextmanager
def held(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Holds the lock of a file that is made where it is missing.

    Args:
        path: The file.
        wait: Until another call has freed it.

    Yields:
        Whether it is held: without `wait` it may be another call's.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def lane(scratch: Path) -> Iterator[int]:
    """Holds the lowest number that no other call has, from 0."""
    for number in count():
        with ExitStack() as stack:
            if stack.enter_context(held(scratch / "locks" / f"lane-{number}", wait=False)):
                yield number
                return

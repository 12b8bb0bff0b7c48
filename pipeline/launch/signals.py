"""Signals of whoever runs a command: a terminal, a scheduler, a container's runtime."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def terminable() -> Iterator[None]:
    """Makes SIGTERM an interrupt, so that what is running is stopped in order and written down.

    Only a process's main thread can; elsewhere this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

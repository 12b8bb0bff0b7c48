"""Keeps the view of `march serve` on the terminal while the server runs.

A thread of rich's draws it four times a second on the terminal's alternate screen, so that a window that
changes its size, or a line that some library writes past the log, is painted over. The log's lines for the
terminal go into the view meanwhile; when it ends, the terminal is as it was, the last figures stand there and
the warnings follow them.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import math
import signal
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from types import FrameType

from fastapi import FastAPI
from rich.console import Console, RenderableType
from rich.live import Live

from orchestration.live.figures import LONG_S, Reading, count_figures, read
from orchestration.live.view import READY, Snapshot, Warned, render
from reward.samplers import ManyEngines
from reward.serving.config import ServerConfig

_PER_SECOND = 4
_READY_EVERY_S = 5.0
_MOST_KEPT = 100  # lines of the log


@contextlib.contextmanager
def watch(config: ServerConfig, app: FastAPI) -> Iterator[None]:
    """Shows the server on standard output while it is entered; a `reward.serving.server.Watch`."""
    console = Console()
    with terminal_lines_into() as log:
        view = _View(config, app, log)
        live = Live(
            console=console,
            screen=True,
            refresh_per_second=_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
            get_renderable=lambda: view.shown(console),
        )
        try:
            with live, _stopped_by_termination(live):
                yield
        finally:
            console.print(view.last(console))


class WarningLog(logging.Handler):
    """Keeps the last warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: deque[logging.LogRecord] = deque(maxlen=_MOST_KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps a record."""
        self.records.append(record)

    def warnings(self) -> list[Warned]:
        """The records for people."""
        return [_warned(record) for record in list(self.records)]


def _warned(record: logging.LogRecord) -> Warned:
    at = time.strftime("%H:%M:%S", time.localtime(record.created))
    error = record.exc_info[1] if record.exc_info else None
    cause = f": {type(error).__name__}: {error}" if error else ""
    return Warned(at, record.levelname, f"{record.name.rpartition('.')[2]}: {record.getMessage()}{cause}")


class _View:
    """Reads the server and remembers the last minute."""

    def __init__(self, config: ServerConfig, app: FastAPI, log: WarningLog) -> None:
        self._config = config
        self._state = app.state
        self._log = log
        self._start = time.monotonic()
        self._history: deque[Reading] = deque(maxlen=int(LONG_S) + 1)  # about one a second
        self._readiness = "starting"
        self._asked: Future[str | None] | None = None
        self._asked_at = -math.inf

    def shown(self, console: Console) -> RenderableType:
        """The view of now, as large as the terminal."""
        self._look_whether_ready()
        return render(self._snapshot(), width=console.width, height=console.height)

    def last(self, console: Console) -> RenderableType:
        """The view to leave behind; the log's lines follow it by themselves."""
        snapshot = dataclasses.replace(self._snapshot(), warnings=(), readiness="stopped")
        return render(snapshot, width=console.width, height=console.height)

    def _snapshot(self) -> Snapshot:
        config, host, sampler = self._config, self._config.host, self._state.sampler
        return Snapshot(
            url=f"http{'s' if config.tls else ''}://{f'[{host}]' if ':' in host else host}:{config.port}",
            sampler=config.sampler.kind,
            model=sampler.model if sampler else "",
            uptime_s=time.monotonic() - self._start,
            readiness=self._readiness,
            figures=count_figures(self._readings()),
            engines=sampler.engines() if isinstance(sampler, ManyEngines) else (),
            max_in_flight=config.max_in_flight,
            max_waiting=config.max_waiting,
            warnings=self._log.warnings(),
        )

    def _readings(self) -> list[Reading]:
        now = read(self._state.service.metrics.registry, at_s=time.monotonic())
        if not self._history or now.at_s - self._history[-1].at_s >= 1:
            self._history.append(now)
        return [*self._history, now]

    def _look_whether_ready(self) -> None:
        """Asks as a balancer would, now and then, in the server's own loop and without waiting for it."""
        if self._state.service.is_draining:
            self._readiness = "stopping"
            return
        if self._asked is not None and self._asked.done():
            self._readiness = "unknown" if self._asked.exception() else self._asked.result() or READY
            self._asked = None
        is_due = time.monotonic() - self._asked_at >= _READY_EVERY_S
        if self._asked is None and is_due and self._state.loop is not None:
            self._asked_at = time.monotonic()
            self._asked = asyncio.run_coroutine_threadsafe(self._state.readiness.why_not(), self._state.loop)


@contextlib.contextmanager
def terminal_lines_into() -> Iterator[WarningLog]:
    """Takes the log's lines off the terminal; afterwards the warnings are written there."""
    root, log = logging.getLogger(), WarningLog()
    taken = [handler for handler in root.handlers if _writes_to_terminal(handler)]
    for handler in taken:
        root.removeHandler(handler)
    root.addHandler(log)
    try:
        yield log
    finally:
        root.removeHandler(log)
        for handler in taken:
            root.addHandler(handler)
            for record in log.records:
                handler.handle(record)


def _writes_to_terminal(handler: logging.Handler) -> bool:
    stream = handler.stream if isinstance(handler, logging.StreamHandler) else None
    return stream is not None and stream.isatty()  # a file that is not open yet has no stream


@contextlib.contextmanager
def _stopped_by_termination(live: Live) -> Iterator[None]:
    """Leaves the terminal in order also when uvicorn hands SIGTERM on, which ends the process at once."""

    def leave(number: int, _: FrameType | None) -> None:
        live.stop()
        signal.signal(number, before)
        signal.raise_signal(number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

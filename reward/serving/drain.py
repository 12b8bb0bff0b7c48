"""An orderly end: at SIGTERM nobody is let in any more, who was let in is answered, and the process ends.

Uvicorn by itself closes its port at once, and hands the signal on at the end; a balancer before several
servers would see connections refused and not that this one is about to stop, and a supervisor a death by
signal. Here the port stays open until the audits under way have ended or the grace is over, `/readyz` and new
audits are answered 503 meanwhile, and the process then exits with 0. A second signal ends it at once.

A socket that a supervisor holds (listening.py) is left first instead: who comes now waits in its backlog for
the next process, and is not refused; who was let in until then is answered.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

import uvicorn

from reward.serving.service import AuditService


class DrainingServer(uvicorn.Server):
    """Uvicorn with an orderly end.

    Args:
        settings: Uvicorn's.
        service: Whose audits are waited for.
        grace_s: How long.
        is_succeeded: Whether another process will listen on the same socket.
        awaited: Waits until the server is ready; its result is a reason to end, or None.
    """

    def __init__(
        self,
        settings: uvicorn.Config,
        *,
        service: AuditService,
        grace_s: float,
        is_succeeded: bool = False,
        awaited: Callable[[], Coroutine[Any, Any, str | None]] | None = None,
    ) -> None:
        super().__init__(settings)
        self._service = service
        self._grace_s = grace_s
        self._holds_passed_socket = is_succeeded
        self._awaited = awaited
        self._awaiting: asyncio.Task[None] | None = None
        self.never_ready: str | None = None  # why it ended before it was ready
        self._ends: float | None = None  # on the monotonic clock, once a signal came

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins the end at the first signal, and leaves the second to uvicorn."""
        if self._ends is not None or not self.started:
            return super().handle_exit(sig, frame)
        self._ends = time.monotonic() + self._grace_s
        if not self._holds_passed_socket:
            self._service.drain()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to wait until the server is ready, where that has an end."""
        await super().startup(sockets)
        if self._awaited is not None and self.started:
            self._awaiting = asyncio.create_task(self._end_unless_ready(self._awaited()))

    async def _end_unless_ready(self, awaited: Coroutine[Any, Any, str | None]) -> None:
        self.never_ready = await awaited
        self.should_exit = self.should_exit or self.never_ready is not None

    async def on_tick(self, counter: int) -> bool:
        """Whether to stop; asked ten times a second."""
        if await super().on_tick(counter):
            return True
        if self._ends is None:
            return False
        if self._holds_passed_socket:
            self._holds_passed_socket = False
            for server in self.servers:
                server.close()  # this process's hold on the socket, not the socket
            return False  # what was just accepted is read before the next tick
        self._service.drain()
        if self._service.num_requests and time.monotonic() < self._ends:
            return False
        await self._service.close()  # who still waits is told to ask again
        return True

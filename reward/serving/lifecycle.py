"""When the server may be sent audits, and how it ends.

Ready: it is not about to stop, its sampler answers, and has answered once. The first time a frozen model is
asked for one token, so that what is slow only once (an engine's start, a first compilation) is over before
the first audit. Rollout engines sleep between rollouts, so of them only the registry is asked.

The end: uvicorn by itself closes its port at once, and raises the signal again; a balancer would see refused
connections, and a supervisor a death by signal. Here the port stays open until the audits under way have
ended or the grace is over, `/readyz` and new audits are answered 503 meanwhile, and the process exits with 0.
A second signal ends it at once. A socket that a supervisor holds is left first instead: who comes now waits
in its backlog for the next process; who was let in until then is answered.
"""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import time
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

import uvicorn

from reward.config import SamplingSettings
from reward.judging.vote import Reason
from reward.samplers import Message, Sampler, SamplerError, TrainedSampler
from reward.serving.service import AuditService

logger = logging.getLogger(__name__)

_TIMEOUT_S, _PAUSE_S = 5.0, 1.0
_GREETING = (Message(role="user", content="ok"),)
_ONE_TOKEN = SamplingSettings(temperature=0, max_tokens=1)


class Readiness:
    """Answers `/readyz`."""

    def __init__(self, service: AuditService, sampler: Sampler | None, *, cache_s: float = 0.0) -> None:
        self._service = service
        self._sampler = sampler  # None: there is nothing to wait for
        self._cache_s = cache_s
        self._warming: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[str | None] | None = None
        self._looked_at = -math.inf  # on the monotonic clock, seconds

    async def why_not(self) -> str | None:
        """None when the server is ready, else the reason in one word; one look serves all who ask."""
        if self._service.is_draining:
            return "stopping"
        is_old = time.monotonic() - self._looked_at >= self._cache_s
        if self._looking is None or (self._looking.done() and is_old):
            self._looking = asyncio.create_task(self._look())
        return await asyncio.shield(self._looking)

    async def _look(self) -> str | None:
        try:
            return await self._found(self._sampler) if self._sampler is not None else None
        finally:
            self._looked_at = time.monotonic()

    async def _found(self, sampler: Sampler) -> str | None:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await sampler.ready()
                await self._warm_up(sampler)
        except TimeoutError:
            return "timeout" if self._warming is None else "warming_up"
        except SamplerError as error:
            logger.info("not ready: %s", error)  # the detail names addresses, and the path is open
            return error.reason
        return None

    async def within(self, seconds: float) -> str | None:
        """Waits until the server is ready; the last reason when it was not in time."""
        ends = time.monotonic() + seconds
        while (reason := await self.why_not()) is not None and time.monotonic() < ends:
            await asyncio.sleep(_PAUSE_S)
        return reason

    async def close(self) -> None:
        """Ends what still runs."""
        running = [task for task in (self._looking, self._warming) if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _warm_up(self, sampler: Sampler) -> None:
        """Waits for the one warm-up, which outlives this request; a failed one begins anew."""
        if isinstance(sampler, TrainedSampler):
            return
        if self._warming is None:
            self._warming = asyncio.create_task(_first_token(sampler))
        try:
            await asyncio.shield(self._warming)
        except SamplerError:
            self._warming = None
            raise


async def _first_token(sampler: Sampler) -> None:
    try:
        await sampler.sample(_GREETING, n=1, settings=_ONE_TOKEN)
    except SamplerError:
        raise
    except Exception as error:
        logger.exception("the first token failed")
        raise SamplerError(Reason.INTERNAL, type(error).__name__) from error


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

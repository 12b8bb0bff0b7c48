"""Whether the server may be sent audits: it is not about to stop, its sampler answers, and has answered once.

The first time a frozen model is asked for one token, so that what is slow only once (an engine's start, a
model's first compilation) is over before the first audit. Rollout engines are left alone: they sleep between
rollouts, so of them only the registry is asked.
"""

from __future__ import annotations

import asyncio
import logging
import time

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

    def __init__(self, service: AuditService, sampler: Sampler) -> None:
        self._service = service
        self._sampler = sampler
        self._warming: asyncio.Task[None] | None = None

    async def why_not(self) -> str | None:
        """None when the server is ready, else the reason in one word."""
        if self._service.is_draining:
            return "stopping"
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await self._sampler.ready()
                await self._warm_up()
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
        """Ends a warm-up that still runs."""
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.gather(self._warming, return_exceptions=True)

    async def _warm_up(self) -> None:
        """Waits for the one warm-up, which outlives this request; a failed one begins anew."""
        if isinstance(self._sampler, TrainedSampler):
            return
        if self._warming is None:
            self._warming = asyncio.create_task(self._first_token())
        try:
            await asyncio.shield(self._warming)
        except SamplerError:
            self._warming = None
            raise

    async def _first_token(self) -> None:
        try:
            await self._sampler.sample(_GREETING, n=1, settings=_ONE_TOKEN)
        except SamplerError:
            raise
        except Exception as error:
            logger.exception("the first token failed")
            raise SamplerError(Reason.INTERNAL, f"{type(error).__name__}: {error}") from error

"""Which of several live engines is asked: the least busy one, those that failed lately last.

An engine that stalls or dies soon has nothing under way and would draw every request as the least busy one,
so it is left alone for a while. A request whose engine does not answer is moved to another one, once. Nothing
here knows Ray: engines are names.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from opentelemetry.trace import SpanKind

from reward import telemetry
from reward.samplers import EngineState, EngineStatus

logger = logging.getLogger(__name__)

_COOL_DOWN_S = 30.0

_T = TypeVar("_T")


class Placement:
    """Counts our requests at each engine and remembers which of them failed."""

    def __init__(self) -> None:
        self._in_flight: Counter[str] = Counter()
        self._avoided_until: dict[str, float] = {}  # on the monotonic clock, seconds

    async def ask(
        self,
        names: Collection[str],
        send: Callable[[str], Awaitable[_T]],
        *,
        timeout_s: float,
        deaths: tuple[type[Exception], ...] = (),
    ) -> _T:
        """The answer of the best engine; when that one stalls or dies, of the best other one.

        Args:
            names: All engines, at least one.
            send: Asks one of them.
            timeout_s: For everything; with several engines, each of the two gets half of it.
            deaths: Errors that say that an engine, and not the request, has failed.

        Raises:
            TimeoutError: no engine that was asked answered in time.
        """
        self._forget_others(names)
        first = self._best(names)
        others = [name for name in names if name != first]
        share_s = timeout_s / 2 if others else timeout_s
        failures: tuple[type[Exception], ...] = (TimeoutError, *deaths)
        try:
            return await self._ask_one(first, send, share_s, failures)
        except failures as error:
            if not others:
                raise
            logger.warning("engine %s gave no answer (%s); another is asked", first, type(error).__name__)
        return await self._ask_one(self._best(others), send, share_s, failures)

    def statuses(self) -> tuple[EngineStatus, ...]:
        """What is known of the engines that were asked."""
        now = time.monotonic()

        def state(name: str) -> EngineState:
            is_avoided = self._avoided_until.get(name, 0.0) > now
            return EngineState.FAILING if is_avoided else EngineState.READY

        return tuple(EngineStatus(name, state(name), num) for name, num in sorted(self._in_flight.items()))

    async def _ask_one(
        self,
        name: str,
        send: Callable[[str], Awaitable[_T]],
        timeout_s: float,
        failures: tuple[type[Exception], ...],
    ) -> _T:
        self._in_flight[name] += 1
        try:
            async with asyncio.timeout(timeout_s):
                with telemetry.span("engine.request", {"march.engine": name}, kind=SpanKind.CLIENT):
                    answer = await send(name)
        except failures:
            self._avoided_until[name] = time.monotonic() + _COOL_DOWN_S
            raise
        finally:
            self._in_flight[name] -= 1
        self._avoided_until.pop(name, None)
        return answer

    def _best(self, names: Collection[str]) -> str:
        now = time.monotonic()
        return min(names, key=lambda name: (self._avoided_until.get(name, 0.0) > now, self._in_flight[name]))

    def _forget_others(self, names: Collection[str]) -> None:
        for name in (self._avoided_until.keys() | self._in_flight.keys()) - set(names):
            self._avoided_until.pop(name, None)
            if not self._in_flight[name]:
                del self._in_flight[name]

"""Several engines of one model: which one is asked, which one is left alone, and when another one is tried.

The least busy engine is asked, of those that did not fail lately. One that failed is avoided for a cool-down
(it has nothing under way and would draw every request), and then a single request tries it before the others
come back. A request asks engine after engine under one deadline: a round asks each at most once; a failure
that may be the engine's own leads to the next one at once, and after a whole round to the next round, after a
random, growing pause or the engine's Retry-After. Any other failure is the request's and ends it. An engine
that hangs must leave time for the others, so each gets an equal share of what is left.

An engine is a server's address or an actor's id. The caller says how one is asked and its errors are named.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Generic, TypeVar

from opentelemetry.trace import SpanKind

from reward import telemetry
from reward.samplers import SamplerError

logger = logging.getLogger(__name__)

_ENGINE_REASONS = frozenset({"timeout", "connection", "engine"})
_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.5, 8.0

_E = TypeVar("_E")
_T = TypeVar("_T")


def is_of_engine(error: BaseException) -> bool:
    """Whether another engine may do better; else the request is at fault."""
    return isinstance(error, SamplerError) and error.reason in _ENGINE_REASONS


@dataclass(eq=False)
class Engine(Generic[_E]):
    """One engine and what was learnt about it."""

    name: str
    handle: _E  # what asks it
    address: Mapping[str, str | int]  # for spans
    num_requests: int = 0  # under way
    avoided_until: float = 0.0  # on the monotonic clock, seconds
    failed: bool = False  # its latest request did

    @property
    def avoided(self) -> bool:
        return time.monotonic() < self.avoided_until


class Pool(Generic[_E]):
    """Engines, by their names.

    Args:
        cool_down_s: How long an engine that failed is avoided.
        named: The failure that an error of an engine (its name) is; None for what is not the engine's error.
        silence: What a person should check when an engine gives no answer in time.
    """

    def __init__(
        self, *, cool_down_s: float, named: Callable[[Exception, str], SamplerError | None], silence: str = ""
    ) -> None:
        self.engines: tuple[Engine[_E], ...] = ()
        self._cool_down_s = cool_down_s
        self._named = named
        self._silence = silence

    def hold(self, engines: Iterable[Engine[_E]]) -> None:
        """Makes these the engines; those known by name stay as they are."""
        known = {engine.name: engine for engine in self.engines}
        self.engines = tuple(known.get(engine.name, engine) for engine in engines)

    async def ask(
        self,
        send: Callable[[Engine[_E]], Awaitable[_T]],
        *,
        timeout_s: float,
        max_retries: int = 0,
        most: int | None = None,
    ) -> _T:
        """The answer of the first engine that gives one, within `timeout_s`.

        It takes up to `max_retries` rounds after the first, and asks `most` engines at most in all of them.

        Raises:
            SamplerError: the request's own failure, or with the reason of the last engine when all failed.
        """
        deadline = time.monotonic() + timeout_s
        num_left = (max_retries + 1) * len(self.engines)
        num_left = num_left if most is None else min(num_left, most)
        tried: set[Engine[_E]] = set()  # in this round
        failures: dict[str, SamplerError] = {}  # the latest of each engine, the last one at the end
        num_failed = 0
        while True:
            if tried.issuperset(self.engines):
                tried.clear()  # a new round
            engine = self._choose(tried)
            tried.add(engine)
            share_s = (deadline - time.monotonic()) / min(self._num_usable(engine, tried), num_left)
            num_left -= 1
            try:
                return await self._answer(engine, send, share_s, is_last=not num_left)
            except SamplerError as error:
                if not is_of_engine(error):
                    raise
                failures.pop(engine.name, None)
                failures[engine.name] = error
                num_failed += 1
                is_round_over = tried.issuperset(self.engines)
                pause_s = max(_backoff_s(num_failed), _retry_after_s(error)) if is_round_over else 0.0
                if not num_left or pause_s >= deadline - time.monotonic():
                    if len(failures) == 1:
                        raise
                    raise _summary(failures) from error
            await asyncio.sleep(pause_s)

    def _choose(self, tried: Set[Engine[_E]]) -> Engine[_E]:
        """The best engine that is not among `tried`."""
        untried = [engine for engine in self.engines if engine not in tried]
        engine = min(untried, key=lambda one: (one.avoided, one.num_requests))
        if engine.failed:  # one request tries it, the others stay away until that is over
            engine.avoided_until = time.monotonic() + self._cool_down_s
        return engine

    def _num_usable(self, chosen: Engine[_E], tried: Set[Engine[_E]]) -> int:
        """Engines that this request can still turn to, the one that it has included."""
        return 1 + sum(one is not chosen and one not in tried and not one.avoided for one in self.engines)

    async def _answer(
        self,
        engine: Engine[_E],
        send: Callable[[Engine[_E]], Awaitable[_T]],
        share_s: float,
        *,
        is_last: bool,
    ) -> _T:
        engine.num_requests += 1
        try:
            async with asyncio.timeout(share_s):
                with telemetry.span("engine.request", engine.address, kind=SpanKind.CLIENT):
                    answer = await send(engine)
        except Exception as error:
            failure = self._failure_of(error, engine, share_s)
            if failure is None:  # an error of the program
                raise
            if is_of_engine(failure) and not engine.failed and not is_last:
                then = "another is asked" if len(self.engines) > 1 else "it is asked again"
                logger.warning("engine %s gave no answer (%s); %s", engine.name, failure.reason, then)
            self._note(engine, failed=is_of_engine(failure))
            if failure is error:
                raise
            raise failure from error
        finally:
            engine.num_requests -= 1
        self._note(engine, failed=False)
        return answer

    def _failure_of(self, error: Exception, engine: Engine[_E], share_s: float) -> SamplerError | None:
        if isinstance(error, SamplerError):
            return error
        if isinstance(error, TimeoutError):
            return SamplerError("timeout", f"{engine.name} did not answer in {share_s:.3g} s{self._silence}")
        return self._named(error, engine.name)

    def _note(self, engine: Engine[_E], *, failed: bool) -> None:
        engine.failed = failed
        engine.avoided_until = time.monotonic() + self._cool_down_s if failed else 0.0


def _backoff_s(num_failed: int) -> float:
    """A random, growing pause, so that not all requests come back at once."""
    return random.uniform(0, min(_MOST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (num_failed - 1)))


def _retry_after_s(error: SamplerError) -> float:
    """What a server asked for, in seconds; a date instead of a number is not read."""
    response = getattr(error.__cause__, "response", None)
    text = "" if response is None else response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdecimal() else 0.0


def _summary(failures: Mapping[str, SamplerError]) -> SamplerError:
    """The last failure, with the details of the others."""
    *others, last = failures.values()
    return SamplerError(last.reason, "; ".join([last.detail, *(one.detail for one in others)]))

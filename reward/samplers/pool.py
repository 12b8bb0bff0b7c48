"""Several engines of one model: which one is asked, which one is left alone, and when another one is tried.

The least busy engine is asked, of those that did not fail lately. One that failed is avoided for a cool-down
(it has nothing under way and would draw every request), and then a single request tries it before the others
come back. A request asks engine after engine under one deadline: a round asks each at most once; a failure
that may be the engine's own leads to the next one at once, and after a whole round to the next round, after a
random, growing pause or the engine's Retry-After. Any other failure is the request's and ends it. An engine
that hangs must leave time for the others, so each gets an equal share of what is left.

An engine is a server's address or an actor's id. The caller says how one is asked and its errors are named.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Generic, TypeVar

from opentelemetry.trace import SpanKind
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from reward import telemetry
from reward.samplers import EngineState, EngineStatus, SamplerError

logger = logging.getLogger(__name__)

_ENGINE_REASONS = frozenset({"timeout", "connection", "engine"})
_PAUSE = wait_random_exponential(multiplier=0.5, max=8)  # seconds
_UNBOUNDED = 1 << 30

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
    slots: asyncio.Semaphore
    address: Mapping[str, str | int]  # as spans tell it
    num_requests: int = 0  # under way or waiting for a slot
    avoided_until: float = 0.0  # on the monotonic clock, seconds
    failed: bool = False  # its latest request did
    is_up: bool | None = None  # at the latest request or look; None before

    @property
    def avoided(self) -> bool:
        return time.monotonic() < self.avoided_until


class Pool(Generic[_E]):
    """Engines, by their names.

    Args:
        max_in_flight: Requests at once, to each engine; None for no bound.
        cool_down_s: How long an engine that failed is avoided.
        named: The failure that an error of an engine (its name) is; None for what is not the engine's error.
        silence: What a person should check when an engine gives no answer in time.
    """

    def __init__(
        self,
        *,
        cool_down_s: float,
        named: Callable[[Exception, str], SamplerError | None],
        max_in_flight: int | None = None,
        silence: str = "",
    ) -> None:
        self.engines: tuple[Engine[_E], ...] = ()
        self._cool_down_s = cool_down_s
        self._named = named
        self._max_in_flight = max_in_flight or _UNBOUNDED
        self._silence = silence

    def hold(self, handles: Iterable[tuple[str, _E, Mapping[str, str | int]]]) -> None:
        """Makes these the engines (name, handle, address); those known by name stay as they are."""
        known = {engine.name: engine for engine in self.engines}
        self.engines = tuple(
            known.get(name) or Engine(name, handle, asyncio.Semaphore(self._max_in_flight), address)
            for name, handle, address in handles
        )

    def note(self, engine: Engine[_E], *, failed: bool) -> None:
        """Remembers how a request ended."""
        engine.failed, engine.is_up = failed, not failed
        engine.avoided_until = time.monotonic() + self._cool_down_s if failed else 0.0

    def statuses(self) -> tuple[EngineStatus, ...]:
        """What is known of each engine."""
        states = {None: EngineState.UNKNOWN, True: EngineState.READY, False: EngineState.FAILING}
        return tuple(EngineStatus(one.name, states[one.is_up], one.num_requests) for one in self.engines)

    async def ask(
        self,
        send: Callable[[Engine[_E]], Awaitable[_T]],
        *,
        timeout_s: float,
        max_retries: int = 0,
        most: int | None = None,
    ) -> _T:
        """The answer of the first engine that gives one.

        Args:
            send: Asks one engine.
            timeout_s: For everything, waiting for a free place included.
            max_retries: Further rounds after the first.
            most: Engines that are asked at most, whatever the rounds.

        Raises:
            SamplerError: the request's own failure, or with the reason of the last engine when all failed.
        """
        max_attempts = min((max_retries + 1) * len(self.engines), most or _UNBOUNDED)
        asking = _Asking(self, send, timeout_s=timeout_s, max_attempts=max_attempts)
        retry = retry_if_exception(is_of_engine)
        retrying = AsyncRetrying(retry=retry, wait=asking.pause_s, stop=asking.is_over, reraise=True)
        try:
            return await retrying(asking.once)
        except SamplerError as error:
            others = [text for name, text in asking.failures.items() if name != asking.last]
            if not is_of_engine(error) or not others:
                raise
            raise SamplerError(error.reason, "; ".join([error.detail, *others])) from error

    async def acquire(self, tried: Set[Engine[_E]]) -> Engine[_E]:
        """A place at the best engine that is not among `tried`, once it has one free; to be released."""
        untried = [engine for engine in self.engines if engine not in tried]
        while True:
            engine = min(untried, key=lambda one: (one.avoided, one.num_requests))
            engine.num_requests += 1
            try:
                await engine.slots.acquire()
            except BaseException:
                engine.num_requests -= 1
                raise
            if not engine.avoided or all(one.avoided for one in untried):
                break
            self.release(engine)  # it failed others while this request waited
        if engine.failed:  # one request tries it, the others stay away until that is over
            engine.avoided_until = time.monotonic() + self._cool_down_s
        return engine

    def release(self, engine: Engine[_E]) -> None:
        """Gives a place back."""
        engine.num_requests -= 1
        engine.slots.release()

    def failure_of(self, error: Exception, engine: Engine[_E], share_s: float) -> SamplerError | None:
        """What an error of a request says of its engine; None for an error of the program."""
        if isinstance(error, SamplerError):
            return error
        if isinstance(error, TimeoutError):
            return SamplerError("timeout", f"{engine.name} did not answer in {share_s:.3g} s{self._silence}")
        return self._named(error, engine.name)


class _Asking(Generic[_E, _T]):
    """The state of one request."""

    def __init__(
        self,
        pool: Pool[_E],
        send: Callable[[Engine[_E]], Awaitable[_T]],
        *,
        timeout_s: float,
        max_attempts: int,
    ) -> None:
        self.failures: dict[str, str] = {}  # the latest of each engine, by its name
        self.last = ""
        self._pool, self._send = pool, send
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._num_left = self._max_attempts = max_attempts
        self._tried: set[Engine[_E]] = set()  # in this round

    async def once(self) -> _T:
        """The answer of the best engine that this round has not asked yet."""
        if self._round_is_over():
            self._tried.clear()
        try:
            async with asyncio.timeout(self._left_s()):
                engine = await self._pool.acquire(self._tried)
        except TimeoutError as error:
            fix = "raise max_in_flight or timeout_s"
            raise SamplerError("timeout", f"no place was free in {self._timeout_s:g} s; {fix}") from error
        share_s = self._left_s() / min(self._num_usable(engine), self._num_left)
        self._tried.add(engine)
        self._num_left -= 1
        try:
            async with asyncio.timeout(share_s):
                with telemetry.span("engine.request", engine.address, kind=SpanKind.CLIENT):
                    answer = await self._send(engine)
        except Exception as error:
            failure = self._pool.failure_of(error, engine, share_s)
            if failure is not None:
                self._note(failure, engine)
            if failure is None or failure is error:
                raise
            raise failure from error
        finally:
            self._pool.release(engine)
        self._pool.note(engine, failed=False)
        return answer

    def _note(self, failure: SamplerError, engine: Engine[_E]) -> None:
        is_new = is_of_engine(failure) and not engine.failed
        self._pool.note(engine, failed=is_of_engine(failure))
        self.failures[engine.name], self.last = failure.detail, engine.name
        if is_new and self._num_left and len(self._pool.engines) > 1:
            logger.warning("engine %s gave no answer (%s); another is asked", engine.name, failure.reason)

    def _num_usable(self, acquired: Engine[_E]) -> int:
        """Engines that this request can still turn to, the one that it has included."""
        others = (one for one in self._pool.engines if one is not acquired and one not in self._tried)
        return 1 + sum(not one.avoided for one in others)

    def _left_s(self) -> float:
        return self._deadline - time.monotonic()

    def _round_is_over(self) -> bool:
        return self._tried.issuperset(self._pool.engines)

    def pause_s(self, state: RetryCallState) -> float:
        return max(_PAUSE(state), _retry_after_s(state)) if self._round_is_over() else 0.0

    def is_over(self, state: RetryCallState) -> bool:
        return state.attempt_number >= self._max_attempts or state.upcoming_sleep >= self._left_s()


def _retry_after_s(state: RetryCallState) -> float:
    """What the last server asked for, in seconds; a date instead of a number is not read."""
    failure = state.outcome.exception() if state.outcome else None
    response = getattr(failure.__cause__ if failure else None, "response", None)
    text = "" if response is None else response.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdecimal() else 0.0

"""One request over several servers, under one deadline.

A round asks every server at most once, the least busy first. A failure that may be the server's own (no
connection, no answer, 408, 409, 429, 5xx) leads to the next server at once, and after a whole round to the
next round, after a random, growing pause or the server's Retry-After. Any other failure is the request's and
ends it. A server that hangs must leave time for the others, so each gets an equal share of what is left.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import openai
from opentelemetry.trace import SpanKind
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from reward import telemetry
from reward.samplers import SamplerError
from reward.samplers.completions import named_failure
from reward.samplers.servers import Server, ServerPool

_SERVER_REASONS = frozenset({"timeout", "connection", "engine"})
_PAUSE = wait_random_exponential(multiplier=0.5, max=8)  # seconds

_T = TypeVar("_T")


async def ask(
    pool: ServerPool, send: Callable[[Server], Awaitable[_T]], *, timeout_s: float, max_retries: int
) -> _T:
    """The answer of the first server that gives one.

    Args:
        pool: The servers.
        send: Asks one server, by the `openai` package or with a `SamplerError` of its own.
        timeout_s: For everything, waiting for a free place included.
        max_retries: Further rounds after the first.

    Raises:
        SamplerError: the request's own failure, or with the reason of the last server when all failed.
    """
    asking = _Asking(pool, timeout_s=timeout_s, max_retries=max_retries)
    try:
        async for attempt in asking.attempts():
            with attempt:
                return await asking.once(send)
    except SamplerError as error:
        others = [text for url, text in asking.failures.items() if url != asking.last_url]
        if not is_of_server(error) or not others:
            raise
        raise SamplerError(error.reason, "; ".join([error.detail, *others])) from error
    raise AssertionError("tenacity ends with an answer or an error")


def is_of_server(error: BaseException) -> bool:
    """Whether another server may do better; else the request is at fault."""
    return isinstance(error, SamplerError) and error.reason in _SERVER_REASONS


class _Asking:
    """The state of one request."""

    def __init__(self, pool: ServerPool, *, timeout_s: float, max_retries: int) -> None:
        self.failures: dict[str, str] = {}  # the latest of each server, by its address
        self.last_url = ""
        self._pool = pool
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._max_attempts = (max_retries + 1) * len(pool.servers)
        self._tried: set[Server] = set()  # in this round

    def attempts(self) -> AsyncRetrying:
        return AsyncRetrying(
            retry=retry_if_exception(is_of_server), wait=self._pause_s, stop=self._is_over, reraise=True
        )

    async def once(self, send: Callable[[Server], Awaitable[_T]]) -> _T:
        """The answer of the best server that this round has not asked yet."""
        if self._round_is_over():
            self._tried.clear()
        try:
            async with asyncio.timeout(self._left_s()):
                server = await self._pool.acquire(self._tried)
        except TimeoutError as error:
            mend = "raise max_in_flight or timeout_s"
            raise SamplerError("timeout", f"no place was free in {self._timeout_s:g} s; {mend}") from error
        self._tried.add(server)
        try:
            return await self._ask_server(server, send)
        finally:
            self._pool.release(server)

    async def _ask_server(self, server: Server, send: Callable[[Server], Awaitable[_T]]) -> _T:
        share_s = self._left_s() / self._pool.num_usable(self._tried, acquired=server)
        try:
            async with asyncio.timeout(share_s):
                with telemetry.span("engine.request", server.address, kind=SpanKind.CLIENT):
                    answer = await send(server)
        except TimeoutError as error:
            failure = SamplerError("timeout", f"{server.base_url} did not answer in {share_s:.3g} s")
            raise self._noted(failure, server) from error
        except openai.OpenAIError as error:
            raise self._noted(named_failure(error, server.base_url), server) from error
        except SamplerError as error:
            self._noted(error, server)
            raise
        except ValueError as error:  # what calls itself JSON and is none reaches us as json's own error
            failure = SamplerError("bad_response", f"{server.base_url}: {error}")
            raise self._noted(failure, server) from error
        self._pool.note(server, failed=False)
        return answer

    def _noted(self, failure: SamplerError, server: Server) -> SamplerError:
        self._pool.note(server, failed=is_of_server(failure))
        self.failures[server.base_url], self.last_url = failure.detail, server.base_url
        return failure

    def _left_s(self) -> float:
        return self._deadline - time.monotonic()

    def _round_is_over(self) -> bool:
        return len(self._tried) == len(self._pool.servers)

    def _pause_s(self, state: RetryCallState) -> float:
        return max(_PAUSE(state), _retry_after_s(state)) if self._round_is_over() else 0.0

    def _is_over(self, state: RetryCallState) -> bool:
        return state.attempt_number >= self._max_attempts or state.upcoming_sleep >= self._left_s()


def _retry_after_s(state: RetryCallState) -> float:
    """What the last server asked for, in seconds; a date instead of a number is not read."""
    failure = state.outcome.exception() if state.outcome else None
    cause = failure.__cause__ if failure else None
    if not isinstance(cause, openai.APIStatusError):
        return 0.0
    text = cause.response.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else 0.0

"""Many requests at once, and when to give up: a server that is down must not cost an hour of waiting."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeVar

from reward.samplers import SamplerError

_T = TypeVar("_T")
_MOST_IN_A_ROW = 5  # failures; one item may be at fault, five after another are the server's


class Progress(Protocol):
    """Watches an evaluation."""

    def stage(self, label: str, total: int, done: int) -> None:
        """A stage begins: pieces of work in all, and how many of them stand from earlier runs."""

    def step(self, note: str = "") -> None:
        """One piece is done."""


class ServerDownError(ValueError):
    """A server failed too often; what was done is kept."""


class Failures:
    """Requests that failed, by reason, and the end after too many in a row.

    Args:
        who: Whose requests they are: "model" or "judge".
    """

    def __init__(self, who: str) -> None:
        self.counts: Counter[str] = Counter()
        self._who = who
        self._num_in_a_row = 0

    def succeeded(self) -> None:
        """A request was answered."""
        self._num_in_a_row = 0

    def failed(self, error: SamplerError) -> None:
        """Counts a request that was not.

        Raises:
            ServerDownError: as were those before it.
        """
        self.counts[error.reason] += 1
        self._num_in_a_row += 1
        if self._num_in_a_row >= _MOST_IN_A_ROW:
            raise ServerDownError(
                f"{self._who}: {error.detail}; what is done is kept, and the same command goes on"
            ) from error


async def work(tasks: Iterable[_T], do: Callable[[_T], Awaitable[None]], *, concurrency: int) -> None:
    """Works through tasks, `concurrency` at once; the first error ends all of them."""
    todo = iter(tasks)

    async def worker() -> None:
        for task in todo:
            await do(task)

    workers = [asyncio.create_task(worker()) for _ in range(concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:
        for one in workers:
            one.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

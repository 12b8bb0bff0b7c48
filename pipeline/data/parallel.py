"""Work in other processes whose results come back in order, with a bounded number of pieces under way."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")
_AHEAD = 3  # pieces a process that wait or are done


def in_order(
    work: Callable[[_T], _R],
    pieces: Iterable[_T],
    *,
    num_workers: int,
    start: Callable[[], None],
) -> Iterator[tuple[_T, _R]]:
    """Yields each piece and `work(piece)`, in the order of the pieces whatever the number of workers.

    Args:
        work: A function of a module.
        pieces: Read only a few ahead of what is done.
        num_workers: Processes.
        start: Called once in each process.

    Raises:
        ChildProcessError: a process died.
        Exception: what the work on the first failed piece raised.
    """
    executor = ProcessPoolExecutor(num_workers, multiprocessing.get_context("spawn"), initializer=start)
    under_way: deque[tuple[_T, Future[_R]]] = deque()
    left = iter(pieces)
    try:
        while True:
            for piece in islice(left, num_workers * _AHEAD - len(under_way)):
                under_way.append((piece, executor.submit(work, piece)))
            if not under_way:
                return
            piece, result = under_way.popleft()
            yield piece, result.result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a worker process ended before its work was done (killed for memory?); use fewer --workers"
        ) from error
    finally:
        executor.shutdown(wait=True, cancel_futures=True)

"""Results come in order, few batches are read ahead, and a process that dies is an error with a name."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.data.job import work_in_processes


class Work:
    """Stands for the work on rows, with numbers as batches."""

    def batch(self, batch: int) -> int:
        if batch == 9:
            os._exit(9)
        return 100 // batch


def worked(batches: Any, num_workers: int = 1) -> Iterator[Any]:
    return work_in_processes(Work, batches, num_workers=num_workers)  # type: ignore[arg-type]


def test_results_are_in_order_and_batches_are_not_read_far_ahead() -> None:
    read: list[int] = []

    def batches() -> Iterator[int]:
        for batch in range(10, 30):
            read.append(batch)
            yield batch

    found = []
    for result in worked(batches(), num_workers=2):
        found.append(result)
        assert len(read) - len(found) <= 6
    assert found == [(batch, 100 // batch) for batch in range(10, 30)]


def test_a_process_that_dies_is_named() -> None:
    with pytest.raises(ChildProcessError, match=r"a worker process ended .*, or use fewer cores: taskset"):
        list(worked([9]))


def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(worked([1, 0]))

"""Results come in order, few pieces are read ahead, and a process that dies is an error with a name."""

import os
from collections.abc import Iterator

import pytest

from pipeline.data.job import in_order


def test_results_are_in_order_and_pieces_are_not_read_far_ahead() -> None:
    read: list[int] = []

    def pieces() -> Iterator[int]:
        for piece in range(-20, 0):
            read.append(piece)
            yield piece

    found = []
    for piece, result in in_order(abs, pieces(), num_workers=2, start=int):
        assert result == -piece
        found.append(result)
        assert len(read) - len(found) <= 6
    assert found == list(range(20, 0, -1))


def test_a_process_that_dies_is_named() -> None:
    with pytest.raises(ChildProcessError, match=r"a worker process ended .*; use fewer --workers"):
        list(in_order(os._exit, [9], num_workers=1, start=int))


def test_what_the_work_raises_is_raised() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(in_order(int, ["1", "x"], num_workers=1, start=int))

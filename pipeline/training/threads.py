"""Torch's threads in a model's process, by phase of a step (`pipeline.cpu.speed` shares them out)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from pipeline.cpu.speed import PhaseThreads


@contextmanager
def scoring_threads(threads: PhaseThreads | None) -> Iterator[None]:
    """Has torch compute with the threads of scoring; None, as on GPUs, changes nothing."""
    with _threads(threads.scoring if threads else torch.get_num_threads()):
        yield


@contextmanager
def update_threads(threads: PhaseThreads | None) -> Iterator[None]:
    """Has torch compute with the threads of an update; None changes nothing."""
    with _threads(threads.update if threads else torch.get_num_threads()):
        yield


@contextmanager
def _threads(num: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(num)
    try:
        yield
    finally:
        torch.set_num_threads(before)

"""Torch's threads in a model's process, by phase of a step (`pipeline.cpu.speed` shares them out)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch

from pipeline.training.trainer_settings import TrainerSettings


@contextmanager
def threads_for(phase: Literal["scoring", "update"]) -> Iterator[None]:
    """Has torch compute with the threads of a phase; where none are named, as on GPUs, changes nothing."""
    threads, before = TrainerSettings.from_environment().threads, torch.get_num_threads()
    torch.set_num_threads(getattr(threads, phase) if threads else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)

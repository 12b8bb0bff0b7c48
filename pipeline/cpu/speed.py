"""How a training uses a machine's CPUs: threads by phase, and the dtype that matrices are multiplied in.

In a phase as many threads compute as there are cores, shared out over the processes that work at once: one
process updates, while actor and reference score side by side. More threads than cores make each other wait
(docs/log.md). bfloat16 may pay where the CPU multiplies it: AVX512-BF16 or AMX on x86, BF16 on Arm. Its
instructions alone do not tell: an AMD EPYC with AVX512-BF16 is 1.7 times as fast in it, a Xeon whose AMX is
hidden from it half as fast.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pipeline.container import read_limits

if TYPE_CHECKING:
    import torch

CpuDtype = Literal["bfloat16", "float32"]
ENGINE_THREADS_VARIABLE = "MARCH_ENGINE_THREADS"  # `PhaseThreads.rollout`, in a training without a GPU

_MULTIPLIES_BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}  # flags of x86, and the last a feature of Arm
_CPU_INFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class PhaseThreads:
    """Threads of one process in each phase of a step."""

    rollout: int  # of an engine
    scoring: int  # of a model's rank, as the next
    update: int


def phase_threads(cores: int, *, engines: int, scoring: int, updating: int, at_once: bool) -> PhaseThreads:
    """Shares the cores out over the engines, and the ranks that score or are trained side by side.

    `at_once`: engines answer while models are trained, as in asynchronous mode.
    """
    beside = engines if at_once else 0
    return PhaseThreads(
        rollout=max(cores // (engines + (max(scoring, updating) if at_once else 0)), 1),
        scoring=max(cores // (scoring + beside), 1),
        update=max(cores // (updating + beside), 1),
    )


def num_cores() -> int:
    """Cores that this process may use, by its affinity and by its container's quota."""
    cores = len(os.sched_getaffinity(0))
    return max(int(min(cores, read_limits().cores or cores)), 1)


@cache
def bfloat16_is_faster() -> bool:
    """Whether this CPU multiplies matrices faster in bfloat16 than in 32 bits: measured, in 0.2 s.

    A CPU without instructions for it is not asked: it would take seconds.
    """
    if not multiplies_bfloat16():
        return False
    import torch

    pairs = [(_seconds(torch.bfloat16), _seconds(torch.float32)) for _ in range(5)]
    return min(half for half, _ in pairs) < min(full for _, full in pairs)


def _seconds(dtype: torch.dtype) -> float:
    """Of one product as a small model's layers have it."""
    import torch

    rows, weights = torch.ones(1024, 576, dtype=dtype), torch.ones(576, 1536, dtype=dtype)
    started = time.perf_counter()
    torch.mm(rows, weights)
    return time.perf_counter() - started


def multiplies_bfloat16(cpu_info: str | None = None) -> bool:
    """Whether the CPU has instructions for it."""
    text = _CPU_INFO.read_text() if cpu_info is None else cpu_info
    lines = (line.partition(":") for line in text.splitlines())
    flags = (value.split() for name, _, value in lines if name.strip().lower() in ("flags", "features"))
    return not _MULTIPLIES_BFLOAT16.isdisjoint(next(flags, []))

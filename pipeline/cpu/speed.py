"""How a training uses a machine's CPUs: threads by phase, and the dtype that matrices are multiplied in.

In a phase as many threads compute as there are cores, shared out over the processes that work at once: one
process updates, while actor and reference score side by side. More threads than cores make each other wait
(docs/log.md). bfloat16 pays where the CPU multiplies it: AVX512-BF16 or AMX on x86, BF16 on Arm; others
emulate it, several times slower than 32 bits.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pipeline.container import read_limits

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
    """Shares the cores out.

    Args:
        cores: that the training may use.
        engines: rollout engines.
        scoring: ranks that compute log-probabilities and values side by side.
        updating: ranks that are trained side by side.
        at_once: whether engines answer while models are trained, as in asynchronous mode.
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


def multiplies_bfloat16(cpu_info: str | None = None) -> bool:
    """Whether the CPU has instructions for it.

    Args:
        cpu_info: in place of /proc/cpuinfo.
    """
    text = _CPU_INFO.read_text() if cpu_info is None else cpu_info
    lines = (line.partition(":") for line in text.splitlines())
    flags = (value.split() for name, _, value in lines if name.strip().lower() in ("flags", "features"))
    return not _MULTIPLIES_BFLOAT16.isdisjoint(next(flags, []))

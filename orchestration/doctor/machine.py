"""This machine's cores, memory and shared memory, as a process in this container may use them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestration.doctor.packages import Installation
from orchestration.doctor.report import Finding, failed, ok, skipped, warning
from pipeline.container import read_limits
from pipeline.estimate.memory import GIB
from pipeline.estimate.without_gpus import TINY_BYTES
from pipeline.launch.ray_start import OBJECT_STORE_BYTES

_LIGHT_BYTES = GIB
_MIN_CORES = 2
_SHARED = Path("/dev/shm")


@dataclass(frozen=True)
class MachineFacts:
    """Counts and bytes; what a control group allows is None where none binds."""

    cores: int
    cores_allowed: float | None
    memory: int
    memory_free: int
    memory_allowed: int | None
    shared: int | None  # None: there is no /dev/shm
    shared_free: int

    @property
    def usable_cores(self) -> float:
        """What is really there."""
        return min(self.cores, self.cores_allowed or self.cores)

    @property
    def usable_memory(self) -> int:
        """What is really there, in bytes."""
        return min(self.memory, self.memory_allowed or self.memory)


def gather_machine() -> MachineFacts:
    """Looks at /proc, /sys and /dev/shm."""
    limits, text = read_limits(), Path("/proc/meminfo").read_text()
    known = {name: int(kib) * 1024 for name, kib in re.findall(r"^(\w+): +(\d+) kB", text, re.MULTILINE)}
    free = known["MemAvailable"]
    shared = os.statvfs(_SHARED) if _SHARED.is_dir() else None
    return MachineFacts(
        cores=len(os.sched_getaffinity(0)),
        cores_allowed=limits.cores,
        memory=known["MemTotal"],
        memory_free=free if limits.memory_free is None else max(min(free, limits.memory_free), 0),
        memory_allowed=limits.memory,
        shared=shared.f_frsize * shared.f_blocks if shared else None,
        shared_free=shared.f_frsize * shared.f_bavail if shared else 0,
    )


def check_machine(facts: MachineFacts, here: Installation) -> Iterator[Finding]:
    """Judges them for what is installed: a light install needs little."""
    raise_it = "raise the container's limit, or take a larger machine"
    found = f"{facts.usable_cores:g} cores"
    if facts.usable_cores < facts.cores:
        found += f" by the container's limit, of {facts.cores}"
    if here.trains and facts.usable_cores < _MIN_CORES:
        yield warning("CPU", found, f"training needs {_MIN_CORES}; {raise_it}")
    else:
        yield ok("CPU", found)
    found = f"{facts.usable_memory / GIB:,.1f} GiB, {facts.memory_free / GIB:,.1f} free"
    if facts.usable_memory < facts.memory:
        found += f"; the container's limit, of {facts.memory / GIB:,.1f}"
    needed = TINY_BYTES if here.trains else _LIGHT_BYTES
    if facts.usable_memory < needed:
        what = "the smallest training" if here.trains else "a light install"
        yield failed("memory", found, f"{what} needs {needed / GIB:g} GiB; {raise_it}")
    else:
        yield ok("memory", found)
    yield _shared(facts, here)


def _shared(facts: MachineFacts, here: Installation) -> Finding:
    name, fix = "/dev/shm", "docker: --shm-size 8g; Kubernetes: an emptyDir of medium Memory on /dev/shm"
    if not here.trains:
        return skipped(name, "no training stack is installed; Ray and NCCL use it")
    if facts.shared is None:
        return failed(name, "is not there; Ray and NCCL use it", fix)
    found = f"{facts.shared / GIB:,.2f} GiB, {facts.shared_free / GIB:,.2f} free"
    if facts.shared_free >= OBJECT_STORE_BYTES:
        return ok(name, found)
    found += f"; Ray's object store takes {OBJECT_STORE_BYTES / GIB:g} GiB"
    return failed(name, found, fix) if here.has_gpu_build else warning(name, found, fix)

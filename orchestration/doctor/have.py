"""What there is for a recipe to run on: this machine, or the nodes of a cluster."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestration.doctor.disk import nearest
from orchestration.doctor.gpu import GpuFacts
from orchestration.doctor.machine import MachineFacts
from orchestration.doctor.ray_cluster import Node

_PTRACE = Path("/proc/sys/kernel/yama/ptrace_scope")
_OPTIONAL = ("flash-attn", "ring-flash-attn")


@dataclass(frozen=True)
class Have:
    """Bytes; None for what nobody tells."""

    where: str
    nodes: tuple[int, ...]  # GPUs of each node
    gpu_memory: int | None  # of the smallest
    memory: int | None  # of the smallest node
    disk_free: int | None  # where the run goes
    is_here: bool
    gpus_in_use: float = 0.0  # by what else runs
    packages: frozenset[str] = frozenset()  # of those that only some recipes need; known here alone
    ptrace_scope: int = 0

    @property
    def num_gpus(self) -> int:
        """On all nodes."""
        return sum(self.nodes)


def have_here(gpus: GpuFacts, machine: MachineFacts, run_dir: Path) -> Have:
    """This machine."""
    space = os.statvfs(nearest(run_dir))
    return Have(
        where="this machine",
        nodes=(len(gpus.gpus),),
        gpu_memory=min((gpu.memory for gpu in gpus.gpus), default=None),
        memory=machine.usable_memory,
        disk_free=space.f_frsize * space.f_bavail,
        is_here=True,
        packages=frozenset(name for name in _OPTIONAL if _is_installed(name)),
        ptrace_scope=int(_PTRACE.read_text()) if _PTRACE.is_file() else 0,
    )


def have_there(nodes: Sequence[Node], *, gpus_in_use: float = 0.0) -> Have:
    """A cluster; nodes without GPUs give no memory to models where others have GPUs."""
    workers = [node for node in nodes if node.num_gpus] or list(nodes)
    return Have(
        where="the cluster",
        nodes=tuple(int(node.num_gpus) for node in workers),
        gpu_memory=min((node.gpu_memory for node in workers if node.gpu_memory), default=None),
        memory=min((node.memory for node in workers if node.memory), default=None),
        disk_free=min((node.disk_free for node in nodes if node.disk_free is not None), default=None),
        is_here=False,
        gpus_in_use=gpus_in_use,
    )


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True

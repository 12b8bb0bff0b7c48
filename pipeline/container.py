"""What this process may take of its machine: the limits of its control groups, version 2 and version 1.

A group is bound by the groups around it as well, so each limit is the least of all from the process's own
group to the root. Inside a container the root that it sees is often its own group.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_SELF = Path("/proc/self/cgroup")
_UNLIMITED = 1 << 60  # version 1 says "none" by a number near 2^63


@dataclass(frozen=True)
class Limits:
    """None where nothing binds."""

    memory: int | None = None  # bytes
    memory_free: int | None = None  # bytes, in the group that has least left
    cores: float | None = None


def read_limits(root: Path = _ROOT, own: Path = _SELF) -> Limits:
    """Reads the limits of this process; both versions, since a machine may have both mounted."""
    groups = list(_groups(root, own))
    memory = [found for folder in groups if (found := _memory(folder)) is not None]
    return Limits(
        memory=min((limit for limit, _ in memory), default=None),
        memory_free=min((limit - used for limit, used in memory), default=None),
        cores=min((num for folder in groups if (num := _cores(folder)) is not None), default=None),
    )


def usable_memory() -> int:
    """Bytes of this machine's memory, or of its container's where that is less."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(whole, read_limits().memory or whole)


def _groups(root: Path, own: Path) -> Iterator[Path]:
    """The process's group in each hierarchy, and all around it."""
    for line in own.read_text().splitlines() if own.is_file() else ():
        _, controllers, path = line.split(":", 2)
        hierarchies = controllers.split(",") if controllers else ("", "unified")  # version 1, version 2
        for place in (root / name for name in hierarchies):
            inner = place / path.strip("/")
            yield from (folder for folder in (inner, *inner.parents) if folder.is_relative_to(place))


def _memory(folder: Path) -> tuple[int, int] | None:
    """Limit and use; what the kernel can drop at once is not used."""
    limit = _number(folder, "memory.max", "memory.limit_in_bytes")
    if limit is None or limit >= _UNLIMITED:
        return None
    lines = _text(folder / "memory.stat").splitlines()
    stat = {name: int(number) for name, _, number in (line.partition(" ") for line in lines)}
    droppable = stat.get("total_inactive_file") or stat.get("inactive_file") or 0
    used = _number(folder, "memory.current", "memory.usage_in_bytes") or 0
    return limit, max(used - droppable, 0)


def _cores(folder: Path) -> float | None:
    quota, _, period = _text(folder / "cpu.max").partition(" ")
    if not quota:
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdecimal() else None  # not "max", not -1


def _number(folder: Path, *names: str) -> int | None:
    """What the first of these files says that holds a number."""
    return next((int(text) for name in names if (text := _text(folder / name)).isdecimal()), None)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""

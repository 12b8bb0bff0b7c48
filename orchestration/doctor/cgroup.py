"""What a container may take: the limits of its control groups, version 2 and version 1.

A group is bound by the groups around it as well, so each limit is the least of all from the process's own
group to the root. Inside a container the root that it sees is often its own group.
"""

from __future__ import annotations

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
    groups = _groups(own)
    memory = list(_memory(root, groups))
    cores = [found for folder in _folders(root, groups, "cpu") if (found := _cores(folder)) is not None]
    return Limits(
        memory=min((limit for limit, _ in memory), default=None),
        memory_free=min((limit - used for limit, used in memory), default=None),
        cores=min(cores, default=None),
    )


def _groups(own: Path) -> dict[str, str]:
    """The process's path in each hierarchy: by controller for version 1, by "" for version 2."""
    lines = own.read_text().splitlines() if own.is_file() else []
    split = (line.split(":", 2) for line in lines if line.count(":") >= 2)
    return {name: path for _, controllers, path in split for name in controllers.split(",")}


def _folders(root: Path, groups: dict[str, str], controller: str) -> Iterator[Path]:
    """The process's group in each hierarchy, and all around it."""
    for place, path in (
        (root, groups.get("")),
        (root / "unified", groups.get("")),
        (root / controller, groups.get(controller)),
    ):
        if path is not None:
            inner = place / path.strip("/")
            yield from (folder for folder in (inner, *inner.parents) if folder.is_relative_to(place))


def _memory(root: Path, groups: dict[str, str]) -> Iterator[tuple[int, int]]:
    """Limit and use, of each group that has a limit; what the kernel can drop at once is not used."""
    for folder in _folders(root, groups, "memory"):
        for limit_file, used_file in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit = _number(folder / limit_file)
            if limit is not None and limit < _UNLIMITED:
                used = (_number(folder / used_file) or 0) - _droppable(folder)
                yield limit, max(used, 0)


def _droppable(folder: Path) -> int:
    lines = _text(folder / "memory.stat").splitlines()
    found = {name: number for name, _, number in (line.partition(" ") for line in lines)}
    return int(found.get("total_inactive_file") or found.get("inactive_file") or 0)


def _cores(folder: Path) -> float | None:
    quota, _, period = _text(folder / "cpu.max").partition(" ")
    if not quota:
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
    bound = quota.isdecimal() and period.isdecimal() and int(period) > 0  # not "max", not -1
    return int(quota) / int(period) if bound else None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""

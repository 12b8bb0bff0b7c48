"""Where runs, store and caches go: room, and whether it may be written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestration.doctor.packages import Installation
from orchestration.doctor.report import Finding, failed, ok, warning
from pipeline.artifacts.settings import StoreSettings
from reward.offline.files import user_cache

GB = 1e9
_LEAST, _COMFORT = 1 * GB, 20 * GB


@dataclass(frozen=True)
class DiskFacts:
    """One file system, and what goes there."""

    uses: tuple[str, ...]
    path: Path  # of the first use
    total: int  # bytes
    free: int  # bytes, for this user
    unwritable: tuple[str, ...] = ()  # paths


def places(run_dir: Path, store: StoreSettings) -> dict[str, Path]:
    """What is written where."""
    models = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    found = {"runs": run_dir} | ({} if store.is_s3 else {"store": Path(store.location)})
    return found | {
        "cache": user_cache(),
        "models": Path(models),
        "temporary files": Path(tempfile.gettempdir()),
    }


def gather_disks(wanted: Mapping[str, Path]) -> list[DiskFacts]:
    """Looks at each file system once."""
    by_device: dict[int, list[tuple[str, Path]]] = {}
    for use, path in wanted.items():
        there = nearest(path)
        by_device.setdefault(there.stat().st_dev, []).append((use, there))
    return [_facts(uses) for uses in by_device.values()]


def nearest(path: Path) -> Path:
    """The path, or the innermost folder around it that is there."""
    path = path.expanduser().absolute()
    return next(one for one in (path, *path.parents) if one.exists())


def check_disks(disks: Sequence[DiskFacts], here: Installation) -> Iterator[Finding]:
    """One finding a file system."""
    for disk in disks:
        where = f"{disk.path} ({', '.join(disk.uses)})"
        found = f"{disk.free / GB:,.1f} GB free of {disk.total / GB:,.1f} at {where}"
        if disk.unwritable:
            fix = "fix its owner, or mount a volume there"
            yield failed("disk", f"{disk.unwritable[0]} cannot be written; {found}", fix)
        elif disk.free < _LEAST:
            fix = "remove old runs (`march artifacts gc` for the store), or mount a larger volume"
            yield failed("disk", f"full; {found}", fix)
        elif "runs" in disk.uses and here.trains and disk.free < _COMFORT:
            fix = "checkpoints need room; `--recipe` says how much, --run-dir moves them"
            yield warning("disk", found, fix)
        else:
            yield ok("disk", found)


def _facts(uses: Sequence[tuple[str, Path]]) -> DiskFacts:
    space = os.statvfs(uses[0][1])
    return DiskFacts(
        uses=tuple(use for use, _ in uses),
        path=uses[0][1],
        total=space.f_frsize * space.f_blocks,
        free=space.f_frsize * space.f_bavail,
        unwritable=tuple(str(path) for _, path in uses if not os.access(path, os.W_OK | os.X_OK)),
    )

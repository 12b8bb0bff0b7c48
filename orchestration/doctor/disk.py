"""Where runs, store and caches go: room, inodes, and whether files may be written and loaded there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestration.doctor.packages import Installation
from orchestration.doctor.report import Finding, failed, ok, warning
from pipeline.artifacts.settings import StoreSettings
from pipeline.launch.build_locks import extensions_folder
from reward.offline.files import user_cache

GB = 1e9
_LEAST, _COMFORT = 1 * GB, 20 * GB
_LEAST_INODES = 10_000
_COMPILED, _TEMPORARY = "compiled extensions", "temporary files"


@dataclass(frozen=True)
class DiskFacts:
    """One file system, and what goes there."""

    uses: tuple[str, ...]
    path: Path  # of the first use
    total: int  # bytes
    free: int  # bytes, for this user
    free_inodes: int | None  # None where the file system has no fixed number
    unwritable: tuple[str, ...] = ()  # paths
    noexec: tuple[str, ...] = ()  # paths of what is compiled and loaded


def places(run_dir: Path, store: StoreSettings, here: Installation) -> dict[str, Path]:
    """What is written where; only trainings on GPUs compile."""
    found = {"runs": run_dir}
    found |= {} if store.is_s3 else {"store": Path(store.location)}
    found |= {"cache": user_cache(), "models": hugging_face_home(), _TEMPORARY: Path(tempfile.gettempdir())}
    return found | ({_COMPILED: extensions_folder()} if here.has_gpu_build else {})


def hugging_face_home() -> Path:
    """Where Hugging Face's libraries keep what they fetch."""
    return Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")


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
        found = (
            f"{disk.free / GB:,.1f} GB free of {disk.total / GB:,.1f} at {disk.path} ({', '.join(disk.uses)})"
        )
        problem, fix = _problem(disk, here)
        if problem:
            yield failed("disk", f"{problem}; {found}", fix)
        elif "runs" in disk.uses and here.trains and disk.free < _COMFORT:
            yield warning(
                "disk", found, "checkpoints need room; `--recipe` says how much, --run-dir moves them"
            )
        else:
            yield ok("disk", found)


def _problem(disk: DiskFacts, here: Installation) -> tuple[str, str]:
    if disk.unwritable:
        return f"{disk.unwritable[0]} cannot be written", "fix its owner, or mount a volume there"
    if disk.free < _LEAST:
        return "full", "remove old runs (`march artifacts gc` for the store), or mount a larger volume"
    if disk.free_inodes is not None and disk.free_inodes < _LEAST_INODES:
        return f"{disk.free_inodes:,} inodes left", "remove small files, or make the file system with more"
    if disk.noexec and here.has_gpu_build:
        fix = "mount it without noexec (docker: --tmpfs /tmp:exec)"
        return f"{disk.noexec[0]} is mounted noexec, so nothing compiled can be loaded", fix
    return "", ""


def _facts(uses: Sequence[tuple[str, Path]]) -> DiskFacts:
    space = os.statvfs(uses[0][1])
    loads = [path for use, path in uses if use in (_COMPILED, _TEMPORARY)]
    return DiskFacts(
        uses=tuple(use for use, _ in uses),
        path=uses[0][1],
        total=space.f_frsize * space.f_blocks,
        free=space.f_frsize * space.f_bavail,
        free_inodes=space.f_favail if space.f_files else None,
        unwritable=tuple(str(path) for _, path in uses if not os.access(path, os.W_OK | os.X_OK)),
        noexec=tuple(str(path) for path in loads if os.statvfs(path).f_flag & os.ST_NOEXEC),
    )

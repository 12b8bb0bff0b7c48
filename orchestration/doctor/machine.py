"""This machine: GPUs, cores, memory, shared memory and disks, as a process in this container may use them.

torch alone knows whether this driver runs what it was built for. It is asked in a process of its own, since
its import takes seconds and its start a context on each GPU.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from orchestration.doctor.packages import Installation
from orchestration.doctor.report import Finding, failed, ok, skipped, warning
from pipeline.artifacts.settings import StoreSettings
from pipeline.container import read_limits
from pipeline.estimate.memory import GIB
from pipeline.estimate.plan import TINY_BYTES
from pipeline.launch.ray_start import OBJECT_STORE_BYTES
from pipeline.models.cache import cache_folder
from reward.offline.excerpt import printable
from reward.offline.files import user_cache

GB = 1e9
_LEAST, _COMFORT = 1 * GB, 20 * GB
_LIGHT_BYTES = GIB
_MIN_CORES = 2
_SHARED = Path("/dev/shm")
_TIMEOUT_S = 60.0  # for torch
_IDLE = GIB  # bytes: what a driver and a display take
_LOOK = """
import json, torch
found = []
if torch.version.cuda:
    torch.cuda.init()  # raises where there is no driver, an old one, or no GPU
    for at in range(torch.cuda.device_count()):
        free, memory = torch.cuda.mem_get_info(at)
        found.append([torch.cuda.get_device_name(at), memory, memory - free])
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Gpu:
    """One GPU; bytes."""

    name: str
    memory: int
    used: int


@dataclass(frozen=True)
class GpuFacts:
    """What there is and may be used; CUDA_VISIBLE_DEVICES hides the rest."""

    gpus: tuple[Gpu, ...] = ()
    problem: str | None = None  # why torch, which is built for GPUs, finds none
    has_driver: bool = False


@cache
def gather_gpus() -> GpuFacts:
    """Asks torch, if it is there."""
    has_driver = shutil.which("nvidia-smi") is not None
    if find_spec("torch") is None:
        return GpuFacts(has_driver=has_driver)
    command = [sys.executable, "-c", _LOOK]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return GpuFacts(problem=f"no answer within {_TIMEOUT_S:g} s", has_driver=has_driver)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"ended with code {done.returncode}"]
        return GpuFacts(problem=printable(said[-1])[:300], has_driver=has_driver)
    found = json.loads(done.stdout.splitlines()[-1])
    return GpuFacts(tuple(Gpu(*one) for one in found), has_driver=has_driver)


def check_gpus(facts: GpuFacts, here: Installation) -> Iterator[Finding]:
    if facts.problem:
        fix = (
            "install NVIDIA's driver, or a newer one; docker: --gpus all; Kubernetes: request "
            "nvidia.com/gpu; see that CUDA_VISIBLE_DEVICES hides none"
        )
        yield failed("GPU", f"torch: {facts.problem}", fix)
    elif facts.gpus:
        names = {f"{gpu.name}, {gpu.memory / GIB:.0f} GiB" for gpu in facts.gpus}
        found = f"{len(facts.gpus)} x {' and '.join(sorted(names))}"
        busiest = max(gpu.used for gpu in facts.gpus)
        if busiest > _IDLE:
            used = f"{found}; up to {busiest / GIB:.0f} GiB of one are taken already"
            yield warning("GPU", used, "end what runs there; `nvidia-smi` lists the processes")
        else:
            yield ok("GPU", found)
    elif facts.has_driver and here.trains:
        fix = "pip install '.[train-gpu]' to use the GPUs"
        yield warning("GPU", "a driver is there, and torch is a build for CPUs", fix)
    else:
        yield ok("GPU", "none; nothing that is installed needs one")


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
        return min(self.cores, self.cores_allowed or self.cores)

    @property
    def usable_memory(self) -> int:
        return min(self.memory, self.memory_allowed or self.memory)


def gather_machine() -> MachineFacts:
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


@dataclass(frozen=True)
class DiskFacts:
    """One file system, and what goes there."""

    uses: tuple[str, ...]
    path: Path  # of the first use
    total: int  # bytes
    free: int  # bytes, for this user
    unwritable: tuple[str, ...] = ()  # paths


def places(run_dir: Path, store: StoreSettings) -> dict[str, Path]:
    models = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
    found = {"runs": run_dir} | ({} if store.is_s3 else {"store": Path(store.location)})
    return found | {
        "cache": user_cache(),
        "fetched models": cache_folder(),
        "the hub's models": Path(models),
        "temporary files": Path(tempfile.gettempdir()),
    }


def gather_disks(wanted: Mapping[str, Path]) -> list[DiskFacts]:
    """Looks at each file system once."""
    by_device: dict[int, list[tuple[str, Path]]] = {}
    for use, path in wanted.items():
        there = nearest(path)
        by_device.setdefault(there.stat().st_dev, []).append((use, there))
    found = []
    for uses in by_device.values():
        first, space = uses[0][1], os.statvfs(uses[0][1])
        unwritable = tuple(str(path) for _, path in uses if not os.access(path, os.W_OK | os.X_OK))
        total, free = space.f_frsize * space.f_blocks, space.f_frsize * space.f_bavail
        found.append(DiskFacts(tuple(use for use, _ in uses), first, total, free, unwritable))
    return found


def nearest(path: Path) -> Path:
    """The path, or the innermost folder around it that is there."""
    path = path.expanduser().absolute()
    return next(one for one in (path, *path.parents) if one.exists())


def check_disks(disks: Sequence[DiskFacts], here: Installation) -> Iterator[Finding]:
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

"""GPUs as torch finds them: it alone knows whether this driver runs what it was built for.

It is asked in a process of its own, since its import takes seconds and its start a context on each GPU.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

from orchestration.doctor.packages import Installation
from orchestration.doctor.report import Finding, failed, ok, warning
from pipeline.estimate.memory import GIB
from reward.offline.excerpt import printable

_TIMEOUT_S = 60.0
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
    """Judges what there is for what is installed."""
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
        fix = "install march-pipeline[train-gpu] to use the GPUs"
        yield warning("GPU", "a driver is there, and torch is a build for CPUs", fix)
    else:
        yield ok("GPU", "none; nothing that is installed needs one")

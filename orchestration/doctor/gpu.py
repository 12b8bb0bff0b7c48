"""GPUs and their driver, as nvidia-smi shows them, against the CUDA that torch was built for.

A driver runs what was built for its own major version of CUDA and for older ones (NVIDIA's "CUDA
Compatibility").
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from orchestration.doctor.packages import Installation
from orchestration.doctor.report import Finding, failed, ok, warning
from pipeline.estimate.memory import GIB
from reward.offline.excerpt import printable

_MIB = 1024**2
_SMI = "nvidia-smi"
_FIELDS = "index,uuid,name,memory.total,memory.used,driver_version,ecc.errors.uncorrected.volatile.total"
_SMI_TIMEOUT_S = 30.0  # it wakes GPUs up that sleep, some seconds each
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_IDLE = GIB  # bytes: what a driver and a display take
_CUDA = re.compile(r"CUDA Version\s*:\s*(\d+\.\d+)")


@dataclass(frozen=True)
class Gpu:
    """One GPU; bytes."""

    name: str
    memory: int
    used: int
    num_errors: int = 0  # of memory, since the driver was loaded; not corrected


@dataclass(frozen=True)
class GpuFacts:
    """What there is, and what may be used of it."""

    gpus: tuple[Gpu, ...] = ()
    num_hidden: int = 0  # by CUDA_VISIBLE_DEVICES
    driver: str | None = None
    cuda: str | None = None  # the newest that the driver runs
    problem: str | None = None  # what nvidia-smi says when it cannot work
    has_tool: bool = True


def gather_gpus() -> GpuFacts:
    """Asks nvidia-smi."""
    if shutil.which(_SMI) is None:
        return GpuFacts(has_tool=False)
    code, said = _run([_SMI, f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits"])
    if code:
        return GpuFacts(problem=printable(" ".join(said.split()))[:160] or f"ended with code {code}")
    cuda = _CUDA.search(_run([_SMI])[1])
    return read_gpus(said, visible=os.environ.get(_VISIBLE), cuda=cuda[1] if cuda else None)


def read_gpus(csv: str, *, visible: str | None, cuda: str | None = None) -> GpuFacts:
    """Facts from nvidia-smi's table.

    Args:
        csv: A line for each GPU, in the order of the query.
        visible: CUDA_VISIBLE_DEVICES, if it is set.
        cuda: The driver's version of CUDA.
    """
    rows = [[cell.strip() for cell in line.split(",")] for line in csv.splitlines() if line.strip()]
    rows = [row for row in rows if len(row) == _FIELDS.count(",") + 1]
    chosen = rows if visible is None else [row for row in rows if _is_visible(row, visible)]
    gpus = tuple(
        Gpu(row[2], _number(row[3]) * _MIB, _number(row[4]) * _MIB, num_errors=_number(row[6]))
        for row in chosen
    )
    driver = rows[0][5] if rows else None
    return GpuFacts(gpus, num_hidden=len(rows) - len(gpus), driver=driver, cuda=cuda)


def check_gpus(facts: GpuFacts, here: Installation) -> Iterator[Finding]:
    """Judges what there is for what is installed."""
    if facts.problem:
        fix = "load the driver's module, or restart the machine after an upgrade of the driver"
        yield failed("GPU", f"nvidia-smi: {facts.problem}", fix)
    elif facts.gpus:
        yield _found(facts)
        yield _driver(facts, here)
    elif facts.num_hidden:
        found = f"none of {facts.num_hidden}: {_VISIBLE} hides them"
        yield failed("GPU", found, f"unset {_VISIBLE}, or name those to use")
    elif here.has_gpu_build:
        found = "none" if facts.has_tool else "none: nvidia-smi is not there"
        fix = "install NVIDIA's driver; docker: --gpus all; Kubernetes: request nvidia.com/gpu"
        yield failed("GPU", f"{found}, and vLLM's build for GPUs is installed", fix)
    else:
        yield ok("GPU", "none; nothing that is installed needs one")


def _found(facts: GpuFacts) -> Finding:
    names = {f"{gpu.name}, {gpu.memory / GIB:.0f} GiB" for gpu in facts.gpus}
    hidden = f"; {facts.num_hidden} more are hidden by {_VISIBLE}" if facts.num_hidden else ""
    found = f"{len(facts.gpus)} x {' and '.join(sorted(names))}{hidden}"
    if damaged := sum(gpu.num_errors > 0 for gpu in facts.gpus):
        fix = "reset or replace it; `nvidia-smi -q -d ECC` says which"
        return failed("GPU", f"{found}; memory errors on {damaged}", fix)
    busiest = max(gpu.used for gpu in facts.gpus)
    if busiest > _IDLE:
        used = f"{found}; up to {busiest / GIB:.0f} GiB of one are taken already"
        return warning("GPU", used, "end what runs there; `nvidia-smi` lists the processes")
    return ok("GPU", found)


def _driver(facts: GpuFacts, here: Installation) -> Finding:
    found = f"{facts.driver}, runs CUDA {facts.cuda or 'of a version that it does not tell'}"
    if here.torch_cuda is None:
        fix = "install march-pipeline[train-gpu] to use the GPUs"
        return (
            warning("driver", f"{found}; torch is a build for CPUs", fix)
            if here.trains
            else ok("driver", found)
        )
    found += f"; torch is built for {here.torch_cuda}"
    if facts.cuda and int(facts.cuda.partition(".")[0]) < int(here.torch_cuda.partition(".")[0]):
        return failed("driver", found, f"install a driver that runs CUDA {here.torch_cuda}")
    return ok("driver", found)


def _run(command: list[str]) -> tuple[int, str]:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_SMI_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return 1, f"{command[0]} does not answer within {_SMI_TIMEOUT_S:g} s"
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr or done.stdout


def _is_visible(row: list[str], visible: str) -> bool:
    wanted = [one.strip() for one in visible.split(",")]
    return row[0] in wanted or any(one and row[1].startswith(one) for one in wanted if one.startswith("GPU-"))


def _number(text: str) -> int:
    """0 for what a GPU does not tell ("[N/A]")."""
    return int(text) if text.isdecimal() else 0

"""`march doctor`: GPUs, cores and memory, on made-up facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestration.doctor.gpu import GpuFacts, check_gpus, gather_gpus, read_gpus
from orchestration.doctor.machine import MachineFacts, check_machine, gather_machine
from orchestration.doctor.packages import Installation
from orchestration.doctor.report import State
from pipeline.estimate.memory import GIB
from tests.doctor_facts import CPU, GPU, LIGHT

# GPUs

H100 = "0, GPU-aaaa, NVIDIA H100 80GB HBM3, 81559, 4, 570.86.15, 0\n"


def gpus(csv: str, *, visible: str | None = None, cuda: str | None = "12.8") -> GpuFacts:
    return read_gpus(csv, visible=visible, cuda=cuda)


def test_gpus_that_fit_their_driver_and_torch() -> None:
    found = list(check_gpus(gpus(H100 + H100.replace("0, GPU-aaaa", "1, GPU-bbbb")), GPU))
    assert [one.state for one in found] == [State.OK] * 2
    assert found[0].found == "2 x NVIDIA H100 80GB HBM3, 80 GiB"
    assert found[1].found == "570.86.15, runs CUDA 12.8; torch is built for 12.8"


@pytest.mark.parametrize(
    ("facts", "kit", "check", "state", "says"),
    [
        (GpuFacts(), CPU, "GPU", State.OK, "none; nothing that is installed needs one"),
        (GpuFacts(has_tool=False), GPU, "GPU", State.FAILED, "nvidia-smi is not there, and vLLM's build"),
        (GpuFacts(problem="Driver/library version mismatch"), GPU, "GPU", State.FAILED, "version mismatch"),
        (gpus(H100, visible=""), GPU, "GPU", State.FAILED, "none of 1: CUDA_VISIBLE_DEVICES hides them"),
        (gpus(H100, visible="1"), GPU, "GPU", State.FAILED, "none of 1"),
        (gpus(H100, visible="0"), GPU, "GPU", State.OK, "1 x NVIDIA H100"),
        (gpus(H100, visible="GPU-aa"), GPU, "GPU", State.OK, "1 x NVIDIA H100"),
        (gpus(H100.replace(" 4,", " 60000,")), GPU, "GPU", State.WARNING, "up to 59 GiB of one are taken"),
        (gpus(H100.replace(", 0\n", ", 3\n")), GPU, "GPU", State.FAILED, "memory errors on 1"),
        (gpus(H100.replace(", 0\n", ", [N/A]\n")), GPU, "GPU", State.OK, "1 x"),
        (gpus(H100, cuda="11.8"), GPU, "driver", State.FAILED, "runs CUDA 11.8; torch is built for 12.8"),
        (gpus(H100, cuda="12.4"), GPU, "driver", State.OK, "runs CUDA 12.4"),
        (gpus(H100, cuda="13.0"), GPU, "driver", State.OK, "runs CUDA 13.0"),
        (gpus(H100, cuda=None), GPU, "driver", State.OK, "of a version that it does not tell"),
        (gpus(H100), CPU, "driver", State.WARNING, "torch is a build for CPUs"),
        (gpus(H100), LIGHT, "driver", State.OK, "runs CUDA 12.8"),
    ],
)
def test_gpus(facts: GpuFacts, kit: Installation, check: str, state: State, says: str) -> None:
    found = next(one for one in check_gpus(facts, kit) if one.check == check)
    assert found.state is state and says in found.found
    assert bool(found.fix) == (state is not State.OK)


def test_what_nvidia_smi_prints_around_its_table_is_no_gpu() -> None:
    assert gpus("No devices were found\n\n").gpus == ()


SMI = """#!/bin/sh
case "$*" in
  "") printf '| NVIDIA-SMI 570.86.15    Driver Version: 570.86.15    CUDA Version: 12.8  |\\n' ;;
  *) printf '%s' "0, GPU-aaaa, NVIDIA H100 80GB HBM3, 81559, 4, 570.86.15, 0" ;;
esac
"""


def test_nvidia_smi_is_asked_and_what_it_complains_of_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    tool = tmp_path / "nvidia-smi"
    tool.write_text(SMI)
    tool.chmod(0o755)
    facts = gather_gpus()
    assert [gpu.name for gpu in facts.gpus] == ["NVIDIA H100 80GB HBM3"]
    assert (facts.cuda, facts.driver, facts.problem) == ("12.8", "570.86.15", None)
    tool.write_text("#!/bin/sh\necho 'Failed to initialize NVML: Driver/library version mismatch'; exit 18\n")
    assert gather_gpus().problem == "Failed to initialize NVML: Driver/library version mismatch"


# Cores, memory, shared memory

MACHINE = MachineFacts(
    cores=8, cores_allowed=None, memory=64 * GIB, memory_free=50 * GIB, memory_allowed=None,
    shared=32 * GIB, shared_free=32 * GIB,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "kit", "check", "state", "says"),
    [
        ({}, GPU, "CPU", State.OK, "8 cores"),
        ({"cores_allowed": 1.5}, CPU, "CPU", State.WARNING, "1.5 cores by the container's limit, of 8"),
        ({"cores_allowed": 1.0}, LIGHT, "CPU", State.OK, "1 cores"),
        ({}, CPU, "memory", State.OK, "64.0 GiB, 50.0 free"),
        ({"memory_allowed": 4 * GIB}, CPU, "memory", State.FAILED, "4.0 GiB, 50.0 free; the container's"),
        ({"memory_free": 3 * GIB}, CPU, "memory", State.OK, "64.0 GiB, 3.0 free"),
        ({"memory_allowed": 2 * GIB}, LIGHT, "memory", State.OK, "2.0 GiB"),
        ({"shared": 64 << 20, "shared_free": 64 << 20}, CPU, "/dev/shm", State.WARNING, "0.06 GiB"),
        ({"shared": 64 << 20, "shared_free": 64 << 20}, GPU, "/dev/shm", State.FAILED, "object store"),
        ({"shared": None, "shared_free": 0}, CPU, "/dev/shm", State.FAILED, "is not there"),
        ({"shared": None, "shared_free": 0}, LIGHT, "/dev/shm", State.SKIPPED, "no training stack"),
    ],
)
def test_machine(changes: dict[str, Any], kit: Installation, check: str, state: State, says: str) -> None:
    found = next(one for one in check_machine(replace(MACHINE, **changes), kit) if one.check == check)
    assert found.state is state and says in found.found


def test_this_machine_is_looked_at() -> None:
    facts = gather_machine()
    assert facts.cores >= 1 and 0 <= facts.memory_free <= facts.usable_memory

"""`march doctor`: GPUs, cores and memory, on made-up facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestration.doctor.machine import (
    Gpu,
    GpuFacts,
    MachineFacts,
    check_gpus,
    check_machine,
    gather_gpus,
    gather_machine,
    places,
)
from orchestration.doctor.packages import Installation
from orchestration.doctor.report import State
from pipeline.artifacts.settings import StoreSettings
from pipeline.estimate.memory import GIB
from tests.doctor_facts import CPU, GPU, LIGHT, only

# GPUs

H100 = Gpu("NVIDIA H100", 80 * GIB, used=1)


@pytest.mark.parametrize(
    ("facts", "kit", "state", "says"),
    [
        (GpuFacts(), CPU, State.OK, "none; nothing that is installed needs one"),
        (GpuFacts(has_driver=True), LIGHT, State.OK, "none"),
        (GpuFacts(has_driver=True), CPU, State.WARNING, "torch is a build for CPUs"),
        (GpuFacts(problem="RuntimeError: the driver is too old"), GPU, State.FAILED, "is too old"),
        (GpuFacts((H100, H100)), GPU, State.OK, "2 x NVIDIA H100, 80 GiB"),
        (GpuFacts((H100, replace(H100, used=59 * GIB))), GPU, State.WARNING, "up to 59 GiB of one are taken"),
    ],
)
def test_gpus(facts: GpuFacts, kit: Installation, state: State, says: str) -> None:
    found = only(check_gpus(facts, kit))
    assert found.state is state and says in found.found
    assert bool(found.fix) == (state is not State.OK)


TORCH = """
class version:
    cuda = "12.8"

class cuda:
    @staticmethod
    def init(): {init}

    @staticmethod
    def device_count(): return 1

    @staticmethod
    def mem_get_info(at): return 3, 10

    @staticmethod
    def get_device_name(at): return "NVIDIA H100"
"""


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ("pass", GpuFacts((Gpu("NVIDIA H100", 10, 7),))),
        ("raise RuntimeError('too old')", GpuFacts(problem="RuntimeError: too old")),
    ],
)
def test_torch_is_asked_and_what_it_complains_of_is_told(
    init: str, expected: GpuFacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text(TORCH.format(init=init))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: None)
    gather_gpus.cache_clear()
    assert gather_gpus() == expected
    gather_gpus.cache_clear()


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


def test_the_disk_of_fetched_models_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARCH_MODELS", str(tmp_path / "models"))
    assert places(tmp_path, StoreSettings(location="s3://b"))["fetched models"] == tmp_path / "models"

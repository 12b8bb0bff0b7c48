"""Limits of control groups, on made-up files, and what reads them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline import container
from pipeline.container import Limits, read_limits, usable_memory
from pipeline.cpu.speed import num_cores

GIB = 1024**3


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


def own(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "own"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_limits_of_control_groups_version_2_are_the_least_around(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    write(root, cgroup__controllers="cpu memory")
    write(root / "pods", memory__max=str(8 * GIB), memory__current=str(7 * GIB), cpu__max="max 100000")
    (root / "pods" / "memory.stat").write_text(f"anon 5\ninactive_file {2 * GIB}\n")
    write(root / "pods" / "a", memory__max="max", memory__current="5", cpu__max="150000 100000")
    found = read_limits(root, own(tmp_path, "0::/pods/a"))
    assert found == Limits(memory=8 * GIB, memory_free=3 * GIB, cores=1.5)


def test_limits_of_control_groups_version_1(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    write(root / "memory", memory__limit_in_bytes="9223372036854771712", memory__usage_in_bytes="5")
    write(
        root / "memory" / "docker" / "a", memory__limit_in_bytes=str(4 * GIB), memory__usage_in_bytes=str(GIB)
    )
    write(root / "cpu" / "docker" / "a", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    lines = own(tmp_path, "4:memory:/docker/a", "1:cpu,cpuacct:/docker/a", "0::/")
    assert read_limits(root, lines) == Limits(memory=4 * GIB, memory_free=3 * GIB, cores=None)
    write(root / "cpu" / "docker" / "a", cpu__cfs_quota_us="50000", cpu__cfs_period_us="100000")
    assert read_limits(root, lines).cores == 0.5


def test_a_container_that_sees_only_its_own_group_is_limited_by_the_root_that_it_sees(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    write(root / "memory", memory__limit_in_bytes=str(4 * GIB), memory__usage_in_bytes="0")
    assert read_limits(root, own(tmp_path, "4:memory:/docker/of-the-host")).memory == 4 * GIB


def test_no_control_groups_no_limits(tmp_path: Path) -> None:
    assert read_limits(tmp_path / "none", tmp_path / "none") == Limits()


def test_memory_and_cores_of_a_training_are_those_of_its_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cgroup"
    write(root / "pods" / "a", memory__max=str(GIB), memory__current="5", cpu__max="100000 100000")
    monkeypatch.setattr(container.read_limits, "__defaults__", (root, own(tmp_path, "0::/pods/a")))
    assert (usable_memory(), num_cores()) == (GIB, 1)
    monkeypatch.setattr(container.read_limits, "__defaults__", (tmp_path / "none", tmp_path / "none"))
    assert (usable_memory() > GIB, num_cores()) == (True, len(os.sched_getaffinity(0)))

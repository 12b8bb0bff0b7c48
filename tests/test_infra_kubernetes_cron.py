"""The CronJob's commands, run by a real kubectl against a stand-in for the API (tests/kubernetes_api.py)."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.kubernetes_api import Api, serve_api
from tests.kubernetes_files import Manifest, built, named, of_kind, pods

pytestmark = pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl")
OVERLAY = "single-node-gpu"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Api, dict[str, list[str]], dict[str, str]]]:
    """The API, the container's commands with its file in place, and their environment."""
    rayjob = tmp_path / "rayjob.yaml"
    rayjob.write_text(yaml.safe_dump(named(built(OVERLAY), "RayJob", "retrain")))
    pod = pods(built(OVERLAY))["CronJob/retrain"]["spec"]
    commands = {
        one["name"]: [
            word.replace("/etc/march/rayjob.yaml", str(rayjob)) for word in (*one["command"], *one["args"])
        ]
        for one in (*pod["initContainers"], *pod["containers"])
    }
    with serve_api(tmp_path) as (api, config):
        yield api, commands, {**os.environ, "KUBECONFIG": str(config), "HOME": str(tmp_path)}


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(("status", "code"), [("SUCCEEDED", 0), ("FAILED", 1)])
def test_it_starts_follows_and_tells(
    cluster: tuple[Api, dict[str, list[str]], dict[str, str]], status: str, code: int
) -> None:
    api, commands, environment = cluster
    assert list(commands) == ["start", "follow", "verdict"]
    started = run(commands["start"], environment)
    assert started.returncode == 0, started.stderr
    assert api.jobs["retrain"]["spec"] == named(built(OVERLAY), "RayJob", "retrain")["spec"]

    ending = threading.Timer(0.5, api.end, ["retrain", status])
    ending.start()
    followed = run(commands["follow"], environment)
    assert followed.returncode == 0 and not ending.is_alive(), followed.stderr

    short = [word.replace("--timeout=10s", "--timeout=1s") for word in commands["verdict"]]
    told = run(short, environment)
    assert told.returncode == code, told.stderr
    assert set(api.verbs) <= rights()


def rights() -> set[str]:
    role: Manifest = of_kind(built(OVERLAY), "Role")[0]
    return set(role["rules"][0]["verbs"])


def test_one_that_is_there_is_left_alone(
    cluster: tuple[Api, dict[str, list[str]], dict[str, str]],
) -> None:
    api, commands, environment = cluster
    assert run(commands["start"], environment).returncode == 0
    again = run(commands["start"], environment)
    assert again.returncode == 1 and "AlreadyExists" in again.stderr
    assert set(api.verbs) <= rights()

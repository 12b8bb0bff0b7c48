"""A local Ray whose helpers come up too slowly is started again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipeline.launch.ray_start import demand_token, start_ray
from pipeline.settings.recipe import load_recipe

# The first raylet is stopped for a while, as if the machine had no time for it.
SLOW_FIRST_START = """
import threading, time
import psutil
from pipeline.launch.ray_start import start_ray
from pipeline.settings.recipe import load_recipe

def hold_first_raylet():
    while True:
        for child in psutil.Process().children(recursive=True):
            if child.name() == "raylet":
                child.suspend()
                time.sleep(45)
                return child.resume()
        time.sleep(0.01)

threading.Thread(target=hold_first_raylet, daemon=True).start()
start_ray(load_recipe("tiny", []), {}, cuda=False)
import ray
print("answer", ray.get(ray.remote(lambda: 1).remote()))
"""


@pytest.mark.long
def test_a_real_start_that_took_too_long_is_tried_again(tmp_path: Path) -> None:
    output = tmp_path / "output.txt"  # no pipe: what Ray leaves behind would hold it open
    with output.open("w") as file:
        done = subprocess.run([sys.executable, "-c", SLOW_FIRST_START], stdout=file, stderr=file, timeout=300)
    said = output.read_text()
    assert done.returncode == 0, said[-3000:]
    assert "Ray did not start in time (1 of 3); once more" in said
    assert "answer 1" in said


LOCAL_RAY = """
import sys
from pipeline.launch.ray_start import demand_token, start_ray
from pipeline.settings.recipe import load_recipe
recipe = load_recipe("tiny", [])
demand_token(recipe)
print(start_ray(recipe, {}, cuda=False), flush=True)
sys.stdin.read()
"""
JOIN = "import ray, sys; ray.init(address=sys.argv[1]); print('joined')"


@pytest.mark.slow
def test_nobody_joins_a_local_ray_without_its_token() -> None:
    command = [sys.executable, "-c", LOCAL_RAY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        address = owner.stdout.readline().strip()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        join = [sys.executable, "-c", JOIN, address]
        done = subprocess.run(join, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode != 0
        assert "Failed to connect to Ray cluster" in done.stderr
        owner.communicate()


def test_how_ray_authenticates_is_the_environments_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    demand_token(load_recipe("tiny", []))
    assert "RAY_AUTH_TOKEN" not in os.environ


@pytest.mark.parametrize(
    ("message", "num_starts"),
    [("The current node timed out during startup. This could", 3), ("no such cluster", 1)],
)
def test_only_a_slow_start_is_tried_again_and_not_forever(
    monkeypatch: pytest.MonkeyPatch, message: str, num_starts: int
) -> None:
    starts: list[dict[str, Any]] = []

    def fail(**options: Any) -> None:
        starts.append(options)
        raise RuntimeError(message)

    monkeypatch.setattr("ray.init", fail)
    with pytest.raises(RuntimeError, match=message[:20]):
        start_ray(load_recipe("tiny", []), {}, cuda=False)
    assert len(starts) == num_starts

"""Shared by the slow tests: `march train` in a process of its own, and the processes that it starts."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import psutil
import pytest
import torch
from torchdata.stateful_dataloader import StatefulDataLoader

from pipeline.record.rollout_files import read_rollouts
from pipeline.record.rollout_rows import RolloutRow
from pipeline.record.tracking import read_steps
from reward.serving.config import ServerConfig
from tests.supervised import environment

TOKEN = "a-token-of-the-test-suite"


class Run:
    """`march train tiny` with settings.

    Args:
        folder: of the run.
        settings: over those of the recipe.
        hold: a phase of `tests.held_phases`, and after how many finished steps the run stops there.
        variables: over those of the environment.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, object],
        *,
        hold: tuple[str, int] | None = None,
        **variables: str,
    ) -> None:
        self.folder = folder
        self.held = folder.with_name(f"{folder.name}-hold") / "held"
        arguments = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        march = Path(sys.executable).with_name("march")
        command = [str(march), "train", "tiny", "--run-dir", str(folder), *arguments]
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env=environment(MARCH_REWARD_TOKEN=TOKEN, **variables, **(self._holding(*hold) if hold else {})),
        )

    def _holding(self, phase: str, steps: int) -> dict[str, str]:
        self.held.parent.mkdir(exist_ok=True)
        self.held.unlink(missing_ok=True)
        code = Path(__file__).with_name("held_phases.py")
        shutil.copy(code, self.held.with_name("sitecustomize.py"))
        paths = [str(self.held.parent), str(code.parent.parent), os.environ.get("PYTHONPATH", "")]
        return {
            "MARCH_TEST_HOLD": f"{phase} {steps} {self.held.parent}",
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }

    def kill_when_held(self) -> int:
        """Kills every process of the run at once, as a power cut does; returns the steps finished by then."""
        deadline = time.monotonic() + 1500
        while not self.held.exists():
            assert self.process.poll() is None, self.end()
            assert time.monotonic() < deadline, (self.folder / "train.log").read_text()[-3000:]
            time.sleep(0.1)
        processes = [*psutil.Process(self.process.pid).children(recursive=True), self.process]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.end()
        return len(read_steps(self.folder))

    def wait_for_step(self, step: int) -> None:
        deadline = time.monotonic() + 1500
        while len(read_steps(self.folder)) < step:
            assert self.process.poll() is None, self.end()
            assert time.monotonic() < deadline, (self.folder / "train.log").read_text()[-3000:]
            time.sleep(0.1)

    def child(self, is_it: Callable[[list[str]], bool]) -> psutil.Process:
        children = psutil.Process(self.process.pid).children(recursive=True)
        return next(p for p in children if is_it(p.cmdline()))

    def reward_server(self, number: int) -> psutil.Process:
        path = str(self.folder / f"reward_server-{number}.json")
        return self.child(lambda line: line[1:] == ["-m", "reward", path])

    def wait_for_audit(self, number: int) -> None:
        """Returns in the middle of an audit of one of the reward servers."""
        while self.metric(number, "march_audits_in_flight") < 1:
            assert self.process.poll() is None, self.end()
            time.sleep(0.01)

    def metric(self, number: int, name: str) -> float:
        """A figure of one of the reward servers, summed over its labels."""
        path = self.folder / f"reward_server-{number}.json"
        port = ServerConfig.model_validate_json(path.read_text()).port
        url = f"http://127.0.0.1:{port}/metrics"
        text = httpx.get(url, auth=("march", TOKEN), timeout=60, trust_env=False).text
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))

    def end(self) -> str:
        _, error = self.process.communicate(timeout=1500)
        return str(error)


def answers(folder: Path) -> list[list[RolloutRow]]:
    """The rollouts of a run, step by step."""
    return [list(read_rollouts(path)) for path in sorted((folder / "rollouts").glob("step-*.parquet"))]


def order_of(folder: Path, *, num: int, seed: int = 0) -> list[str]:
    """Ids of a run's queries in the order that its seed gives them: that of OpenRLHF's data loader."""
    lines = (folder / "data" / "train.jsonl").read_text().splitlines()
    ids = [json.loads(json.loads(line)["label"])["id"] for line in lines]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return [one for (one,) in StatefulDataLoader(ids[:num], batch_size=1, shuffle=True)]


def assert_asked_in_order(folder: Path, *, steps: int, batch: int, samples: int = 1) -> None:
    """Each step has the queries that are due by the run's seed: every one once, though a run was killed.

    Args:
        folder: Of the run.
        steps: That it has taken.
        batch: Queries of a step.
        samples: Answers to a query.
    """
    order = order_of(folder, num=steps * batch)
    due = [sorted(order[i * batch : (i + 1) * batch] * samples) for i in range(steps)]
    assert [sorted(answer.query_id for answer in step) for step in answers(folder)] == due


def assert_nothing_lost_or_repeated(folder: Path, *, steps: int, batch: int, samples: int = 1) -> None:
    """A killed run's record is that of a run without kills: steps, queries, optimizer steps."""
    rows = read_steps(folder)
    assert [row["step"] for row in rows] == list(range(1, steps + 1))
    assert json.loads((folder / "result.json").read_text())["steps"] == steps
    assert_asked_in_order(folder, steps=steps, batch=batch, samples=samples)
    versions = [row["sync/weights_version"] for row in rows]
    assert versions == sorted(set(versions))  # none twice, though each attempt counts its own syncs
    # The scheduler counts optimizer steps, and a checkpoint has its count: one twice would be too low.
    rates = [row["ppo/actor_lr"] for row in rows]
    assert rates == pytest.approx([rates[0] * (steps - i) / steps for i in range(steps)])

"""Shared by the slow tests: `march train` in a process of its own, and the processes that it starts."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import psutil

from pipeline.tracking import read_steps
from reward.serving.config import ServerConfig
from tests.supervised import environment

TOKEN = "a-token-of-the-test-suite"


class Run:
    """`march train tiny` with settings."""

    def __init__(self, folder: Path, settings: Mapping[str, object]) -> None:
        self.folder = folder
        arguments = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        march = Path(sys.executable).with_name("march")
        command = [str(march), "train", "tiny", "--run-dir", str(folder), *arguments]
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env=environment(MARCH_REWARD_TOKEN=TOKEN),
        )

    def wait_for_step(self, step: int) -> None:
        deadline = time.monotonic() + 600
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
        _, error = self.process.communicate(timeout=600)
        return str(error)

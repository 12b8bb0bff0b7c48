"""Processes that the tests of faults start, stop, stall and kill: engines and reward servers, on fixed ports.

A test module imports the fixtures by their functions' names. Each process leads a session of its own, so
that a kill reaches its children, too (vLLM's engine outlives its front end), and nothing else.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from reward.config import AuditConfig, OpenAISamplerConfig, SamplingSettings
from reward.serving.config import ServerConfig
from tests.vllm_process import COMMAND, ENVIRONMENT

TOKEN = "a-token-of-32-characters-at-least"
KEY = "a-signing-key-of-32-characters-at-least"
TESTS = Path(__file__).parent
GREEDY = SamplingSettings(temperature=0, max_tokens=160)
# What a scripted engine can do wrong, see chaos_engine.py.
KINDS = ("garbage", "half", "nonsense", "fewer", "more", "null", "error", "drop", "anothers", "late")
Usage = dict[str, int]


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def wait_until(holds: Callable[[], bool], what: object, *, timeout_s: float = 240) -> None:
    """Returns once it holds; `what` is shown, as it is then, when it does not in time."""
    end = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < end, f"in {timeout_s:g} s not: {what}"
        time.sleep(0.05)


class Child:
    """A process and its children; its output is kept in a file."""

    def __init__(
        self, command: Sequence[str], *, port: int, log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.log = log
        self._command = command
        self.environment = {**os.environ, "PYTHONPATH": str(TESTS.parent), **(env or {})}
        self.start()

    def start(self) -> None:
        """Starts it (again), without waiting for it to serve."""
        with self.log.open("a") as out:
            self.process = subprocess.Popen(
                self._command, env=self.environment, stdout=out, stderr=out, start_new_session=True
            )

    def wait_serving(self) -> None:
        """Returns once it answers."""
        wait_until(self._serves, f"{self.url} serves; see {self.log.read_text()[-2000:]}")

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to it and its children."""
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """Ends it and its children by kill -9, also while they are stopped."""
        if self.process.poll() is None or self._members():
            self.signal(signal.SIGKILL)
        self.process.wait()
        wait_until(lambda: not self._members(), f"{self._command} has ended", timeout_s=20)

    def restart(self) -> None:
        """Kills it and has it serve again."""
        self.kill()
        self.start()
        self.wait_serving()

    def _members(self) -> list[str]:
        """Processes of its session that live."""
        stats = (_read(path) for path in Path("/proc").glob("[0-9]*/stat"))
        fields = [stat.rpartition(")")[2].split() for stat in stats if stat]
        return [f[0] for f in fields if f[3] == str(self.process.pid) and f[0] != "Z"]

    def _serves(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        try:
            return httpx.get(f"{self.url}/healthz", timeout=5, trust_env=False).is_success
        except httpx.TransportError:
            return False


class ScriptedEngine(Child):
    """tests/chaos_engine.py."""

    def __init__(self, folder: Path, *, seed: int = 0) -> None:
        port = free_port()
        command = [sys.executable, str(TESTS / "chaos_engine.py"), str(port), str(seed)]
        super().__init__(command, port=port, log=folder / f"engine-{port}.log")

    def fail(self, kind: str = "none", share: float = 0.0, pause_s: float = 0.0) -> None:
        """Has a share of its completions go wrong; by default none."""
        told = {"kind": kind, "share": share, "pause_s": pause_s}
        httpx.post(f"{self.url}/fault", json=told, timeout=10, trust_env=False).raise_for_status()

    def num_served(self) -> int:
        """Completions that were right, since its start."""
        return int(httpx.get(f"{self.url}/served", timeout=10, trust_env=False).json()["served"])


class VllmEngine(Child):
    """vLLM with the tiny policy."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        command = [*COMMAND, "--port", str(port)]
        super().__init__(command, port=port, log=folder / f"vllm-{port}.log", env=ENVIRONMENT)

    def num_served(self) -> int:
        """Completions, since its start."""
        told = httpx.get(f"{self.url}/metrics", timeout=10, trust_env=False).text
        return int(sum(float(n) for n in re.findall(r"vllm:request_success_total\{.*\} (\S+)", told)))

    def _serves(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        try:
            return httpx.get(f"{self.url}/health", timeout=5, trust_env=False).is_success
        except httpx.TransportError:
            return False


class RewardServer(Child):
    """`march serve` before engines, in a process with a probe (tests/chaos_serve.py)."""

    def __init__(
        self,
        folder: Path,
        engines: Sequence[Child],
        *,
        model: str = "m",
        sampler: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        port = free_port()
        urls = tuple(f"{engine.url}/v1" for engine in engines)
        given: dict[str, Any] = {"timeout_s": 20, "max_retries": 2, "cool_down_s": 0.5, **(sampler or {})}
        config = ServerConfig(
            port=port,
            audit=AuditConfig(kinds=("number",), prompts="compact", proposer=GREEDY, checker=GREEDY),
            sampler=OpenAISamplerConfig(base_urls=urls, model=model, **given),
            **{"max_kept": 0, "deadline_s": 100} | settings,
        )
        file = folder / f"server-{port}.yaml"
        file.write_text(config.model_dump_json())
        command = [*prefix, sys.executable, str(TESTS / "chaos_serve.py"), "serve", "--config", str(file)]
        keys = {"MARCH_REWARD_TOKEN": TOKEN, "MARCH_SIGNING_KEY": KEY, **(env or {})}
        super().__init__(command, port=port, log=folder / f"server-{port}.log", env=keys)
        self.http = httpx.Client(base_url=self.url, auth=("march", TOKEN), timeout=30, trust_env=False)

    def metric(self, name: str) -> float:
        """The sum of the series whose names begin so."""
        lines = self.http.get("/metrics").text.splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    def usage(self) -> Usage:
        """What its process holds now, its memory (bytes) included."""
        return {**self.http.get("/probe").raise_for_status().json(), "rss": self.memory("VmRSS")}

    def memory(self, which: str) -> int:
        """Bytes; "VmHWM" for the most since `forget_peak`."""
        return int(self._status().split(f"{which}:")[1].split()[0]) * 1024

    def forget_peak(self) -> None:
        """Has VmHWM begin anew."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def connect(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def _status(self) -> str:
        return Path(f"/proc/{self.process.pid}/status").read_text()


Serve = Callable[..., RewardServer]


@pytest.fixture(name="engines")
def scripted_engines(tmp_path: Path) -> Iterator[list[ScriptedEngine]]:
    """Two engines that serve."""
    both = [ScriptedEngine(tmp_path, seed=i) for i in range(2)]
    for engine in both:
        engine.wait_serving()
    yield both
    for engine in both:
        engine.kill()


@pytest.fixture(name="serve")
def reward_servers(tmp_path: Path, engines: list[ScriptedEngine]) -> Iterator[Serve]:
    """Starts reward servers before the engines; arguments are `RewardServer`'s."""
    servers: list[RewardServer] = []

    def serve_one(**options: Any) -> RewardServer:
        servers.append(RewardServer(tmp_path, engines, **options))
        servers[-1].wait_serving()
        return servers[-1]

    yield serve_one
    for server in servers:
        server.http.close()
        server.kill()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # it ended meanwhile
        return ""

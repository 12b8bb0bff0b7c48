"""Shared by the tests of the reward server: a sampler that plays the roles and can fail, and servers on it.

A test module imports the fixture by `from tests.role_server import start_servers  # noqa: F401`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from reward.config import AuditConfig
from reward.samplers import SamplerError, Weights
from reward.serving.config import ServerConfig
from reward.serving.server import create_app
from reward.serving.service import AuditService
from reward.types import Document, RagQuery
from tests.role_process import RoleSampler
from tests.serving import SAMPLER, Serving

TOKEN = "a-token/of:32 characters, awkward"
DOCUMENT = Document(id="d", text="The July picnic in Kabul raised 466 euros.")
QUERY = RagQuery(id="q1", query="How many euros did the July picnic in Kabul raise?", documents=(DOCUMENT,))
LABEL = QUERY.model_dump_json()
PROMPT = "<|user|>Doc: The July picnic.<|end|><|assistant|>"
RESPONSE = "The July picnic raised 466 euros."


class PolicySampler(RoleSampler):
    """The same of a policy in training, whose weights are at `version` of `run`."""

    version: int = 9
    run = "run-1"
    registry_fails = False

    async def weights(self) -> Weights:
        if self.registry_fails:
            raise SamplerError("engine", "no registry")
        return Weights(self.run, self.version)


class Running(Serving):
    """A server on a free port and the sampler behind it."""

    def __init__(self, config: ServerConfig, sampler: RoleSampler) -> None:
        self.sampler = sampler
        app = create_app(config, sampler=sampler, token=TOKEN)
        self.service: AuditService = app.state.service
        super().__init__(app, config)
        self.http.headers["Authorization"] = f"Bearer {TOKEN}"

    def audit(self, response: str = RESPONSE, **more: Any) -> httpx.Response:
        body = {"query": json.loads(LABEL), "response": response, **more}
        return self.http.post("/v1/audit", json=body)

    def reward(self, text: str = PROMPT + RESPONSE, **changes: Any) -> httpx.Response:
        return self.http.post(
            "/get_reward", json={"query": [text], "prompts": [PROMPT], "labels": [LABEL]} | changes
        )


class Process:
    """`serve` in a process of its own, with a sampler that takes its time."""

    def __init__(self, port: int, *, pause_s: float = 0.0, **settings: Any) -> None:
        config = server_config(port=port, **settings).model_dump_json()
        root = Path(__file__).parents[1]
        self.process = subprocess.Popen(
            [sys.executable, str(root / "tests" / "role_process.py"), config, str(pause_s)],
            env={**os.environ, "MARCH_REWARD_TOKEN": TOKEN, "PYTHONPATH": str(root)},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.url = f"http://127.0.0.1:{port}"
        self.http = httpx.Client(base_url=self.url, auth=("march", TOKEN), trust_env=False, timeout=30)
        end = time.monotonic() + 60
        while not self._lives():
            assert self.process.poll() is None and time.monotonic() < end
            time.sleep(0.05)

    def audit(self, response: str = RESPONSE) -> httpx.Response:
        return self.http.post("/v1/audit", json={"query": json.loads(LABEL), "response": response})

    def wait_in_flight(self, num: int = 1) -> None:
        while f"march_audits_in_flight {num}.0" not in self.http.get("/metrics").text:
            time.sleep(0.02)

    def memory(self, which: str = "VmRSS") -> int:
        """Bytes, of the process now; "VmHWM" for the most until now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split(f"{which}:")[1].split()[0]) * 1024

    def end(self) -> tuple[int, str]:
        """Waits for it; its exit code and what it told."""
        _, told = self.process.communicate(timeout=30)
        return self.process.returncode, told

    def close(self) -> None:
        self.http.close()
        self.process.kill()
        self.process.wait()

    def _lives(self) -> bool:
        try:
            return self.http.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False


Start = Callable[..., Running]
Spawn = Callable[..., Process]


def server_config(**settings: Any) -> ServerConfig:
    return ServerConfig(
        **{"audit": AuditConfig(kinds=("number",), prompts="compact"), "sampler": SAMPLER} | settings
    )


@pytest.fixture(name="start")
def start_servers() -> Iterator[Start]:
    """Starts servers for one test; keyword arguments but `sampler` are `ServerConfig`'s."""
    running: list[Running] = []

    def start_one(*, sampler: RoleSampler | None = None, **settings: Any) -> Running:
        running.append(Running(server_config(**settings), sampler or RoleSampler()))
        return running[-1]

    yield start_one
    for one in running:
        one.close()


@pytest.fixture(name="spawn")
def spawn_processes() -> Iterator[Spawn]:
    """Starts `Process`es for one test, all on one port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    spawned: list[Process] = []

    def spawn_one(**settings: Any) -> Process:
        spawned.append(Process(port, **settings))
        return spawned[-1]

    yield spawn_one
    for one in spawned:
        one.close()

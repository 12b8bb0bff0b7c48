"""Shared by the tests of the reward server: a scripted sampler, a server, certificates."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from reward.config import AuditConfig, OpenAISamplerConfig, SamplingSettings
from reward.samplers import Message
from reward.serving.config import ServerConfig
from reward.serving.connections import guarded
from reward.serving.server import create_app
from reward.types import Document, RagQuery, Sample, SampleGroup

TOKEN = "a-token-of-32-characters-at-least"
KEY = "a-signing-key-of-32-characters-at-least"
QUERY = RagQuery(
    id="q1",
    query="How many euros did the July picnic raise?",
    documents=(Document(id="d", text="The July picnic raised 466 euros."),),
)
RESPONSE = "The July picnic raised 466 euros."
PROMPT = "<|user|>How many?<|end|><|assistant|>"
SAMPLER = OpenAISamplerConfig(base_url="http://127.0.0.1:9/v1", model="none")


class PicnicSampler:
    """Plays Proposer and Checker for `RESPONSE` by the compact prompts, and remembers every prompt."""

    model = "role-player"

    def __init__(self) -> None:
        self.prompts: list[Sequence[Message]] = []

    async def sample(
        self, messages: Sequence[Message], *, n: int, settings: SamplingSettings, pattern: str | None = None
    ) -> SampleGroup:
        self.prompts.append(messages)
        text = "1. Evidence: it raised 466 euros. [Answer: 466]"
        if messages[0]["content"] == "proposer":
            text = "- Question: How many euros did the July picnic raise? [Answer: 466]"
        return SampleGroup(samples=(Sample(text=text, finish_reason="stop"),) * n, weights_version=9)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(message["content"].split()) for message in messages)

    async def ready(self) -> None: ...

    async def close(self) -> None: ...


class Serving:
    """An application on a free port, behind the same guard as `serve` puts before it."""

    def __init__(self, app: FastAPI, config: ServerConfig, **options: Any) -> None:
        self.app = app
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self.url = f"http{'s' if 'ssl_context_factory' in options else ''}://127.0.0.1:{self.port}"
        self.http = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=20, trust_env=False
        )
        settings = uvicorn.Config(
            app,
            log_config=None,
            timeout_graceful_shutdown=1,
            http=guarded(config.limits, app.state.service.metrics.refused_connections),
            ws="none",
            **options,
        )
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def audit(self, response: str = RESPONSE, **more: Any) -> httpx.Response:
        body = {"query": json.loads(QUERY.model_dump_json()), "response": response, **more}
        return self.http.post("/v1/audit", json=body)

    def get_reward(self, response: str = RESPONSE) -> httpx.Response:
        body = {"query": [PROMPT + response], "prompts": [PROMPT], "labels": [QUERY.model_dump_json()]}
        return self.http.post("/get_reward", json=body)

    def metric(self, name: str) -> float:
        lines = self.http.get("/metrics").text.splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    def close(self) -> None:
        self.http.close()
        self._server.should_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()


def serve_picnic(
    *,
    sampler: PicnicSampler | None = None,
    signing_key: str | None = None,
    options: dict[str, Any] | None = None,
    token: str | None = TOKEN,
    **settings: Any,
) -> Serving:
    """A server that supports `RESPONSE`; `options` are uvicorn's, further arguments `ServerConfig`'s."""
    config = ServerConfig(
        audit=AuditConfig(kinds=("number",), prompts="compact"), sampler=SAMPLER, **settings
    )
    app = create_app(config, sampler=sampler or PicnicSampler(), token=token, signing_key=signing_key)
    return Serving(app, config, **(options or {}))


def run(coroutine: Any) -> Any:
    return asyncio.run(coroutine)


def make_certificates(folder: Path) -> None:
    """Writes ca, server and client as NAME.pem and NAME.key, and stranger, which signs itself."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "stranger"):
        openssl(
            *new,
            "-x509",
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.pem",
        )
    (folder / "names.cnf").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl(*new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed = (
            "x509",
            "-req",
            "-in",
            f"{name}.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
        )
        openssl(*signed, "-days", "2", "-extfile", "names.cnf", "-out", f"{name}.pem")
    lock = ("pkcs8", "-topk8", "-in", "server.key", "-out", "locked.key", "-passout", "pass:password")
    openssl(*lock)

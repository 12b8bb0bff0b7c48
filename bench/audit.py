"""How much of an audit is ours: the audit in process and over HTTP, with an engine that answers at once.

Real engines are slower by orders of magnitude; what is left here is parsing, votes, validation and the wire.
The ratio `http_over_direct` is the price of the reward server.
"""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections.abc import Sequence

import uvicorn

from bench.measure import in_turn, median_ratio, write_result
from reward.auditor import audit
from reward.config import AuditConfig, OpenAISamplerConfig, SamplingSettings, ServerConfig
from reward.roles.prompts import load_prompts
from reward.samplers import Message
from reward.serving.client import RewardClient
from reward.serving.server import create_app
from reward.types import Document, RagQuery, Sample, SampleGroup

_AUDITS, _ROUNDS, _CONCURRENCY = 200, 5, 16
_TOKEN = "a-token-for-the-benchmark"
_CONFIG = AuditConfig(prompts="compact")


class InstantSampler:
    """Answers every question rightly at once, out of the prompt itself."""

    model = "instant"

    async def sample(
        self,
        messages: Sequence[Message],
        *,
        n: int,
        settings: SamplingSettings,
        pattern: str | None = None,
    ) -> SampleGroup:
        """Returns `n` completions in the roles' formats."""
        role, text = messages[0]["content"], messages[1]["content"]
        number = text.split("raised ")[1].split(" ")[0]
        claim = f"- Question: What did the picnic raise? [Answer: {number}]"
        answer = f"1. Evidence: The picnic raised {number} euros. [Answer: {number}]"
        sample = Sample(text=claim if role == "proposer" else answer, finish_reason="stop")
        return SampleGroup(samples=(sample,) * n)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        """Never asked: no prompt is too long."""
        return 0

    async def ready(self) -> None:
        """Always."""

    async def close(self) -> None:
        """Nothing to free."""


def run() -> None:
    """Measures and writes `audit.json`."""
    rng = random.Random(0)
    cases = [_case(i, rng.randint(100, 999)) for i in range(_AUDITS)]
    port = _start_server()
    samples = in_turn(
        {"direct": lambda: asyncio.run(_direct(cases)), "http": lambda: asyncio.run(_over_http(cases, port))},
        rounds=_ROUNDS,
    )
    best = {name: _AUDITS / min(seconds) for name, seconds in samples.items()}
    figures = {
        "audits": _AUDITS,
        "in_flight": _CONCURRENCY,
        "http_over_direct": median_ratio(samples, "http", "direct"),
        "direct_audits_per_s": best["direct"],
        "http_audits_per_s": best["http"],
    }
    path = write_result("audit", samples_s=samples, figures=figures)
    print(f"{path}: {figures}")


def _case(index: int, number: int) -> tuple[RagQuery, str]:
    text = f"The picnic raised {number} euros. " + "The market was quiet. " * 20
    query = RagQuery(id=str(index), query="What was raised?", documents=(Document(id="d1", text=text),))
    return query, f"The picnic raised {number} euros."


async def _direct(cases: Sequence[tuple[RagQuery, str]]) -> None:
    prompts, sampler = load_prompts("compact"), InstantSampler()
    gate = asyncio.Semaphore(_CONCURRENCY)

    async def one(query: RagQuery, response: str) -> None:
        async with gate:
            result = await audit(query, response, sampler=sampler, prompts=prompts, config=_CONFIG)
            assert result.verdict.reward == 0.0

    await asyncio.gather(*(one(*case) for case in cases))


async def _over_http(cases: Sequence[tuple[RagQuery, str]], port: int) -> None:
    client = RewardClient(f"http://127.0.0.1:{port}", _TOKEN)
    gate = asyncio.Semaphore(_CONCURRENCY)

    async def one(query: RagQuery, response: str) -> None:
        async with gate:
            result = await client.audit(query, response, include_trajectories=False)
            assert result.verdict.reward == 0.0

    await asyncio.gather(*(one(*case) for case in cases))
    await client.close()


def _start_server() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    sampler = OpenAISamplerConfig(base_urls=("http://127.0.0.1:9/v1",), model="unused")
    config = ServerConfig(port=port, audit=_CONFIG, sampler=sampler, cache_bytes=0)  # each round audits anew
    app = create_app(config, sampler=InstantSampler(), token=_TOKEN)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning", access_log=False))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return port

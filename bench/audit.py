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

from bench.instant import AUDIT, TOKEN, Case, InstantSampler, cases, server_config
from bench.measure import in_turn, median_ratio, write_result
from reward.auditor import audit
from reward.roles.prompts import load_prompts
from reward.serving.client import RewardClient
from reward.serving.server import create_app
from reward.types import RagQuery

_AUDITS, _ROUNDS, _CONCURRENCY = 200, 5, 16


def run() -> None:
    """Measures and writes `audit.json`."""
    asked = cases(_AUDITS, random.Random(0))
    port = _start_server()
    samples = in_turn(
        {"direct": lambda: asyncio.run(_direct(asked)), "http": lambda: asyncio.run(_over_http(asked, port))},
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


async def _direct(asked: Sequence[Case]) -> None:
    prompts, sampler = load_prompts("compact"), InstantSampler()
    gate = asyncio.Semaphore(_CONCURRENCY)

    async def one(query: RagQuery, response: str) -> None:
        async with gate:
            result = await audit(query, response, sampler=sampler, prompts=prompts, config=AUDIT)
            assert result.verdict.reward == 0.0

    await asyncio.gather(*(one(*case) for case in asked))


async def _over_http(asked: Sequence[Case], port: int) -> None:
    client = RewardClient(f"http://127.0.0.1:{port}", TOKEN)
    gate = asyncio.Semaphore(_CONCURRENCY)

    async def one(query: RagQuery, response: str) -> None:
        async with gate:
            result = await client.audit(query, response, include_trajectories=False)
            assert result.verdict.reward == 0.0

    await asyncio.gather(*(one(*case) for case in asked))
    await client.close()


def _start_server() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    app = create_app(server_config(port), sampler=InstantSampler(), token=TOKEN)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning", access_log=False))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return port

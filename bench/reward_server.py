"""The reward server on real vLLM: how near it comes to the engine's own limit, and to the published schedule.

One process holds the server, its clients and vLLM's front end; vLLM's core is another. Three ways do the same
token work, in turn, each with an empty prefix cache:

    server    768 audits over HTTP, 256 at once; each flows through propose, check and vote by itself
    limit     the prompts and completion lengths of those audits in two whole batches, Proposers then Checkers
    barrier   the published schedule: after the Proposers three passes over all Checkers, one sample each;
              each pass waits for the one before it

    python -m bench reward_server

`ratio_to_engine_limit` is the time of limit by that of server, `speedup_over_barrier_schedule` that of
barrier by that of server, medians over the rounds.
"""

from __future__ import annotations

import asyncio
import random
import socket
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from bench.measure import median_ratio, write_result
from reward.config import AuditConfig, LocalSamplerConfig, SamplingSettings, ServerConfig
from reward.samplers import Message
from reward.samplers.engine import LocalEngineSampler
from reward.serving.client import RewardClient
from reward.serving.server import create_app
from reward.types import Outcome, RagQuery, SampleGroup

_CHECKPOINT = Path(__file__).parent.parent / "pipeline" / "tiny" / "checkpoint"
_TOKEN = "a-token-of-the-benchmark"
_ROUNDS = 5
_IN_FLIGHT = 256
_NUM_AUDITS = 768
_FEWER_IN_FLIGHT = {1: 24, 16: 128}  # audits at once: audits measured
_AUDIT = AuditConfig(
    prompts="compact",
    proposer=SamplingSettings(temperature=1.0, max_tokens=160),
    checker=SamplingSettings(temperature=1.0, max_tokens=160),
)
Case = tuple[RagQuery, str]


@dataclass(frozen=True)
class Work:
    """One request that the server made of the engine."""

    prompt: tuple[int, ...]
    lengths: tuple[int, ...]  # tokens of each completion

    @property
    def is_check(self) -> bool:
        return len(self.lengths) > 1


class RecordingSampler(LocalEngineSampler):
    """The engine in this process, which remembers what was asked of it."""

    def __init__(self, config: LocalSamplerConfig) -> None:
        super().__init__(config)
        self.work: list[Work] = []

    async def sample(
        self, messages: Sequence[Message], *, n: int, settings: SamplingSettings, pattern: str | None = None
    ) -> SampleGroup:
        """As the engine samples; the request is kept in `work`."""
        group = await super().sample(messages, n=n, settings=settings, pattern=pattern)
        lengths = tuple(len(sample.token_ids or ()) for sample in group.samples)
        self.work.append(Work(group.prompt_token_ids or (), lengths))
        return group


def run() -> None:
    """Measures and writes `reward_server.json`."""
    asyncio.run(_measure())


async def _measure() -> None:
    sampler = RecordingSampler(LocalSamplerConfig(model=str(_CHECKPOINT), max_model_len=512))
    await sampler.ready()
    engine = await sampler._started()
    server, url = await _start_server(sampler)
    client = RewardClient(url, _TOKEN)
    samples: dict[str, list[float]] = {"server": [], "limit": [], "barrier": []}
    latencies: list[float] = []
    start_cpu, start = time.process_time(), time.perf_counter()
    for counted in [False] + [True] * _ROUNDS:
        times = await _round(client, sampler, engine, latencies if counted else [])
        if counted:
            for name, seconds in times.items():
                samples[name].append(seconds)
    cpu_share = (time.process_time() - start_cpu) / (time.perf_counter() - start)
    fewer = {n: await _served(client, engine, _cases(num), n) for n, num in _FEWER_IN_FLIGHT.items()}
    await client.close()
    server.should_exit = True
    await sampler.close()
    figures = {
        "audits": _NUM_AUDITS,
        "in_flight": _IN_FLIGHT,
        "ratio_to_engine_limit": median_ratio(samples, "limit", "server"),
        "speedup_over_barrier_schedule": median_ratio(samples, "barrier", "server"),
        "audits_per_s": _NUM_AUDITS / statistics.median(samples["server"]),
        "latency_s": _percentiles(latencies),
        "front_end_cpu_share": cpu_share,
        "audits_per_s_by_in_flight": {n: len(seen) / seconds for n, (seconds, seen) in fewer.items()},
        "latency_s_by_in_flight": {n: _percentiles(seen) for n, (_, seen) in fewer.items()},
    }
    path = write_result("reward_server", samples_s=samples, figures=figures)
    print(f"{path}: {figures}")


async def _round(
    client: RewardClient, sampler: RecordingSampler, engine: Any, latencies: list[float]
) -> dict[str, float]:
    sampler.work.clear()
    seconds, seen = await _served(client, engine, _cases(_NUM_AUDITS), _IN_FLIGHT)
    latencies += seen
    proposals = [work for work in sampler.work if not work.is_check]
    checks = [work for work in sampler.work if work.is_check]
    passes = [[Work(work.prompt, (work.lengths[k],)) for work in checks] for k in range(_AUDIT.voters)]
    return {
        "server": seconds,
        "limit": await _timed(engine, [proposals, checks]),
        "barrier": await _timed(engine, [proposals, *passes]),
    }


async def _served(
    client: RewardClient, engine: Any, cases: Sequence[Case], in_flight: int
) -> tuple[float, list[float]]:
    """Seconds for all audits, `in_flight` of them at once, and those of each."""
    await engine.reset_prefix_cache()
    slots = asyncio.Semaphore(in_flight)

    async def one(query: RagQuery, response: str) -> float:
        async with slots:
            start = time.perf_counter()
            result = await client.audit(query, response, include_trajectories=False)
            assert result.verdict.outcome is not Outcome.NO_CLAIMS
            return time.perf_counter() - start

    start = time.perf_counter()
    seen = await asyncio.gather(*(one(*case) for case in cases))
    return time.perf_counter() - start, list(seen)


async def _timed(engine: Any, batches: Sequence[Sequence[Work]]) -> float:
    """Seconds for the batches, one after the other, straight to the engine."""
    await engine.reset_prefix_cache()
    start = time.perf_counter()
    for batch in batches:
        await asyncio.gather(*(_generate(engine, work.prompt, n) for work in batch for n in work.lengths))
    return time.perf_counter() - start


async def _generate(engine: Any, prompt: tuple[int, ...], num_tokens: int) -> None:
    from vllm import SamplingParams
    from vllm.inputs import TokensPrompt
    from vllm.sampling_params import RequestOutputKind

    params = SamplingParams(
        temperature=1.0,
        max_tokens=num_tokens,
        min_tokens=num_tokens,
        ignore_eos=True,
        logprobs=0,
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )
    tokens = TokensPrompt(prompt_token_ids=list(prompt))
    async for _ in engine.generate(tokens, params, f"bench-{random.getrandbits(64):x}"):
        pass


def _cases(num: int) -> list[Case]:
    """Answers about made-up worlds, two sentences of their documents each, new ones at every call."""
    from pipeline.tiny.world import worlds

    cases = []
    for query in worlds(num, random.getrandbits(31), "train"):
        texts = [document.text.strip() for document in query.documents[:2]]
        cases.append((query, " ".join(f"{mark}) {text}" for mark, text in zip("ab", texts, strict=False))))
    return cases


async def _start_server(sampler: RecordingSampler) -> tuple[uvicorn.Server, str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    config = ServerConfig(port=port, audit=_AUDIT, sampler=LocalSamplerConfig(model=str(_CHECKPOINT)))
    app = create_app(config, sampler=sampler, token=_TOKEN)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning", access_log=False))
    serving = asyncio.create_task(server.serve())
    serving.add_done_callback(lambda _: None)  # holds it
    while not server.started:
        await asyncio.sleep(0.01)
    return server, f"http://127.0.0.1:{port}"


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=100)
    return {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98]}

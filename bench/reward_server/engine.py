"""The reward server on real vLLM (the tiny policy): how near it comes to the engine's own limit.

One process holds the server, its clients and vLLM's front end; vLLM's core is another, on one core. Four
ways do the same token work in turn, each with an empty prefix cache:

    server     audits over HTTP, so many in flight; each flows through propose, check and vote by itself
    limit      the prompts and completion lengths of those audits in two whole batches
    published  the published schedule on batches of as many audits as are in flight: a barrier after the
               Proposers and after each of three passes over the Checkers, documents read in each
    cached     the same, its prefix cache kept
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import uvicorn

from bench.measure import median_ratio
from bench.reward_server.documents_first import lengthened
from bench.reward_server.work import RecordingSampler, at_once, num_tokens, run_published, run_whole
from pipeline.ports import hold_port
from pipeline.settings.recipe import TINY_POLICY
from reward.config import AuditConfig, LocalSamplerConfig, SamplingSettings
from reward.serving.client import RewardClient
from reward.serving.config import ServerConfig
from reward.serving.server import create_app
from reward.types import Outcome, RagQuery

_T = TypeVar("_T")
_TOKEN = "a-token-of-the-benchmark"
Case = tuple[RagQuery, str]
_ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
_SAMPLING = SamplingSettings(temperature=1.0, max_tokens=160)
_AUDIT = AuditConfig(prompts="compact", proposer=_SAMPLING, checker=_SAMPLING)
_LONG_WORDS = 1500  # of all documents of a query; about 40 are its own
_ANSWERS_A_QUERY = 4  # of the long documents, as when several samples of a prompt are audited


@dataclass(frozen=True)
class Setting:
    documents: str  # short or long
    in_flight: int
    num_audits: int  # a round
    num_rounds: int = 3

    @property
    def name(self) -> str:
        """The setting's key among the figures."""
        return f"{self.documents}_documents_{self.in_flight}_in_flight"


HEADLINE = Setting("short", 256, 512, _ROUNDS)
LONG = Setting("long", 64, 128)
SETTINGS = (HEADLINE, Setting("short", 16, 64, _ROUNDS), Setting("short", 1, 6), LONG, Setting("long", 1, 4))


@dataclass
class Samples:
    """Of one setting, one sample a round."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # by way
    front_end_cpu_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    latencies: list[float] = field(default_factory=list)
    work: list[dict[str, int]] = field(default_factory=list)

    def figures(self, setting: Setting) -> dict[str, Any]:
        """Medians over the rounds, and the last round's token work."""
        cuts = statistics.quantiles(self.latencies, n=100)
        cpu_s = {way: statistics.median(self.front_end_cpu_s[way]) for way in ("server", "limit")}
        return {
            "audits": setting.num_audits,
            "audits_per_s": setting.num_audits / statistics.median(self.seconds["server"]),
            "ratio_to_engine_limit": median_ratio(self.seconds, "limit", "server"),
            "speedup_over_barrier_schedule": median_ratio(self.seconds, "published", "server"),
            "speedup_over_barrier_schedule_with_cache": median_ratio(self.seconds, "cached", "server"),
            "latency_s": {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98]},
            "front_end_cpu_ms_per_audit": {way: 1000 * s / setting.num_audits for way, s in cpu_s.items()},
            "work": self.work[-1],
        }


def measure() -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Figures by setting, and the headline's seconds by way."""
    return asyncio.run(_measure())


async def _measure() -> tuple[dict[str, Any], dict[str, list[float]]]:
    bench = await Bench.start()
    seen = {}
    for setting in SETTINGS:
        seen[setting] = await bench.rounds(setting)
        print(setting.name, seen[setting].figures(setting), flush=True)
    await bench.close()
    figures = {setting.name: samples.figures(setting) for setting, samples in seen.items()}
    shown = ("ratio_to_engine_limit", "speedup_over_barrier_schedule", "audits_per_s")
    return {
        **{name: figures[HEADLINE.name][name] for name in shown},
        **{f"{name}_long": figures[LONG.name][name] for name in shown},
        "by_setting": figures,
    }, seen[HEADLINE].seconds


class Bench:
    """The server, its engine and a client."""

    def __init__(self, sampler: RecordingSampler, engine: Any, server: uvicorn.Server, url: str) -> None:
        self._sampler, self._engine, self._server = sampler, engine, server
        self._client = RewardClient(url, _TOKEN)

    @classmethod
    async def start(cls) -> Bench:
        sampler = RecordingSampler(LocalSamplerConfig(model=str(TINY_POLICY), max_model_len=4096))
        await sampler.ready()
        with hold_port("127.0.0.1") as held:
            port = int(held.getsockname()[1])
        config = ServerConfig(port=port, audit=_AUDIT, sampler=LocalSamplerConfig(model=str(TINY_POLICY)))
        app = create_app(config, sampler=sampler, token=_TOKEN)
        server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning", access_log=False))
        serving = asyncio.create_task(server.serve())
        serving.add_done_callback(lambda _: None)  # holds it
        while not server.started:
            await asyncio.sleep(0.01)
        return cls(sampler, await sampler._started(), server, f"http://127.0.0.1:{port}")

    async def close(self) -> None:
        await self._client.close()
        self._server.should_exit = True
        await self._sampler.close()

    async def rounds(self, setting: Setting) -> Samples:
        """One round that is not counted, then those that are."""
        await self._round(setting, Samples())
        samples = Samples()
        for _ in range(setting.num_rounds):
            await self._round(setting, samples)
        return samples

    async def _round(self, setting: Setting, samples: Samples) -> None:
        self._sampler.work.clear()
        asked = cases(setting)
        serving = self._serve(asked, setting.in_flight)
        samples.latencies += await self._timed("server", serving, samples)
        work, size = list(self._sampler.work), setting.in_flight
        samples.work.append(num_tokens(work))
        engine = self._engine
        await self._timed("limit", run_whole(engine, work), samples)
        for way in ("published", "cached"):
            published = run_published(engine, work, batch_size=size, keeps_cache=way == "cached")
            await self._timed(way, published, samples)

    async def _timed(self, way: str, work: Awaitable[_T], samples: Samples) -> _T:
        await self._engine.reset_prefix_cache()
        start, start_cpu = time.perf_counter(), time.process_time()
        result = await work
        samples.seconds[way].append(time.perf_counter() - start)
        samples.front_end_cpu_s[way].append(time.process_time() - start_cpu)
        return result

    async def _serve(self, asked: Sequence[Case], in_flight: int) -> list[float]:
        """Seconds of each audit."""

        async def one(case: Case) -> float:
            start = time.perf_counter()
            result = await self._client.audit(*case, include_trajectories=False)
            assert result.verdict.outcome is not Outcome.NO_CLAIMS
            return time.perf_counter() - start

        return await at_once(in_flight, one, asked)


def cases(setting: Setting) -> list[Case]:
    """Answers about made-up worlds, two sentences of their documents each, new ones at every call."""
    from pipeline.tiny.world import worlds

    is_long = setting.documents == "long"
    answers = _ANSWERS_A_QUERY if is_long else 1
    queries = list(worlds(setting.num_audits // answers, random.getrandbits(31), "train"))
    found: list[Case] = []
    for i, query in enumerate(queries):
        words = sorted({word for one in query.documents for word in one.text.split() if word.isalpha()})
        asked = lengthened(query, _LONG_WORDS, words) if is_long else query
        found += [(asked, _answer(queries[(i + turn) % len(queries)])) for turn in range(answers)]
    return found


def _answer(query: RagQuery) -> str:
    """Two sentences of the documents: a true answer to this query, and a wrong one to any other."""
    texts = [document.text.strip() for document in query.documents[:2]]
    return " ".join(f"{mark}) {text}" for mark, text in zip("ab", texts, strict=False))

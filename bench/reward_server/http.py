"""The HTTP path alone: sockets, gates, JSON, the audit's own code, metrics; the engine answers at once.

One server process and several, each on a port of its own, 64 connections in all, the load generator beside
them on the same cores. Rounds run in turn.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from typing import Any

from bench.instant import cases, request_body
from bench.reward_server.processes import ServerProcess, load, percentiles, servers

_CONNECTIONS = 64
_ROUNDS = 5
_ROUND_S = 8.0
_WARM_UP_S = 3.0
_NUM_CASES = 5_000
_NUMS_OF_PROCESSES = (1, 2)


def measure() -> dict[str, Any]:
    """Figures of the HTTP path by the number of server processes."""
    bodies = [request_body(case) for case in cases(_NUM_CASES, random.Random(0))]
    rounds: dict[int, list[dict[str, float]]] = {num: [] for num in _NUMS_OF_PROCESSES}
    with servers(max(_NUMS_OF_PROCESSES)) as running:
        _one_round(running, bodies, _WARM_UP_S)
        for _ in range(_ROUNDS):
            for num, seen in rounds.items():
                seen.append(_one_round(running[:num], bodies, _ROUND_S))
    by_processes = {num: _medians(seen) for num, seen in rounds.items()}
    one = by_processes[1]
    return {
        "http_audits_per_s": one["audits_per_s"],
        "http_latency_s": {name: one[name] for name in ("p50", "p95", "p99")},
        "http_connections": _CONNECTIONS,
        "http_by_server_processes": by_processes,
    }


def _one_round(running: list[ServerProcess], bodies: list[bytes], seconds: float) -> dict[str, float]:
    urls = [one.url for one in running]
    start, start_cpu = time.perf_counter(), sum(one.cpu_s() for one in running)
    latencies = asyncio.run(load(urls, bodies, connections=_CONNECTIONS, seconds=seconds))
    passed = time.perf_counter() - start
    cpu_s = sum(one.cpu_s() for one in running) - start_cpu
    return {
        "audits_per_s": len(latencies) / passed,
        "server_cpu_ms_per_audit": 1000 * cpu_s / len(latencies),
        **percentiles(latencies),
    }


def _medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}

"""Memory of one server process under ten minutes of load."""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any

from bench.instant import cases, request_body
from bench.reward_server.processes import ServerProcess, load, servers

_MINUTES = float(os.environ.get("SOAK_MINUTES", "10"))
_CONNECTIONS = 64
_EVERY_S = 10.0
_NUM_CASES = 20_000
_MIB = 1024**2


def measure() -> dict[str, Any]:
    """Resident memory over time, and its growth over the second half."""
    bodies = [request_body(case) for case in cases(_NUM_CASES, random.Random(1))]
    with servers(1) as (server,):
        num_audits, rss_mib = asyncio.run(_soak(server, bodies))
    half = rss_mib[len(rss_mib) // 2 :]
    return {
        "soak_minutes": _MINUTES,
        "soak_audits": num_audits,
        "soak_rss_mib": rss_mib,
        "soak_growth_mib_in_second_half": max(half) - half[0],
    }


async def _soak(server: ServerProcess, bodies: list[bytes]) -> tuple[int, list[float]]:
    seconds = _MINUTES * 60
    rss_mib = [server.rss_bytes() / _MIB]
    loading = asyncio.create_task(load([server.url], bodies, connections=_CONNECTIONS, seconds=seconds))
    while not (await asyncio.wait([loading], timeout=_EVERY_S))[0]:
        rss_mib.append(server.rss_bytes() / _MIB)
    return len(loading.result()), rss_mib

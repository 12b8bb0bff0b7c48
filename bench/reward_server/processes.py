"""Reward servers in processes of their own, on an engine that answers at once, and load for them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import aiohttp
import httpx

from bench.instant import TOKEN

_ROOT = Path(__file__).parents[2]
_START_TIMEOUT_S = 60.0
_POLL_S = 0.005
_JSON = {"Content-Type": "application/json"}


class ServerProcess:
    """One server on a free port of the loopback."""

    def __init__(self) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.instant", str(port)],
            cwd=_ROOT,
            env={**os.environ, "MARCH_REWARD_TOKEN": TOKEN},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_ready(self.url, self._process)

    def cpu_s(self) -> float:
        """Seconds of CPU until now, user's and system's."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """Stops it."""
        self._process.terminate()
        self._process.wait()


@contextlib.contextmanager
def servers(num: int) -> Iterator[list[ServerProcess]]:
    """`num` servers, stopped at the end."""
    running = [ServerProcess() for _ in range(num)]
    try:
        yield running
    finally:
        for one in running:
            one.close()


async def load(
    urls: Sequence[str], bodies: Sequence[bytes], *, connections: int, seconds: float
) -> list[float]:
    """Seconds of each audit: `connections` clients, each asking its server again and again for `seconds`."""
    end = time.perf_counter() + seconds
    latencies: list[float] = []
    # One connection a client; aiohttp's own C parser leaves the cores to the servers.
    connector = aiohttp.TCPConnector(limit=0)
    headers = _JSON | {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def client(index: int) -> None:
            url, turn = f"{urls[index % len(urls)]}/v1/audit", index
            while (start := time.perf_counter()) < end:
                async with session.post(url, data=bodies[turn % len(bodies)]) as answer:
                    told = await answer.read()
                assert answer.status == 200 and b'"SUPPORTED"' in told, told[:200]
                latencies.append(time.perf_counter() - start)
                turn += connections

        await asyncio.gather(*(client(index) for index in range(connections)))
    return latencies


def wait_ready(url: str, process: subprocess.Popen[bytes], path: str = "/readyz") -> None:
    """Returns when the server answers `path` with 200.

    Raises:
        RuntimeError: it ended, or did not answer in time.
    """
    end = time.monotonic() + _START_TIMEOUT_S
    with httpx.Client(base_url=url, trust_env=False) as http:
        while time.monotonic() < end and process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                if http.get(path).status_code == 200:
                    return
            time.sleep(_POLL_S)
    raise RuntimeError(f"the server did not start (exit code {process.poll()})")


def free_port() -> int:
    """A port of the loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """p50, p95 and p99, in seconds."""
    cuts = statistics.quantiles(seconds, n=100)
    return {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98]}

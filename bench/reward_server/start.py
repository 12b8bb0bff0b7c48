"""Cold start: from the command to a server that answers."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.instant import TOKEN
from bench.reward_server.processes import free_port, wait_ready

_ROUNDS = 5


def measure() -> dict[str, Any]:
    """Seconds of `march serve` before an engine that is there, from its start to its first answer."""
    return {"cold_start_s": statistics.median(_start_s() for _ in range(_ROUNDS))}


def _start_s() -> float:
    port = free_port()
    march = str(Path(sys.executable).parent / "march")
    options = ["--openai-url", "http://127.0.0.1:9/v1", "--model", "m"]
    start = time.perf_counter()
    process = subprocess.Popen(
        [march, "serve", "--port", str(port), *options],
        env={**os.environ, "MARCH_REWARD_TOKEN": TOKEN},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_ready(f"http://127.0.0.1:{port}", process, path="/healthz")
        return time.perf_counter() - start
    finally:
        process.terminate()
        process.wait()

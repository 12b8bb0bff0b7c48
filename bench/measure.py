"""Runs alternatives in turn and keeps every sample, so that a ratio is taken between neighbours in time."""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("march-pipeline", "pydantic", "fastapi", "httpx", "uvicorn")


def in_turn(
    alternatives: Mapping[str, Callable[[], None]],
    *,
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Returns seconds of each alternative, `rounds` samples each, run A B A B after one warm-up."""
    samples: dict[str, list[float]] = {name: [] for name in alternatives}
    for counted in [False] + [True] * rounds:
        for name, run in alternatives.items():
            start = clock()
            run()
            if counted:
                samples[name].append(clock() - start)
    return samples


def median_ratio(samples: Mapping[str, list[float]], over: str, under: str) -> float:
    """Returns the median over rounds of one alternative's time by another's."""
    return statistics.median(a / b for a, b in zip(samples[over], samples[under], strict=True))


def write_result(
    name: str,
    *,
    samples_s: Mapping[str, list[float]],
    figures: Mapping[str, Any],
    arguments: Sequence[str] = (),
) -> Path:
    """Writes `results/NAME.json`: command, versions, raw samples, medians and the benchmark's own figures."""
    result = {
        "benchmark": name,
        "command": " ".join(("python -m bench", name, *arguments)),
        "python": sys.version.split()[0],
        "machine": f"{platform.machine()}, {_num_cores()} cores",
        "versions": {package: version(package) for package in _PACKAGES},
        "samples_s": samples_s,
        "medians_s": {key: statistics.median(values) for key, values in samples_s.items()},
        **figures,
    }
    path = RESULTS / f"{name}.json"
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n")
    return path


def _num_cores() -> int:
    import os

    return len(os.sched_getaffinity(0))

"""A result as data: every sample is kept, so that a ratio is taken between neighbours in time."""

import json
import os
import platform
import statistics
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("march-pipeline", "pydantic", "fastapi", "httpx", "uvicorn")


def median_ratio(samples: Mapping[str, list[float]], over: str, under: str) -> float:
    """Returns the median over rounds of one alternative's time by another's."""
    return statistics.median(a / b for a, b in zip(samples[over], samples[under], strict=True))


def write_result(
    name: str,
    *,
    samples_s: Mapping[str, list[float]],
    figures: Mapping[str, Any],
    data: Sequence[str] = (),
) -> Path:
    """Writes `results/NAME.json`: command, versions, raw samples, medians and the benchmark's own figures.

    Args:
        data: What `--data` named, as the command is to show it.
    """
    result = {
        "benchmark": name,
        "command": " ".join(["python -m bench", name, *(f"--data {one}" for one in data)]),
        "python": sys.version.split()[0],
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        "versions": {package: version(package) for package in _PACKAGES},
        "samples_s": samples_s,
        "medians_s": {key: statistics.median(values) for key, values in samples_s.items()},
        **figures,
    }
    path = RESULTS / f"{name}.json"
    RESULTS.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n")
    return path

"""Where a process spends its time, by package."""

from __future__ import annotations

import contextlib
import cProfile
import pstats
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_ROOT = str(Path(__file__).parents[2])
_SHOWN = 12


@contextlib.contextmanager
def profiled() -> Iterator[dict[str, float]]:
    """Filled at the end: shares of this thread's time, waiting left out, greatest first.

    A function of C counts for the package that called it. The profiler slows Python's calls, so shares of
    code with many small functions are a little too large.
    """
    shares: dict[str, float] = {}
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        yield shares
    finally:
        profiler.disable()
        seconds = _by_package(pstats.Stats(profiler))
        total = sum(seconds.values())
        shares |= {name: round(s / total, 4) for name, s in seconds.most_common(_SHOWN)}


def _by_package(stats: pstats.Stats) -> Counter[str]:
    seconds: Counter[str] = Counter()
    for (file, _, function), (_, _, own, _, callers) in stats.stats.items():  # type: ignore[attr-defined]
        if file != "~":
            seconds[_package(file)] += own
        elif "poll" not in function:  # of selectors: waiting
            for (caller, _, _), (_, _, share, _) in callers.items():
                seconds[_package(caller)] += share
    return seconds


def _package(file: str) -> str:
    if "/site-packages/" in file:
        return file.split("/site-packages/")[1].split("/")[0].removesuffix(".py")
    if file.startswith(_ROOT):
        return "/".join(file.removeprefix(_ROOT + "/").split("/")[:2])
    return "python"

"""The average over benchmarks with its uncertainty, and the best checkpoint by it (paper, section 4).

Each benchmark counts alike, however many items it has. Benchmarks share no documents, so their errors are
independent and the average's is sqrt(sum of squared errors) / k; its interval is the normal one.

The best of several checkpoints is partly the luckiest: its average is too high, the more so the more there
were to choose from. So the choice also says which others cannot be told from it, by their paired
difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pydantic import Field

from pipeline.evaluate.statistics import Estimate, ItemScores, PairedDifference, estimates, paired_difference
from reward.offline.bootstrap import Interval
from reward.types import Record

_Z = 1.959963984540054  # 97.5th percentile of the normal distribution

Scored = Mapping[str, Sequence[ItemScores]]  # items by benchmark, or by slice


class MacroAverage(Record):
    """The mean of one figure a benchmark."""

    value: float | None = Field(description="None where a benchmark has no figure: it is never left out.")
    interval: Interval | None = Field(description="95%, normal; not cut to [0, 1].")
    standard_error: float | None
    parts: dict[str, float | None] = Field(description="The figure of each benchmark.")
    warning: str = Field(default="", description="Of the benchmarks with few documents.")


class Choice(Record):
    """The best checkpoint, and what speaks for it."""

    best: str
    averages: dict[str, MacroAverage] = Field(description="Of all checkpoints.")
    behind: dict[str, MacroAverage] = Field(description="The best minus each other one, on the same items.")
    not_told_apart: tuple[str, ...] = Field(description="Others whose difference's interval reaches 0.")


def macro_average(scored: Scored, primary: Mapping[str, str]) -> MacroAverage:
    """Averages each benchmark's primary score.

    Args:
        scored: The items of each benchmark.
        primary: The name of each benchmark's primary score (`BenchmarkCard.primary`).
    """
    found = {}
    for name, items in scored.items():
        all_of_it = estimates(items)
        if primary[name] not in all_of_it:
            raise ValueError(
                f"{name}: its items have no score {primary[name]!r}; they have {sorted(all_of_it)}"
            )
        found[name] = all_of_it[primary[name]]
    return _average({name: (one.value, one) for name, one in found.items()})


def macro_difference(baseline: Scored, candidate: Scored, primary: Mapping[str, str]) -> MacroAverage:
    """Averages the paired difference of each benchmark, candidate minus baseline.

    Raises:
        ValueError: the two were not evaluated on the same benchmarks and items.
    """
    if baseline.keys() != candidate.keys():
        apart = sorted(baseline.keys() ^ candidate.keys())
        raise ValueError(f"benchmarks: only one of the two has {apart}; evaluate both on the same ones")
    found = {name: paired_difference(baseline[name], candidate[name], primary[name]) for name in baseline}
    return _average({name: (one.difference, one) for name, one in found.items()})


def best_checkpoint(checkpoints: Mapping[str, Scored], primary: Mapping[str, str]) -> Choice:
    """Chooses the checkpoint with the highest average; the earlier one of equals.

    Args:
        checkpoints: By name, from the earliest to the latest.
        primary: As in `macro_average`.

    Raises:
        ValueError: no checkpoint has an average, or they were not evaluated on the same items.
    """
    averages = {name: macro_average(scored, primary) for name, scored in checkpoints.items()}
    values = {name: one.value for name, one in averages.items() if one.value is not None}
    if not values:
        raise ValueError("checkpoints: none has an average; each benchmark must have scored items")
    best = max(values, key=lambda name: values[name])
    behind = {
        name: macro_difference(checkpoints[name], checkpoints[best], primary)
        for name in values
        if name != best
    }
    near = tuple(name for name, gap in behind.items() if gap.interval is None or gap.interval.low <= 0)
    return Choice(best=best, averages=averages, behind=behind, not_told_apart=near)


def _average(parts: Mapping[str, tuple[float | None, Estimate | PairedDifference]]) -> MacroAverage:
    values = {name: value for name, (value, _) in parts.items()}
    errors = [part.standard_error for _, part in parts.values()]
    value = _mean_of_all(list(values.values()))
    squares = _mean_of_all([None if error is None else error**2 for error in errors])
    error = math.sqrt(squares / len(errors)) if squares is not None else None
    interval = None
    if value is not None and error is not None:
        interval = Interval(low=value - _Z * error, high=value + _Z * error)
    few = [f"{name}: {part.warning}" for name, (_, part) in parts.items() if part.warning]
    return MacroAverage(
        value=value, interval=interval, standard_error=error, parts=values, warning="; ".join(few)
    )


def _mean_of_all(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return math.fsum(there) / len(there) if there and len(there) == len(values) else None

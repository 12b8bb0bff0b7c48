"""Percentile intervals from resampled clusters, with the standard library alone.

Answers about one source share its difficulty, so the source is what is drawn again, with all its answers
(the cluster bootstrap; Davison and Hinkley 1997, section 3.8). Each cluster is a vector of counts; a
statistic is worked out from the sums of a resample. The counts of a cluster are packed into one integer, side
by side, so that a resample is one `sum`.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from pydantic import Field

from reward.types import Record

RESAMPLES = 1_000
LEVEL = 0.95
_SEED = 0
_BEYOND = 25  # resamples beyond either end of an interval; a higher level takes more of them
_MOST_UNDEFINED = 0.05  # share of resamples; with more of them an interval would be of a chosen part

Statistics = Callable[[Sequence[int]], Mapping[str, float | None]]


class Interval(Record):
    """Where a figure is in 95% of the resamples, or in another asked share."""

    low: float = Field(description="2.5th percentile.")
    high: float = Field(description="97.5th percentile.")


def bootstrap(
    clusters: Sequence[Sequence[int]], statistics: Statistics, *, level: float = LEVEL
) -> dict[str, Interval | None]:
    """Draws as many clusters as there are, with replacement, `num_resamples` times.

    Args:
        clusters: Counts of each cluster, zero or more, in one order.
        statistics: From the counts of a resample, summed, to named figures; None where one is not defined.
        level: Share of the resamples between both ends.

    Returns:
        The interval of each figure; None with fewer than two clusters, or where the figure is not defined in
        more than one resample out of twenty. The same clusters in the same order give the same intervals.
    """
    if not clusters:
        return {}
    num_counts = len(clusters[0])
    width = (len(clusters) * max(max(cluster) for cluster in clusters)).bit_length() + 1
    packed = [sum(count << place * width for place, count in enumerate(cluster)) for cluster in clusters]
    draw = random.Random(_SEED)
    values: dict[str, list[float]] = {name: [] for name in statistics([0] * num_counts)}
    for _ in range(num_resamples(level)):
        total = sum(draw.choices(packed, k=len(packed)))
        sums = [total >> place * width & (1 << width) - 1 for place in range(num_counts)]
        for name, value in statistics(sums).items():
            if value is not None:
                values[name].append(value)
    return {name: _interval(found, level) if len(clusters) > 1 else None for name, found in values.items()}


def summed(
    clusters: Collection[Counter[str]], statistics: Callable[[Mapping[str, int]], Mapping[str, float | None]]
) -> tuple[Counter[str], Mapping[str, float | None], Mapping[str, Interval | None]]:
    """The sums of clusters of named counts, the figures of these sums, and the intervals of the figures.

    `statistics` is as for `bootstrap`, from counts by their names; a name that is missing counts 0.
    """
    names = sorted(set().union(*clusters))

    def of_sums(sums: Sequence[int]) -> Mapping[str, float | None]:
        return statistics(Counter(dict(zip(names, sums, strict=True))))

    total = sum(clusters, Counter[str]())
    vectors = [[cluster[name] for name in names] for cluster in clusters]
    intervals = bootstrap(vectors, of_sums)
    values = statistics(total)
    return total, values, {name: intervals.get(name) for name in values}


def share(part: int, whole: int) -> float | None:
    """A share; None, never NaN and never a made-up 0 or 1, where there is nothing to share."""
    return part / whole if whole else None


def num_resamples(level: float) -> int:
    """How many resamples an interval rests on: 1,000 up to 95%, more for ends that are farther out."""
    return max(RESAMPLES, math.ceil(round(2 * _BEYOND / (1 - level), 6)))


def _interval(values: list[float], level: float) -> Interval | None:
    if len(values) < (1 - _MOST_UNDEFINED) * num_resamples(level):
        return None
    values.sort()
    tail = (1 - level) / 2
    return Interval(low=_quantile(values, tail), high=_quantile(values, 1 - tail))


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Linear between the two nearest of the ordered values."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)

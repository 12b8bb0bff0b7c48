"""Figures of a benchmark with their uncertainty: pure functions over the scores of items.

Items about one document share its difficulty, so documents are what is resampled
(`reward/offline/bootstrap.py`, the bootstrap of the audits' figures too) and what the standard error is of:

    se(mean) = sqrt(sum over clusters c of (sum over items i of c of (s_i - mean))^2) / n

(Miller 2024, "Adding Error Bars to Evals", arXiv 2411.00640). Two models are compared on the items that both
have, item by item: what an item's difficulty adds to both cancels out.

An item without a score is in no mean; it is counted. Scores lie in [0, 1], as `Benchmark.scores` gives them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from pydantic import Field

from reward.offline.bootstrap import LEVEL, Interval, bootstrap
from reward.types import Record

OVERALL = "overall"
FEW_CLUSTERS = 50
_UNIT = 1_000_000  # the bootstrap sums integers: scores are counted in millionths
_Z = 1.959963984540054  # 97.5th percentile of the normal distribution


class ItemScores(Record):
    """The scores of one item, as they are kept and compared."""

    item: str = Field(description="Its id, the same for every model.")
    slice: str = Field(description="Task or split.")
    cluster: str = Field(description="What is resampled: its document.")
    scores: dict[str, float | None] = Field(description="By name, each in [0, 1]; None: not scored.")


class Estimate(Record):
    """The mean of a score over items. Example: 0.62 from 0.55 to 0.69, of 150 items on 150 documents."""

    value: float | None = Field(description="None where no item has the score.")
    interval: Interval | None = Field(description="95%, by document; None with fewer than two documents.")
    standard_error: float | None = Field(description="Clustered by document; None as the interval.")
    num_items: int = Field(ge=0, description="Items that have the score.")
    num_unscored: int = Field(ge=0, description="Items that do not; in none of the figures.")
    num_clusters: int = Field(ge=0)
    warning: str = Field(default="", description="What to hold against the interval, for people.")


class PairedDifference(Record):
    """How a score differs between two models on the same items."""

    score: str
    baseline: float | None = Field(description="Mean of the items that both have.")
    candidate: float | None
    difference: float | None = Field(description="Candidate minus baseline.")
    interval: Interval | None = Field(description="Of the difference, by document; 95% unless asked.")
    standard_error: float | None = Field(description="Of the difference, clustered by document.")
    num_items: int = Field(ge=0, description="Items that both models have the score of.")
    num_clusters: int = Field(ge=0)
    num_higher: int = Field(ge=0, description="Items on which the candidate scores higher.")
    num_lower: int = Field(ge=0)
    num_unpaired: int = Field(ge=0, description="Items that one of them lacks, or lacks the score of.")
    warning: str = ""


def estimates(items: Iterable[ItemScores]) -> dict[str, Estimate]:
    """The mean of every score over the items, with its uncertainty.

    Raises:
        ValueError: an item stands twice, or a score lies outside [0, 1].
    """
    items = _require_once(list(items))
    names = list(dict.fromkeys(name for item in items for name in item.scores))
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * (2 * len(names)))  # a cluster's items and sums
    for item in items:
        for place, name in enumerate(names):
            score = item.scores.get(name)
            if score is not None:
                counts[item.cluster][2 * place] += _UNIT
                counts[item.cluster][2 * place + 1] += round(_checked(score, name) * _UNIT)

    def means(sums: Sequence[int]) -> dict[str, float | None]:
        return {name: _share(sums[2 * place + 1], sums[2 * place]) for place, name in enumerate(names)}

    intervals = bootstrap(list(counts.values()), means)
    return {name: _estimate(items, name, intervals.get(name)) for name in names}


def estimates_by_slice(items: Iterable[ItemScores]) -> dict[str, dict[str, Estimate]]:
    """The same for all items together (`overall`) and for each slice, in the order that they appear."""
    items = list(items)
    slices = group_by_slice(items)
    return {OVERALL: estimates(items)} | {name: estimates(part) for name, part in slices.items()}


def group_by_slice(items: Iterable[ItemScores]) -> dict[str, list[ItemScores]]:
    """The items of each slice."""
    groups: dict[str, list[ItemScores]] = defaultdict(list)
    for item in items:
        groups[item.slice].append(item)
    return dict(groups)


def paired_difference(
    baseline: Iterable[ItemScores], candidate: Iterable[ItemScores], score: str, *, level: float = LEVEL
) -> PairedDifference:
    """Compares one score of two models on the items that both have.

    Args:
        baseline: Scores of one model.
        candidate: Of the other one.
        score: Which score.
        level: Of the interval.

    Raises:
        ValueError: an item stands twice, a score lies outside [0, 1], or the models have no item in common,
            or an item is of another document in the other model's scores.
    """
    before, after = ({one.item: one for one in _require_once(list(side))} for side in (baseline, candidate))
    if not before.keys() & after.keys():
        raise ValueError(f"{score}: the two models have no item in common; evaluate both on the same items")
    pairs = []
    for item in before.keys() & after.keys():
        old, new = before[item].scores.get(score), after[item].scores.get(score)
        if before[item].cluster != after[item].cluster:
            raise ValueError(f"item {item!r}: its documents differ; evaluate both on the same files")
        if old is not None and new is not None:
            pairs.append((before[item].cluster, _checked(old, score), _checked(new, score)))
    pairs.sort()  # sets have no order, and the same scores must give the same interval
    num_all = len(before.keys() | after.keys())
    return _paired(score, pairs, num_unpaired=num_all - len(pairs), level=level)


def _paired(
    score: str, pairs: Sequence[tuple[str, float, float]], *, num_unpaired: int, level: float
) -> PairedDifference:
    changes = [(cluster, new - old) for cluster, old, new in pairs]
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for cluster, old, new in pairs:
        for place, value in enumerate((_UNIT, round(old * _UNIT), round(new * _UNIT))):
            counts[cluster][place] += value
    found = bootstrap(
        list(counts.values()), lambda sums: {score: _share(sums[2] - sums[1], sums[0])}, level=level
    )
    n = len(pairs)
    return PairedDifference(
        score=score,
        baseline=_mean([old for _, old, _ in pairs]),
        candidate=_mean([new for _, _, new in pairs]),
        difference=_mean([change for _, change in changes]),
        interval=found.get(score),
        standard_error=clustered_error(changes),
        num_items=n,
        num_clusters=len(counts),
        num_higher=sum(change > 0 for _, change in changes),
        num_lower=sum(change < 0 for _, change in changes),
        num_unpaired=num_unpaired,
        warning=few_clusters(len(counts)),
    )


def _estimate(items: Sequence[ItemScores], name: str, interval: Interval | None) -> Estimate:
    scores = [(item.cluster, item.scores.get(name)) for item in items]
    scored = [(cluster, score) for cluster, score in scores if score is not None]
    value = _mean([score for _, score in scored])
    num_clusters = len({cluster for cluster, _ in scored})
    if num_clusters < 2:
        interval = None
    elif value in (0.0, 1.0):
        interval = _at_the_border(value, num_clusters)
    return Estimate(
        value=value,
        interval=interval,
        standard_error=clustered_error(scored),
        num_items=len(scored),
        num_unscored=len(scores) - len(scored),
        num_clusters=num_clusters,
        warning=few_clusters(num_clusters),
    )


def clustered_error(scores: Sequence[tuple[str, float]]) -> float | None:
    """Standard error of the mean of (cluster, score) pairs; None with fewer than two clusters."""
    sums: dict[str, float] = defaultdict(float)
    mean = _mean([score for _, score in scores])
    for cluster, score in scores:
        sums[cluster] += score - (mean or 0.0)
    if len(sums) < 2:
        return None
    return math.sqrt(sum(total**2 for total in sums.values())) / len(scores)


def few_clusters(num_clusters: int) -> str:
    """A warning where documents are few.

    Clustered intervals rest on many clusters and are too narrow with few; "few" begins somewhere between 20
    and 50 (Cameron and Miller 2015, "A Practitioner's Guide to Cluster-Robust Inference", section VI).
    """
    if num_clusters >= FEW_CLUSTERS:
        return ""
    return f"{num_clusters} documents, fewer than {FEW_CLUSTERS}: the interval is too narrow"


def _at_the_border(value: float, num_clusters: int) -> Interval:
    """Wilson's interval where all scores are 0 or all are 1, since every resample is then the same."""
    width = _Z**2 / (num_clusters + _Z**2)
    return Interval(low=0.0, high=width) if value == 0 else Interval(low=1 - width, high=1.0)


def _require_once(items: list[ItemScores]) -> list[ItemScores]:
    seen: set[str] = set()
    for one in items:
        if one.item in seen:
            raise ValueError(f"item {one.item!r} stands twice; give each item's scores once")
        seen.add(one.item)
    return items


def _checked(score: float, name: str) -> float:
    if not 0 <= score <= 1:  # NaN too
        raise ValueError(f"{name}: {score!r} lies outside [0, 1]; a score that is missing is None")
    return score


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None

"""Figures of a benchmark with their uncertainty, and their average: pure functions over the scores of items.

Items about one document share its difficulty, so documents are what is resampled
(`reward/offline/bootstrap.py`, the bootstrap of the audits' figures too) and what the standard error is of:

    se(mean) = sqrt(sum over clusters c of (sum over items i of c of (s_i - mean))^2) / n

(Miller 2024, "Adding Error Bars to Evals", arXiv 2411.00640). Two models are compared on the items that both
have, item by item. An item without a score is in no mean; it is counted.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from pydantic import Field

from reward.offline.bootstrap import LEVEL, Interval, bootstrap, num_resamples, share, summed
from reward.offline.review import cohens_kappa
from reward.types import Record

OVERALL = "overall"
# Names of the scores that a calibration gives each item (`benchmarks/faithjudge.py`), and of its main figure.
HUMAN, JUDGE, KAPPA = "human_consistent", "judge_consistent", "cohens_kappa"
FEW_CLUSTERS = 50
_UNIT = 1_000_000  # the bootstrap sums integers: scores are counted in millionths
_Z = 1.959963984540054  # 97.5th percentile of the normal distribution


class ItemScores(Record):
    """The scores of one item, as they are kept and compared."""

    item: str = Field(description="Its id, the same for every model.")
    slice: str = Field(description="Task or split.")
    cluster: str = Field(description="What is resampled: its document.")
    scores: dict[str, float | None] = Field(description="By name, each in [0, 1]; None: not scored.")


_I = TypeVar("_I", bound=ItemScores)


class Figure(Record):
    """A figure and how sure it is."""

    value: float | None = Field(description="None where it is not defined, e.g. no item has the score.")
    interval: Interval | None = Field(description="95%, by document; None with fewer than two documents.")
    standard_error: float | None = Field(default=None, description="Clustered by document.")
    warning: str = Field(default="", description="What to hold against the interval, for people.")


class Estimate(Figure):
    """The mean of a score over items. Example: 0.62 from 0.55 to 0.69, of 150 items on 150 documents."""

    num_items: int = Field(ge=0, description="Items that have the score.")
    num_unscored: int = Field(ge=0, description="Items that do not; in none of the figures.")
    num_clusters: int = Field(ge=0)


class PairedDifference(Estimate):
    """How a score differs between two models on the items that both have; unscored: one lacks it."""

    baseline: float | None = Field(description="Mean of the items that both have.")
    candidate: float | None = Field(description="The same of the other model; `value` is its lead.")


class MacroAverage(Figure):
    """The mean of one figure a benchmark: each counts alike, however many items it has.

    Benchmarks share no documents, so their errors are independent and the average's is
    sqrt(sum of squared errors) / k; its interval is the normal one, within what a share or a difference can
    be, and the benchmark's own where there is but one. It has no value where a benchmark has none, since none
    is left out.
    """

    parts: dict[str, float | None] = Field(description="The figure of each benchmark.")


def estimates(items: Iterable[ItemScores]) -> dict[str, Estimate]:
    """The mean of every score over the items; raises `ValueError` when one lies outside [0, 1]."""
    items = list(items)
    names = list(dict.fromkeys(name for item in items for name in item.scores))
    sums = _summed((item.cluster, [item.scores.get(name) for name in names]) for item in items)
    intervals = bootstrap(
        sums,
        lambda sums: {name: share(sums[2 * place + 1], sums[2 * place]) for place, name in enumerate(names)},
    )
    return {
        name: _estimate([(one.cluster, one.scores.get(name)) for one in items], intervals.get(name))
        for name in names
    }


def by_slice(items: Iterable[_I]) -> dict[str, list[_I]]:
    """All items (`overall`), and those of each slice, in the order that they appear."""
    groups: dict[str, list[_I]] = defaultdict(list)
    for item in items:
        groups[OVERALL].append(item)
        groups[item.slice].append(item)
    return dict(groups)


def linked(needed: Sequence[Iterable[str]]) -> list[int]:
    """Groups rows that need a paragraph in common, directly or over others.

    Returns:
        For each row the first row of its group.
    """
    groups, first = list(range(len(needed))), dict[str, int]()
    for row, keys in enumerate(needed):
        joined = {row, *(groups[first.setdefault(key, row)] for key in keys)}
        groups = [min(joined) if group in joined else group for group in groups]
    return groups


def paired_difference(
    baseline: Iterable[ItemScores],
    candidate: Iterable[ItemScores],
    score: str,
    *,
    level: float = LEVEL,
    is_cautious: bool = False,
) -> PairedDifference:
    """Compares one score of two models on the items that both have.

    Args:
        baseline: One model's items.
        candidate: The other's; `value` is its lead.
        score: Name of the score.
        level: Of the interval.
        is_cautious: Whether the interval must hold for rare changes in one direction, too; the bootstrap's is
            too short then, since it draws only what was seen.

    Raises:
        ValueError: a score lies outside [0, 1], or the models have no item in common, or an item is of
            another document in the other model's scores.
    """
    before, after = ({one.item: one for one in items} for items in (baseline, candidate))
    common = before.keys() & after.keys()
    if not common:
        raise ValueError(f"{score}: the two models have no item in common; evaluate both on the same items")
    pairs = []
    for item in common:
        old, new = before[item].scores.get(score), after[item].scores.get(score)
        if before[item].cluster != after[item].cluster:
            raise ValueError(f"item {item!r}: its documents differ; evaluate both on the same files")
        if old is not None and new is not None:
            pairs.append((before[item].cluster, old, new))
    pairs.sort()  # sets have no order, and the same scores must give the same interval
    sums = _summed((cluster, [old, new]) for cluster, old, new in pairs)
    if is_cautious:
        interval = _cautious([(sums[0], sums[3] - sums[1]) for sums in sums], level)
    else:
        found = bootstrap(sums, lambda sums: {score: share(sums[3] - sums[1], sums[0])}, level=level)
        interval = found.get(score)
    changes = _estimate([(cluster, new - old) for cluster, old, new in pairs])
    num_unpaired = len(before.keys() | after.keys()) - len(pairs)
    return PairedDifference(
        **dict(changes) | {"interval": interval, "num_unscored": num_unpaired},
        baseline=_mean([old for _, old, _ in pairs]),
        candidate=_mean([new for _, _, new in pairs]),
    )


def _cautious(clusters: Sequence[tuple[int, int]], level: float) -> Interval | None:
    """Bounds of a mean that lies in [-1, 1], from the size and the sum of each cluster.

    Gaffke's (2005; Learned-Miller and Thomas 2019, arXiv 1905.06208): the clusters have exponential weights,
    and there is one more, as bad (or as good) as can be. For a share they are Clopper and Pearson's.
    """
    import numpy as np

    if len(clusters) < 2:
        return None
    sizes, sums = np.array(clusters, dtype=float).T
    source, ends = np.random.default_rng(0), []
    for _ in range(4 * num_resamples(level)):  # row by row: all weights at once would be gigabytes
        drawn = source.standard_exponential(len(clusters) + 1)
        whole, total, unseen = drawn[:-1] @ sizes, drawn[:-1] @ sums, drawn[-1] * sizes.mean()
        ends.append(((total - unseen) / (whole + unseen), (total + unseen) / (whole + unseen)))
    low, high = zip(*ends, strict=True)
    tail = (1 - level) / 2
    return Interval(low=float(np.quantile(low, tail)), high=float(np.quantile(high, 1 - tail)))


def macro_average(parts: Mapping[str, Estimate | None]) -> MacroAverage:
    """Averages a figure, or a paired difference, of each benchmark; None: it has none."""
    values = {name: part.value if part else None for name, part in parts.items()}
    found = [one for one in values.values() if one is not None]
    errors = [error for one in parts.values() if one and (error := _error(one)) is not None]
    value = _mean(found) if len(found) == len(parts) else None
    error = math.hypot(*errors) / len(errors) if errors and len(errors) == len(parts) else None
    interval = None
    if len(parts) == 1:
        interval = next((one.interval for one in parts.values() if one), None)
    elif value is not None and error is not None:
        lowest = -1.0 if any(isinstance(one, PairedDifference) for one in parts.values()) else 0.0
        interval = Interval(low=max(lowest, value - _Z * error), high=min(1.0, value + _Z * error))
    few = [f"{name}: {part.warning}" for name, part in parts.items() if part and part.warning]
    return MacroAverage(
        value=value, interval=interval, standard_error=error, parts=values, warning="; ".join(few)
    )


def average_freedom(parts: Sequence[Estimate]) -> float:
    """Degrees of freedom of an average's standard error (Welch 1947, Satterthwaite 1946), by clusters.

    A benchmark of a few documents knows its own error badly; the average is as sure as its errors are. Every
    part has an error and at least two clusters.
    """
    squares = [(_error(one) or 0.0) ** 2 for one in parts]
    weights = [square**2 / (one.num_clusters - 1) for square, one in zip(squares, parts, strict=True)]
    return sum(squares) ** 2 / sum(weights) if any(weights) else 1e9


def _error(one: Estimate) -> float | None:
    """The standard error; where equal documents make it 0, Wilson's, as far as others can differ."""
    if one.standard_error == 0 and one.value is not None:
        farthest = 1 + abs(one.value) if isinstance(one, PairedDifference) else 1.0
        return farthest * _Z / (one.num_clusters + _Z**2)
    return one.standard_error


def judge_agreement(items: Iterable[ItemScores]) -> dict[str, Estimate]:
    """How a judge's labels of a calibration's items agree with people's, with intervals by document.

    Raw agreement rewards a judge that always says "consistent" when most responses are; Cohen's kappa does
    not. `precision` and `recall` are of "hallucinated". A response that the judge could not judge is in none
    of the figures.
    """
    items = list(items)
    clusters: dict[str, Counter[str]] = defaultdict(Counter)
    for item in items:
        human, judge = item.scores[HUMAN], item.scores[JUDGE]
        if judge is not None:
            clusters[item.cluster][f"{human:g}{judge:g}"] += 1
    cells, values, intervals = summed(clusters.values(), _agreement)
    num_judged, num_clusters, warning = cells.total(), len(clusters), _few_clusters(len(clusters))
    counts = {"num_items": num_judged, "num_unscored": len(items) - num_judged, "num_clusters": num_clusters}
    return {
        name: Estimate(value=value, interval=intervals[name], warning=warning, **counts)
        for name, value in values.items()
    }


def _agreement(cells: Mapping[str, int]) -> Mapping[str, float | None]:
    """From counts of people's and the judge's label, in this order; 1 is consistent, 0 hallucinated."""
    kept, alarm, miss, hit = (cells[name] for name in ("11", "10", "01", "00"))
    specificity, recall = share(kept, kept + alarm), share(hit, hit + miss)
    return {
        "balanced_accuracy": None if specificity is None or recall is None else (specificity + recall) / 2,
        "precision": share(hit, hit + alarm),
        "recall": recall,
        KAPPA: cohens_kappa(kept, miss, alarm, hit),
    }


def _clustered_error(scores: Sequence[tuple[str, float]]) -> float | None:
    sums: dict[str, float] = defaultdict(float)
    mean = _mean([score for _, score in scores]) or 0.0
    for cluster, score in scores:
        sums[cluster] += score - mean
    if len(sums) < 2:
        return None
    return math.sqrt(sum(total**2 for total in sums.values())) / len(scores)


def _few_clusters(num_clusters: int) -> str:
    """A warning where an interval rests on few documents (Cameron and Miller 2015, section VI)."""
    if num_clusters >= FEW_CLUSTERS:
        return ""
    return f"{num_clusters} documents, fewer than {FEW_CLUSTERS}: the interval is too narrow"


def _estimate(scores: Sequence[tuple[str, float | None]], interval: Interval | None = None) -> Estimate:
    scored = [(cluster, score) for cluster, score in scores if score is not None]
    value, num_clusters = _mean([score for _, score in scored]), len({cluster for cluster, _ in scored})
    if value in (0.0, 1.0):  # Wilson's, since every resample is the same
        width = _Z**2 / (num_clusters + _Z**2)
        interval = Interval(low=value - width * value, high=value + width * (1 - value))
    return Estimate(
        value=value,
        interval=interval if num_clusters > 1 else None,
        standard_error=_clustered_error(scored),
        num_items=len(scored),
        num_unscored=len(scores) - len(scored),
        num_clusters=num_clusters,
        warning=_few_clusters(num_clusters),
    )


def _summed(rows: Iterable[tuple[str, Sequence[float | None]]]) -> list[list[int]]:
    """By cluster, of each score how many items have it and their sum."""
    found: dict[str, list[int]] = {}
    for cluster, scores in rows:
        for place, score in enumerate(scores):
            if score is None:
                continue
            if not 0 <= score <= 1:  # NaN too
                raise ValueError(f"{score!r} lies outside [0, 1]; a score that is missing is None")
            counts = found.setdefault(cluster, [0] * (2 * len(scores)))
            counts[2 * place] += _UNIT
            counts[2 * place + 1] += round(score * _UNIT)
    return list(found.values())


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None

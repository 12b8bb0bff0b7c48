"""Whether a judge agrees with people: kappa and alpha over responses that both labelled.

Raw agreement rewards a judge that says "consistent" always when most responses are. Cohen's kappa (Cohen
1960) takes the agreement that two raters with these habits reach by chance out; Krippendorff's alpha
(nominal, two raters, no missing labels; Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability")
takes the pooled habits and corrects for a small sample. Intervals resample documents.

A response that the judge could not judge is in none of the figures; it is counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field

from pipeline.evaluate.statistics import ItemScores, few_clusters
from reward.offline.bootstrap import Interval, bootstrap
from reward.types import Record

# Names of the scores that a calibration gives each item (`benchmarks/faithjudge.py`).
HUMAN, JUDGE = "human_consistent", "judge_consistent"


class LabelPair(Record):
    """One response, what people said of it and what the judge said."""

    cluster: str = Field(description="Its document.")
    human: bool = Field(description="Consistent, by people.")
    judge: bool | None = Field(description="Consistent, by the judge; None: not judged.")


class Rating(Record):
    """A figure of agreement."""

    value: float | None = Field(description="None where it is not defined, e.g. kappa of one label only.")
    interval: Interval | None = Field(description="95%, by document.")


class JudgeAgreement(Record):
    """How a judge agrees with people. "Positive" is hallucinated, as in detection."""

    num_pairs: int = Field(ge=0, description="Responses with both labels.")
    num_unjudged: int = Field(ge=0)
    num_clusters: int = Field(ge=0)
    both_consistent: int
    only_human_consistent: int = Field(description="False alarms of the judge.")
    only_judge_consistent: int = Field(description="Hallucinations that the judge missed.")
    both_hallucinated: int
    accuracy: Rating
    balanced_accuracy: Rating = Field(description="Mean of the recalls of both labels.")
    precision: Rating = Field(description="Of what the judge called hallucinated.")
    recall: Rating = Field(description="Of what people called hallucinated.")
    cohens_kappa: Rating
    krippendorffs_alpha: Rating
    warning: str = ""


def label_pairs(items: Iterable[ItemScores]) -> list[LabelPair]:
    """The labels of a calibration's items.

    Raises:
        ValueError: an item has no label of people.
    """
    pairs = []
    for item in items:
        human, judge = item.scores.get(HUMAN), item.scores.get(JUDGE)
        if human is None:
            raise ValueError(f"item {item.item!r}: no score {HUMAN!r}; give the items of a calibration")
        said = None if judge is None else judge == 1
        pairs.append(LabelPair(cluster=item.cluster, human=human == 1, judge=said))
    return pairs


def judge_agreement(pairs: Iterable[LabelPair]) -> JudgeAgreement:
    """Compares a judge's labels with people's, with intervals by document."""
    num_unjudged = 0
    clusters: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for pair in pairs:
        if pair.judge is None:
            num_unjudged += 1
        else:
            clusters[pair.cluster][2 * (not pair.human) + (not pair.judge)] += 1
    counts = list(clusters.values())
    cells = [sum(column) for column in zip(*counts, strict=True)] or [0, 0, 0, 0]
    values, intervals = _figures(cells), bootstrap(counts, _figures)
    ratings = {name: Rating(value=value, interval=intervals.get(name)) for name, value in values.items()}
    return JudgeAgreement(
        num_pairs=sum(cells),
        num_unjudged=num_unjudged,
        num_clusters=len(counts),
        both_consistent=cells[0],
        only_human_consistent=cells[1],
        only_judge_consistent=cells[2],
        both_hallucinated=cells[3],
        warning=few_clusters(len(counts)),
        **ratings,
    )


def _figures(cells: Sequence[int]) -> Mapping[str, float | None]:
    """All figures of a 2x2 table: [both consistent, only human, only judge, both hallucinated]."""
    kept, alarm, miss, hit = cells
    n = sum(cells)
    specificity, recall = _ratio(kept, kept + alarm), _ratio(hit, hit + miss)
    by_chance = (kept + alarm) * (kept + miss) + (miss + hit) * (alarm + hit)
    return {
        "accuracy": _ratio(kept + hit, n),
        "balanced_accuracy": None if specificity is None or recall is None else (specificity + recall) / 2,
        "precision": _ratio(hit, hit + alarm),
        "recall": recall,
        "cohens_kappa": _kappa(n * (kept + hit), by_chance, n * n),
        "krippendorffs_alpha": _alpha(kept, alarm + miss, hit),
    }


def _alpha(kept: int, apart: int, hit: int) -> float | None:
    """1 - observed / expected disagreement, the latter over all pairs of the pooled labels."""
    consistent, hallucinated = 2 * kept + apart, 2 * hit + apart
    total = consistent + hallucinated
    expected = 2 * consistent * hallucinated
    return 1 - (2 * apart / total) * (total * (total - 1)) / expected if expected else None


def _kappa(agreed: int, by_chance: int, pairs: int) -> float | None:
    """(observed - chance) / (1 - chance), all times `pairs`; None where chance alone agrees fully."""
    return _ratio(agreed - by_chance, pairs - by_chance)


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None

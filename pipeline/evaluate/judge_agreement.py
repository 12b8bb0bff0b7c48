"""Whether a judge agrees with people: kappa and alpha over responses that both labelled.

Raw agreement rewards a judge that says "consistent" always when most responses are. Cohen's kappa (Cohen
1960) takes the agreement that two raters with these habits reach by chance out; Krippendorff's alpha
(nominal, two raters, no missing labels; Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability")
takes the pooled habits and corrects for a small sample. Intervals resample documents.

A response that the judge could not judge is in none of the figures; it is counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from pydantic import Field

from pipeline.evaluate.statistics import Figure, ItemScores, few_clusters
from reward.offline.bootstrap import share, summed
from reward.types import Record

# Names of the scores that a calibration gives each item (`benchmarks/calibration.py`).
HUMAN, JUDGE = "human_consistent", "judge_consistent"
_CELLS = ("both_consistent", "only_human_consistent", "only_judge_consistent", "both_hallucinated")


class JudgeAgreement(Record):
    """How a judge agrees with people. "Positive" is hallucinated, as in detection."""

    num_pairs: int = Field(ge=0, description="Responses with both labels.")
    num_unjudged: int = Field(ge=0)
    num_clusters: int = Field(ge=0)
    both_consistent: int
    only_human_consistent: int = Field(description="False alarms of the judge.")
    only_judge_consistent: int = Field(description="Hallucinations that the judge missed.")
    both_hallucinated: int
    accuracy: Figure
    balanced_accuracy: Figure = Field(description="Mean of the recalls of both labels.")
    precision: Figure = Field(description="Of what the judge called hallucinated.")
    recall: Figure = Field(description="Of what people called hallucinated.")
    cohens_kappa: Figure
    krippendorffs_alpha: Figure
    warning: str = ""


def judge_agreement(items: Iterable[ItemScores]) -> JudgeAgreement:
    """Compares a judge's labels of a calibration's items with people's, with intervals by document.

    Raises:
        ValueError: an item has no label of people.
    """
    num_unjudged = 0
    clusters: dict[str, Counter[str]] = defaultdict(Counter)
    for item in items:
        human, judge = item.scores.get(HUMAN), item.scores.get(JUDGE)
        if human is None:
            raise ValueError(f"item {item.item!r}: no score {HUMAN!r}; give the items of a calibration")
        if judge is None:
            num_unjudged += 1
        else:
            clusters[item.cluster][_CELLS[2 * (human != 1) + (judge != 1)]] += 1
    cells, values, intervals = summed(clusters.values(), _figures)
    ratings = {name: Figure(value=value, interval=intervals[name]) for name, value in values.items()}
    counts = {"num_pairs": cells.total(), "num_unjudged": num_unjudged, "num_clusters": len(clusters)}
    counts |= {name: cells[name] for name in _CELLS}
    return JudgeAgreement.model_validate({**counts, **ratings, "warning": few_clusters(len(clusters))})


def _figures(cells: Mapping[str, int]) -> Mapping[str, float | None]:
    kept, alarm, miss, hit = (cells[name] for name in _CELLS)
    n = kept + alarm + miss + hit
    specificity, recall = share(kept, kept + alarm), share(hit, hit + miss)
    by_chance = (kept + alarm) * (kept + miss) + (miss + hit) * (alarm + hit)
    return {
        "accuracy": share(kept + hit, n),
        "balanced_accuracy": None if specificity is None or recall is None else (specificity + recall) / 2,
        "precision": share(hit, hit + alarm),
        "recall": recall,
        # (observed - chance) / (1 - chance), all times n squared; None where chance alone agrees fully
        "cohens_kappa": share(n * (kept + hit) - by_chance, n * n - by_chance),
        "krippendorffs_alpha": _alpha(kept, alarm + miss, hit),
    }


def _alpha(kept: int, apart: int, hit: int) -> float | None:
    """1 - observed / expected disagreement, the latter over all pairs of the pooled labels."""
    consistent, hallucinated = 2 * kept + apart, 2 * hit + apart
    total = consistent + hallucinated
    expected = 2 * consistent * hallucinated
    return 1 - (2 * apart / total) * (total * (total - 1)) / expected if expected else None

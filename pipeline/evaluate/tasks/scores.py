"""Scores of an epoch, how the epochs of an item become its scores, and the figure over items.

One rule holds in all of them: what could not be scored is no score. Such a value is NaN, which Inspect leaves
out of every figure and counts (`unscored_samples`); a figure of nothing is NaN, where Inspect's own `mean`
says 0. The item's scores are those of `pipeline.evaluate.majority` and `numeric_faithfulness`, worked out
from what the epochs' scores keep in their metadata.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.log import EvalLog
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    ScoreReducer,
    Value,
    mean_score,
    metric,
    score_reducer,
)

from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.evaluate.majority import Judgement, means
from pipeline.evaluate.numeric_faithfulness import numeric_scores
from pipeline.evaluate.statistics import ItemScores, clustered_error
from pipeline.evaluate.tasks.naming import of_march
from reward.types import Verdict

NAN = float("nan")
# In the metadata of an epoch's score. A verdict's has MEASURED, JUDGED and REPLIES by prompt; an audit's has
# AUDITOR and VERDICT. Of an epoch without an answer only the first of them is there.
MEASURED, JUDGED, REPLIES = "measured", "judged", "replies"
AUDITOR, VERDICT = "auditor", "verdict"

Scores = Mapping[str, float | None]


def as_values(scores: Scores) -> dict[str, str | int | float | bool | None]:
    """Scores as a value of Inspect's."""
    return {name: NAN if score is None else score for name, score in scores.items()}


def unanswered(about: Mapping[str, Any], failure: str) -> Score:
    """The score of an epoch in which the model gave no answer: none."""
    explanation = f"The model gave no answer: {failure}."
    return Score.unscored(reason=failure, explanation=explanation, metadata=dict(about))


@score_reducer(name="march/majority")
@of_march
def majority() -> ScoreReducer:
    """The verdict of more than half of the judged epochs; a tie is no pass, an unread verdict no vote.

    Where fewer than half of the epochs could be judged, or were answered at all, there is no verdict. What is
    measured and no verdict is averaged, as are scores of other scorers.
    """

    def reduce(scores: list[Score]) -> Score:
        kept = [one.metadata or {} for one in scores]
        if "benchmark" not in (about := kept[0]):
            return mean_score()(scores)
        key, reduced = (VERDICT, _audited) if AUDITOR in about else (JUDGED, _judged)
        answered = [one for one in kept if key in one]
        found = reduced(about, answered if 2 * len(answered) >= len(scores) else [])
        named = {name: about[name] for name in ("benchmark", "slice", "cluster")}
        return Score(value=as_values(found), metadata={**named, "epochs": len(scores)})

    return reduce


def _judged(about: Mapping[str, Any], answered: Sequence[Mapping[str, Any]]) -> Scores:
    judged, measured = {}, dict[str, float | None]()  # every item has every name, or Inspect has no figures
    for prompt, names in about[MEASURED].items():
        judged[prompt] = [_one(one[JUDGED][prompt]) for one in answered]
        measured |= dict.fromkeys(names) | means([one[MEASURED][prompt] for one in answered])
    return {**make_benchmark(about["benchmark"]).by_majority(judged), **measured}


def _one(judgement: Mapping[str, Any] | None) -> Judgement | None:
    return None if judgement is None else Judgement.model_validate(judgement)


def _audited(about: Mapping[str, Any], answered: Sequence[Mapping[str, Any]]) -> Scores:
    return numeric_scores(about[AUDITOR], [Verdict.model_validate(one[VERDICT]) for one in answered])


# Without "march/" before them, as the viewer's narrow columns show the first letters of a name.
@metric(name="average")
@of_march
def average() -> Metric:
    """The mean over the items that have the score; NaN where none has."""

    def compute(scores: list[SampleScore]) -> Value:
        return math.fsum(one.score.as_float() for one in scores) / len(scores) if scores else NAN

    return compute


@metric(name="se")
@of_march
def standard_error() -> Metric:
    """Its standard error, clustered by document; NaN with fewer than two documents."""

    def compute(scores: list[SampleScore]) -> Value:
        found = [(str((one.sample_metadata or {})["cluster"]), one.score.as_float()) for one in scores]
        error = clustered_error(found)
        return NAN if error is None else error

    return compute


FIGURES: Mapping[str, Sequence[Metric]] = {"*": (average(), standard_error())}  # of every score of a scorer


def item_scores(log: EvalLog) -> list[ItemScores]:
    """The scores of every item of a log, as the statistics read them.

    Args:
        log: Read with its samples' reductions.

    Raises:
        ValueError: the log was not reduced by `march/majority`.
    """
    items: dict[str, ItemScores] = {}
    for reduction in log.reductions or ():
        for one in reduction.samples:
            about, item = one.metadata or {}, str(one.sample_id)
            if "cluster" not in about or not isinstance(one.value, Mapping):
                raise ValueError(
                    f"{log.location}: {reduction.reducer}: is not march/majority; score it again"
                )
            found = {name: float(str(value)) for name, value in one.value.items()}
            scores = {name: None if math.isnan(value) else value for name, value in found.items()}
            before = items[item].scores if item in items else {}
            place = {"slice": about["slice"], "cluster": about["cluster"]}
            items[item] = ItemScores(item=item, scores=before | scores, **place)
    return list(items.values())

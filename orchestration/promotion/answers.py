"""Figures of the answers themselves, against gaming: who says less is refuted less.

Under zero tolerance the easiest way to a better score is to state fewer numbers, to refuse, or to drown what
is wrong. So the candidate's answers to the same questions may not have fewer numbers, more numbers that no
claim covers, more answers without numbers, more refusals or another length than the champion's, beyond
bounds, each shown by a 95% interval by document.

A share that may not rise changes rarely, and in one direction, so its bounds are Gaffke's as those of slices.
A bound on a ratio r of two means is one on a difference: mean(candidate) - r * mean(champion) >= 0.
"""

import re
from collections.abc import Callable, Sequence
from statistics import fmean

from orchestration.promotion.policy import GatePolicy
from orchestration.promotion.records import Contest, Evidence, GateResult, GateState, by_interval, ends_of
from pipeline.evaluate.benchmarks.prompts import judged_text
from pipeline.evaluate.results import ItemResult
from pipeline.statistics import ItemScores, estimates, paired_difference
from reward.types import Outcome, Verdict

# English phrases of refusals. A champion is measured by the same ones, so only a change of habit counts.
_REFUSAL = re.compile(
    r"\b(?:(?:can ?not|can't|unable to|not able to) (?:answer|determine|find|provide|help)"
    r"|(?:don't|do not) know"
    r"|(?:does not|doesn't|do not|don't) (?:contain|provide|mention|include|have) "
    r"(?:enough |sufficient |any |the )?(?:information|answer|details)"
    r"|not enough information|insufficient information|no information|unanswerable)\b",
    re.IGNORECASE,
)
_MOST_CHARS = 20_000  # of an answer that is searched for a refusal
_FIGURE = "figure"
Measure = Callable[[ItemResult], float | None]


def is_refusal(text: str) -> bool:
    """Whether an answer declines to answer; an empty one does."""
    return not text.strip() or _REFUSAL.search(text[:_MOST_CHARS]) is not None


def num_mentions(item: ItemResult) -> float | None:
    """Mentions an answer, over the audited generations of an item."""
    return _mean([float(one.num_mentions) for one in _audited(item)])


def uncovered_rate(item: ItemResult) -> float | None:
    """Share of an answer's mentions that no claim covers, over generations with some."""
    with_mentions = [one for one in _audited(item) if one.num_mentions]
    return _mean([min(1.0, len(one.uncovered) / one.num_mentions) for one in with_mentions])


def champions_uncovered_rate(item: ItemResult) -> float | None:
    """The same of the champion, whose answer without a number leaves none uncovered.

    Else the candidate could state what no claim covers wherever the champion states nothing.
    """
    rate = uncovered_rate(item)
    return 0.0 if rate is None and _audited(item) else rate


def no_claims_rate(item: ItemResult) -> float | None:
    """Share of generations without a number to check."""
    return _mean([float(one.outcome is Outcome.NO_CLAIMS) for one in _audited(item)])


def refusal_rate(item: ItemResult) -> float | None:
    """Share of generations that refuse."""
    return _mean([float(is_refusal(judged_text(one.prompt, one.text))) for one in item.generations])


def num_chars(item: ItemResult) -> float | None:
    """Length of an answer, without thought and notes."""
    return _mean([float(len(judged_text(one.prompt, one.text))) for one in item.generations])


def answers_gate(contest: Contest, policy: GatePolicy) -> list[GateResult]:
    """Are the candidate's answers of the champion's kind?"""
    settings = policy.answers
    found = [
        _ratio("numbers", num_mentions, contest, least=settings.least_numbers),
        _rate(
            "uncovered",
            uncovered_rate,
            contest,
            most=settings.uncovered_margin,
            of_champion=champions_uncovered_rate,
        ),
        _rate("no claims", no_claims_rate, contest, most=settings.no_claims_margin),
        _rate("refusals", refusal_rate, contest, most=settings.refusals_margin),
        _ratio("length", num_chars, contest, least=settings.shortest, most=settings.longest),
    ]
    return [_excuse(one, required=settings.required) for one in found]


def first_answers_gate(contest: Contest, policy: GatePolicy) -> list[GateResult]:
    """Does the first champion say anything at all?"""
    wanted = {
        "no claims": (no_claims_rate, policy.first.max_no_claims),
        "refusals": (refusal_rate, policy.first.max_refusals),
    }
    found = []
    for name, (measure, most) in wanted.items():
        estimate = estimates(_scores(contest.candidate, measure)).get(_FIGURE)
        value, interval = (estimate.value, estimate.interval) if estimate else (None, None)
        reason = "no answer was audited" if value is None else f"{value:.1%} of the answers"
        result = GateResult(
            gate=name,
            state=by_interval(interval, most=most),
            figures={"value": value, **ends_of(interval)},
            bound=f"<= {most:g}",
            reason=reason,
        )
        found.append(_excuse(result, required=policy.answers.required))
    return found


def _ratio(
    name: str, measure: Measure, contest: Contest, *, least: float, most: float | None = None
) -> GateResult:
    """A mean that may not fall below `least` times the champion's, nor rise above `most` times."""
    before, after = _both(contest, measure)
    states = [_at_least(before, after, least)]
    if most is not None:
        states.append(_at_least(after, before, 1 / most))
    old, new = _value(before), _value(after)
    ratio = new / old if old and new is not None else None
    worst = next((one for one in (GateState.FAILED, GateState.INCONCLUSIVE) if one in states), states[0])
    return GateResult(
        gate=name,
        state=worst,
        figures={"champion": old, "candidate": new, "ratio": ratio},
        bound=f">= {least:g} times" + (f", <= {most:g} times" if most is not None else ""),
        reason="nothing to compare" if ratio is None else f"{ratio:.2f} times the champion's",
    )


def _at_least(before: Sequence[ItemScores], after: Sequence[ItemScores], ratio: float) -> GateState:
    """Whether mean(after) >= ratio * mean(before); both are scaled into [0, 1] by one factor."""
    every = [one.scores[_FIGURE] for one in (*before, *after)]
    top = max((one for one in every if one is not None), default=0.0)
    if all(one is None for one in every):
        return GateState.INCONCLUSIVE
    if top == 0:
        return GateState.PASSED  # neither has any, so none has fewer
    found = paired_difference(_scaled(before, ratio / top), _scaled(after, 1 / top), _FIGURE)
    return by_interval(found.interval, least=0.0)


def _rate(
    name: str, measure: Measure, contest: Contest, *, most: float, of_champion: Measure | None = None
) -> GateResult:
    """A share that may not rise by more than a margin."""
    found = paired_difference(*_both(contest, measure, of_champion), _FIGURE, is_cautious=True)
    return GateResult(
        gate=name,
        state=by_interval(found.interval, most=most),
        figures={"champion": found.baseline, "candidate": found.candidate, **ends_of(found.interval)},
        bound=f"high < {most:g}",
        reason="nothing to compare" if found.value is None else f"{found.value:+.1%}",
    )


def _excuse(found: GateResult, *, required: bool) -> GateResult:
    """Passes a gate for which nothing was audited, if the policy says so."""
    nothing = all(value is None for value in found.figures.values())
    if required or not nothing:
        return found
    return found.model_copy(update={"state": GateState.PASSED, "reason": "not audited (required: false)"})


def _both(
    contest: Contest, measure: Measure, of_champion: Measure | None = None
) -> tuple[list[ItemScores], list[ItemScores]]:
    """Scores of the champion and of the candidate."""
    assert contest.champion is not None
    return _scores(contest.champion, of_champion or measure), _scores(contest.candidate, measure)


def _scores(evidence: Evidence, measure: Measure) -> list[ItemScores]:
    return [
        ItemScores(
            item=f"{name}/{one.item}",
            slice=name,
            cluster=f"{name}/{one.cluster}",
            scores={_FIGURE: measure(one)},
        )
        for name in evidence.measured
        for one in evidence.items[name]
    ]


def _scaled(items: Sequence[ItemScores], factor: float) -> list[ItemScores]:
    found = []
    for one in items:
        value = one.scores[_FIGURE]
        scaled = None if value is None else min(1.0, value * factor)
        found.append(one.model_copy(update={"scores": {_FIGURE: scaled}}))
    return found


def _audited(item: ItemResult) -> list[Verdict]:
    verdicts = [one.verdict for one in item.generations if one.verdict is not None]
    return [one for one in verdicts if one.outcome is not Outcome.UNSCORED]


def _value(items: Sequence[ItemScores]) -> float | None:
    return _mean([value for one in items if (value := one.scores[_FIGURE]) is not None])


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None

"""Is the candidate better, and nowhere worse? Paired differences, clustered by document.

The primary score must be better: the one-sided lower bound at `alpha` lies above `min_difference`. For one
benchmark it is the bootstrap's over documents; for the average of several Student's t from clustered errors,
with Welch's degrees of freedom (`pipeline/statistics.py`): a benchmark of three documents makes it wide.

No slice may be worse by more than a margin (non-inferiority). Each of k slices has a bound at alpha / k
(Bonferroni; Dunn 1961), so that all that is said of slices holds together with 1 - alpha. For the promotion
alone that is stricter than needed: where every slice must pass, each test at alpha is enough (intersection-
union; Berger 1982). It is kept because "failed" is said by the same bounds, and there many looks do count.
They are Gaffke's: of a candidate that only loses, and rarely, the bootstrap's let too much pass.

With few differing items a bootstrap's bound is too bold (four items better and none worse would do), so
`min_changed` documents must differ; the simulation of docs/promotion.md has both.
"""

from collections.abc import Sequence

from orchestration.promotion.policy import GatePolicy
from orchestration.promotion.records import (
    Contest,
    Evidence,
    GateResult,
    GateState,
    by_interval,
    demand_documents,
    ends_of,
)
from pipeline.evaluate.results import ItemResult
from pipeline.statistics import (
    OVERALL,
    ItemScores,
    PairedDifference,
    average_freedom,
    by_slice,
    estimates,
    macro_average,
    paired_difference,
)
from reward.offline.bootstrap import Interval


def primary_gate(contest: Contest, policy: GatePolicy) -> list[GateResult]:
    """Is the candidate better on the primary score, beyond chance?"""
    assert contest.champion is not None
    champion, candidate, settings = contest.champion, contest.candidate, policy.primary
    primary = primary_scores(candidate, policy)
    level = 1 - 2 * settings.alpha
    parts = {
        name: paired_difference(champion.items[name], candidate.items[name], score, level=level)
        for name, score in primary.items()
    }
    if len(parts) == 1:
        (part,) = parts.values()
        value, interval = part.value, part.interval
    else:
        average = macro_average(parts)
        value, error, interval = average.value, average.standard_error, None
        if value is not None and error is not None:
            from scipy.special import stdtrit

            width = error * float(stdtrit(average_freedom(list(parts.values())), 1 - settings.alpha))
            interval = Interval(low=value - width, high=value + width)
    num_documents = sum(part.num_clusters for part in parts.values())
    num_changed = sum(
        changed_documents(champion.items[name], candidate.items[name], score)
        for name, score in primary.items()
    )
    state = GateState.INCONCLUSIVE
    if value is None or interval is None:
        reason = "no item has the score of both"
    elif num_documents < settings.min_documents:
        reason = f"{num_documents} documents are too few"
    elif interval.high <= settings.min_difference:
        state, reason = GateState.FAILED, f"{value:+.3f}, not better"
    elif num_changed < settings.min_changed:
        reason = f"they differ on {num_changed} documents, too few"
    elif interval.low > settings.min_difference:
        state, reason = GateState.PASSED, f"{value:+.3f}, better beyond chance"
    else:
        reason = f"{value:+.3f} can be chance"
    figures = {"difference": value, **ends_of(interval), "documents": num_documents, "changed": num_changed}
    bound = f"low > {settings.min_difference:g} at alpha {settings.alpha:g}, "
    bound += f">= {settings.min_documents} documents, >= {settings.min_changed} changed"
    return [GateResult(gate="primary", state=state, figures=figures, bound=bound, reason=reason)]


def slices_gate(contest: Contest, policy: GatePolicy) -> list[GateResult]:
    """Is the candidate known to be no worse than the margin on each slice of each benchmark?"""
    assert contest.champion is not None
    pairs: dict[str, tuple[Sequence[ItemScores], Sequence[ItemScores], str]] = {}
    for name in contest.candidate.measured:
        before = by_slice(contest.champion.items[name])
        for part, items in by_slice(contest.candidate.items[name]).items():
            if part != OVERALL:
                pairs[f"{name}/{part}"] = (before.get(part, ()), items, contest.candidate.primary_of(name))
    num_judged = max(1, len(pairs.keys() - set(policy.slices.exempt)))
    level = 1 - 2 * policy.slices.alpha / num_judged
    return [
        _slice(name, paired_difference(before, after, score, level=level, is_cautious=True), policy)
        for name, (before, after, score) in pairs.items()
    ]


def _slice(name: str, found: PairedDifference, policy: GatePolicy) -> GateResult:
    settings = policy.slices
    result = GateResult(
        gate=f"slice {name}",
        state=by_interval(found.interval, least=-settings.margin),
        figures={"difference": found.value, **ends_of(found.interval)},
        bound=f"low > {-settings.margin:g}",
        reason="no difference is known" if found.value is None else f"{found.value:+.3f}",
    )
    result = demand_documents(result, found.num_clusters, least=settings.min_documents)
    if name in settings.exempt:
        update = {"state": GateState.PASSED, "reason": f"{result.reason}; exempt"}
        result = result.model_copy(update=update)
    return result


def floor_gate(contest: Contest, policy: GatePolicy) -> list[GateResult]:
    """Is the first champion good enough, with nothing to be better than?"""
    settings, items = policy.first, contest.candidate.items
    primary = primary_scores(contest.candidate, policy)
    parts = {name: estimates(items[name]).get(score) for name, score in primary.items()}
    only = next(iter(parts.values()))  # the bootstrap's interval, where there is but one
    figure = macro_average(parts) if len(parts) > 1 else only
    value, interval = (figure.value, figure.interval) if figure else (None, None)
    result = GateResult(
        gate="floor",
        state=by_interval(interval, least=settings.min_primary),
        figures={"value": value, **ends_of(interval)},
        bound=f"low >= {settings.min_primary:g}",
        reason="has no figure" if value is None else f"{value:.3f}",
    )
    num_documents = sum(part.num_clusters for part in parts.values() if part)  # that have the score
    return [demand_documents(result, num_documents, least=settings.min_documents)]


def primary_scores(evidence: Evidence, policy: GatePolicy) -> dict[str, str]:
    wanted, names = policy.primary, evidence.measured
    if wanted.benchmark is not None:
        if wanted.benchmark not in names:
            raise ValueError(f"primary.benchmark: {wanted.benchmark!r} was not evaluated; there are {names}")
        names = [wanted.benchmark]
    if not names:
        raise ValueError("the evaluation has no benchmark that measures the model")
    return {name: wanted.score or evidence.primary_of(name) for name in names}


def changed_documents(champion: Sequence[ItemResult], candidate: Sequence[ItemResult], score: str) -> int:
    """Documents with an item that both models have the score of and differ on."""
    before = {one.item: one.scores.get(score) for one in champion}
    changed = set()
    for one in candidate:
        old, new = before.get(one.item), one.scores.get(score)
        if old is not None and new is not None and old != new:
            changed.add(one.cluster)
    return len(changed)

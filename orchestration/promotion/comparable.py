"""Gates on the comparison itself: these weights, one yardstick, little missing, a known judge."""

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
from pipeline.evaluate.results import BenchmarkFigures
from pipeline.statistics import JUDGE, KAPPA, OVERALL

_SAME_SETTINGS = (
    *("version", "engine", "generation", "num_generations", "judge", "audit", "audit_settings", "limit"),
)
_LEAST_DOCUMENTS = 30  # of a calibration; of two on which a judge is right, kappa would be 1 to 1


def weights_gate(contest: Contest, policy: GatePolicy) -> list[GateResult]:
    """Were the registered weights evaluated, and not others under the same name?"""
    if not policy.weights_required:
        return [_said("weights", GateState.PASSED, "not asked for (weights_required: false)")]
    sides = [("candidate", contest.candidate, contest.candidate_weights)]
    if contest.champion is not None:
        sides.append(("champion", contest.champion, contest.champion_weights or ""))
    for name, evidence, registered in sides:
        evaluated = evidence.manifest.settings.get("weights_sha256")
        if evaluated is None:
            fix = "evaluate its folder, or set weights_required: false"
            return [_said("weights", GateState.INCONCLUSIVE, f"the {name}'s evaluation names none; {fix}")]
        if evaluated != registered:
            return [_said("weights", GateState.FAILED, f"the {name}'s evaluation is of other weights")]
    return [_said("weights", GateState.PASSED, "the evaluations are of the registered weights")]


def yardstick_gate(contest: Contest, policy: GatePolicy) -> list[GateResult]:
    """Were both asked the same items by the same prompts, sampling, seeds, judge and audit?"""
    assert contest.champion is not None
    here, there = contest.candidate.manifest, contest.champion.manifest
    different = [key for key in _SAME_SETTINGS if here.settings.get(key) != there.settings.get(key)]
    different += sorted(here.benchmarks.keys() ^ there.benchmarks.keys())
    for name in sorted(here.benchmarks.keys() & there.benchmarks.keys()):
        one, other = here.benchmarks[name], there.benchmarks[name]
        if (one.items_sha256, one.card.primary) != (other.items_sha256, other.card.primary):
            different.append(f"items of {name}")
        if (one.card.prompt_digest, one.style) != (other.card.prompt_digest, other.style):
            different.append(f"prompts of {name}")
    if different:
        return [_said("yardstick", GateState.FAILED, f"not the same: {', '.join(different)}")]
    if not has_seeds(contest.candidate):
        return [_said("yardstick", GateState.FAILED, "sampled without a seed; evaluate both with --seed")]
    return [_said("yardstick", GateState.PASSED, "same items, prompts, sampling, seeds, judge and audit")]


def has_seeds(evidence: Evidence) -> bool:
    """Whether generations and judgements have a seed."""
    settings = evidence.manifest.settings
    generation, judge = settings.get("generation"), settings.get("judge")
    judging = judge.get("judging") if isinstance(judge, dict) else None
    parts = [generation] if judge is None else [generation, judging]
    return all(isinstance(part, dict) and part.get("seed") is not None for part in parts)


def scored_gate(contest: Contest, policy: GatePolicy) -> list[GateResult]:
    """Is little missing? What cannot be scored is seldom missing by chance."""
    shares: dict[str, float | None] = {}
    for side, evidence in (("candidate", contest.candidate), ("champion", contest.champion)):
        for name in evidence.manifest.benchmarks if evidence else ():
            assert evidence is not None
            for what, share in _missing(evidence, name, policy).items():
                shares[f"{side}/{name}/{what}"] = share
    worst = max(shares, key=lambda key: shares[key] or 0.0)
    share, bound = shares[worst] or 0.0, policy.scored.max_missing
    state = GateState.PASSED if share <= bound else GateState.FAILED
    reason = f"most is missing of {worst}: {share:.1%}"
    return [GateResult(gate="scored", state=state, figures=shares, bound=f"<= {bound:g}", reason=reason)]


def _missing(evidence: Evidence, name: str, policy: GatePolicy) -> dict[str, float]:
    """Shares of items without a score that decides, of missing answers and judgements, of failed audits."""
    figures = evidence.manifest.benchmarks[name]
    items = evidence.items[name]
    deciding = {JUDGE if figures.is_calibration else evidence.primary_of(name)}
    if policy.primary.score is not None and name == policy.primary.benchmark:
        deciding.add(policy.primary.score)
    unscored = sum(any(one.scores.get(score) is None for score in deciding) for one in items)
    return {"items": unscored / len(items) if items else 1.0, **figures.missing}


def judge_gate(contest: Contest, policy: GatePolicy) -> list[GateResult]:
    """Does the judge agree with people, by the calibrations of the candidate's evaluation?"""
    floor, manifest = policy.judge.min_kappa, contest.candidate.manifest
    if not any(one.is_judged for one in manifest.measured.values()):
        return [_said("judge", GateState.PASSED, "rules judge, no model")]
    if floor is None:
        return [_said("judge", GateState.PASSED, "not asked for (judge.min_kappa: null)")]
    found = [one for one in manifest.benchmarks.values() if one.is_calibration]
    if not found:
        fix = "evaluate with --benchmark ragtruth_judge=... too"
        return [_said("judge", GateState.INCONCLUSIVE, f"its agreement with people is not known; {fix}")]
    return [_agreement(one, floor) for one in found]


def _agreement(one: BenchmarkFigures, floor: float) -> GateResult:
    kappa = one.estimates[OVERALL][KAPPA]
    found = GateResult(
        gate=f"judge {one.card.name}",
        state=by_interval(kappa.interval, least=floor),
        figures={"kappa": kappa.value, **ends_of(kappa.interval)},
        bound=f"low >= {floor:g}",
        reason="Cohen's kappa with people" if kappa.value is None else f"kappa with people {kappa.value:.2f}",
    )
    return demand_documents(found, kappa.num_clusters, least=_LEAST_DOCUMENTS)


def _said(gate: str, state: GateState, reason: str) -> GateResult:
    return GateResult(gate=gate, state=state, reason=reason)

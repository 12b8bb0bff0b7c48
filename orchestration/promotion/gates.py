"""All gates of a contest, pure: two evaluations and a policy in, a report out; what breaks is closed."""

from collections.abc import Callable, Mapping

from orchestration.promotion.answers import answers_gate, first_answers_gate
from orchestration.promotion.comparable import judge_gate, scored_gate, weights_gate, yardstick_gate
from orchestration.promotion.policy import GatePolicy
from orchestration.promotion.quality import floor_gate, primary_gate, slices_gate
from orchestration.promotion.records import Contest, GateReport, GateResult, GateState
from reward.provenance import json_sha256

Gate = Callable[[Contest, GatePolicy], list[GateResult]]

_AGAINST_A_CHAMPION: Mapping[str, Gate] = {
    "weights": weights_gate,
    "yardstick": yardstick_gate,
    "scored": scored_gate,
    "judge": judge_gate,
    "primary": primary_gate,
    "slices": slices_gate,
    "answers": answers_gate,
}
_FIRST: Mapping[str, Gate] = {
    "weights": weights_gate,
    "scored": scored_gate,
    "judge": judge_gate,
    "floor": floor_gate,
    "answers": first_answers_gate,
}


def run_gates(contest: Contest, policy: GatePolicy) -> GateReport:
    gates = _FIRST if contest.champion is None else _AGAINST_A_CHAMPION
    found = [result for name, gate in gates.items() for result in _closed(name, gate, contest, policy)]
    return GateReport(gates=tuple(found), policy_sha256=json_sha256([policy.model_dump(mode="json")]))


def _closed(name: str, gate: Gate, contest: Contest, policy: GatePolicy) -> list[GateResult]:
    """A gate that breaks, or says nothing, is an error and never a pass."""
    try:
        found = gate(contest, policy)
    except Exception as error:  # whatever it is, the candidate is not promoted
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return [GateResult(gate=name, state=GateState.ERROR, reason=f"{reason:.300}")]
    return found or [GateResult(gate=name, state=GateState.ERROR, reason="it found nothing to look at")]

"""A candidate before the gates: its version, both evaluations, the smoke test, all held together."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from orchestration.promotion.evidence import Contest, read_evidence
from orchestration.promotion.gates import run_gates
from orchestration.promotion.policy import GatePolicy
from orchestration.promotion.records import GateReport, GateResult, GateState
from orchestration.registry.decisions import Desk
from orchestration.registry.log import State
from orchestration.registry.smoke import smoke_gate
from orchestration.registry.store import ModelVersion
from orchestration.registry.weights import local_weights
from reward.samplers.start import demand_libraries


@dataclass(frozen=True)
class Trial:
    """What the gates said of a candidate, and the log's state that they were asked in."""

    candidate: ModelVersion
    report: GateReport
    seen: State

    @property
    def is_first(self) -> bool:
        """Whether there was no champion."""
        return self.seen.champion is None


def try_candidate(
    desk: Desk,
    reference: str,
    evaluation: Path,
    champion_evaluation: Path | None,
    policy: GatePolicy,
    *,
    is_dry: bool = False,
) -> Trial:
    """Asks all gates about a candidate.

    Args:
        desk: Of the model.
        reference: Version number or @ALIAS.
        evaluation: Of the candidate.
        champion_evaluation: Of the champion; passed over where there is none.
        policy: The bounds.
        is_dry: Nothing is fixed on the way.

    Raises:
        FileNotFoundError: an evaluation is not there.
        ValueError: the candidate is the champion already, or there is a champion and no evaluation of it, or
            there is no vLLM for the smoke test, or not what it needs of the system.
    """
    seen = desk.state() if is_dry else desk.fix()
    candidate = desk.version(reference)
    if candidate.version == seen.champion:
        raise ValueError(f"--candidate: version {candidate.version} is the champion already; name another")
    champion = desk.version(seen.champion) if seen.champion else None
    if champion is not None and champion_evaluation is None:
        raise ValueError(
            f"--champion-evaluation: missing; version {champion.version} is the champion, evaluate it, too"
        )
    contest = Contest(
        candidate=read_evidence(evaluation),
        champion=read_evidence(champion_evaluation) if champion and champion_evaluation else None,
        candidate_weights=candidate.sha256,
        champion_weights=champion.sha256 if champion else None,
    )
    report = run_gates(contest, policy)
    if report.state is GateState.PASSED:  # an engine is not started for what is refused anyway
        report = report.model_copy(update={"gates": (*report.gates, _smoke(candidate, policy))})
    return Trial(candidate, report, seen)


def _smoke(candidate: ModelVersion, policy: GatePolicy) -> GateResult:
    if policy.smoke.required:
        _demand_vllm()  # its absence says nothing about the weights
    try:
        weights = local_weights(candidate, pickles_allowed=policy.pickles_allowed)
        return smoke_gate(weights, policy.smoke)
    except (ValueError, OSError) as error:
        return GateResult(gate="smoke", state=GateState.ERROR, reason=f"{' '.join(str(error).split()):.300}")


def _demand_vllm() -> None:
    if find_spec("vllm") is None:
        raise ValueError(
            "smoke.required: vLLM, which tries the weights, is not installed here; promote where "
            "march-pipeline[train-cpu] or [train-gpu] is installed, or set it to false in the policy"
        )
    demand_libraries()

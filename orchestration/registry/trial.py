"""A candidate before the gates: its version, both evaluations, the smoke test, all held together."""

from dataclasses import dataclass
from importlib.util import find_spec

from orchestration.promotion.gates import run_gates
from orchestration.promotion.policy import GatePolicy
from orchestration.promotion.records import Contest, Evidence, GateReport, GateResult, GateState
from orchestration.registry.chain import State
from orchestration.registry.decisions import Decisions
from orchestration.registry.smoke import smoke_gate
from orchestration.registry.store import ModelVersion
from orchestration.registry.stored import hold_weights, local_weights
from reward.samplers.start import demand_libraries


@dataclass(frozen=True)
class Trial:
    """What the gates said of a candidate, and what was decided when they were asked."""

    candidate: ModelVersion
    report: GateReport
    seen: State
    evaluation: str | None = None  # manifests in the store of what the gates saw; None in a dry run
    champion_evaluation: str | None = None


def try_candidate(
    decisions: Decisions,
    reference: str,
    evidence: Evidence,
    theirs: Evidence | None,
    policy: GatePolicy,
    *,
    is_dry: bool = False,
) -> Trial:
    """Asks all gates about a candidate; `is_dry` leaves MLflow's aliases as they are.

    Raises:
        ValueError: the candidate is the champion already or has lost its weights, or there is a champion and
            no evaluation of it, or there is no vLLM for the smoke test, or not what it needs of the system.
    """
    seen = decisions.state() if is_dry else decisions.rebuild()
    candidate = decisions.version(reference)
    champion = decisions.version("@champion") if seen.champion else None
    if champion is not None and candidate.sha256 == champion.sha256:
        raise ValueError(f"--candidate: version {candidate.version} is the champion already; name another")
    if not is_dry:
        hold_weights(candidate.uri, decisions.chain.store)
    theirs = theirs if champion else None
    if champion is not None and theirs is None:
        raise ValueError(
            f"--champion-evaluation: missing; version {champion.version} is the champion, evaluate it, too"
        )
    contest = Contest(
        candidate=evidence,
        champion=theirs,
        candidate_weights=candidate.sha256,
        champion_weights=champion.sha256 if champion else None,
    )
    report = run_gates(contest, policy)
    if report.state is GateState.PASSED:  # an engine is not started for what is refused anyway
        report = report.model_copy(update={"gates": (*report.gates, _smoke(candidate, policy))})
    return Trial(candidate, report, seen, evidence.artifact, theirs.artifact if theirs else None)


def _smoke(candidate: ModelVersion, policy: GatePolicy) -> GateResult:
    if policy.smoke.required:
        if find_spec("vllm") is None:  # its absence says nothing about the weights
            raise ValueError(
                "smoke.required: vLLM, which tries the weights, is not installed here; promote where "
                "the extra train-cpu or train-gpu is installed, or set it to false in the policy"
            )
        demand_libraries()
    try:
        return smoke_gate(local_weights(candidate), policy.smoke)
    except (ValueError, OSError) as error:
        return GateResult(gate="smoke", state=GateState.ERROR, reason=f"{' '.join(str(error).split()):.300}")

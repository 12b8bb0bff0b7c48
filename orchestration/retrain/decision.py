"""The light stages: the lineage that refers to everything, the registered version, the decision.

A stage that was killed after it had done its work and before it said so finds what it did: the same lineage
has the same digest, the same weights are the same version, and a decision carries the stage's key.
"""

from __future__ import annotations

from pydantic import JsonValue

from orchestration.promotion.policy import GatePolicy
from orchestration.promotion.records import GateState
from orchestration.registry.chain import Action, Decision, State
from orchestration.registry.decisions import Decisions, LostRaceError
from orchestration.registry.open import open_decisions, open_registry
from orchestration.registry.register import register_weights
from orchestration.registry.stored import bring_evidence
from orchestration.registry.trial import try_candidate
from orchestration.retrain.evaluation import EVALUATION
from orchestration.retrain.records import Outcome
from orchestration.retrain.rows import ROWS
from orchestration.retrain.stages import StageResult
from orchestration.retrain.training import LINEAGE_FILE, MODEL, RUN
from orchestration.retrain.workshop import Workshop
from pipeline.artifacts.address import Artifact
from pipeline.lineage.collect import evaluation_record
from pipeline.lineage.publish import LINEAGE, publish_record
from pipeline.lineage.record import Lineage

_KEY_DIGITS = 12
_OUTCOMES = {Action.PROMOTE: Outcome.PROMOTED, Action.REQUEST: Outcome.WAITS, Action.REFUSE: Outcome.REFUSED}


class GateBrokeError(RuntimeError):
    """A gate could not say anything: that is no evidence against the candidate, and none for it."""


def publish(shop: Workshop) -> StageResult:
    """Publishes the lineage; weights, rows and evaluation, to which it refers, are there."""
    record = shop.bring(shop.material(RUN), shop.folder / RUN)
    lineage = Lineage.model_validate_json((record / LINEAGE_FILE).read_text())
    evaluation = shop.bring(shop.material(EVALUATION), shop.folder / EVALUATION)
    digest = publish_record(
        shop.store,
        lineage,
        model=shop.material(MODEL),
        rows=shop.material(ROWS) if lineage.data else None,
        evaluations=[evaluation_record(evaluation, shop.material(EVALUATION))],
    )
    return shop.result(outputs={LINEAGE: digest})


def register(shop: Workshop) -> StageResult:
    """Registers the weights by their address in the store; the same content is the same version."""
    settings = shop.job.registry
    registry = open_registry(settings.address)
    sha256 = str(shop.request.inputs["weights"])
    made_by = Artifact(shop.store, shop.material(LINEAGE)).address
    version, _ = register_weights(registry, settings.model, made_by)
    made = next(one for one in registry.versions(settings.model) if one.version == version)
    return shop.result(facts={"version": version, "registered_ms": made.created_ms, "weights_sha256": sha256})


def promote(shop: Workshop) -> StageResult:
    """Asks the gates, and decides.

    Raises:
        GateBrokeError: a gate is in error; nothing was decided.
        LostRaceError: another decision was first; nothing was decided.
    """
    settings, policy = shop.job.registry, shop.job.registry.read_policy()
    by = f"retrain {shop.job.name} {shop.request.key[:_KEY_DIGITS]}"
    decisions = open_decisions(settings.model, settings.address, shop.store, by=by)
    seen = decisions.rebuild()
    version = str(shop.request.inputs["version"])
    made = next((one.decision for one in decisions.chain.history() if one.decision.by == by), None)
    if made is not None and made.action in _OUTCOMES:
        return _said(shop, made, "decided by an attempt that was killed")
    if version == _champion(seen):
        return shop.result(
            facts={"outcome": Outcome.UNCHANGED, "version": version, "reason": "the same weights"}
        )
    _demand_the_evaluated(shop, decisions, seen)
    return _decide(shop, decisions, version, policy)


def _decide(shop: Workshop, decisions: Decisions, version: str, policy: GatePolicy) -> StageResult:
    theirs = shop.request.materials.get("champion_evaluation")
    given = bring_evidence(f"artifact:{shop.material(EVALUATION)}", shop.store)
    champions = bring_evidence(f"artifact:{theirs}", shop.store) if theirs else None
    trial = try_candidate(decisions, version, given, champions, policy)
    _demand_the_evaluated(shop, decisions, trial.seen)
    if trial.report.state is GateState.ERROR:
        raise GateBrokeError("; ".join(trial.report.reasons))
    made = decisions.promote(trial, policy)
    return _said(shop, made.decision, "; ".join(trial.report.reasons))


def _demand_the_evaluated(shop: Workshop, decisions: Decisions, seen: State) -> None:
    """Before the gates, which would call another one's evaluation wrong, and of what the gates saw."""
    if _champion(seen) != shop.request.materials.get("champion"):
        raise LostRaceError(f"{decisions.model}: the champion has changed; its evaluation is not of this one")


def _said(shop: Workshop, made: Decision, reason: str) -> StageResult:
    outcome, report = _OUTCOMES[made.action], made.report
    assert report is not None, "the gates were asked"
    if report.state is GateState.INCONCLUSIVE:
        outcome = Outcome.INCONCLUSIVE
    facts: dict[str, JsonValue] = {
        "outcome": outcome,
        "version": made.about.version,
        "was": made.was,
        "reason": made.reason or reason,
        "decision": made.number,
        "gates": report.model_dump(mode="json"),
    }
    return shop.result(facts=facts)


def _champion(seen: State) -> str | None:
    return seen.champion.version if seen.champion else None

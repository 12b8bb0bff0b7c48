"""The light stages: the lineage that refers to everything, the registered version, the decision.

A stage that was killed after it had done its work and before it said so finds what it did: the same lineage
has the same digest, the same weights are the same version, and a decision carries the stage's key.
"""

from __future__ import annotations

from pydantic import JsonValue

from orchestration.promotion.policy import GatePolicy
from orchestration.promotion.records import GateReport, GateState
from orchestration.registry.decisions import Desk, LostRaceError
from orchestration.registry.desk import open_desk
from orchestration.registry.log import Action, Effect, Numbered, State
from orchestration.registry.notify import tell
from orchestration.registry.register import register_weights
from orchestration.registry.stored import bring_evaluations
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
_MADE = (Action.PROMOTE, Action.REQUEST, Action.REFUSE)
_OUTCOMES = {Action.PROMOTE: Outcome.PROMOTED, Action.REQUEST: Outcome.WAITS, Action.REFUSE: Outcome.REFUSED}


class GateBrokeError(RuntimeError):
    """A gate could not say anything: that is no evidence against the candidate, and none for it."""


def publish(shop: Workshop) -> StageResult:
    """Publishes the lineage; weights, rows and evaluation, to which it refers, are there."""
    record = shop.bring(shop.material(RUN), shop.folder / RUN)
    lineage = Lineage.model_validate_json((record / LINEAGE_FILE).read_text())
    evaluation = shop.bring(shop.material(EVALUATION), shop.folder / EVALUATION)
    assert lineage.model is not None, "the training is done"
    found = evaluation_record(evaluation).model_copy(update={"artifact": shop.material(EVALUATION)})
    changes: dict[str, object] = {
        "model": lineage.model.model_copy(update={"artifact": shop.material(MODEL)}),
        "evaluations": (found,),
    }
    if lineage.data is not None:
        stored = {"artifact": shop.material(ROWS), "version_id": shop.request.materials.get("version_id")}
        changes["data"] = lineage.data.model_copy(update=stored)
    digest = publish_record(shop.store, lineage.model_copy(update=changes))
    return shop.result(outputs={LINEAGE: digest})


def register(shop: Workshop) -> StageResult:
    """Registers the weights by their address in the store; the same content is the same version."""
    settings = shop.job.registry
    registry = open_desk(settings.model, settings.address, settings.history).registry
    sha256 = str(shop.request.inputs["weights"])
    made_by = Artifact(shop.store, shop.material(LINEAGE)).address
    allowed = settings.read_policy().pickles_allowed
    version, _ = register_weights(registry, settings.model, made_by, sha256=sha256, pickles_allowed=allowed)
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
    desk = open_desk(settings.model, settings.address, settings.history, by=by)
    seen = desk.fix()
    version = str(shop.request.inputs["version"])
    made = next((one for one in seen.history if one.entry.by == by and _stands(one)), None)
    if made is not None:
        return _said(shop, made, "decided by an attempt that was killed")
    if version == seen.champion:
        return shop.result(
            facts={"outcome": Outcome.UNCHANGED, "version": version, "reason": "the same weights"}
        )
    _demand_the_evaluated(shop, desk, seen)
    return _decide(shop, desk, version, policy)


def _decide(shop: Workshop, desk: Desk, version: str, policy: GatePolicy) -> StageResult:
    theirs = shop.request.materials.get("champion_evaluation")
    candidate = Artifact(shop.store, shop.material(EVALUATION)).address
    champion = Artifact(shop.store, str(theirs)).address if theirs else None
    given = bring_evaluations(candidate, champion, lambda: shop.store)
    trial = try_candidate(desk, version, given.candidate, given.champion, policy)
    _demand_the_evaluated(shop, desk, trial.seen)
    if trial.report.state is GateState.ERROR:
        raise GateBrokeError("; ".join(trial.report.reasons))
    made = desk.promote(trial.candidate, trial.report, policy, trial.seen, tags=given.tags)
    tell(desk, policy, made)
    return _said(shop, made, "; ".join(trial.report.reasons), trial.report)


def _demand_the_evaluated(shop: Workshop, desk: Desk, seen: State) -> None:
    """Before the gates, which would call another one's evaluation wrong, and of what the gates saw."""
    if seen.champion != shop.request.materials.get("champion"):
        raise LostRaceError(f"{desk.model}: the champion has changed; its evaluation is not of this one")


def _said(shop: Workshop, made: Numbered, reason: str, report: GateReport | None = None) -> StageResult:
    outcome = _OUTCOMES[made.entry.action]
    if made.entry.gates is GateState.INCONCLUSIVE:
        outcome = Outcome.INCONCLUSIVE
    facts: dict[str, JsonValue] = {
        "outcome": outcome,
        "version": made.entry.version,
        "was": made.entry.champion,
        "reason": made.entry.reason or reason,
        "decision": made.number,
    }
    if report is not None:
        facts["gates"] = report.model_dump(mode="json")
    return shop.result(facts=facts)


def _stands(made: Numbered) -> bool:
    return made.entry.action in _MADE and made.effect in (Effect.IN_EFFECT, Effect.NOTED)

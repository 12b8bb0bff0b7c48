"""The light stages: the lineage that refers to everything, the registered version, the decision.

A stage that was killed after it had done its work and before it said so finds what it did: the same lineage
has the same digest, the same weights are the same version, and a decision carries the stage's key.
"""

from orchestration.promotion.records import GateState
from orchestration.registry.chain import Action, Decision, State
from orchestration.registry.decisions import Decisions, LostRaceError
from orchestration.registry.open import open_decisions
from orchestration.registry.register import register_weights
from orchestration.registry.store import Registry
from orchestration.registry.stored import bring_evidence
from orchestration.registry.trial import try_candidate
from orchestration.retrain.attempt import Attempt
from orchestration.retrain.evaluation import EVALUATION
from orchestration.retrain.records import Ending, Stage, StageResult
from orchestration.retrain.rows import ROWS
from orchestration.retrain.training import LINEAGE_FILE, MODEL, RUN
from pipeline.artifacts.address import Artifact
from pipeline.lineage.publish import LINEAGE, evaluation_record, publish_record
from pipeline.lineage.record import Lineage

_KEY_DIGITS = 12
_OUTCOMES = {Action.PROMOTE: Ending.PROMOTED, Action.REQUEST: Ending.WAITS, Action.REFUSE: Ending.REFUSED}


class GateBrokeError(RuntimeError):
    """A gate could not say anything: that is no evidence against the candidate, and none for it."""


def publish(attempt: Attempt) -> StageResult:
    """Publishes the lineage; weights, rows and evaluation, to which it refers, are there."""
    record = attempt.bring(attempt.made(Stage.TRAIN, RUN), attempt.folder / RUN)
    lineage = Lineage.model_validate_json((record / LINEAGE_FILE).read_text())
    evaluation = attempt.made(Stage.EVALUATE, EVALUATION)
    digest = publish_record(
        attempt.store,
        lineage,
        model=attempt.made(Stage.TRAIN, MODEL),
        rows=attempt.made(Stage.PREPARE, ROWS) if lineage.data else None,
        evaluations=[evaluation_record(attempt.bring(evaluation, attempt.folder / EVALUATION), evaluation)],
    )
    return attempt.result({LINEAGE: digest})


def register(attempt: Attempt) -> StageResult:
    """Registers the weights by their address in the store; the same content is the same version."""
    settings = attempt.job.registry
    registry = Registry(settings.address)
    sha256 = str(attempt.request.inputs["weights"])
    made_by = Artifact(attempt.store, attempt.made(Stage.PUBLISH, LINEAGE)).address
    version, _ = register_weights(registry, settings.model, made_by)
    made = next(one for one in registry.versions(settings.model) if one.version == version)
    # The weights' digest, so that a version's deletion finds this result.
    return attempt.result(
        {}, facts={"version": version, "weights_sha256": sha256, "registered_ms": made.created_ms}
    )


def promote(attempt: Attempt) -> StageResult:
    """Asks the gates, and decides.

    Raises:
        GateBrokeError: a gate is in error; nothing was decided.
        LostRaceError: another decision was first; nothing was decided.
    """
    settings, policy = attempt.job.registry, attempt.job.registry.read_policy()
    by = f"retrain {attempt.job.name} {attempt.request.key[:_KEY_DIGITS]}"
    decisions = open_decisions(settings.model, settings.address, attempt.store, by=by)
    seen = decisions.rebuild()
    version = str(attempt.request.inputs["version"])
    made = next((one.decision for one in decisions.chain.history() if one.decision.by == by), None)
    if made is not None and made.action in _OUTCOMES:
        return _decided(attempt, made, "decided by an attempt that was killed")
    if seen.champion is not None and decisions.version(version).sha256 == seen.champion.sha256:
        return _said(attempt, Ending.UNCHANGED, version, "the same weights")
    _demand_the_evaluated(attempt, decisions, seen)
    given = bring_evidence(_evaluation(attempt, Stage.EVALUATE), attempt.store)
    champions = None
    if attempt.request.champion:
        champions = bring_evidence(_evaluation(attempt, Stage.EVALUATE_CHAMPION), attempt.store)
    trial = try_candidate(decisions, version, given, champions, policy)
    _demand_the_evaluated(attempt, decisions, trial.seen)
    if trial.report.state is GateState.ERROR:
        raise GateBrokeError("; ".join(trial.report.reasons))
    made = decisions.promote(trial, policy).decision
    return _decided(attempt, made, "; ".join(trial.report.reasons))


def _evaluation(attempt: Attempt, stage: Stage) -> str:
    return Artifact(attempt.store, attempt.made(stage, EVALUATION)).address


def _demand_the_evaluated(attempt: Attempt, decisions: Decisions, seen: State) -> None:
    """Before the gates, which would call another one's evaluation wrong, and of what the gates saw."""
    evaluated = attempt.request.champion
    # By weights: a version that was deleted in MLflow and registered again has another number.
    if (seen.champion and seen.champion.sha256) != (evaluated and evaluated.sha256):
        raise LostRaceError(f"{decisions.model}: the champion has changed; its evaluation is not of this one")


def _decided(attempt: Attempt, made: Decision, reason: str) -> StageResult:
    report = made.report
    assert report is not None, "the gates were asked"
    is_unsure = report.state is GateState.INCONCLUSIVE
    outcome = Ending.INCONCLUSIVE if is_unsure else _OUTCOMES[made.action]
    return _said(attempt, outcome, made.about.version, made.reason or reason)


def _said(attempt: Attempt, outcome: Ending, version: str, reason: str) -> StageResult:
    return attempt.result({}, facts={"outcome": outcome, "version": version, "reason": reason})

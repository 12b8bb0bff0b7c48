"""The loop: one stage after the other, each only if its key has no result, until there is a decision.

What ends it early is an error with a name; in each case the same command goes on where it was. A refused or
inconclusive candidate is a finished retraining with that outcome; nothing but gates that passed promotes.
"""

from __future__ import annotations

import platform
import shutil
from collections import Counter
from collections.abc import Callable

from pydantic import JsonValue
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from orchestration.retrain.attempt import (
    ENDS,
    Account,
    OverBudgetError,
    Place,
    StageFailedError,
    follow,
)
from orchestration.retrain.inputs import give
from orchestration.retrain.ledger import now_ms
from orchestration.retrain.materials import MAX_MISSING, materials_of, put_files
from orchestration.retrain.records import (
    Outcome,
    ParentWeights,
    Retraining,
    RetrainingState,
    Seen,
    StageState,
)
from orchestration.retrain.results import Standing
from orchestration.retrain.stages import (
    Stage,
    StageProblem,
    StageRequest,
    StageResult,
    stage_folder,
    stage_key,
)
from orchestration.retrain.transient import patiently, problem_of
from orchestration.retrain.workshop import FILES


def retrain(
    place: Place, *, cause: str = "", seen: Seen | None = None, redo: Stage | None = None
) -> Retraining:
    """Retrains, or goes on with it; returns how it ended.

    Args:
        place: What it works with.
        cause: What started it, for people.
        seen: What this command found when it began; recorded with it.
        redo: A stage that is made again though it has a result; those after it, if they get other inputs.

    Raises:
        StageFailedError: a stage failed for good, or too often.
        OverBudgetError: the budget is spent.
        LeaseLostError: another machine took over.
        ValueError: the registry, the store or MLflow cannot be used.
    """
    given = patiently(lambda: give(place.plan, place.decisions))
    params = {"recipe": place.plan.recipe.name, "parent": given.parent.uri}
    params |= {"seed": str(place.plan.recipe.seed), "job": place.plan.job.model_dump_json()}
    found = place.ledger.open(place.plan.job, given, cause=cause, params=params)
    found = found.model_copy(update={"seen": seen or found.seen, "needs_person": False})
    if found.state.is_final and redo is None:
        if seen is not None or not found.is_closed:
            place.ledger.save(found)
        place.watch.show(found)
        return found
    loop = _Loop(place, found, redo)
    try:
        return loop.run()
    except ENDS as error:
        loop.end(_state_after(error), reason=str(error) or "interrupted", needs_person=_needs_person(error))
        raise


def standing_stages(place: Place, parent: ParentWeights) -> dict[Stage, Standing | None]:
    """What a run would find: results that stand, up to the first one that does not; starts nothing."""
    found: dict[Stage, Standing | None] = {}
    done: dict[Stage, StageResult] = {}
    for stage in Stage:
        if stage is Stage.EVALUATE_CHAMPION:
            continue
        standing = place.results.standing(stage, stage_key(stage, place.plan.inputs(stage, parent, done)))
        found[stage] = standing
        if standing is None:
            break
        done[stage] = standing.result
    return found


class _Loop:
    """One command's work on one retraining."""

    def __init__(self, place: Place, retraining: Retraining, redo: Stage | None) -> None:
        self._place, self._redo = place, redo
        self._account = Account(place, retraining)
        self._done: dict[Stage, StageResult] = {}
        self._attempts = Counter[str]()  # of this command, by key
        changes = {
            "state": RetrainingState.RUNNING,
            "ended_ms": None,
            "outcome": None,
            "reason": "",
            "machine": platform.node(),
        }
        self._account.change(**changes)
        self._account.save()

    def run(self) -> Retraining:
        """All stages in their order."""
        for stage in Stage:
            if stage is Stage.EVALUATE_CHAMPION:
                self._evaluate_champion()
            else:
                self._tried(stage, self._promote if stage is Stage.PROMOTE else self._act(stage))
        facts = self._done[Stage.PROMOTE].facts
        outcome = Outcome(str(facts["outcome"]))
        self._account.change(outcome=outcome, version=str(facts["version"]))
        waits = outcome is Outcome.WAITS
        state = RetrainingState.WAITING_FOR_APPROVAL if waits else RetrainingState.DONE
        return self.end(state, reason=str(facts.get("reason") or ""))

    def end(self, state: RetrainingState, *, reason: str, needs_person: bool = False) -> Retraining:
        """Writes down how it ended."""
        self._account.change(state=state, reason=reason[:1_000], ended_ms=now_ms(), needs_person=needs_person)
        self._account.save(or_warn=not state.is_final)
        return self._account.retraining

    def _act(self, stage: Stage) -> Callable[[], None]:
        return lambda: self._stage(stage)

    def _promote(self) -> None:
        """The decision, against whoever is champion when it is tried, and nobody else."""
        self._stage(Stage.PROMOTE, self._evaluate_champion())

    def _evaluate_champion(self) -> ParentWeights | None:
        """An evaluation of the champion by the same judge and seeds, unless there is one, or no champion.

        Returns:
            Whose evaluation it is.
        """
        stage = Stage.EVALUATE_CHAMPION
        self._done.pop(stage, None)
        champion = patiently(self._champion)
        if champion is None:
            self._account.stage(stage, state=StageState.NOT_NEEDED)
        else:
            self._tried(stage, lambda: self._stage(stage, champion))
        return champion

    def _champion(self) -> ParentWeights | None:
        decisions = self._place.decisions
        state = decisions.state()
        if state.champion is None:
            return None
        version = decisions.version("@champion")
        return ParentWeights(sha256=version.sha256, uri=version.uri, version=version.version)

    def _tried(self, stage: Stage, act: Callable[[], None]) -> None:
        """Tries a stage again while that may help."""
        retries = self._place.plan.job.retries

        def may_pass(error: BaseException) -> bool:
            return isinstance(error, StageFailedError) and error.stage is stage and error.problem.transient

        def tell(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            seconds = state.next_action.sleep if state.next_action else 0.0
            self._place.watch.waits(stage, str(error), seconds)

        trying = Retrying(
            retry=retry_if_exception(may_pass),
            stop=stop_after_attempt(retries.attempts),
            wait=wait_exponential(multiplier=retries.first_wait_s, max=retries.longest_wait_s),
            before_sleep=tell,
            reraise=True,
        )
        trying(act)

    def _stage(self, stage: Stage, champion: ParentWeights | None = None) -> None:
        """A stage, unless it has a result; one attempt, whose every failure gets the stage's name."""
        try:
            standing = self._standing(stage, champion)
        except ENDS:
            raise
        except Exception as error:
            problem = problem_of(error)
            self._account.stage(stage, state=StageState.FAILED, error=problem.line)
            raise StageFailedError(stage, problem) from error
        self._done[stage] = standing.result

    def _standing(self, stage: Stage, champion: ParentWeights | None) -> Standing:
        inputs = self._inputs(stage, champion)
        key = stage_key(stage, inputs)
        if stage is self._redo:
            self._redo = None  # not again by the next attempt
            self._place.results.forget(stage, key)
            shutil.rmtree(stage_folder(self._place.plan.job, stage, key), ignore_errors=True)
        status = self._account.status(stage)
        attempts = status.attempts if status.key == key else 0
        standing = self._place.results.standing(stage, key)
        reused = standing is not None and not attempts
        if standing is None:
            self._attempts[key] += 1
            request = StageRequest(
                job=self._place.plan.job,
                stage=stage,
                key=key,
                inputs=inputs,
                materials=self._materials(stage, champion),
                attempt=attempts + 1,
                command_attempt=self._attempts[key],
            )
            standing = self._attempt(request)
        elif reused:
            self._place.results.use(stage, key)
        done = {"state": StageState.DONE, "key": key, "error": None, "result": standing.digest}
        self._account.stage(stage, **done, reused=reused, figures=_figures(standing))
        self._account.save()
        return standing

    def _inputs(self, stage: Stage, champion: ParentWeights | None) -> dict[str, JsonValue]:
        plan = self._place.plan
        if stage is Stage.EVALUATE_CHAMPION:
            assert champion is not None and champion.sha256 is not None
            return plan.evaluation_of(champion.sha256)
        return plan.inputs(stage, self._account.retraining.parent, self._done)

    def _materials(self, stage: Stage, champion: ParentWeights | None) -> dict[str, JsonValue]:
        job, store = self._place.plan.job, self._place.results.store
        found = materials_of(stage, self._account.retraining.parent, self._done, champion)
        if job.cluster is not None and stage.is_heavy:
            found[FILES] = put_files(stage, job, store)
        if stage in (Stage.EVALUATE, Stage.EVALUATE_CHAMPION):  # a cluster does not have the policy's file
            found[MAX_MISSING] = job.registry.read_policy().scored.max_missing
        return found

    def _attempt(self, request: StageRequest) -> Standing:
        """Starts a stage and follows it to its end."""
        stage, account = request.stage, self._account
        account.check()
        started_ms = account.status(stage).started_ms or now_ms()
        begun = {"state": StageState.RUNNING, "key": request.key, "attempts": request.attempt, "error": None}
        account.stage(stage, **begun, started_ms=started_ms)
        account.save()  # the attempt counts though this process be killed
        problem = follow(account, stage, self._place.start(request))
        standing = self._place.results.standing(stage, request.key) if problem is None else None
        if standing is not None:
            return standing
        problem = problem or StageProblem(line="it ended and there is no result", transient=True)
        account.stage(stage, state=StageState.FAILED, error=problem.line)
        account.save(or_warn=True)
        raise StageFailedError(stage, problem)


def _figures(standing: Standing) -> dict[str, float]:
    """Numbers of a result, for people."""
    found: dict[str, float] = {}
    for name, value in standing.result.facts.items():
        if isinstance(value, dict) and name == "primary":
            found |= {f"primary/{key}": one for key, one in value.items() if isinstance(one, float)}
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = float(value)
    return found


def _state_after(error: BaseException) -> RetrainingState:
    if isinstance(error, OverBudgetError):
        return RetrainingState.STOPPED_BY_BUDGET
    return RetrainingState.FAILED if isinstance(error, StageFailedError) else RetrainingState.STOPPED


def _needs_person(error: BaseException) -> bool:
    if isinstance(error, StageFailedError):
        return error.problem.exit_code == 2
    return isinstance(error, OverBudgetError)

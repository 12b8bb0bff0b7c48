"""The loop: one stage after the other, each only if its key has no result, until there is a decision.

What ends it early is an error with a name; in each case the same command goes on where it was. A refused or
inconclusive candidate is a finished retraining with that outcome; nothing but gates that passed promotes.
"""

import logging
import platform
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from orchestration.registry.decisions import Decisions
from orchestration.retrain.attempt import FILE_KIND, FOLDER_KIND
from orchestration.retrain.inputs import Plan, champion_weights, files_of_job, starting_weights, whole_recipe
from orchestration.retrain.lease import Lease
from orchestration.retrain.ledger import Ledger, chosen, new_retraining, now_ms
from orchestration.retrain.local_stage import LocalStage
from orchestration.retrain.ray_jobs import RayStage
from orchestration.retrain.records import (
    Ending,
    ParentWeights,
    Retraining,
    RetrainingState,
    Seen,
    Spent,
    Stage,
    StageProblem,
    StageProgress,
    StageRequest,
    StageResult,
    StageState,
    stage_folder,
    stage_key,
)
from orchestration.retrain.results import Results, StoredResult
from orchestration.retrain.transient import patiently, problem_of
from orchestration.retrain.view import Watch

logger = logging.getLogger(__name__)

_POLL_S = 0.2
_SIGN_OF_LIFE_S = 15.0


class EndedEarlyError(RuntimeError):
    """There is no decision; the same command goes on."""

    ending, state = Ending.FAILED, RetrainingState.FAILED
    retraining: Retraining | None = None  # as it is recorded


class StageFailedError(EndedEarlyError):
    """A stage has no result."""

    def __init__(self, stage: Stage, problem: StageProblem) -> None:
        super().__init__(f"{stage}: {problem.line}")
        self.stage, self.problem = stage, problem
        if problem.exit_code == Ending.FIX.code:
            self.ending = Ending.FIX


class OverBudgetError(EndedEarlyError):
    """The budget is spent."""

    ending, state = Ending.OVER_BUDGET, RetrainingState.STOPPED_BY_BUDGET


class LeaseLostError(EndedEarlyError):
    """Another machine may run the job by now."""

    ending, state = Ending.RUNNING, RetrainingState.STOPPED


@dataclass(frozen=True)
class Place:
    plan: Plan
    decisions: Decisions
    results: Results
    ledger: Ledger
    lease: Lease | None
    start: Callable[[StageRequest], LocalStage | RayStage]
    watch: Watch


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
        EndedEarlyError: there is no decision.
    """
    parent, job = patiently(lambda: starting_weights(place.plan, place.decisions)), place.plan.job
    params = {"recipe": place.plan.recipe.name, "parent": parent.uri}
    params |= {"seed": str(place.plan.recipe.seed), "job": job.model_dump_json()}
    found = place.ledger.open(new_retraining(job, place.plan.digest, parent, cause=cause), params=params)
    found = found.model_copy(update={"seen": seen or found.seen, "needs_person": False})
    loop = _Loop(place, found, redo)
    if found.state.is_final and redo is None:
        loop.save()
        return found
    try:
        return loop.run()
    except LeaseLostError:
        raise  # the record is that of whoever runs the job now
    except EndedEarlyError as error:
        needs_person = error.ending in (Ending.FIX, Ending.OVER_BUDGET)
        error.retraining = loop.end(error.state, reason=str(error), needs_person=needs_person)
        raise
    except KeyboardInterrupt:
        loop.end(RetrainingState.STOPPED, reason="interrupted")
        raise


def planned(place: Place) -> Retraining:
    """What `retrain` would go on with, its stages as it would find them; starts and writes nothing.

    Stages are looked at up to the first one without a result, which decides the inputs of those after it.
    """
    job, parent = place.plan.job, starting_weights(place.plan, place.decisions)
    found = chosen(place.ledger.retrainings(job.name), new_retraining(job, place.plan.digest, parent))
    done: dict[Stage, StageResult] = {}
    stages = {one.stage: one.model_copy(update={"state": StageState.WAITING}) for one in found.stages}
    for stage in (one for one in Stage if one is not Stage.EVALUATE_CHAMPION):
        key = stage_key(stage, place.plan.inputs(stage, found.parent, done))
        there = place.results.find(stage, key)
        if there is None:
            break
        has_result = {"state": StageState.DONE, "reused": True, "key": key}
        stages[stage] = stages[stage].model_copy(update=has_result)
        done[stage] = there.result
    return found.model_copy(update={"stages": tuple(stages.values())})


class _Loop:
    """One command's work on one retraining."""

    def __init__(self, place: Place, retraining: Retraining, redo: Stage | None) -> None:
        self._place, self._job, self._redo = place, place.plan.job, redo
        self._now = retraining
        self._done: dict[Stage, StageResult] = {}
        self._champion: ParentWeights | None = None
        self._attempts = Counter[str]()  # of this command, by key

    def run(self) -> Retraining:
        self._change(state=RetrainingState.RUNNING, ended_ms=None, outcome=None, reason="")
        self._change(machine=platform.node())
        self.save()
        for stage in Stage:
            self._tried(stage)
        facts = self._done[Stage.PROMOTE].facts
        outcome = Ending(str(facts["outcome"]))
        self._change(outcome=outcome, version=str(facts["version"]))
        waits = outcome is Ending.WAITS
        state = RetrainingState.WAITING_FOR_APPROVAL if waits else RetrainingState.DONE
        return self.end(state, reason=str(facts.get("reason") or ""))

    def end(self, state: RetrainingState, *, reason: str, needs_person: bool = False) -> Retraining:
        self._change(state=state, reason=reason[:1_000], ended_ms=now_ms(), needs_person=needs_person)
        self.save(or_warn=not state.is_final)
        return self._now

    def save(self, *, patiently: bool = True, or_warn: bool = False) -> None:
        self._place.watch.show(self._now)
        self._demand_lease()
        try:
            self._place.ledger.save(self._now, patiently=patiently)
        except Exception as error:
            if not or_warn:
                raise
            logger.warning("MLflow was not updated: %s", error)

    def _change(self, **changes: object) -> None:
        self._now = self._now.model_copy(update={**changes, "last_sign_ms": now_ms()})

    def _mark(self, stage: Stage, **changes: object) -> None:
        found = self._now.stages
        self._change(
            stages=tuple(one.model_copy(update=changes) if one.stage is stage else one for one in found)
        )

    def _tried(self, stage: Stage) -> None:
        retries = self._job.retries

        def may_pass(error: BaseException) -> bool:
            return isinstance(error, StageFailedError) and error.stage is stage and error.problem.transient

        def tell(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            seconds = state.next_action.sleep if state.next_action else 0.0
            self._place.watch.waits(str(error), seconds)

        Retrying(
            retry=retry_if_exception(may_pass),
            stop=stop_after_attempt(retries.attempts),
            wait=wait_exponential(multiplier=retries.first_wait_s, max=retries.longest_wait_s),
            before_sleep=tell,
            reraise=True,
        )(lambda: self._once(stage))

    def _once(self, stage: Stage) -> None:
        """A stage, unless it has a result or is not needed; every failure gets the stage's name."""
        if stage is Stage.PROMOTE:  # against whoever is champion now, and nobody else
            self._tried(Stage.EVALUATE_CHAMPION)
        try:
            if stage is Stage.EVALUATE_CHAMPION:
                self._done.pop(stage, None)
                self._champion = patiently(lambda: champion_weights(self._place.decisions))
                if self._champion is None:
                    return self._mark(stage, state=StageState.NOT_NEEDED)
            self._done[stage] = self._result(stage).result
        except EndedEarlyError:
            raise
        except Exception as error:
            raise self._failed(stage, problem_of(error)) from error

    def _result(self, stage: Stage) -> StoredResult:
        champion = self._champion if stage in (Stage.EVALUATE_CHAMPION, Stage.PROMOTE) else None
        inputs = self._place.plan.inputs(stage, self._now.parent, self._done, champion)
        key, results = stage_key(stage, inputs), self._place.results
        found, is_again = results.find(stage, key), False
        if found and (stage is self._redo or (stage is Stage.REGISTER and not self._is_registered(found))):
            # Not where there is none: then an earlier command has begun to make it again.
            found, is_again = None, True
            results.forget(stage, key)
            shutil.rmtree(stage_folder(self._job, stage, key), ignore_errors=True)
        self._redo = None if stage is self._redo else self._redo
        status = self._now.status(stage)
        attempts = status.attempts if status.key == key else 0
        reused = found is not None and not attempts
        if found is None:
            self._attempts[key] += 1
            found = self._attempt(
                StageRequest(
                    job=self._job,
                    stage=stage,
                    key=key,
                    inputs=inputs,
                    attempt=attempts + 1,
                    command_attempt=self._attempts[key],
                    done=self._done,
                    parent=self._now.parent,
                    champion=champion,
                    files=self._files(stage),
                    redo=is_again,
                    max_missing=self._place.plan.policy.scored.max_missing,
                )
            )
        elif reused:
            results.use(stage, key)
        done = {"state": StageState.DONE, "key": key, "error": None, "result": found.digest}
        self._mark(stage, **done, reused=reused)
        self.save()
        return found

    def _is_registered(self, found: StoredResult) -> bool:
        """Whether the version of a result is there still; somebody may have deleted it in MLflow."""
        decisions, facts = self._place.decisions, found.result.facts
        versions = patiently(lambda: decisions.registry.versions(decisions.model))
        there = [(one.version, one.created_ms) for one in versions]
        return (facts["version"], facts["registered_ms"]) in there

    def _files(self, stage: Stage) -> dict[str, str]:
        """The job's own files, put into the store for a cluster that runs the stage."""
        if not self._job.cluster:
            return {}
        store, plan = self._place.results.store, self._place.plan
        files = {path: path for path in files_of_job(stage, self._job, plan.recipe)}
        if stage in (Stage.PREPARE, Stage.TRAIN) and (file := Path(self._job.recipe.name)).is_file():
            files[file] = whole_recipe(file, self._job)
        kinds = {name: FOLDER_KIND if path.is_dir() else FILE_KIND for name, path in files.items()}
        return {str(name): store.publish(files[name], kind=kind).digest for name, kind in kinds.items()}

    def _attempt(self, request: StageRequest) -> StoredResult:
        stage = request.stage
        self._check()
        begun = {"state": StageState.RUNNING, "key": request.key, "attempts": request.attempt, "error": None}
        self._mark(stage, **begun)
        self.save()  # the attempt counts though this process be killed
        problem = self._follow(stage, self._place.start(request))
        found = self._place.results.find(stage, request.key) if problem is None else None
        if found is None:
            none = StageProblem(line="it ended and there is no result", transient=True)
            error = self._failed(stage, problem or none)
            self.save(or_warn=True)
            raise error
        return found

    def _failed(self, stage: Stage, problem: StageProblem) -> StageFailedError:
        self._mark(stage, state=StageState.FAILED, error=problem.line)
        return StageFailedError(stage, problem)

    def _follow(self, stage: Stage, running: LocalStage | RayStage) -> StageProblem | None:
        """Watches a stage until it ends; returns why it has no result, None if it says that it has one."""
        before, started = self._now.status(stage), time.monotonic()
        said, spent_before = started, before.spent
        if isinstance(running, RayStage):  # which an earlier command may have followed and counted
            spent_before = before.spent_before if before.ray_job == running.id else before.spent
            self._mark(stage, ray_job=running.id, spent_before=spent_before)

        def pay() -> StageProgress:
            seconds, progress = time.monotonic() - started, running.progress()
            lasted = running.seconds() if isinstance(running, RayStage) else seconds
            spent = spent_before + Spent(hours=lasted / 3600, tokens=progress.tokens)
            self._mark(stage, spent=spent, wall_s=before.wall_s + seconds)
            return progress

        try:
            while not running.has_ended():
                progress = pay()
                self._check()
                if time.monotonic() - said >= _SIGN_OF_LIFE_S:
                    said = time.monotonic()
                    self.save(patiently=False, or_warn=True)
                self._place.watch.show(self._now, progress)
                time.sleep(_POLL_S)
        except LeaseLostError:
            if not isinstance(running, RayStage):  # which the new holder may follow
                running.stop()
            raise
        except BaseException:
            running.stop()
            pay()
            self._mark(stage, state=StageState.STOPPED)
            raise
        pay()
        return running.problem()

    def _check(self) -> None:
        line = self._now.spent.over(self._job.budget)
        if line is not None:
            raise OverBudgetError(f"{line}; raise it in the job, and the same command goes on")
        self._demand_lease()

    def _demand_lease(self) -> None:
        if self._place.lease is not None and self._place.lease.is_lost:
            raise LeaseLostError("the lease in the store was taken; another machine runs this job")

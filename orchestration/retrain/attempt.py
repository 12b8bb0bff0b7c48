"""One attempt at a stage: followed to its end, paid for, and stopped when the budget or the lease is gone."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from orchestration.registry.decisions import Decisions
from orchestration.retrain.budget import over_budget
from orchestration.retrain.inputs import Plan
from orchestration.retrain.lease import Lease
from orchestration.retrain.ledger import Ledger, now_ms
from orchestration.retrain.local_stage import RunningStage
from orchestration.retrain.records import Retraining, StageState, StageStatus
from orchestration.retrain.results import Results
from orchestration.retrain.stages import Spent, Stage, StageProblem, StageProgress, StageRequest

logger = logging.getLogger(__name__)

_POLL_S = 0.2
_SIGN_OF_LIFE_S = 15.0
Start = Callable[[StageRequest], RunningStage]


class Watch(Protocol):
    """Who is notified of how a retraining goes."""

    def show(self, retraining: Retraining, progress: StageProgress | None = None) -> None:
        """It has changed, or the running stage has moved on."""

    def waits(self, stage: Stage, line: str, seconds: float) -> None:
        """A stage failed and is tried again."""


class StageFailedError(RuntimeError):
    """A stage has no result."""

    def __init__(self, stage: Stage, problem: StageProblem) -> None:
        super().__init__(f"{stage}: {problem.line}")
        self.stage, self.problem = stage, problem


class OverBudgetError(RuntimeError):
    """The budget is spent."""


class LeaseLostError(RuntimeError):
    """Another machine may run the job by now."""


ENDS = (StageFailedError, OverBudgetError, LeaseLostError, KeyboardInterrupt)


@dataclass(frozen=True)
class Place:
    """What a retraining works with."""

    plan: Plan
    decisions: Decisions
    results: Results
    ledger: Ledger
    lease: Lease | None
    start: Start
    watch: Watch


class Account:
    """How a retraining is going now, in the ledger and on the screen."""

    def __init__(self, place: Place, retraining: Retraining) -> None:
        self._place = place
        self.retraining = retraining

    def status(self, stage: Stage) -> StageStatus:
        """Of a stage."""
        return next(one for one in self.retraining.stages if one.stage is stage)

    def stage(self, stage: Stage, **changes: object) -> None:
        """Changes how a stage is going."""
        stages = tuple(
            one.model_copy(update=changes) if one.stage is stage else one for one in self.retraining.stages
        )
        self.change(stages=stages)

    def change(self, **changes: object) -> None:
        """Changes how the retraining is going."""
        self.retraining = self.retraining.model_copy(update={**changes, "last_sign_ms": now_ms()})

    def save(self, *, patiently: bool = True, or_warn: bool = False) -> None:
        """Writes it to the ledger, and shows it.

        Raises:
            ValueError: MLflow cannot be reached, and that is not only warned of.
        """
        self.show()
        try:
            self._place.ledger.save(self.retraining, patiently=patiently)
        except Exception as error:
            if not or_warn:
                raise
            logger.warning("MLflow was not updated: %s", error)

    def show(self, progress: StageProgress | None = None) -> None:
        """Tells who watches."""
        self._place.watch.show(self.retraining, progress)

    def pay(self, before: StageStatus, seconds: float, progress: StageProgress) -> None:
        """Counts what the running attempt took so far."""
        spent = before.spent + Spent(hours=seconds / 3600, tokens=progress.tokens)
        self.stage(before.stage, spent=spent, wall_s=before.wall_s + seconds)

    def check(self) -> None:
        """Whether there is budget and lease to go on.

        Raises:
            OverBudgetError: the budget is spent.
            LeaseLostError: another machine may run the job.
        """
        line = over_budget(self.retraining.spent, self._place.plan.job.budget)
        if line is not None:
            raise OverBudgetError(f"{line}; raise it in the job, and the same command goes on")
        if self._place.lease is not None and self._place.lease.is_lost:
            raise LeaseLostError("the lease in the store was taken; another machine runs this job")


def follow(account: Account, stage: Stage, running: RunningStage) -> StageProblem | None:
    """Watches a stage until it ends; returns why it has no result, None if it says that it has one."""
    before, started = account.status(stage), time.monotonic()
    said = started
    try:
        while not running.has_ended():
            progress = running.progress()
            account.pay(before, time.monotonic() - started, progress)
            account.check()
            if time.monotonic() - said >= _SIGN_OF_LIFE_S:
                said = time.monotonic()
                account.save(patiently=False, or_warn=True)
            account.show(progress)
            time.sleep(_POLL_S)
    except BaseException:
        running.stop()
        account.pay(before, time.monotonic() - started, running.progress())
        account.stage(stage, state=StageState.STOPPED)
        raise
    account.pay(before, time.monotonic() - started, running.progress())
    return running.problem()

"""What watches a run beside its trainer: the canary, the guards, and our own share of the time.

The trainer calls it before a step's update (`begin`), when the step's figures are there (`judged`) and when
they and the checkpoint are on disk (`act`). All judgement is in `pipeline.training.guards`, which is pure.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pipeline.record.checkpoints import roll_back
from pipeline.record.metrics import Stopwatch
from pipeline.record.tracking import read_steps
from pipeline.settings.guards import GuardAction
from pipeline.training.canary import Canary
from pipeline.training.guards import Finding, due, findings, guard_metrics
from pipeline.training.trainer_settings import TrainerSettings

logger = logging.getLogger(__name__)


class EndedByGuardError(RuntimeError):
    """A guard ended the run."""

    exit_code: ClassVar[int]


class StoppedByGuardError(EndedByGuardError):
    """The run can go on from its last checkpoint."""

    exit_code = 3


class RolledBackError(EndedByGuardError):
    """The run ended at its last good checkpoint; what came later is marked as not to be used."""

    exit_code = 4


class Watch:
    """Of one run, in the trainer's process; a resumed run goes on with the record of the one before."""

    def __init__(self, settings: TrainerSettings) -> None:
        recipe = settings.recipe
        self.guards = recipe.guards
        self.canary = Canary(recipe, settings.run_dir / "canary") if recipe.canary_sampler else None
        self.max_staleness = recipe.rollout.max_staleness
        self.steps: list[Mapping[str, float]] = list(read_steps(settings.run_dir))
        self.found: list[Finding] = []
        self.clock = Stopwatch()  # our own code

    def begin(self, samples: Sequence[Any], step: int) -> None:
        """Before the update of a step (counted from 1): the canary gets its answers."""
        if self.canary:
            with self.clock:
                self.canary.ask(samples, step)

    def judged(self, metrics: Mapping[str, float]) -> dict[str, float]:
        """Returns the figures of a step with those of the canary and the guards."""
        metrics = {**metrics, **self._canary_metrics()}
        self.steps.append(metrics)
        self.found = findings(self.guards, self.steps)
        for finding in self.found:
            if finding.is_due and finding.num_over == finding.guard.patience:
                logger.warning("%s", finding)
        return {**metrics, **guard_metrics(self.found)}

    def _canary_metrics(self) -> dict[str, float]:
        """Waits for the canary, which is no work of ours: for its engine to start, in a run's first step."""
        if self.canary is None:
            return {}
        waiting = Stopwatch()
        with waiting:
            metrics = self.canary.metrics()
        return metrics | {"time/canary_s": waiting.take()}

    def is_good(self, step: int) -> bool:
        """Whether the answers of a step's checkpoint left all guards that act within their limits.

        A step's figures are those of the weights it began with, so they judge the checkpoint of the step
        before; answers of the asynchronous mode are up to `max_staleness` updates older. Guards are those of
        now, which a resume may have changed.
        """
        judging = range(step + 1, step + 2 + self.max_staleness)
        return judging[-1] <= len(self.steps) and all(
            finding.is_quiet for last in judging for finding in findings(self.guards, self.steps[:last])
        )

    def act(self, checkpoints: Path, step: int) -> None:
        """Ends the run if a guard is due.

        Raises:
            StoppedByGuardError: by a guard that stops.
            RolledBackError: by one that rolls back; the manifests of the checkpoints are marked.
        """
        finding = due(self.found)
        if finding is None:
            return
        if finding.guard.action is GuardAction.STOP:
            raise StoppedByGuardError(f"{finding}, at step {step}")
        good = roll_back(checkpoints, self.is_good)
        where = f"step {good}" if good else "the start, for no checkpoint's answers left all guards quiet"
        raise RolledBackError(f"{finding}, at step {step}; rolled back to {where}")

"""The one reader and writer of how retrainings go: one run of MLflow's experiment `march-retrain` each.

Its tags hold the record and its stages, its metrics what people look at. What is *done* the artifact store
says (`results.py`); MLflow says how it came about, and has the attempts and costs that budgets count.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from orchestration.registry.server import be_impatient
from orchestration.retrain.job import Job
from orchestration.retrain.records import ParentWeights, Retraining, RetrainingState, StageStatus
from orchestration.retrain.stages import Stage
from orchestration.retrain.transient import PATIENCE_S, patiently
from pipeline.evaluate.plan import digest as digest_of

EXPERIMENT = "march-retrain"
ID_TAG, JOB_TAG, STATE_TAG, OUTCOME_TAG = (
    "march.retrain.id", "march.retrain.job", "march.retrain.state", "march.retrain.outcome",
)  # fmt: skip
_RECORD_TAG, _SEEN_TAG, _STAGE_TAG = "march.retrain.record", "march.retrain.seen", "march.retrain.stage."
_MLFLOW_STATUS = {
    RetrainingState.RUNNING: "RUNNING",
    RetrainingState.FAILED: "FAILED",
    RetrainingState.STOPPED: "KILLED",
    RetrainingState.STOPPED_BY_BUDGET: "KILLED",
}
_T = TypeVar("_T")


@dataclass(frozen=True)
class Given:
    """What a retraining is asked to do."""

    digest: str  # of data, recipe, evaluation, policy and code
    parent: ParentWeights

    @property
    def id(self) -> str:
        """Of the retraining."""
        return digest_of(self.digest, self.parent.sha256 or self.parent.uri)


class Ledger:
    """The retrainings in MLflow.

    Args:
        uri: The tracking server, or sqlite:///FILE.
        patience_s: How long a write waits for a server that is gone.
    """

    def __init__(self, uri: str, *, patience_s: float = PATIENCE_S) -> None:
        from mlflow import MlflowClient

        be_impatient()
        self.uri = uri
        self._patience_s = patience_s
        self._client = MlflowClient(tracking_uri=uri)

    def open(
        self, job: Job, given: Given, *, cause: str = "", params: dict[str, str] | None = None
    ) -> Retraining:
        """The retraining of what is given: as it was left, or a new one.

        One that was left goes on from its own parent: its candidate may be the champion by now, and then
        another one would begin. Those that others left for good are said to be stopped.

        Raises:
            ValueError: MLflow cannot be reached.
        """
        of_job = self.retrainings(job.name)
        found = chosen(of_job, given)
        for one in of_job:
            if one.state is RetrainingState.RUNNING and (found is None or one.run_id != found.run_id):
                stopped = {"state": RetrainingState.STOPPED, "reason": "another one began"}
                self.save(one.model_copy(update={**stopped, "ended_ms": now_ms()}))
        return found or self._begin(job, given, cause, params or {})

    def find(self, job: Job, given: Given) -> Retraining | None:
        """What `open` would go on with."""
        return chosen(self.retrainings(job.name), given)

    def _begin(self, job: Job, given: Given, cause: str, params: dict[str, str]) -> Retraining:
        now = now_ms()
        made = Retraining(
            id=given.id,
            given=given.digest,
            parent=given.parent,
            job=job.name,
            model=job.registry.model,
            run_id="",
            state=RetrainingState.RUNNING,
            stages=tuple(StageStatus(stage=stage) for stage in Stage),
            started_ms=now,
            last_sign_ms=now,
            machine=platform.node(),
            cause=cause,
        )
        run_id = self._patiently(lambda: self._make_run(job, made, params))
        return made.model_copy(update={"run_id": run_id})

    def save(self, retraining: Retraining, *, patiently: bool = True) -> None:
        """Writes how a retraining is going.

        Args:
            retraining: All of it.
            patiently: Whether to wait for a server that is gone; a sign of life does not.

        Raises:
            ValueError: MLflow cannot be reached.
        """
        if patiently:
            self._patiently(lambda: self._write(retraining))
        else:
            self._write(retraining)

    def retrainings(self, job: str | None = None, *, limit: int = 100) -> list[Retraining]:
        """The last retrainings, newest first.

        Args:
            job: Of one job; None: of all.
            limit: No more than so many.

        Raises:
            ValueError: MLflow cannot be reached.
        """
        wanted = f"tags.`{JOB_TAG}` = '{job}'" if job else ""
        runs = self._patiently(lambda: self._search(wanted, limit))
        return [one for run in runs if (one := _read_run(run)) is not None]

    def _make_run(self, job: Job, made: Retraining, params: dict[str, str]) -> str:
        from mlflow.entities import Param

        name = f"{job.name}-{made.id[:8]}"
        run = self._client.create_run(self._experiment(), run_name=name, tags=_tags(made))
        kept = [Param(key, value[:6_000]) for key, value in params.items()]
        self._client.log_batch(run.info.run_id, params=kept)
        return str(run.info.run_id)

    def _experiment(self) -> str:
        from mlflow.exceptions import MlflowException

        found = self._client.get_experiment_by_name(EXPERIMENT)
        if found is not None:
            return str(found.experiment_id)
        try:
            return str(self._client.create_experiment(EXPERIMENT))
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            return self._experiment()

    def _write(self, retraining: Retraining) -> None:
        from mlflow.entities import Metric, RunTag

        now = now_ms()
        points = [Metric(name, value, now, 0) for name, value in _figures(retraining).items()]
        given = [RunTag(key, value) for key, value in _tags(retraining).items()]
        self._client.log_batch(retraining.run_id, tags=given, metrics=points)
        status = _MLFLOW_STATUS.get(retraining.state, "FINISHED")
        if self._client.get_run(retraining.run_id).info.status != status:
            self._client.update_run(retraining.run_id, status=status)

    def _search(self, query: str, limit: int) -> list[Any]:
        experiment = self._client.get_experiment_by_name(EXPERIMENT)
        if experiment is None:
            return []
        found = self._client.search_runs(
            [experiment.experiment_id],
            filter_string=query,
            max_results=limit,
            order_by=["attributes.start_time DESC"],
        )
        return list(found)

    def _patiently(self, act: Callable[[], _T]) -> _T:
        """Waits for a server that is restarted; any other error has one line."""
        from mlflow.exceptions import MlflowException

        try:
            return patiently(act, patience_s=self._patience_s)
        except MlflowException as error:
            problem = " ".join(str(error).split())
            raise ValueError(
                f"registry.uri {self.uri}: {problem:.300}; fix the address, or start the server"
            ) from error


def chosen(of_job: Sequence[Retraining], given: Given) -> Retraining | None:
    """One that was left and asks for the same, else one with the same parent, too.

    One that ended and was killed before it was closed is left, too: nobody was notified of how it ended.

    Args:
        of_job: The retrainings of one job, newest first.
        given: What is asked for.
    """
    left = (one for one in of_job if one.given == given.digest and not (one.state.is_final and one.is_closed))
    return next(left, None) or next((one for one in of_job if one.id == given.id), None)


def now_ms() -> int:
    """Milliseconds, for people; nothing is decided by them."""
    return int(time.time() * 1000)


def _tags(retraining: Retraining) -> dict[str, str]:
    """All of a retraining, in parts that MLflow has room for."""
    rest = retraining.model_dump(mode="json", exclude={"stages", "run_id", "is_closed", "seen"})
    return {
        ID_TAG: retraining.id,
        JOB_TAG: retraining.job,
        STATE_TAG: retraining.state.value,
        OUTCOME_TAG: retraining.outcome or "",
        _RECORD_TAG: json.dumps(rest),
        _SEEN_TAG: retraining.seen.model_dump_json() if retraining.seen else "null",
        **{f"{_STAGE_TAG}{one.stage}": one.model_dump_json() for one in retraining.stages},
    }


def _figures(retraining: Retraining) -> dict[str, float]:
    """What people see as metrics."""
    spent = retraining.spent
    figures = {"spent/hours": spent.hours, "spent/tokens": float(spent.tokens)}
    for one in _begun(retraining.stages):
        own = {"wall_s": one.wall_s, "attempts": float(one.attempts), **one.figures}
        figures |= {f"{one.stage}/{name}": value for name, value in own.items()}
    return figures


def _begun(stages: Sequence[StageStatus]) -> Iterator[StageStatus]:
    return (one for one in stages if one.key)


def _read_run(run: Any) -> Retraining | None:
    """A retraining from its run; None for a run that is none of ours."""
    tags = run.data.tags
    if _RECORD_TAG not in tags:
        return None
    tree = json.loads(tags[_RECORD_TAG])
    stages = [json.loads(tags[f"{_STAGE_TAG}{stage}"]) for stage in Stage]
    of_run = {"run_id": run.info.run_id, "is_closed": run.info.status != "RUNNING"}
    of_run["seen"] = json.loads(tags.get(_SEEN_TAG, "null"))
    return Retraining.model_validate({**tree, "stages": stages, **of_run})

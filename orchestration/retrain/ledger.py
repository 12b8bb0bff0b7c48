"""The one reader and writer of what is known of retrainings; nothing of it is in memory or on one disk alone.

    pointers/retrain/JOB/SHELF/KEY    in the artifact store: the result that stands for a key
    a run of `march-retrain`          in MLflow: one a retraining; stages are tags, times and costs metrics

The store decides what is done: a result is there, whole, or it is not. MLflow says how it came about, to
people and to `march status`; the attempts and the costs that it has are what budgets count.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from orchestration.retrain.job import Job
from orchestration.retrain.records import Retraining, RetrainingState, StageStatus
from orchestration.retrain.stages import Stage, StageResult
from orchestration.retrain.transient import is_transient
from pipeline.artifacts.failures import CorruptError, MovedError, StoreError
from pipeline.artifacts.store import ArtifactStore
from pipeline.artifacts.upkeep import find_damage

logger = logging.getLogger(__name__)

EXPERIMENT = "march-retrain"
KIND, FIELD = "stage", "stage"
ID_TAG, JOB_TAG, STATE_TAG, OUTCOME_TAG = (
    "march.retrain.id", "march.retrain.job", "march.retrain.state", "march.retrain.outcome",
)  # fmt: skip
_RECORD_TAG, _STAGE_TAG = "march.retrain.record", "march.retrain.stage."
_MLFLOW_STATUS = {
    RetrainingState.RUNNING: "RUNNING",
    RetrainingState.FAILED: "FAILED",
    RetrainingState.STOPPED: "KILLED",
    RetrainingState.STOPPED_BY_BUDGET: "KILLED",
}
_PATIENCE_S = 300.0  # for an MLflow server that is restarted
_PAGE = 200
_T = TypeVar("_T")


@dataclass(frozen=True)
class Standing:
    """A result that stands."""

    result: StageResult
    digest: str  # of its manifest


class Results:
    """The results of a job's stages, in the artifact store."""

    def __init__(self, store: ArtifactStore, job: str) -> None:
        self.store = store
        self._job = job

    def standing(self, stage: Stage, key: str) -> Standing | None:
        """The result for a key, if it stands and nothing that it names is lost or cut.

        Raises:
            StoreError: the store does not answer.
        """
        digest = self.store.pointed(self._pointer(stage.shelf, key))
        if digest is None:
            return None
        try:
            result = read_result(self.store, digest)
            damage = next(find_damage(self.store, [digest, *result.outputs.values()], read=False), None)
        except StoreError:
            raise
        except ValueError as error:
            logger.warning("%s of key %s is made again: %s", stage, key[:12], error)
            return None
        if damage is not None:
            logger.warning("%s of key %s is made again: %s %s", stage, key[:12], damage.what, damage.problem)
            return None
        return Standing(result, digest)

    def put(self, stage: Stage, result: StageResult) -> Standing:
        """Makes a result stand; of two for one key the first stays, and both writers get it."""
        published = self.store.publish(
            kind=KIND,
            refers=tuple(dict.fromkeys(result.outputs.values())),
            record={FIELD: result.model_dump(mode="json")},
        )
        name = self._pointer(result.stage, result.key)
        try:
            self.store.move(name, published.digest, expected=None)
        except MovedError:
            found = self.standing(stage, result.key)
            if found is not None:
                return found
            self.store.move(name, published.digest, expected=self.store.pointed(name))  # over a damaged one
        return Standing(result, published.digest)

    def _pointer(self, shelf: str, key: str) -> str:
        return f"retrain/{self._job}/{shelf}/{key}"


def read_result(store: ArtifactStore, digest: str) -> StageResult:
    """The result that a manifest holds.

    Raises:
        ValueError: it holds none.
    """
    manifest = store.manifest(digest)
    try:
        return StageResult.model_validate(manifest.record.get(FIELD))
    except ValidationError as error:
        raise CorruptError(f"{digest[:12]}: is no result of a stage; the stage is run again") from error


class Ledger:
    """The retrainings in MLflow.

    Args:
        uri: The tracking server, or sqlite:///FILE.
        patience_s: How long a write waits for a server that is gone.
    """

    def __init__(self, uri: str, *, patience_s: float = _PATIENCE_S) -> None:
        from mlflow import MlflowClient

        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
        self.uri = uri
        self._patience_s = patience_s
        self._client = MlflowClient(tracking_uri=uri)

    def open(self, job: Job, id: str, *, cause: str = "", params: dict[str, str] | None = None) -> Retraining:
        """The retraining of this id, new or as it was left.

        Raises:
            ValueError: MLflow cannot be reached.
        """
        found = next(iter(self.retrainings(job.name, id=id)), None)
        if found is not None:
            return found
        now = now_ms()
        made = Retraining(
            id=id,
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
        run_id = self._patiently(lambda: self._make_run(job, made, params or {}))
        return made.model_copy(update={"run_id": run_id})

    def save(self, retraining: Retraining, *, patiently: bool = True) -> None:
        """Writes how a retraining stands.

        Args:
            retraining: All of it.
            patiently: Whether to wait for a server that is gone; a sign of life does not.

        Raises:
            ValueError: MLflow cannot be reached.
        """
        write = lambda: self._write(retraining)  # noqa: E731
        self._patiently(write) if patiently else write()

    def retrainings(
        self, job: str | None = None, *, id: str | None = None, limit: int = 100
    ) -> list[Retraining]:
        """The last retrainings, newest first.

        Args:
            job: Of one job; None: of all.
            id: The one of this id.
            limit: No more than so many.

        Raises:
            ValueError: MLflow cannot be reached.
        """
        wanted = {JOB_TAG: job, ID_TAG: id}
        filters = [f"tags.`{tag}` = '{value}'" for tag, value in wanted.items() if value is not None]
        runs = self._patiently(lambda: self._search(" and ".join(filters), limit))
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
        found: list[Any] = []
        token: str | None = None
        while len(found) < limit:
            page = self._client.search_runs(
                [experiment.experiment_id],
                filter_string=query,
                max_results=min(_PAGE, limit - len(found)),
                order_by=["attributes.start_time DESC"],
                page_token=token,
            )
            found += page
            token = page.token
            if not token:
                break
        return found

    def _patiently(self, act: Callable[[], _T]) -> _T:
        """Waits for a server that is restarted; any other error has one line."""
        from mlflow.exceptions import MlflowException
        from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_exponential_jitter

        waiting = Retrying(
            retry=retry_if_exception(is_transient),
            stop=stop_after_delay(self._patience_s),
            wait=wait_exponential_jitter(initial=0.5, max=20),
            reraise=True,
        )
        try:
            return waiting(act)
        except MlflowException as error:
            problem = " ".join(str(error).split())
            raise ValueError(
                f"registry.uri {self.uri}: {problem:.300}; mend the address, or start the server"
            ) from error


def now_ms() -> int:
    """Milliseconds, for people; nothing is decided by them."""
    return int(time.time() * 1000)


def _tags(retraining: Retraining) -> dict[str, str]:
    """All of a retraining, in parts that MLflow has room for."""
    rest = retraining.model_dump(mode="json", exclude={"stages", "run_id"})
    return {
        ID_TAG: retraining.id,
        JOB_TAG: retraining.job,
        STATE_TAG: retraining.state.value,
        OUTCOME_TAG: retraining.outcome or "",
        _RECORD_TAG: json.dumps(rest),
        **{f"{_STAGE_TAG}{one.stage}": one.model_dump_json() for one in retraining.stages},
    }


def _figures(retraining: Retraining) -> dict[str, float]:
    """What people see as metrics."""
    spent = retraining.spent
    figures = {"spent/hours": spent.hours, "spent/tokens": float(spent.tokens)}
    for one in _begun(retraining.stages):
        figures |= {f"{one.stage}/wall_s": one.wall_s, f"{one.stage}/attempts": float(one.attempts)}
    return figures


def _begun(stages: Sequence[StageStatus]) -> Iterator[StageStatus]:
    return (one for one in stages if one.attempts)


def _read_run(run: Any) -> Retraining | None:
    """A retraining from its run; None for a run that is none of ours."""
    tags = run.data.tags
    if _RECORD_TAG not in tags:
        return None
    tree = json.loads(tags[_RECORD_TAG])
    stages = [json.loads(tags[f"{_STAGE_TAG}{stage}"]) for stage in Stage]
    return Retraining.model_validate({**tree, "stages": stages, "run_id": run.info.run_id})

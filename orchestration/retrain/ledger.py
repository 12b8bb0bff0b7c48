"""The one reader and writer of how retrainings go: one run of MLflow's experiment `march-retrain` each.

Its tags hold the record and its stages, its metrics what people look at. What is *done* the artifact store
says (`results.py`); MLflow says how it came about, and has the attempts and costs that budgets count.
"""

import json
import logging
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from orchestration.registry.server import EXISTS, one_line_errors, unless
from orchestration.retrain.job import Job
from orchestration.retrain.records import ParentWeights, Retraining, RetrainingState, Stage, StageStatus
from orchestration.retrain.transient import PATIENCE_S, patiently
from reward.provenance import json_sha256

EXPERIMENT = "march-retrain"
logger = logging.getLogger(__name__)

_TAG = "march.retrain."
_ROOM = 7_000  # characters of a tag; MLflow cuts what has more than 8,000
_MLFLOW_STATUS = {
    RetrainingState.RUNNING: "RUNNING",
    RetrainingState.FAILED: "FAILED",
    RetrainingState.STOPPED: "KILLED",
    RetrainingState.STOPPED_BY_BUDGET: "KILLED",
}
_LIMIT = 100  # the last retrainings
_MOST_CHARS = 6_000  # of a parameter, for which MLflow has room
_T = TypeVar("_T")


class Ledger:
    """The retrainings in MLflow; for a server that is gone it waits so long, then raises ValueError."""

    def __init__(self, uri: str, *, patience_s: float = PATIENCE_S) -> None:
        from mlflow import MlflowClient

        self._uri, self._patience_s = uri, patience_s
        with one_line_errors(uri):
            self._client = MlflowClient(tracking_uri=uri)

    def open(self, fresh: Retraining, *, params: dict[str, str] | None = None) -> Retraining:
        """What another retraining left, if it asks for the same, or the fresh one, written.

        Those that others left for good are said to be stopped.
        """
        of_job = self.retrainings(fresh.job)
        found = chosen(of_job, fresh)
        for one in of_job:
            if one.state is RetrainingState.RUNNING and one.run_id != found.run_id:
                stopped = {"state": RetrainingState.STOPPED, "reason": "another one began"}
                self.save(one.model_copy(update={**stopped, "ended_ms": now_ms()}))
        if found.run_id:
            return found
        return found.model_copy(
            update={"run_id": self._patiently(lambda: self._make_run(fresh, params or {}))}
        )

    def save(self, retraining: Retraining, *, patiently: bool = True) -> None:
        """Writes how a retraining is going; a sign of life does not wait for a server that is gone."""
        if patiently:
            self._patiently(lambda: self._write(retraining))
        else:
            self._write(retraining)

    def retrainings(self, job: str) -> list[Retraining]:
        """The last retrainings of a job, newest first."""
        runs = self._patiently(lambda: self._search(f"tags.`{_TAG}job` = '{job}'"))
        return [one for run in runs if (one := _read_run(run)) is not None]

    def _make_run(self, made: Retraining, params: dict[str, str]) -> str:
        from mlflow.entities import Param

        if self._client.get_experiment_by_name(EXPERIMENT) is None:
            unless(EXISTS, self._client.create_experiment, EXPERIMENT)  # which another one may just have made
        experiment = self._client.get_experiment_by_name(EXPERIMENT).experiment_id
        run = self._client.create_run(experiment, run_name=f"{made.job}-{made.id[:8]}", tags=_tags(made))
        kept = [Param(key, value[:_MOST_CHARS]) for key, value in params.items()]
        self._client.log_batch(run.info.run_id, params=kept)
        return str(run.info.run_id)

    def _write(self, retraining: Retraining) -> None:
        from mlflow.entities import Metric, RunTag

        now = now_ms()
        figures = {"spent/hours": retraining.spent.hours, "spent/tokens": retraining.spent.tokens}
        for one in retraining.stages:
            figures |= {f"{one.stage}/wall_s": one.wall_s, f"{one.stage}/attempts": one.attempts}
        points = [Metric(name, float(value), now, 0) for name, value in figures.items()]
        tags = [RunTag(key, value) for key, value in _tags(retraining).items()]
        self._client.log_batch(retraining.run_id, tags=tags, metrics=points)
        status = _MLFLOW_STATUS.get(retraining.state, "FINISHED")
        if self._client.get_run(retraining.run_id).info.status != status:
            self._client.update_run(retraining.run_id, status=status)

    def _search(self, query: str) -> list[Any]:
        found = self._client.get_experiment_by_name(EXPERIMENT)
        newest = ["attributes.start_time DESC"]
        ids = [found.experiment_id] if found else []
        return list(self._client.search_runs(ids, query, max_results=_LIMIT, order_by=newest)) if ids else []

    def _patiently(self, act: Callable[[], _T]) -> _T:
        """Waits for a server that is restarted; any other error has one line."""
        with one_line_errors(self._uri):
            return patiently(act, patience_s=self._patience_s)


def new_retraining(job: Job, given: str, parent: ParentWeights, *, cause: str = "") -> Retraining:
    """A retraining that begins now and that MLflow does not know yet; `given` is the digest of its plan."""
    now = now_ms()
    return Retraining(
        id=json_sha256([given, parent.sha256 or parent.uri]),
        given=given,
        parent=parent,
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


def chosen(of_job: Sequence[Retraining], fresh: Retraining) -> Retraining:
    """Of a job's retrainings, newest first, the one to go on with.

    That is one that was left and asks for the same, else one that ended so, else the fresh one. One that
    ended and was killed before it was closed is left, too: nobody was notified of how it ended.

    One whose candidate was registered goes on from its own parent: its candidate may be the champion by now,
    and then another one would begin. Before that, another champion to start from is another retraining.
    """
    asked = [one for one in of_job if one.given == fresh.given]
    same = [one for one in asked if one.id == fresh.id]
    left = [
        one
        for one in asked
        if not (one.state.is_final and one.is_closed) and (one in same or one.status(Stage.REGISTER).key)
    ]
    return next(iter([*left, *same, fresh]))


def now_ms() -> int:
    """Milliseconds, for people; nothing is decided by them."""
    return int(time.time() * 1000)


def _tags(retraining: Retraining) -> dict[str, str]:
    """All of a retraining, in parts that MLflow has room for; the first five are for people's searches."""
    rest = retraining.model_dump(mode="json", exclude={"stages", "run_id", "is_closed", "seen"})
    found = {
        "id": retraining.id,
        "job": retraining.job,
        "state": retraining.state.value,
        "outcome": retraining.outcome or "",
        "version": retraining.version or "",
        "record": json.dumps(rest),
        "seen": retraining.seen.model_dump_json() if retraining.seen else "null",
        **{f"stage.{one.stage}": one.model_dump_json() for one in retraining.stages},
    }
    return {f"{_TAG}{name}": part for whole, text in found.items() for name, part in _parted(whole, text)}


def _parted(name: str, text: str) -> Iterator[tuple[str, str]]:
    """A value in parts, since MLflow would cut it; the last part is short, if need be a space alone."""
    text += " " * (len(text) >= _ROOM and len(text) % _ROOM == 0)
    for number, start in enumerate(range(0, max(len(text), 1), _ROOM)):
        yield f"{name}.{number}" if number else name, text[start : start + _ROOM]


def _joined(tags: Mapping[str, str], name: str) -> str:
    """The parts of a value; behind a short one are those of a longer value of before."""
    text, number = tags[name], 1
    while len(text) == number * _ROOM and (part := tags.get(f"{name}.{number}")):
        text, number = text + part, number + 1
    return text


def _read_run(run: Any) -> Retraining | None:
    """A retraining from its run; None for a run that is none of ours, or that cannot be read."""
    tags = {name.removeprefix(_TAG): value for name, value in run.data.tags.items() if name.startswith(_TAG)}
    if "record" not in tags:
        return None
    try:
        found = json.loads(_joined(tags, "record"))
        found["stages"] = [json.loads(_joined(tags, f"stage.{stage}")) for stage in Stage]
        found |= {"run_id": run.info.run_id, "is_closed": run.info.status != "RUNNING"}
        found["seen"] = json.loads(_joined(tags, "seen")) if "seen" in tags else None
        return Retraining.model_validate(found)
    except (KeyError, ValueError) as error:  # cut, or of another release
        logger.warning("MLflow's run %s holds a retraining that cannot be read: %r", run.info.run_id, error)
        return None

"""A heavy stage as a Ray Job: the same entrypoint on a cluster; it fetches its inputs from the store.

The job's name holds the stage's key, so one that runs already (this process was killed, say) is attached to
and not started twice. Its log comes here; its last lines tell progress and problem. What the job's file
names by path (rows, benchmarks) is brought to the cluster by the store as well.

A question that fails or gets no answer stops nothing: it is asked again. Only when the cluster has not
answered for `cluster.patience_s` does the attempt end; its job runs on, and the next attempt attaches to it.
"""

import logging
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from orchestration.retrain.attempt import PROBLEM_MARK, PROGRESS_MARK, last_report
from orchestration.retrain.job import ClusterSettings, Job
from orchestration.retrain.local_stage import LOG_FILE
from orchestration.retrain.records import KEY_DIGITS, StageProblem, StageProgress, StageRequest, stage_folder
from reward.offline.files import replace_file

logger = logging.getLogger(__name__)

_LIVING, _SUCCEEDED = ("PENDING", "RUNNING"), "SUCCEEDED"
_LOST, _NO_SUCH_JOB = "LOST", "status code 404"  # what Ray's client says, and no status of Ray's
_LOOK_EVERY_S, _READ_EVERY_S = 2.0, 10.0
_STOP_S = 60.0
_ASK_S = 15.0  # for one answer of the dashboard; Ray's client waits for ever
_LAST_CHARS = 300
_NOT_SENT = ["runs", ".git", ".venv", "**/__pycache__", "*.egg-info"]
_Answer = TypeVar("_Answer")


class RayStage:
    """Starts a stage on a cluster, or attaches to it."""

    def __init__(self, request: StageRequest) -> None:
        cluster = request.job.cluster
        assert cluster is not None, "who asks for Ray has a cluster"
        self._client = open_client(cluster.address)
        self._patience_s = cluster.patience_s
        self._folder = stage_folder(request.job, request.stage, request.key)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._status, self._log = "PENDING", ""
        self._progress = StageProgress(label="waiting for the cluster")
        self._looked = self._read = 0.0
        self._answered, self._is_silent = time.monotonic(), False
        stage, key = re.escape(request.stage.result_name), request.key[:KEY_DIGITS]
        known = list(jobs_of(self._client, request.job, stage, key))
        self._began = time.monotonic()
        if living := [one for one in known if is_living(one)]:
            self.id = str(living[-1].submission_id)
            logger.info("%s runs already; attached to it", self.id)
            self._began -= max(0.0, time.time() - (living[-1].start_time or time.time() * 1000) / 1000)
        else:
            last = max((int(str(one.submission_id).rpartition("-")[2]) for one in known), default=0)
            name = f"march-{request.job.name}-{stage}-{key}-{last + 1}"
            self.id = _submit(self._client, request, cluster, name)

    def has_ended(self) -> bool:
        """Whether the job is over, or out of reach for too long; asked of the cluster every other second."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_EVERY_S:
            status = self._asked(lambda: self._client.get_job_status(self.id).value)
            self._status = status or self._status
            self._looked = time.monotonic()
            if status in _LIVING and now - self._read >= _READ_EVERY_S:
                self._read_log()
        return self._status not in _LIVING or time.monotonic() - self._answered > self._patience_s

    def problem(self) -> StageProblem | None:
        if self._status in _LIVING:
            line = f"Ray job {self.id}: the cluster has not answered for {self._patience_s:.0f} s"
            return StageProblem(line=f"{line}; the job was not stopped", transient=True)
        is_read = self._status != _LOST and self._read_log()
        if self._status == _SUCCEEDED:
            return None
        if self._status == _LOST:
            return StageProblem(line=f"Ray job {self.id}: the cluster has lost it", transient=True)
        until = time.monotonic() + _STOP_S
        while not is_read and time.monotonic() < until:  # it has the reason
            time.sleep(_LOOK_EVERY_S)
            is_read = self._read_log()
        reported = last_report(self._log, PROBLEM_MARK, StageProblem)
        if reported is not None:
            return reported
        info = self._asked(lambda: self._client.get_job_info(self.id))
        line = " ".join(str((info and info.message) or self._status).split())[-_LAST_CHARS:]
        return StageProblem(line=f"Ray job {self.id}: {line}; log: {self._folder / LOG_FILE}", transient=True)

    def seconds(self) -> float:
        """How long the job has run, also while nobody followed it."""
        return time.monotonic() - self._began

    def progress(self) -> StageProgress:
        return self._progress

    def stop(self) -> None:
        """Stops the job, and waits until it is; a cluster that does not answer is asked again."""
        until = time.monotonic() + _STOP_S
        while time.monotonic() < until:
            self._asked(lambda: self._client.stop_job(self.id))
            status = self._asked(lambda: self._client.get_job_status(self.id).value)
            if self._status == _LOST or (status is not None and status not in _LIVING):
                return
            time.sleep(0.5)
        logger.warning("%s may run on; `ray job stop %s` tries again", self.id, self.id)

    def _asked(self, ask: Callable[[], _Answer]) -> _Answer | None:
        """An answer of the cluster; None for none, which is said once, until there is one."""
        try:
            answer = ask()
        except Exception as error:  # Ray's client raises whatever went wrong, also of a proxy before it
            if _NO_SUCH_JOB in str(error):  # of a head that has started again
                self._status, self._answered = _LOST, time.monotonic()
                return None
            if not self._is_silent:
                line = f"{type(error).__name__}: {error}"
                logger.warning("%s: no answer of the cluster, asked again: %.300s", self.id, line)
            self._is_silent = True
            return None
        self._answered, self._is_silent = time.monotonic(), False
        return answer

    def _read_log(self) -> bool:
        """Brings the log here, and what it tells; False where the cluster does not answer."""
        log = self._asked(lambda: self._client.get_job_logs(self.id))
        self._read = time.monotonic()
        if log is not None:
            self._log = log
            self._progress = last_report(log, PROGRESS_MARK, StageProgress) or self._progress
            replace_file(self._folder / LOG_FILE, log)
        return log is not None


def open_client(address: str) -> Any:
    """Ray's client of a cluster's jobs, which gives each question up after a while."""
    from ray.job_submission import JobSubmissionClient

    class Client(JobSubmissionClient):  # type: ignore[misc]  # Ray has no types
        def _do_request(self, method: str, endpoint: str, **given: Any) -> Any:
            return super()._do_request(method, endpoint, **{"timeout": _ASK_S, **given})

    return Client(address)


def jobs_of(client: Any, job: Job, stage: str = "[a-z]+", key: str = "[0-9a-f]+") -> Iterator[Any]:
    """The jobs of a retraining's stages on a cluster, however they ended; `stage` and `key` are patterns."""
    name = re.compile(rf"march-{re.escape(job.name)}-{stage}-(?=[0-9a-f]{{{KEY_DIGITS}}}-){key}-\d+")
    return (one for one in client.list_jobs() if name.fullmatch(one.submission_id or ""))


def is_living(job: Any) -> bool:
    return job.status.value in _LIVING


def _submit(client: Any, request: StageRequest, cluster: ClusterSettings, name: str) -> str:
    variables = {name: os.environ[name] for name in cluster.environment if name in os.environ}
    runtime: dict[str, Any] = {"env_vars": {**request.job.environment, **variables}}
    if cluster.working_dir is not None:
        runtime |= {"working_dir": str(cluster.working_dir.absolute()), "excludes": _NOT_SENT}
    entrypoint = ["python", "-m", "orchestration.retrain.stage", request.model_dump_json()]
    return str(
        client.submit_job(
            entrypoint=shlex.join(entrypoint),
            submission_id=name,
            runtime_env=runtime,
            entrypoint_num_cpus=cluster.cpus or None,
            entrypoint_num_gpus=cluster.gpus or None,
            entrypoint_resources=cluster.resources or None,
        )
    )

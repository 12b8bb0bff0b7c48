"""A heavy stage as a Ray Job: the same entrypoint on a cluster; it fetches its inputs from the store.

The job's name holds the stage's key, so one that runs already (this process was killed, say) is attached to
and not started twice. Its log comes here; its last lines tell progress and problem. What the job's file
names by path (rows, benchmarks) is brought to the cluster by the store as well.

A question that fails or gets no answer stops nothing: it is asked again. Only when the cluster has not
answered for `cluster.patience_s` does the attempt end; its job runs on, and the next attempt attaches to it.
"""

from __future__ import annotations

import logging
import os
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import ValidationError

from orchestration.retrain.local_stage import LOG_FILE
from orchestration.retrain.stage import PROBLEM_MARK
from orchestration.retrain.stages import KEY_DIGITS, StageProblem, StageProgress, StageRequest, stage_folder
from orchestration.retrain.workshop import PROGRESS_MARK, PROGRESS_TO_LOG
from pipeline.atomic import write_atomically

logger = logging.getLogger(__name__)

LIVING, _SUCCEEDED = ("PENDING", "RUNNING"), "SUCCEEDED"
_LOOK_EVERY_S, _READ_EVERY_S = 2.0, 10.0
_STOP_S = 60.0
_ASK_S = 15.0  # for one answer of the dashboard; Ray's client waits for ever
_LAST_CHARS = 300
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
        self._status, self._log, self._progress = (
            "PENDING",
            "",
            StageProgress(label="waiting for the cluster"),
        )
        self._looked = self._read = 0.0
        self._answered, self._unanswered = time.monotonic(), set[str]()
        self.id = self._attached(request) or self._submitted(request)

    def has_ended(self) -> bool:
        """Whether the job is over, or out of reach for too long; asked of the cluster every other second."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_EVERY_S:
            status = self._asked("status", lambda: self._client.get_job_status(self.id).value)
            self._status = status or self._status
            self._looked = time.monotonic()
            if status in LIVING and now - self._read >= _READ_EVERY_S:
                self._read_log()
        return self._status not in LIVING or self._is_lost

    def problem(self) -> StageProblem | None:
        """What the stage's process said last, or what Ray says."""
        if self._status in LIVING:
            line = f"Ray job {self.id}: the cluster has not answered for {self._patience_s:.0f} s"
            return StageProblem(line=f"{line}; the job was not stopped", transient=True)
        is_read = self._read_log()
        if self._status == _SUCCEEDED:
            return None
        until = time.monotonic() + _STOP_S
        while not is_read and time.monotonic() < until:  # it has the reason
            time.sleep(_LOOK_EVERY_S)
            is_read = self._read_log()
        told = _last(self._log, PROBLEM_MARK)
        if told is not None:
            try:
                return StageProblem.model_validate_json(told)
            except ValidationError:
                logger.warning("%s: its last words cannot be read", self.id)
        info = self._asked("info", lambda: self._client.get_job_info(self.id))
        message = info.message if info is not None else None
        line = " ".join(str(message or self._status).split())[-_LAST_CHARS:]
        return StageProblem(line=f"Ray job {self.id}: {line}; log: {self._folder / LOG_FILE}", transient=True)

    def progress(self) -> StageProgress:
        """The log's last report."""
        return self._progress

    def stop(self) -> None:
        """Stops the job, and waits until it is; a cluster that does not answer is asked again."""
        until = time.monotonic() + _STOP_S
        while not self._is_stopped():
            if time.monotonic() > until:
                logger.warning("%s may run on; `ray job stop %s` tries again", self.id, self.id)
                return
            time.sleep(0.5)

    def _is_stopped(self) -> bool:
        """Asks it to stop, and whether it has; asking again does no harm."""
        self._asked("stop", lambda: self._client.stop_job(self.id))
        status = self._asked("status", lambda: self._client.get_job_status(self.id).value)
        return status is not None and status not in LIVING

    @property
    def _is_lost(self) -> bool:
        return time.monotonic() - self._answered > self._patience_s

    def _asked(self, what: str, ask: Callable[[], _Answer]) -> _Answer | None:
        """An answer of the cluster; None for none, which is said once, until there is one."""
        try:
            answer = ask()
        except Exception as error:  # Ray's client raises whatever went wrong, also of a proxy before it
            if what not in self._unanswered:
                line = f"{type(error).__name__}: {error}"
                logger.warning("%s: no answer about its %s, asked again: %.300s", self.id, what, line)
            self._unanswered.add(what)
            return None
        self._answered = time.monotonic()
        self._unanswered.discard(what)
        return answer

    def _attached(self, request: StageRequest) -> str | None:
        """The job of this key that is under way."""
        living = [
            one.submission_id
            for one in self._jobs(request)
            if one.status.value in LIVING and one.submission_id is not None
        ]
        if living:
            logger.info("%s runs already; attached to it", living[-1])
        return living[-1] if living else None

    def _submitted(self, request: StageRequest) -> str:
        cluster = request.job.cluster
        assert cluster is not None
        variables = {name: os.environ[name] for name in cluster.environment if name in os.environ}
        runtime: dict[str, Any] = {
            "env_vars": {**request.job.environment, **variables, PROGRESS_TO_LOG: "1"},
        }
        if cluster.working_dir is not None:
            runtime |= {"working_dir": str(cluster.working_dir.absolute()), "excludes": _NOT_SENT}
        entrypoint = ["python", "-m", "orchestration.retrain.stage", request.model_dump_json()]
        return str(
            self._client.submit_job(
                entrypoint=shlex.join(entrypoint),
                submission_id=f"{_prefix(request)}{len(self._jobs(request)) + 1}",
                runtime_env=runtime,
                entrypoint_num_cpus=cluster.cpus or None,
                entrypoint_num_gpus=cluster.gpus or None,
                entrypoint_resources=cluster.resources or None,
            )
        )

    def _jobs(self, request: StageRequest) -> Sequence[Any]:
        """All jobs of this key, however they ended."""
        prefix = _prefix(request)
        return [one for one in self._client.list_jobs() if (one.submission_id or "").startswith(prefix)]

    def _read_log(self) -> bool:
        """Brings the log here, and what it tells; False where the cluster does not answer."""
        log = self._asked("log", lambda: self._client.get_job_logs(self.id))
        self._read = time.monotonic()
        if log is None:
            return False
        self._log = log
        write_atomically(self._folder / LOG_FILE, self._log)
        told = _last(self._log, PROGRESS_MARK)
        if told is not None:
            with suppress(ValidationError):  # a line that is still being written
                self._progress = StageProgress.model_validate_json(told)
        return True


def open_client(address: str) -> Any:
    """Ray's client of a cluster's jobs, which gives each question up after a while.

    Raises:
        ConnectionError: nothing is there.
    """
    from ray.job_submission import JobSubmissionClient

    class Client(JobSubmissionClient):  # type: ignore[misc]  # Ray has no types
        def _do_request(self, method: str, endpoint: str, **given: Any) -> Any:
            return super()._do_request(method, endpoint, **{"timeout": _ASK_S, **given})

    return Client(address)


_NOT_SENT = ["runs", ".git", ".venv", "**/__pycache__", "*.egg-info"]


def _prefix(request: StageRequest) -> str:
    return f"march-{request.job.name}-{request.stage.shelf}-{request.key[:KEY_DIGITS]}-"


def _last(log: str, mark: str) -> str | None:
    """What follows the last mark."""
    found = [line for line in log.splitlines() if line.startswith(mark)]
    return found[-1].removeprefix(mark) if found else None

"""A heavy stage as a Ray Job: the same entrypoint on a cluster; it fetches its inputs from the store.

The job's name holds the stage's key, so one that runs already (this process was killed, say) is attached to
and not started twice. Its log comes here; its last lines tell progress and problem. What the job's file
names by path (rows, benchmarks) is brought to the cluster by the store as well.
"""

from __future__ import annotations

import logging
import os
import shlex
import time
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from orchestration.retrain.local_stage import LOG_FILE
from orchestration.retrain.stage import PROBLEM_MARK
from orchestration.retrain.stages import KEY_DIGITS, StageProblem, StageProgress, StageRequest, stage_folder
from orchestration.retrain.workshop import PROGRESS_MARK, PROGRESS_TO_LOG
from pipeline.record.checkpoints import write_atomically

logger = logging.getLogger(__name__)

_LIVING, _SUCCEEDED = ("PENDING", "RUNNING"), "SUCCEEDED"
_LOOK_EVERY_S, _READ_EVERY_S = 2.0, 10.0
_STOP_S = 60.0
_LAST_CHARS = 300


class RayStage:
    """Starts a stage on a cluster, or attaches to it."""

    def __init__(self, request: StageRequest) -> None:
        from ray.job_submission import JobSubmissionClient

        cluster = request.job.cluster
        assert cluster is not None, "who asks for Ray has a cluster"
        self._client: Any = JobSubmissionClient(cluster.address)
        self._folder = stage_folder(request.job, request.stage, request.key)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._status, self._log, self._progress = (
            "PENDING",
            "",
            StageProgress(label="waiting for the cluster"),
        )
        self._looked = self._read = 0.0
        self.id = self._attached(request) or self._submitted(request)

    def has_ended(self) -> bool:
        """Whether the job is over; asked of the cluster every other second."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_EVERY_S:
            self._looked = now
            self._status = self._client.get_job_status(self.id).value
        if self._status in _LIVING and now - self._read >= _READ_EVERY_S:
            self._read_log()
        return self._status not in _LIVING

    def problem(self) -> StageProblem | None:
        """What the stage's process said last, or what Ray says."""
        self._read_log()
        if self._status == _SUCCEEDED:
            return None
        told = _last(self._log, PROBLEM_MARK)
        if told is not None:
            try:
                return StageProblem.model_validate_json(told)
            except ValidationError:
                logger.warning("%s: its last words cannot be read", self.id)
        info = self._client.get_job_info(self.id)
        line = " ".join(str(info.message or self._status).split())[-_LAST_CHARS:]
        return StageProblem(line=f"Ray job {self.id}: {line}; log: {self._folder / LOG_FILE}", transient=True)

    def progress(self) -> StageProgress:
        """What the log told last."""
        return self._progress

    def stop(self) -> None:
        """Stops the job, and waits until it is."""
        self._client.stop_job(self.id)
        until = time.monotonic() + _STOP_S
        while self._client.get_job_status(self.id).value in _LIVING:
            if time.monotonic() > until:
                logger.warning("%s does not stop; `ray job stop %s` tries again", self.id, self.id)
                return
            time.sleep(0.5)

    def _attached(self, request: StageRequest) -> str | None:
        """The job of this key that is under way."""
        living = [
            one.submission_id
            for one in self._jobs(request)
            if one.status.value in _LIVING and one.submission_id is not None
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

    def _read_log(self) -> None:
        """Brings the log here, and what it tells."""
        self._read = time.monotonic()
        self._log = self._client.get_job_logs(self.id)
        write_atomically(self._folder / LOG_FILE, self._log)
        told = _last(self._log, PROGRESS_MARK)
        if told is not None:
            try:
                self._progress = StageProgress.model_validate_json(told)
            except ValidationError:
                return  # a line that is still being written


_NOT_SENT = ["runs", ".git", ".venv", "**/__pycache__", "*.egg-info"]


def _prefix(request: StageRequest) -> str:
    return f"march-{request.job.name}-{request.stage.shelf}-{request.key[:KEY_DIGITS]}-"


def _last(log: str, mark: str) -> str | None:
    """What stands after the last mark."""
    found = [line for line in log.splitlines() if line.startswith(mark)]
    return found[-1].removeprefix(mark) if found else None

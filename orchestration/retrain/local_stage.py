"""A stage on this machine: a process of its own, its log, its progress, its end; and what a kill left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from orchestration.registry.server import patient_environment
from orchestration.retrain.stage import ERROR_FILE, reserve
from orchestration.retrain.stages import StageProblem, StageProgress, StageRequest, stage_folder
from orchestration.retrain.workshop import PROGRESS_FILE, read_progress
from pipeline.atomic import write_atomically
from pipeline.launch.reward_servers import die_with_parent

LOG_FILE = "log.txt"
_REQUEST_FILE = "request.json"
_MARK = "MARCH_RETRAIN_STAGE"  # in the environment of all that a stage starts
_GRACE_S = 20.0  # for a stage that is asked to stop
_SOURCE = Path(__file__).parents[2]


class RunningStage(Protocol):
    """An attempt at a stage."""

    def has_ended(self) -> bool:
        """Whether it is over."""
        ...

    def problem(self) -> StageProblem | None:
        """Why it ended without a result; None: it says that there is one."""
        ...

    def progress(self) -> StageProgress:
        """How far it is."""
        ...

    def stop(self) -> None:
        """Ends it."""
        ...


class LocalStage:
    """Starts a stage here."""

    def __init__(self, request: StageRequest) -> None:
        self._folder = stage_folder(request.job, request.stage, request.key)
        self._folder.mkdir(parents=True, exist_ok=True)
        kill_leftovers(self._folder)
        (self._folder / PROGRESS_FILE).unlink(missing_ok=True)
        reserve(self._folder)
        write_atomically(self._folder / _REQUEST_FILE, request.model_dump_json(indent=1))
        command = [sys.executable, "-m", "orchestration.retrain.stage", str(self._folder / _REQUEST_FILE)]
        with (self._folder / LOG_FILE).open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=_environment(self._folder, request),
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def has_ended(self) -> bool:
        """Whether the process is over."""
        return self._process.poll() is not None

    def problem(self) -> StageProblem | None:
        """What the process said, or how it died."""
        code = self._process.wait()
        kill_leftovers(self._folder)
        if code == 0:
            return None
        try:
            return StageProblem.model_validate_json((self._folder / ERROR_FILE).read_bytes())
        except (OSError, ValidationError):
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            return StageProblem(line=f"its process {how}; log: {self._folder / LOG_FILE}", transient=True)

    def progress(self) -> StageProgress:
        """What the process wrote last."""
        return read_progress(self._folder)

    def stop(self) -> None:
        """Asks the process and all of its group to end, and then ends them."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        kill_leftovers(self._folder)


def kill_leftovers(folder: Path) -> int:
    """Ends what an attempt in this folder left running: engines and Ray outlive a parent that is killed.

    Nobody else's processes have the mark of this folder, and the job's lock is held.
    """
    mark, num_killed = f"{_MARK}={folder}".encode(), 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_left = mark in (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # gone, or another user's
        if is_left and int(process.name) != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process.name), signal.SIGKILL)
                num_killed += 1
    if num_killed:
        time.sleep(0.1)  # their ports and files are free a moment later
    return num_killed


def _environment(folder: Path, request: StageRequest) -> dict[str, str]:
    """Of a stage's process.

    The loop gives an MLflow that is away up soon, and tries again; a training would lose a step by that.
    """
    paths = [str(_SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {_MARK: str(folder), "PYTHONPATH": os.pathsep.join(paths), "TERM": "dumb"}  # no bars in a log
    return {**patient_environment(), **request.job.environment, **own}

"""A stage on this machine: a process of its own, its log, its progress, its end; and what a kill left."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from orchestration.registry.server import patient_environment
from orchestration.retrain.attempt import PIPE_ENV, PROBLEM_MARK, PROGRESS_MARK, last_report
from orchestration.retrain.records import StageProblem, StageProgress, StageRequest, stage_folder
from pipeline.launch.reward_servers import die_with_parent
from reward.offline.files import replace_file

LOG_FILE = "log.txt"
_REQUEST_FILE = "request.json"
_MARK = "MARCH_RETRAIN_STAGE"  # in the environment of all that a stage starts
_GRACE_S = 20.0  # for a stage that is asked to stop
_KEPT_BYTES = 16_384  # of what the stage's process tells
_SOURCE = Path(__file__).parents[2]


class LocalStage:
    """An attempt at a stage here, which it starts; `RayStage` answers the same questions."""

    def __init__(self, request: StageRequest) -> None:
        self._folder = stage_folder(request.job, request.stage, request.key)
        self._folder.mkdir(parents=True, exist_ok=True)
        kill_leftovers(self._folder)
        replace_file(self._folder / _REQUEST_FILE, request.model_dump_json(indent=1))
        command = [sys.executable, "-m", "orchestration.retrain.stage", str(self._folder / _REQUEST_FILE)]
        self._pipe, end = os.pipe()
        os.set_blocking(self._pipe, False)
        self._reports = b""
        with (self._folder / LOG_FILE).open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=_environment(self._folder, request, end),
                pass_fds=(end,),
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        os.close(end)

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def problem(self) -> StageProblem | None:
        """What the process said, or how it died."""
        code = self._process.wait()
        kill_leftovers(self._folder)
        if code == 0:
            return None
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        died = StageProblem(line=f"its process {how}; log: {self._folder / LOG_FILE}", transient=True)
        return last_report(self._read(), PROBLEM_MARK, StageProblem) or died

    def progress(self) -> StageProgress:
        return last_report(self._read(), PROGRESS_MARK, StageProgress) or StageProgress()

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

    def _read(self) -> str:
        with contextlib.suppress(BlockingIOError):  # nothing new
            while more := os.read(self._pipe, _KEPT_BYTES):
                self._reports = (self._reports + more)[-_KEPT_BYTES:]
        return self._reports.decode(errors="replace")

    def __del__(self) -> None:
        os.close(self._pipe)


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


def _environment(folder: Path, request: StageRequest, pipe: int) -> dict[str, str]:
    """Of a stage's process.

    The loop gives an MLflow that is away up soon, and tries again; a training would lose a step by that.
    """
    paths = [str(_SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {_MARK: str(folder), PIPE_ENV: str(pipe), "PYTHONPATH": os.pathsep.join(paths)}
    own["TERM"] = "dumb"  # no bars in a log
    return {**patient_environment(), **request.job.environment, **own}

"""One stage in a process of its own: `python -m orchestration.retrain.stage REQUEST`.

REQUEST is a file, or the JSON itself. The process works, publishes what it made, makes the result stand in
the store, and ends with 0; else it leaves `error.json`, ends with 1 (another attempt may help) or 2 (a user
must fix something), and the loop that started it goes on. On a cluster the same command is a Ray Job.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from orchestration.retrain.results import Results
from orchestration.retrain.stages import Stage, StageProblem, StageRequest, StageResult, stage_folder
from orchestration.retrain.transient import problem_of
from orchestration.retrain.workshop import Workshop
from pipeline.artifacts.settings import ENDPOINT_VARIABLES

ERROR_FILE = "error.json"
_MOST_BYTES = 4096
PROBLEM_MARK = "march-stage-problem: "  # on a cluster the log is all that comes back


def run_stage(request: StageRequest) -> None:
    """Makes a stage's result stand, unless it does."""
    shop = Workshop(request)
    results = Results(shop.store, request.job.name)
    if results.standing(request.stage, request.key) is None:
        results.put(request.stage, _work(request.stage)(shop))


def main(argument: str) -> int:
    """Runs a stage; returns the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    text = argument if argument.lstrip().startswith("{") else Path(argument).read_text()
    request = StageRequest.model_validate_json(text)
    if request.job.store.endpoint:  # for addresses of the store, which name no endpoint
        os.environ[ENDPOINT_VARIABLES[0]] = request.job.store.endpoint
    try:
        run_stage(request)
    except Exception as error:
        problem = problem_of(error)
        _leave(request, problem)
        with contextlib.suppress(OSError):
            traceback.print_exc()
        return problem.exit_code
    return 0


def _work(stage: Stage) -> Callable[[Workshop], StageResult]:
    """What a stage does; only its own libraries are loaded."""
    if stage is Stage.PREPARE:
        from orchestration.retrain.rows import prepare

        return prepare
    if stage is Stage.TRAIN:
        from orchestration.retrain.training import train

        return train
    if stage in (Stage.EVALUATE, Stage.EVALUATE_CHAMPION):
        from orchestration.retrain.evaluation import evaluate

        return evaluate
    from orchestration.retrain import decision

    return {
        Stage.PUBLISH: decision.publish,
        Stage.REGISTER: decision.register,
        Stage.PROMOTE: decision.promote,
    }[stage]


def reserve(folder: Path) -> None:
    """Makes room for what a stage may have to say when the disk is full."""
    (folder / ERROR_FILE).write_bytes(b" " * _MOST_BYTES)


def _leave(request: StageRequest, problem: StageProblem) -> None:
    """Says what was wrong, where the loop looks: in the room that was reserved, and in the log."""
    path = stage_folder(request.job, request.stage, request.key) / ERROR_FILE
    text = problem.model_dump_json()
    with contextlib.suppress(OSError), path.open("r+b") as file:
        file.write(text.encode())
        file.truncate()
    with contextlib.suppress(OSError):
        print(f"{PROBLEM_MARK}{text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main(sys.argv[1]))

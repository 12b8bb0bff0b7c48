"""One stage in a process of its own: `python -m orchestration.retrain.stage REQUEST`.

REQUEST is a file, or the JSON itself. The process works, publishes what it made, stores the result, and ends
with 0; else it tells the problem, ends with 1 (another attempt may help) or 2 (a user must fix something),
and the loop that started it goes on. On a cluster the same command is a Ray Job.
"""

import contextlib
import logging
import os
import sys
import traceback
from pathlib import Path

from orchestration.retrain import decision, evaluation, rows, training
from orchestration.retrain.attempt import PROBLEM_MARK, Attempt, send
from orchestration.retrain.inputs import make_plan
from orchestration.retrain.records import Stage, StageRequest, stage_key
from orchestration.retrain.results import Results
from orchestration.retrain.transient import problem_of
from pipeline.artifacts.settings import ENDPOINT_VARIABLES

_WORK = {
    Stage.PREPARE: rows.prepare,
    Stage.TRAIN: training.train,
    Stage.EVALUATE: evaluation.evaluate,
    Stage.EVALUATE_CHAMPION: evaluation.evaluate,
    Stage.PUBLISH: decision.publish,
    Stage.REGISTER: decision.register,
    Stage.PROMOTE: decision.promote,
}


class ChangedInputsError(RuntimeError):
    """The job's files are no longer those that the command began with; the next takes them as they are."""


def demand_same_inputs(request: StageRequest) -> None:
    """Reads again what the key is of: a result of other files would be taken for that of these, for good."""
    if request.job.cluster is not None or request.parent is None:
        return  # a cluster has the files as they were stored
    inputs = make_plan(request.job).inputs(request.stage, request.parent, request.done, request.champion)
    if stage_key(request.stage, inputs) != request.key:
        changed = ", ".join(name for name, value in inputs.items() if value != request.inputs.get(name))
        raise ChangedInputsError(
            f"{changed}: changed since the command began; the same command begins with it"
        )


def main(argument: str) -> int:
    """Runs a stage, unless it has a result; returns the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    for name in ("httpx", "httpx2"):  # they log each request's address, and what is secret in it
        logging.getLogger(name).setLevel(logging.WARNING)
    text = argument if argument.lstrip().startswith("{") else Path(argument).read_text()
    request = StageRequest.model_validate_json(text)
    if request.job.store.endpoint:  # for addresses of the store, which name no endpoint
        os.environ[ENDPOINT_VARIABLES[0]] = request.job.store.endpoint
    try:
        attempt = Attempt(request)
        results = Results(attempt.store, request.job.name)
        if results.find(request.stage, request.key) is None:
            demand_same_inputs(request)
            made = _WORK[request.stage](attempt)
            if request.stage.is_heavy:  # it took long
                demand_same_inputs(request)
            results.put(request.stage, made)
    except Exception as error:
        problem = problem_of(error)
        send(PROBLEM_MARK, problem)
        with contextlib.suppress(OSError):
            traceback.print_exc()
        return problem.exit_code
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main(sys.argv[1]))

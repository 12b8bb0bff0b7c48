"""One stage in a process of its own: `python -m orchestration.retrain.stage REQUEST`.

REQUEST is a file, or the JSON itself. The process works, publishes what it made, stores the result, and ends
with 0; else it tells the problem, ends with 1 (another attempt may help) or 2 (a user must fix something),
and the loop that started it goes on. On a cluster the same command is a Ray Job.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
from pathlib import Path

from orchestration.retrain import decision, evaluation, rows, training
from orchestration.retrain.attempt import PROBLEM_MARK, Attempt, send
from orchestration.retrain.records import Stage, StageRequest
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
            results.put(request.stage, _WORK[request.stage](attempt))
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

"""Shared by the tests of the schedule: verdicts, records, and `march retrain` with scripted stages.

    python tests/schedule_jobs.py ARGUMENTS...    `march ARGUMENTS`, whose retrainings are scripted

Lock, lease, artifact store, MLflow and the command itself are real. A stage appends its name to stages.txt in
a folder, and waits while a file HOLD is there; FAILS names one that fails, REFUSED has the gates refuse.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

from orchestration.commands import retrain_run
from orchestration.registry.decisions import Decisions
from orchestration.retrain.job import Job
from orchestration.retrain.records import (
    Ending,
    ParentWeights,
    Retraining,
    RetrainingState,
    Seen,
    Stage,
    StageProblem,
)
from orchestration.retrain.results import Results, open_job_store
from orchestration.schedule import timer
from reward.offline.resume import AuditedRow
from reward.types import Outcome, Verdict
from tests.retrainings import Factory, ScriptedDecisions

SCRIPTED_MARCH = (sys.executable, str(Path(__file__).absolute()))


def wait_until(holds: Callable[[], object], what: str = "", timeout_s: float = 60.0) -> None:
    """Waits until something holds."""
    until = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < until, what or "it never came"
        time.sleep(0.02)


def write_verdicts(path: Path, outcomes: Iterable[tuple[str, Outcome]]) -> None:
    """Appends verdicts, each of a row with a digest of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        for digest, outcome in outcomes:
            reward = {Outcome.UNSCORED: None, Outcome.REFUTED: -1.0}.get(outcome, 0.0)
            file.write(AuditedRow.line(Verdict(id=digest, outcome=outcome, reward=reward), digest, "s"))


def record(seen: Seen | None, state: RetrainingState = RetrainingState.DONE, **more: Any) -> Retraining:
    """A retraining as MLflow has it, by what its last command found; times are those of `seen`."""
    began_ms = seen.began_ms if seen else 0
    return Retraining.model_validate(
        {
            "id": "1" * 64,
            "given": "0" * 64,
            "parent": ParentWeights(uri="model", sha256=None),
            "job": "shop",
            "model": "shop-solver",
            "run_id": "1",
            "is_closed": state is not RetrainingState.RUNNING,
            "state": state,
            "stages": (),
            "started_ms": began_ms,
            "last_sign_ms": began_ms,
            "seen": seen,
            **more,
        }
    )


def script(folder: Path, put: Callable[[Any, str, object], None] = setattr) -> None:
    """Scripts the stages of retrainings that this process runs.

    Args:
        folder: Of the job.
        put: Sets an attribute; a test's `monkeypatch.setattr` puts it back.
    """

    def begun(stage: Stage) -> None:
        with (folder / "stages.txt").open("a") as file:
            file.write(f"{stage}\n")
        while (folder / "HOLD").exists():
            time.sleep(0.02)

    def start(job: Job) -> Factory:
        factory = Factory(Results(open_job_store(job), job.name))
        factory.before_end = begun
        if (folder / "FAILS").exists():
            problem = StageProblem(line="the disk is full", transient=False, exit_code=1)
            factory.problems = {Stage((folder / "FAILS").read_text()): [problem]}
        factory.outcome = Ending.REFUSED if (folder / "REFUSED").exists() else Ending.PROMOTED
        return factory

    put(retrain_run, "_start", start)
    put(retrain_run, "open_decisions", lambda *_: cast(Decisions, ScriptedDecisions()))
    put(timer, "_MARCH", SCRIPTED_MARCH)
    put(timer, "_RETRAINS_AFTER_S", 5.0)


if __name__ == "__main__":
    from orchestration.cli import main

    script(Path(os.environ["SCRIPTED_FOLDER"]))
    main(sys.argv[1:])

"""Shared by the tests of the schedule: jobs whose retraining is a small script, verdicts, a real service.

python tests/schedule_jobs.py FOLDER leave|wait TRIGGERS...    serves the jobs shop and books
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from orchestration.retrain.triggers import Triggers
from orchestration.schedule.job_watch import JobWatch, Scheduled, is_running
from orchestration.schedule.options import OnStop
from orchestration.schedule.service import Service
from reward.offline.resume import AuditedRow
from reward.types import Outcome, Verdict

# Notes that it ran, waits while a file HOLD is there, and ends with the code that a file CODE holds.
RETRAINING = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
with (folder / "runs.txt").open("a") as file:
    file.write(" ".join(sys.argv[2:]) + "\\n")
while (folder / "HOLD").exists():
    time.sleep(0.01)
code = folder / "CODE"
print("march: something is wrong" if code.exists() else "done")
sys.exit(int(code.read_text()) if code.exists() else 0)
"""


def scheduled(
    folder: Path, triggers: Triggers, *, name: str = "shop", paths: tuple[Path, ...] = ()
) -> Scheduled:
    """A job in a folder; its retraining appends a line to runs.txt there."""
    folder.mkdir(parents=True, exist_ok=True)
    return Scheduled(
        name=name,
        file=folder / "job.yaml",
        triggers=triggers,
        paths=paths,
        command=(sys.executable, "-S", "-c", RETRAINING, str(folder)),
        pointed=lambda pointer: None,
    )


def watch_of(folder: Path, triggers: Triggers, **more: object) -> JobWatch:
    """Watches a job in a folder, with its journal beside it."""
    return JobWatch(scheduled(folder, triggers, **more), folder / "schedule")  # type: ignore[arg-type]


def runs(folder: Path) -> list[str]:
    """What each retraining was told."""
    file = folder / "runs.txt"
    return file.read_text().splitlines() if file.exists() else []


def wait_until(holds: Callable[[], object], what: str = "", timeout_s: float = 60.0) -> None:
    """Waits until something holds."""
    until = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < until, what or "it never came"
        time.sleep(0.02)


def wait_for_end(watch: JobWatch) -> None:
    """Waits until no retraining of a job runs."""
    wait_until(lambda: not is_running(watch.folder), f"{watch.job.name}: never ends")


def write_verdicts(path: Path, outcomes: Iterable[tuple[str, Outcome]]) -> None:
    """Appends verdicts, each of a row with a digest of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        for digest, outcome in outcomes:
            reward = {Outcome.UNSCORED: None, Outcome.REFUTED: -1.0}.get(outcome, 0.0)
            file.write(AuditedRow.line(Verdict(id=digest, outcome=outcome, reward=reward), digest, "s"))


def journal(folder: Path) -> list[dict[str, object]]:
    """The lines of a journal."""
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    folder, on_stop, *triggers = sys.argv[1:]
    jobs = [
        scheduled(Path(folder) / name, Triggers.model_validate_json(one), name=name)
        for name, one in zip(("shop", "books"), triggers, strict=False)
    ]
    Service(jobs, Path(folder) / "schedule", on_stop=OnStop(on_stop), port=0, step_s=0.2).run()

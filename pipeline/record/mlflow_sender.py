"""MLflow's copy of a run, brought up to date from the run's folder while it trains and after it.

The folder is the record and the queue. `steps.jsonl` has the figures of each step and when they were written,
`rollouts/` the answers, `status.json` how the run goes; `mlflow.json` says how much of it MLflow has. The
process that the user started sends what is missing, on a thread of its own: a server that is away, slow or
silent delays figures, and neither ends nor holds up a training. A step that is sent again (its answer was
lost, or this process was killed before it noted it) has the same times, steps and values, which MLflow's
stores in a database keep once. MLflow's own asynchronous logging has its queue in memory and loses it.
"""

import json
import logging
import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.record.rollout_files import ROLLOUTS_FOLDER, rollouts_file
from pipeline.record.run_status import (
    ENDED_TAG,
    EXIT_CODE_TAG,
    STATUS_FILE,
    Status,
    note_end,
    note_status,
    read_status,
)
from pipeline.record.tracking import (
    KEPT,
    RUN_FILE,
    STEPS_FILE,
    TIMESTAMP,
    reached,
    read_sent,
    rows_since,
    write_sent,
)
from pipeline.redaction import one_line

logger = logging.getLogger(__name__)

_PATIENCE_S = 60.0  # at the end of a run
_POLL_S, _LONGEST_PAUSE_S, _LAST_PAUSE_S = 1.0, 30.0, 2.0


@contextmanager
def kept_status(folder: Path) -> Iterator[None]:
    """Notes and sends that a run is RUNNING, its steps, and then how it ended."""
    note_status(folder, "RUNNING")
    with sent_to_mlflow(folder):
        try:
            yield
        except BaseException as error:
            note_end(folder, error)
            raise
        note_status(folder, "FINISHED")


@contextmanager
def sent_to_mlflow(folder: Path) -> Iterator[None]:
    """Sends what MLflow lacks of a run until the block ends, and then waits a bounded time for the rest.

    What could not be sent is one warning, with the command that sends it later.
    """
    import mlflow  # noqa: F401  # here, since it takes seconds that are not the server's

    # MLflow itself would try for minutes, and find a server that is back only after its last pause.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    sending = _Sending(folder)
    sending.start()
    try:
        yield
    finally:
        sending.gives_up_at = time.monotonic() + _PATIENCE_S
        sending.ended.set()
        sending.join(_PATIENCE_S)
        if lacks := missing(folder):
            problem = sending.problem or f"no answer within {_PATIENCE_S:g} s"
            logger.warning("MLflow lacks %s: %s; later: march record %s", lacks, problem, folder)


class _Sending(threading.Thread):
    """Sends whatever is new in the folder; what failed is tried again."""

    def __init__(self, folder: Path) -> None:
        super().__init__(name="sends to MLflow", daemon=True)  # a hung connection must not keep us alive
        self.ended = threading.Event()
        self.gives_up_at = math.inf
        self.problem = ""
        self._folder = folder

    def run(self) -> None:
        pause_s, sent = _POLL_S, list[tuple[int, int]]()
        while True:
            is_last, found, has_failed = self.ended.is_set(), _version(self._folder), False
            try:
                if found != sent:
                    send(self._folder)
                pause_s, sent = _POLL_S, found
            except Exception as error:  # of MLflow, a database, an artifact store
                self.problem = one_line(f"{error}" or type(error).__name__)
                pause_s, has_failed = min(2 * pause_s, _LONGEST_PAUSE_S), True
            if is_last and (not has_failed or time.monotonic() > self.gives_up_at):
                return
            if is_last:  # the run waits a while for a server that is being restarted
                time.sleep(min(pause_s, _LAST_PAUSE_S))
            else:
                self.ended.wait(pause_s)


def send(folder: Path) -> None:
    """Sends what MLflow lacks, oldest first, and notes each step once MLflow has it.

    Raises:
        ValueError: MLflow refuses it or cannot be reached; what was noted by then is not sent again.
        Exception: of an artifact store.
    """
    run = json.loads((folder / RUN_FILE).read_text())
    run_id, tracking = run["mlflow_run_id"], run["recipe"]["tracking"]
    with reached(run["tracking_uri"], f"run {run_id}", fix="start its server") as client:
        for row in _unsent_rows(folder):
            if row.get(KEPT) and tracking["rollouts"]["artifacts"]:
                file = rollouts_file(folder, int(row["step"]))
                if file.is_file():
                    client.log_artifact(run_id, str(file), artifact_path=ROLLOUTS_FOLDER)
                else:  # somebody made room before MLflow had it
                    logger.warning("%s: is gone; MLflow gets the figures of its step alone", file)
            client.log_batch(run_id, metrics=_points(row))
            write_sent(folder, step=row[TIMESTAMP])
        if (status := _unsent_status(folder)) is not None:
            _send_status(client, run_id, status)
            write_sent(folder, status=status.timestamp)


def missing(folder: Path) -> str:
    """What MLflow lacks of a run, in words; "" where it has everything."""
    steps, status = len(_unsent_rows(folder)), _unsent_status(folder)
    parts = [f"{steps} step{'s' * (steps > 1)}"] if steps else []
    return " and ".join(parts + ([f"the status {status.status}"] if status else []))


def _version(folder: Path) -> list[tuple[int, int]]:
    """Differs when there is something new to send."""
    paths = (folder / name for name in (STEPS_FILE, STATUS_FILE))
    return [(stat.st_mtime_ns, stat.st_size) for path in paths if path.exists() and (stat := path.stat())]


def _unsent_rows(folder: Path) -> list[dict[str, Any]]:
    """Steps that MLflow lacks. Earlier versions sent a step before they went on, and wrote no time."""
    return rows_since(folder, read_sent(folder).step)


def _unsent_status(folder: Path) -> Status | None:
    status = read_status(folder)
    return status if status and status.timestamp != read_sent(folder).status else None


def _points(row: dict[str, Any]) -> list[Any]:
    from mlflow.entities import Metric

    step, timestamp = int(row["step"]), int(row[TIMESTAMP])
    return [Metric(name, row[name], timestamp, step) for name in row.keys() - {"step", TIMESTAMP}]


def _send_status(client: Any, run_id: str, status: Status) -> None:
    run = client.get_run(run_id)
    for name in {ENDED_TAG, EXIT_CODE_TAG} & run.data.tags.keys() - status.tags.keys():
        client.delete_tag(run_id, name)
    for name, value in status.tags.items():
        client.set_tag(run_id, name, value)
    if run.info.status == status.status:
        return
    if status.status == "RUNNING":
        client.update_run(run_id, status=status.status)
    else:
        client.set_terminated(run_id, status.status, end_time=status.timestamp)

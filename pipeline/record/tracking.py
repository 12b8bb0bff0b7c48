"""What a run leaves to look at: one line a step in `steps.jsonl`, rollouts with verdicts as Parquet files,
and a copy of both in MLflow (`pipeline.record.mlflow_sender`).

`steps.jsonl` is the record that a resume trusts: lines and rollouts after the checkpoint are dropped, so no
step occurs twice. MLflow keeps the dropped points that it already had in a metric's history (it has no way to
delete them); the last value of a step is the one that counts.
"""

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from textwrap import shorten
from typing import Any

from pydantic import Field

from pipeline.record.rollout_files import drop_rollouts_after, rollouts_file, write_rollouts
from pipeline.record.rollout_rows import TrainedAnswer, rollout_rows
from pipeline.redaction import refuse_password
from pipeline.settings.tree import flatten
from reward.config import Settings
from reward.offline.files import replace_file

LOCAL = Path("runs/mlflow.db")  # where a retraining logs that is given no address
RUN_FILE, STEPS_FILE, SENT_FILE = "run.json", "steps.jsonl", "mlflow.json"
TIMESTAMP = "timestamp"  # of a line of `steps.jsonl`, in milliseconds; no figure
LINEAGE_RUN_TAG, LINEAGE_PAGE = "march.lineage_uri", "lineage.html"
KEPT = "rollouts/kept"  # how many answers of a step are on disk
_VARIABLE = "MLFLOW_TRACKING_URI"
_BLOCK = 1 << 16  # bytes that are read at once, from the end of a file
_MOST_SAID = 300  # letters of an error of MLflow
_MOUNTS = Path("/proc/self/mounts")
_NETWORK = ("nfs", "cifs", "smb", "ceph", "lustre", "gpfs", "beegfs", "afs", "fuse.glusterfs", "fuse.sshfs")


class Sent(Settings):
    """How much of a run MLflow has.

    By time and not by number: a step that is trained again after a kill is a new one, whatever a request that
    was under way meanwhile has noted.
    """

    step: int = Field(default=0, description="When the last step was written that it has.")
    status: int = Field(default=0, description="Since when it was so, of the status that it has.")


def read_sent(run_dir: Path) -> Sent:
    path = run_dir / SENT_FILE
    return Sent.model_validate_json(path.read_text()) if path.is_file() else Sent()


def write_sent(run_dir: Path, **changes: int) -> None:
    """Notes what MLflow has now; what is not named stays."""
    changed = read_sent(run_dir).model_copy(update=changes)
    replace_file(run_dir / SENT_FILE, changed.model_dump_json() + "\n")


def read_rows(run_dir: Path) -> list[dict[str, Any]]:
    """Returns the lines of each finished step, in order; a torn last line is left out."""
    path = run_dir / STEPS_FILE
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def rows_since(run_dir: Path, timestamp: int) -> list[dict[str, Any]]:
    """Returns the lines of the steps written after a time, in order.

    For who asks again and again: it reads the file from its end, and no more of it than it returns.
    """
    newest = takewhile(lambda row: row.get(TIMESTAMP, 0) > timestamp, _newest_rows(run_dir / STEPS_FILE))
    return list(newest)[::-1]


def last_row(run_dir: Path) -> dict[str, Any] | None:
    """Returns the line of the last finished step; None before the first one."""
    return next(_newest_rows(run_dir / STEPS_FILE), None)


def _newest_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the whole lines of a file, the last one first."""
    if path.exists():
        pieces = _pieces_from_end(path)
        next(pieces)  # behind the end of the last line: nothing, or a torn one
        yield from map(json.loads, pieces)


def _pieces_from_end(path: Path) -> Iterator[bytes]:
    """Yields what the ends of lines part, the last piece first."""
    with path.open("rb") as file:
        place, piece = file.seek(0, os.SEEK_END), b""
        while place:
            size = min(place, _BLOCK)
            place = file.seek(place - size)
            piece, *whole = (file.read(size) + piece).split(b"\n")
            yield from reversed(whole)
        yield piece


def read_steps(run_dir: Path) -> list[dict[str, float]]:
    """Returns the figures of each finished step, in order."""
    return [{name: row[name] for name in row if name != TIMESTAMP} for row in read_rows(run_dir)]


def drop_steps_after(run_dir: Path, step: int) -> None:
    """Forgets steps later than a checkpoint, before they are trained again."""
    kept = [row for row in read_rows(run_dir) if row["step"] <= step]
    drop_rollouts_after(run_dir, step)
    replace_file(run_dir / STEPS_FILE, "".join(json.dumps(row) + "\n" for row in kept))


class StepLog:
    """Writes each step to disk; created in the trainer's process."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self._last = max([read_sent(run_dir).step, *(row.get(TIMESTAMP, 0) for row in read_rows(run_dir))])

    def write(self, step: int, metrics: dict[str, float], answers: Sequence[TrainedAnswer]) -> None:
        """Writes one step's rollouts, and then appends its figures."""
        if answers:
            write_rollouts(rollouts_file(self.run_dir, step), rollout_rows(answers, step=step), step=step)
        self.append(step, metrics | {KEPT: float(len(answers))})

    def append(self, step: int, metrics: dict[str, float]) -> None:
        self._last = max(time.time_ns() // 1_000_000, self._last + 1)  # later, though the clock is put back
        line = {"step": step, TIMESTAMP: self._last, **metrics}
        with (self.run_dir / STEPS_FILE).open("a") as file:
            file.write(json.dumps(line) + "\n")


@contextmanager
def reached(tracking_uri: str, what: str, *, fix: str) -> Iterator[Any]:
    """MLflow's client; a ValueError of one line where it cannot be reached, or refuses."""
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import DBAPIError

    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    try:
        with usable_database(tracking_uri):
            yield MlflowClient(tracking_uri)
    except (MlflowException, DBAPIError) as error:
        raise ValueError(f"{tracking_uri}: {what}: {mlflows_problem(error)}; {fix}") from error


@contextmanager
def usable_database(uri: str) -> Iterator[None]:
    """For MLflow's client: an SQLite file that cannot be made, or is damaged, is named at once.

    MLflow would try for minutes to make it, and shows a damaged one as a traceback.

    Raises:
        OSError: it cannot be made.
        ValueError: it is damaged.
    """
    file = sqlite_file(uri)
    if file is not None and not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()  # for SQLite an empty database
    try:
        yield
    except Exception as error:
        # Of its own class are errors of the file itself; a locked one, or a full disk, has a subclass.
        if file is not None and any(type(one) is sqlite3.DatabaseError for one in _causes(error)):
            raise ValueError(
                f"{file}: is damaged, or no database; restore it from a backup, or move it away"
            ) from error
        raise


def sqlite_file(uri: str) -> Path | None:
    """The file of an SQLite address; None for a server and for a database in memory."""
    scheme, _, name = uri.partition(":///")
    file = name.partition("?")[0]
    is_file = scheme.startswith("sqlite") and file and not file.startswith((":memory:", "file:"))
    return Path(file) if is_file else None


def mlflows_problem(error: BaseException) -> str:
    """What MLflow says, or why it could not ask: a whole address of a request hides that."""
    for cause in _causes(error):
        if isinstance(cause, OSError) and cause.strerror:
            return f"cannot be reached: {cause.strerror}"
    return shorten(str(error), _MOST_SAID, placeholder=" ...")


def _causes(error: BaseException) -> Iterator[BaseException]:
    while (cause := error.__cause__ or error.__context__) is not None:
        yield (error := cause)


def tracking_address(given: str | None, folder: Path) -> str:
    """Where a run is recorded: the recipe's `tracking.uri`, MLFLOW_TRACKING_URI, or a file beside the run.

    Raises:
        ValueError: the variable holds a password.
    """
    if given:
        return given
    variable = os.environ.get(_VARIABLE)
    refuse_password(_VARIABLE, variable)
    return variable or f"sqlite:///{folder.parent / 'mlflow.db'}"


def start_mlflow_run(
    *, tracking_uri: str, artifact_root: Path, experiment: str, name: str, params: dict[str, Any]
) -> str:
    """Creates an MLflow run and returns its id; makes the experiment when there is none.

    Nested parameters get dotted names.

    Raises:
        ValueError: MLflow cannot be reached, or is an SQLite file on a network file system.
    """
    from mlflow.entities import Param

    refuse_shared_sqlite(tracking_uri)
    location = artifact_root.resolve().as_uri() if tracking_uri.startswith("sqlite:") else None
    fix = f"start its server, or fix tracking.uri or {_VARIABLE}"
    with reached(tracking_uri, "no run was started", fix=fix) as client:
        found = client.get_experiment_by_name(experiment)
        experiment_id = (
            found.experiment_id if found else client.create_experiment(experiment, artifact_location=location)
        )
        run = client.create_run(experiment_id, run_name=name)
        shown = [Param(key, str(value)[:6000]) for key, value in flatten(params).items()]
        client.log_batch(run.info.run_id, params=shown)
    return str(run.info.run_id)


def refuse_shared_sqlite(tracking_uri: str) -> None:
    """Raises ValueError for an SQLite file on a network: its locks do not keep two writers apart."""
    if (file := sqlite_file(tracking_uri)) is None:
        return
    path, found, kind = file.resolve(), Path("/"), ""
    for line in _MOUNTS.read_text().splitlines() if _MOUNTS.exists() else ():
        _, mounted, fs_type, *_ = line.split(" ")
        place = Path(mounted.replace(r"\040", " "))
        if path.is_relative_to(place) and place.is_relative_to(found):
            found, kind = place, fs_type
    if kind.startswith(_NETWORK):
        raise ValueError(
            f"tracking.uri: {path} is on a network file system ({kind} at {found}), where SQLite breaks; set "
            "tracking.uri to an MLflow server, or to sqlite:///FILE on a local disk"
        )


def finish_mlflow_run(tracking_uri: str, run_id: str, *, status: str, artifacts: Sequence[Path] = ()) -> None:
    with reached(tracking_uri, f"run {run_id}", fix="start its server") as client:
        for path in artifacts:
            client.log_artifact(run_id, str(path))
        client.set_terminated(run_id, status)


def link_lineage(tracking_uri: str, run_id: str, *, address: str, page: str) -> None:
    """Names a run's lineage in its tags, and keeps the page that shows it among its artifacts."""
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
    with reached(tracking_uri, f"run {run_id}", fix="the same command tries again") as client:
        client.set_tag(run_id, LINEAGE_RUN_TAG, address)
        client.log_text(run_id, page, LINEAGE_PAGE)


def registry_address(uri: str | None, *, creates: bool = False) -> str:
    """The address of a registry; None: of the file that a retraining without one keeps here.

    Raises:
        ValueError: there is no such file, and this command makes none; or the address holds a password.
    """
    if uri is None:
        if not LOCAL.is_file():
            raise ValueError(
                f"--mlflow: missing, and there is no {LOCAL} here; give MLflow's address, or set "
                "MLFLOW_TRACKING_URI"
            )
        uri = f"sqlite:///{LOCAL.absolute()}"
    refuse_password("--mlflow", uri)
    file = sqlite_file(uri)
    if file is not None and not creates and not file.is_file():
        raise ValueError(f"{option_of(uri)} {uri}: there is no such file; fix the address")
    return uri


def option_of(uri: str) -> str:
    """What a command's address of MLflow came from."""
    return _VARIABLE if os.environ.get(_VARIABLE) == uri else "--mlflow"

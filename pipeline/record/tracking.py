"""What a run leaves to look at: one line a step in `steps.jsonl`, the same figures in MLflow, rollouts with
verdicts as Parquet files.

`steps.jsonl` is the record that a resume trusts: lines and rollouts after the checkpoint are dropped, so no
step stands twice. MLflow keeps the dropped points in a metric's history (it has no way to delete them); the
last value of a step is the one that counts.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipeline.artifacts.settings import redact
from pipeline.record.checkpoints import write_atomically
from pipeline.record.rollout_files import ROLLOUTS_FOLDER, drop_rollouts_after, rollouts_file, write_rollouts
from pipeline.record.rollout_rows import RolloutFileSettings, TrainedAnswer, choose_rollouts, rollout_rows

STEPS_FILE = "steps.jsonl"
LINEAGE_RUN_TAG, LINEAGE_PAGE = "march.lineage_uri", "lineage.html"
KEPT, SKIPPED = "rollouts/kept", "rollouts/skipped"


def refuse_password(field: str, uri: str | None) -> None:
    """Refuses an MLflow address that is a secret: addresses are recorded, shown and passed on.

    Not in a validator, whose error would show what it refuses. A database's address may name a user.

    Args:
        field: Where the address was given.
        uri: The address; None: there is none.

    Raises:
        ValueError: it holds a password, or the user of a server.
    """
    parts = urlsplit(uri or "")
    is_server = parts.scheme in ("http", "https")
    may_name = not is_server and parts.password is None
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]) if may_name else parts
    if redact(bare.geturl()) == bare.geturl():
        return
    fix = "give a database's password as its driver reads it (PGPASSWORD, PGPASSFILE)"
    if is_server:
        fix = "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
    raise ValueError(f"{field}: {redact(uri or '')} was given with a user or password in it; {fix}")


def read_steps(run_dir: Path) -> list[dict[str, float]]:
    """Returns the figures of each finished step, in order; a torn last line is left out."""
    path = run_dir / STEPS_FILE
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def drop_steps_after(run_dir: Path, step: int) -> None:
    """Forgets steps later than a checkpoint, before they are trained again."""
    kept = [row for row in read_steps(run_dir) if row["step"] <= step]
    drop_rollouts_after(run_dir, step)
    write_atomically(run_dir / STEPS_FILE, "".join(json.dumps(row) + "\n" for row in kept))


class StepLog:
    """Writes each step to disk and to MLflow; created in the trainer's process."""

    def __init__(
        self,
        run_dir: Path,
        *,
        tracking_uri: str,
        mlflow_run_id: str,
        rollouts: RolloutFileSettings | None = None,
    ) -> None:
        from mlflow import MlflowClient

        self.run_dir = run_dir
        self.run_id = mlflow_run_id
        self.rollouts = rollouts or RolloutFileSettings()
        self.client = MlflowClient(tracking_uri)

    def write(self, step: int, metrics: dict[str, float], answers: Sequence[TrainedAnswer]) -> None:
        """Writes one step's rollouts, and then appends its figures."""
        self.append(step, metrics | self._write_rollouts(step, answers))

    def append(self, step: int, metrics: dict[str, float]) -> None:
        """Appends the figures of a step."""
        from mlflow.entities import Metric

        with (self.run_dir / STEPS_FILE).open("a") as file:
            file.write(json.dumps({"step": step, **metrics}) + "\n")
        now = int(time.time() * 1000)
        points = [Metric(name, value, now, step) for name, value in metrics.items()]
        self.client.log_batch(self.run_id, metrics=points)

    def _write_rollouts(self, step: int, answers: Sequence[TrainedAnswer]) -> dict[str, float]:
        """Writes what shall be kept of a step; returns how much that is."""
        chosen = choose_rollouts(len(answers), self.rollouts, step=step)
        if chosen:
            path = rollouts_file(self.run_dir, step)
            rows = rollout_rows(answers, chosen, step=step, documents=self.rollouts.documents)
            write_rollouts(path, rows, step=step, num_answers=len(answers))
            if self.rollouts.artifacts:
                self.client.log_artifact(self.run_id, str(path), artifact_path=ROLLOUTS_FOLDER)
        return {KEPT: float(len(chosen)), SKIPPED: float(len(answers) - len(chosen))}


def fetch_mlflow_run(tracking_uri: str, run_id: str, folder: Path) -> None:
    """Lays down what MLflow has of a run as in its folder: `run.json`, `steps.jsonl` and the rollouts.

    Raises:
        ValueError: there is no such run, or the server does not answer.
    """
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    refuse_password("--tracking-uri", tracking_uri)
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    client = MlflowClient(tracking_uri)
    try:
        run = client.get_run(run_id)
        steps: dict[int, dict[str, float]] = {}
        for name in run.data.metrics:
            for point in client.get_metric_history(run_id, name):  # of points of one step the last counts
                steps.setdefault(point.step, {"step": point.step})[name] = point.value
        if any(step.get(KEPT) for step in steps.values()):
            client.download_artifacts(run_id, ROLLOUTS_FOLDER, str(folder))
    except MlflowException as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"{tracking_uri}: run {run_id}: {problem:.200}; fix the id or address") from error
    recipe = {"name": run.info.run_name, "note": run.data.params.get("note", "")}
    write_atomically(folder / "run.json", json.dumps({"recipe": recipe}))
    lines = (json.dumps(steps[step]) + "\n" for step in sorted(steps) if KEPT in steps[step])
    write_atomically(folder / STEPS_FILE, "".join(lines))


def start_mlflow_run(
    *, tracking_uri: str, artifact_root: Path, experiment: str, name: str, params: dict[str, Any]
) -> str:
    """Creates an MLflow run and returns its id; makes the experiment when there is none."""
    from mlflow import MlflowClient
    from mlflow.entities import Param

    client = MlflowClient(tracking_uri)
    found = client.get_experiment_by_name(experiment)
    local = tracking_uri.startswith("sqlite:")
    location = artifact_root.resolve().as_uri() if local else None
    experiment_id = (
        found.experiment_id if found else client.create_experiment(experiment, artifact_location=location)
    )
    run = client.create_run(experiment_id, run_name=name)
    client.log_batch(run.info.run_id, params=[Param(key, str(value)[:6000]) for key, value in params.items()])
    return str(run.info.run_id)


def finish_mlflow_run(tracking_uri: str, run_id: str, *, status: str, artifacts: Sequence[Path] = ()) -> None:
    """Uploads artifacts and ends the run as FINISHED or FAILED."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri)
    for path in artifacts:
        client.log_artifact(run_id, str(path))
    client.set_terminated(run_id, status)


def link_lineage(tracking_uri: str, run_id: str, *, address: str, page: str) -> None:
    """Names a run's lineage in its tags, and keeps the page that shows it among its artifacts.

    Raises:
        ValueError: the run or the server cannot be reached.
    """
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
    client = MlflowClient(tracking_uri)
    try:
        client.set_tag(run_id, LINEAGE_RUN_TAG, address)
        client.log_text(run_id, page, LINEAGE_PAGE)
    except MlflowException as error:
        problem = " ".join(str(error).split())
        raise ValueError(
            f"{tracking_uri}: run {run_id}: {problem:.200}; the same command tries again"
        ) from error


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Turns nested settings into dotted parameter names."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat

"""What a run leaves to look at: one line a step in `steps.jsonl`, the same figures in MLflow, rollouts with
verdicts.

`steps.jsonl` is the record that a resume trusts: lines after the checkpoint are dropped, so no step stands
twice. MLflow keeps the dropped points in a metric's history (it has no way to delete them); the last value of
a step is the one that counts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.checkpoints import write_atomically

if TYPE_CHECKING:
    from pipeline.rollout import RolloutRecord

STEPS_FILE = "steps.jsonl"


def read_steps(run_dir: Path) -> list[dict[str, float]]:
    """Returns the figures of each finished step, in order; a torn last line is left out."""
    path = run_dir / STEPS_FILE
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def drop_steps_after(run_dir: Path, step: int) -> None:
    """Forgets steps later than a checkpoint, before they are trained again."""
    kept = [row for row in read_steps(run_dir) if row["step"] <= step]
    write_atomically(run_dir / STEPS_FILE, "".join(json.dumps(row) + "\n" for row in kept))


class StepLog:
    """Writes each step to disk and to MLflow; created in the trainer's process."""

    def __init__(self, run_dir: Path, *, tracking_uri: str, mlflow_run_id: str) -> None:
        from mlflow import MlflowClient

        self.run_dir = run_dir
        self.run_id = mlflow_run_id
        self.client = MlflowClient(tracking_uri)

    def write(self, step: int, metrics: dict[str, float], records: Sequence[RolloutRecord]) -> None:
        """Appends one step's figures and its rollouts."""
        from mlflow.entities import Metric

        folder = self.run_dir / "rollouts"
        folder.mkdir(exist_ok=True)
        rows = "".join(record.model_dump_json(exclude={"turns"}) + "\n" for record in records)
        write_atomically(folder / f"step-{step:06d}.jsonl", rows)
        with (self.run_dir / STEPS_FILE).open("a") as file:
            file.write(json.dumps({"step": step, **metrics}) + "\n")
        now = int(time.time() * 1000)
        points = [Metric(name, value, now, step) for name, value in metrics.items()]
        self.client.log_batch(self.run_id, metrics=points)


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


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Turns nested settings into dotted parameter names."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat

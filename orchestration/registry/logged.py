"""A version in MLflow's own terms: a logged model, with its run, its data set and its figures linked to it.

MLflow's server takes a local folder as a version's source only if that is the artifact folder of a logged
model. Such a folder is a symbolic link to the model in the store, so the weights are there once.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pipeline.artifacts.layout import LINKS
from pipeline.lineage.record import Lineage

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, LoggedModel, Run

_NAME = str.maketrans("/:.%\"'", "------")  # MLflow refuses these in a logged model's name
_DIGEST_CHARS = 36  # of a data set's digest in MLflow


@dataclass(frozen=True)
class StoredModel:
    """A model in the artifact store, and what is known of where it came from."""

    uri: str  # address of its manifest
    address: str  # of its MLmodel's folder, which any MLflow client loads: s3:// or file://
    sha256: str  # of its weights
    lineage_sha256: str | None = None
    lineage: Lineage | None = None


def log_stored_model(
    client: MlflowClient, name: str, stored: StoredModel, *, run_id: str | None, has_server: bool
) -> tuple[str | None, str]:
    """Makes the logged model of a stored one, if there is a run to link it to, or the server wants one.

    Args:
        run_id: The run that made it, if the server has it.
        has_server: Whether a server is in between, which refuses folders.

    Returns:
        The id of the logged model, and the source of the versions that are made of it.
    """
    run = client.get_run(run_id) if run_id else None
    parts, links = urlsplit(stored.address), None
    if parts.scheme == "file" and has_server:
        links = Path(unquote(parts.path)).parents[1] / LINKS  # beside the store's models/DIGEST
    if links is not None:  # the experiment of a folder's models, whose artifact folders are in it
        named = f"march-models {links.parent}"
        found = client.get_experiment_by_name(named)
        experiment = found.experiment_id if found else client.create_experiment(named, links.as_uri())
    elif run is not None:
        experiment = run.info.experiment_id
    else:
        return None, stored.address
    model = client.create_logged_model(experiment, name=name.translate(_NAME), source_run_id=run_id)
    source = stored.address
    if links is not None:
        source = model.artifact_location
        place = Path(unquote(urlsplit(source).path))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(unquote(parts.path), target_is_directory=True)
    if run is not None and run.info.lifecycle_stage == "active" and stored.lineage is not None:
        _link_figures(client, run, model, stored.lineage)
    client.finalize_logged_model(model.model_id, "READY")
    return model.model_id, source


def _link_figures(client: MlflowClient, run: Run, model: LoggedModel, lineage: Lineage) -> None:
    """The rows become the run's input, the model its output; figures of both kinds are the model's."""
    from mlflow.entities import LoggedModelOutput, Metric

    client.log_outputs(run.info.run_id, [LoggedModelOutput(model.model_id, step=lineage.num_steps)])
    rows = _rows(lineage)
    if rows is not None:
        client.log_inputs(run.info.run_id, datasets=[rows])
    when = int(time.time() * 1000), lineage.num_steps
    trained_on = {"dataset_name": rows.dataset.name, "dataset_digest": rows.dataset.digest} if rows else {}
    metrics = [
        Metric(name, value, *when, model_id=model.model_id, run_id=run.info.run_id, **trained_on)
        for name, value in lineage.metrics.items()
    ]
    for one in lineage.evaluations:
        for name, value in {**one.benchmarks, "average": one.average}.items():
            if value is not None:
                named = f"evaluation/{name}"
                metrics.append(Metric(named, value, *when, model_id=model.model_id, run_id=run.info.run_id))
    client.log_batch(run.info.run_id, metrics=metrics)


def _rows(lineage: Lineage) -> DatasetInput | None:
    """The rows as MLflow's data set; their digest is of all rows, cut to the length that MLflow has."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    data = lineage.data
    if data is None:
        return None
    source = json.dumps({"artifact": data.artifact, "sha256": data.rows_sha256, "inputs": data.inputs})
    dataset = Dataset(
        name=data.source[:500],
        digest=data.rows_sha256[:_DIGEST_CHARS],
        source_type="march",
        source=source,
        profile=json.dumps({"num_rows": data.num_rows}),
    )
    return DatasetInput(dataset, tags=[InputTag("mlflow.data.context", "training")])

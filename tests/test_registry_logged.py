"""What MLflow knows of a stored model: its run, its rows, its figures, a folder that its server takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mlflow import MlflowClient

from orchestration.registry.logged import StoredModel, log_stored_model
from pipeline.lineage.publish import collect
from pipeline.lineage.record import EvaluationRecord
from reward.types import RagQuery
from tests.finished_run import write_finished_run

RUN, DIGEST = "a" * 32, "d" * 64


@dataclass
class RecordingClient:
    """Keeps what it is told."""

    stage: str = "active"
    location: str = ""
    told: dict[str, Any] = field(default_factory=dict)

    def get_run(self, run_id: str) -> SimpleNamespace:
        info = SimpleNamespace(run_id=run_id, experiment_id="7", lifecycle_stage=self.stage)
        return SimpleNamespace(info=info)

    def get_experiment_by_name(self, _name: str) -> None:
        return None

    def create_experiment(self, _name: str, location: str) -> str:
        self.location = location
        return "8"

    def create_logged_model(self, experiment: str, **more: object) -> SimpleNamespace:
        self.told["model"] = {"experiment": experiment, **more}
        return SimpleNamespace(model_id="m-1", artifact_location=f"{self.location}/models/m-1/artifacts")

    def finalize_logged_model(self, _model_id: str, status: str) -> None:
        self.told["status"] = status

    def log_outputs(self, _run_id: str, models: list[Any]) -> None:
        self.told["outputs"] = [one.model_id for one in models]

    def log_inputs(self, _run_id: str, *, datasets: list[Any]) -> None:
        self.told["inputs"] = [one.dataset.name for one in datasets]

    def log_batch(self, _run_id: str, *, metrics: list[Any]) -> None:
        assert {one.model_id for one in metrics} == {"m-1"}
        self.told["figures"] = {one.key: (one.value, one.dataset_name) for one in metrics}


@pytest.fixture
def stored(tmp_path: Path, picnic: RagQuery) -> StoredModel:
    evaluation = EvaluationRecord(
        model="m", judge=None, settings_sha256="s", average=0.5,
        benchmarks={"picnics": 0.5, "broken": None},
    )  # fmt: skip
    lineage = collect(write_finished_run(tmp_path, picnic))
    lineage = lineage.model_copy(update={"evaluations": (evaluation,)})
    return StoredModel("s3://b", f"s3://bucket/store/models/{DIGEST}", "s" * 64, "l" * 64, lineage)


def logged(client: RecordingClient, stored: StoredModel, **more: Any) -> tuple[str | None, str]:
    return log_stored_model(cast(MlflowClient, client), "shop.solver", stored, **more)


def test_rows_and_figures_of_training_and_evaluation_are_the_models(stored: StoredModel) -> None:
    client = RecordingClient()
    assert logged(client, stored, run_id=RUN, has_server=True) == ("m-1", stored.address)
    assert client.told == {
        "model": {"experiment": "7", "name": "shop-solver", "source_run_id": RUN},
        "outputs": ["m-1"],
        "inputs": ["picnics"],
        "figures": {
            "reward": (-0.1, "picnics"),
            "evaluation/picnics": (0.5, None),
            "evaluation/average": (0.5, None),
        },
        "status": "READY",
    }


def test_a_deleted_run_gets_no_figures(stored: StoredModel) -> None:
    client = RecordingClient(stage="deleted")
    logged(client, stored, run_id=RUN, has_server=True)
    assert client.told.keys() == {"model", "status"}


def test_without_a_run_there_is_nothing_to_link(stored: StoredModel) -> None:
    client = RecordingClient()
    assert logged(client, stored, run_id=None, has_server=True) == (None, stored.address)
    assert not client.told


@pytest.mark.parametrize("has_server", [True, False])
def test_a_server_gets_a_folder_as_the_link_that_it_takes(has_server: bool, tmp_path: Path) -> None:
    folder = tmp_path / "a store" / "models" / DIGEST
    folder.mkdir(parents=True)
    (folder / "MLmodel").write_text("flavors: {}")
    client, stored = RecordingClient(), StoredModel("file:///a", folder.as_uri(), "s" * 64)
    found = logged(client, stored, run_id=None, has_server=has_server)
    if not has_server:
        assert found == (None, stored.address)
        return
    assert client.location == (tmp_path / "a store" / "mlflow").as_uri()
    assert found[1].startswith(client.location)
    link = tmp_path / "a store" / "mlflow" / "models" / "m-1" / "artifacts"
    assert (link / "MLmodel").read_text() == "flavors: {}"
    assert link.resolve() == folder

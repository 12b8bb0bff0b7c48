"""Any MLflow client loads the champion, without our packages, from a real MLflow server and real stores."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from mlflow import MlflowClient

from orchestration.registry.register import register_weights
from orchestration.registry.store import Registry
from pipeline.artifacts.address import named_artifact
from pipeline.artifacts.settings import StoreSettings
from pipeline.artifacts.store import open_store
from pipeline.record.tracking import start_mlflow_run
from reward.offline.files import weights_sha256
from reward.types import RagQuery
from tests.finished_run import write_finished_run
from tests.march_cli import march
from tests.promotion_evidence import better, evidence, write_evidence
from tests.registry_place import POLICY
from tests.s3_server import serve_swift

pytestmark = [pytest.mark.slow, pytest.mark.core]

_TINY = Path(__file__).parents[1] / "pipeline" / "tiny" / "checkpoint"
# What a colleague's notebook does; whoever imports a package of ours in it fails.
_CLIENT = """
import json, sys
ours = ("reward", "pipeline", "orchestration")
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ours:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
import mlflow
mlflow.set_tracking_uri(sys.argv[1])
messages = [{"role": "user", "content": "When does the shop open?"}]
answer = mlflow.transformers.load_model(sys.argv[2])
said = answer(messages, max_new_tokens=8)[0]["generated_text"][-1]["content"]
served = mlflow.pyfunc.load_model(sys.argv[2]).predict({"messages": messages, "max_tokens": 8})
assert not [name for name in sys.modules if name.partition(".")[0] in ours]
print(json.dumps({"said": said, "served": served[0]["choices"][0]["message"]["content"]}))
"""


@pytest.fixture(params=["s3", "folder"])
def stored(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """The environment of a machine that reads the store, which is also ours."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if request.param == "folder":
        monkeypatch.setenv("MARCH_ARTIFACTS", str(tmp_path / "store"))
        yield {}
        return
    with serve_swift(tmp_path) as server:
        seen = server.environment | {"AWS_ENDPOINT_URL": server.endpoint}
        for name, value in (seen | {"MARCH_ARTIFACTS": "s3://models/shop"}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("MARCH_ARTIFACTS_LOCK", str(tmp_path / "lock"))  # Swift's conditions do not hold
        import boto3

        boto3.Session().client("s3", region_name="us-east-1").create_bucket(Bucket="models")
        yield seen | {"AWS_DEFAULT_REGION": "us-east-1"}


def test_a_client_without_our_packages_loads_the_champion_and_gets_an_answer(
    stored: dict[str, str],
    mlflow_uri: str,
    picnic: RagQuery,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def says(*arguments: object) -> str:
        assert march(*arguments) == 0, capsys.readouterr().err
        return capsys.readouterr().out.strip()

    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_uri)
    monkeypatch.chdir(tmp_path)
    name = f"clients-{request.node.callspec.id}"
    run_id = start_mlflow_run(
        tracking_uri=mlflow_uri, artifact_root=tmp_path, experiment=name, name="my-run", params={}
    )
    run = write_finished_run(tmp_path, picnic, tracking_uri=mlflow_uri, mlflow_run_id=run_id)
    shutil.copytree(_TINY, run / "model", dirs_exist_ok=True)
    weights = weights_sha256(run / "model")
    evaluation = write_evidence(tmp_path / "eval", evidence(better, num_items=60, weights=weights))
    (tmp_path / "policy.yaml").write_text(POLICY % "")
    lineage = says("model", "lineage", run, "--publish", "--evaluation", evaluation)
    says("model", "register", name, f"artifact:{lineage}")
    says("model", "promote", name, "--evaluation", evaluation, "--policy", "policy.yaml")

    found = _as_a_client(mlflow_uri, f"models:/{name}@champion", stored, tmp_path)
    assert found["said"].strip()
    assert found["served"].strip()

    client = MlflowClient(mlflow_uri)
    version = client.get_model_version_by_alias(name, "champion")
    _demand_everything_is_linked(client, version, run_id)
    folder = _demand_the_files(version, weights)
    assert "--model" in says("model", "serve", f"{name}@champion", "--print")
    says("artifacts", "gc", "--delete", "--grace-hours", "0")
    says("artifacts", "verify", "--read")
    assert (folder.store.backend.stat(f"models/{folder.digest}/MLmodel")) is not None


def test_without_a_server_a_client_loads_the_folder_itself(tmp_path: Path) -> None:
    store, uri = open_store(StoreSettings(location=str(tmp_path / "a store"))), f"sqlite:///{tmp_path}/db"
    registry, digest = Registry(uri, creates=True), store.publish(_TINY, kind="model").digest
    version, _ = register_weights(registry, "alone", f"artifact:{digest}", store=lambda: store)
    registry.set_alias("alone", "champion", version)
    assert _as_a_client(uri, "models:/alone@champion", {}, tmp_path)["said"].strip()


def _as_a_client(uri: str, model: str, environment: dict[str, str], folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-I", "-c", _CLIENT, uri, model],
        capture_output=True,
        text=True,
        cwd=folder,
        env=kept | environment | {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""},
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _demand_everything_is_linked(client: MlflowClient, version: Any, run_id: str) -> None:
    run = client.get_run(run_id)
    (output,) = run.outputs.model_outputs
    model = client.get_logged_model(output.model_id)
    assert (str(model.status), model.source_run_id) == ("READY", run_id)
    assert json.loads(model.tags["mlflow.modelVersions"]) == [{"name": version.name, "version": 1}]
    figures = {one.key: one for one in model.metrics}
    assert figures["reward"].value == -0.1
    (rows,) = run.inputs.dataset_inputs
    assert (rows.dataset.name, figures["reward"].dataset_digest) == ("picnics", rows.dataset.digest)


def _demand_the_files(version: Any, weights: str) -> Any:
    found = named_artifact(version.tags["march.weights_uri"])
    assert found is not None
    backend, prefix = found.store.backend, f"models/{found.digest}/"
    there = {entry.key.removeprefix(prefix): entry.size for entry in backend.entries(prefix)}
    assert {"MLmodel", "model_card.md", "requirements.txt", "input_example.json"} < there.keys()
    assert "components/tokenizer/tokenizer.json" in there
    shards = [entry.key for entry in backend.entries("") if entry.key.endswith(".safetensors")]
    assert shards == [f"{prefix}model/model.safetensors"]  # once
    blob = backend.read(f"{prefix}MLmodel")
    assert blob is not None
    described = yaml.safe_load(blob.content)
    assert described["metadata"]["weights_sha256"] == weights
    assert described["signature"]["inputs"]
    assert described["model_size_bytes"] == found.manifest().size
    card = backend.read(f"{prefix}model_card.md")
    assert card is not None and f"| weights | `{weights}` |".encode() in card.content
    return found

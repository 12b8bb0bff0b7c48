"""From a run to a champion that says what made it: store, registry and lineage on a real MLflow server."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlflow import MlflowClient

from pipeline.artifacts.settings import StoreSettings
from pipeline.artifacts.store import ArtifactStore, open_store
from pipeline.record.tracking import start_mlflow_run
from reward.offline.files import weights_sha256
from reward.types import RagQuery
from tests.finished_run import write_finished_run
from tests.march_cli import march, refused
from tests.promotion_evidence import better, evidence, write_evidence
from tests.registry_place import POLICY

pytestmark = pytest.mark.slow


@pytest.fixture
def store(mlflow_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArtifactStore:
    """The store and the registry that every command finds in the environment."""
    monkeypatch.setenv("MARCH_ARTIFACTS", str(tmp_path / "store"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_uri)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return open_store(StoreSettings(location=str(tmp_path / "store")))


def test_from_a_run_to_a_champion_that_says_what_made_it(
    mlflow_uri: str,
    store: ArtifactStore,
    picnic: RagQuery,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def says(*arguments: object) -> str:
        assert march(*arguments) == 0
        return capsys.readouterr().out

    run_id = start_mlflow_run(
        tracking_uri=mlflow_uri, artifact_root=tmp_path, experiment="joined", name="my-run", params={}
    )
    run = write_finished_run(tmp_path, picnic, tracking_uri=mlflow_uri, mlflow_run_id=run_id)
    weights = weights_sha256(run / "model")
    evaluation = write_evidence(tmp_path / "eval", evidence(better, num_items=60, weights=weights))
    (tmp_path / "policy.yaml").write_text(POLICY % "")

    lineage = says("model", "lineage", run, "--publish", "--evaluation", evaluation).strip()
    client = MlflowClient(mlflow_uri)
    assert client.get_run(run_id).data.tags["march.lineage_uri"].endswith(lineage)
    assert [one.path for one in client.list_artifacts(run_id)] == ["lineage.html"]

    says("model", "register", "shop", f"artifact:{lineage[:10]}")
    assert client.get_model_version("shop", "1").run_id == run_id
    kept = says("artifacts", "put", evaluation, "--kind", "evaluation").strip()
    promoting = ["model", "promote", "shop", "--evaluation", f"artifact:{kept}", "--policy", "policy.yaml"]
    assert "is the champion" in says(*promoting, "--by", "ann")

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("MARCH_ARTIFACTS", str(tmp_path / "another"))  # the version knows where it is
    assert march("model", "lineage", "shop@champion") == 2
    assert f"MLflow names file://{tmp_path}/store/manifests/" in capsys.readouterr().err
    monkeypatch.setenv("MARCH_ARTIFACTS", str(tmp_path / "store"))
    shown = says("model", "lineage", "shop@champion")
    for said in ("shop version 1", "decision 1: promote", "by ann at", "floor", "my-run", weights):
        assert said in shown
    says("model", "lineage", "shop@champion", "--html", "page.html")
    assert "by ann at" in (tmp_path / "page.html").read_text()
    assert "march train" in says("model", "reproduce", "shop@champion", "--out", "again")
    assert "--model" in says("model", "serve", "shop", "--print")

    loose = store.publish(kind="loose").digest
    before = set(store.manifests())
    says("artifacts", "gc", "--delete", "--grace-hours", "0")
    assert before - set(store.manifests()) == {loose}
    assert {lineage, kept} < before


def test_a_version_without_a_lineage_says_so(
    store: ArtifactStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "config.json").write_text("{}")
    digest = store.publish(tmp_path / "plain", kind="model").digest
    assert march("model", "register", "plain", f"artifact:{digest}") == 0
    assert march("model", "lineage", "plain@1") == 0
    shown = capsys.readouterr().out
    assert "none yet" in shown
    assert "not recorded" in shown
    assert march("model", "reproduce", "plain@1") == 2
    assert "registered without a lineage" in capsys.readouterr().err


def test_a_version_is_deleted_with_its_weights_unless_somebody_needs_it(
    mlflow_uri: str, store: ArtifactStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digests: list[str] = []
    for number in range(3):
        folder = tmp_path / f"weights-{number}"
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_text(str(number))
        digests.append(store.publish(folder, kind="model").digest)
        assert march("model", "register", "pruned", f"artifact:{digests[-1]}") == 0
    prune = ("artifacts", "prune", "--grace-hours", "0", "--version")
    capsys.readouterr()
    assert "is candidate" in refused(capsys, *prune, "pruned@3")
    client = MlflowClient(mlflow_uri)
    assert march(*prune, "pruned@1", "--dry-run") == 0
    assert "1 manifests, " in capsys.readouterr().out
    assert len(client.search_model_versions("name = 'pruned'")) == 3
    assert march(*prune, "pruned@1") == 0
    assert {one.version for one in client.search_model_versions("name = 'pruned'")} in ({2, 3}, {"2", "3"})
    assert set(store.manifests()) == set(digests[1:])

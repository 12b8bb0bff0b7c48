"""Weights, evaluations and references between the registry and the artifact store, without a server."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from subprocess import PIPE
from typing import cast

import pytest
import yaml

from orchestration.commands.promote_view import version_node
from orchestration.promotion.policy import GatePolicy
from orchestration.promotion.records import GateReport, GateResult, GateState
from orchestration.registry.logged import StoredModel
from orchestration.registry.mlflow_model import MLMODEL, REQUIREMENTS, foreign_code, write_mlflow_model
from orchestration.registry.register import register_weights
from orchestration.registry.store import (
    LINEAGE_TAG,
    SHA256_TAG,
    URI_TAG,
    ModelVersion,
    Registry,
)
from orchestration.registry.stored import bring_evidence, local_weights, references
from orchestration.registry.trial import Trial
from pipeline.artifacts.address import Artifact, forget, located, named_artifact
from pipeline.artifacts.layout import manifest_key, model_key
from pipeline.artifacts.local import LocalBackend
from pipeline.artifacts.settings import StoreSettings
from pipeline.artifacts.store import ArtifactStore, open_store
from pipeline.artifacts.upkeep import find_garbage, remove
from pipeline.lineage.publish import publish_record, publish_run, read_lineage
from pipeline.lineage.show import render_html
from pipeline.models.cache import Origin
from reward.offline.files import weights_sha256
from reward.types import RagQuery
from tests.finished_run import write_finished_run
from tests.march_cli import march
from tests.memory_registry import MemoryRegistry as DecidedRegistry
from tests.memory_registry import decisions_over, promote, version
from tests.promotion_evidence import better, evidence, write_evidence

ALL_AGES = timedelta(0)


@dataclass
class MemoryRegistry:
    """What `references` and `register_weights` ask of a registry."""

    versions_of: dict[str, list[ModelVersion]] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)
    stored: list[StoredModel] = field(default_factory=list)

    def all_versions(self) -> list[ModelVersion]:
        return [one for versions in self.versions_of.values() for one in versions]

    def lineages_of_runs(self) -> list[str]:
        return self.runs

    def register(self, model: str, stored: StoredModel) -> tuple[str, bool]:
        self.stored.append(stored)
        tags = {URI_TAG: stored.uri, SHA256_TAG: stored.sha256}
        tags |= {LINEAGE_TAG: stored.lineage_sha256} if stored.lineage_sha256 else {}
        there = self.versions_of.setdefault(model, [])
        there.append(ModelVersion(str(len(there) + 1), stored.uri, stored.sha256, (), tags, 0))
        return there[-1].version, True


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return open_store(StoreSettings(location=str(tmp_path / "store")))


@pytest.fixture
def run(tmp_path: Path, picnic: RagQuery) -> Path:
    return write_finished_run(tmp_path, picnic)


def registered(store: ArtifactStore, reference: str) -> tuple[MemoryRegistry, ModelVersion]:
    registry = MemoryRegistry()
    register_weights(cast(Registry, registry), "m", reference, store=lambda: store)
    return registry, registry.versions_of["m"][0]


def test_a_lineage_registers_the_weights_that_it_made_and_itself(store: ArtifactStore, run: Path) -> None:
    lineage = publish_run(store, run)
    registry, version = registered(store, f"artifact:{lineage[:12]}")
    assert version.sha256 == weights_sha256(run / "model")
    (stored,) = registry.stored
    assert stored.lineage and stored.lineage.mlflow_run_id == "a" * 32
    assert version.tags[LINEAGE_TAG] == lineage
    place = located(version.uri)
    assert place is not None
    assert store.manifest(place[1]).kind == "model"
    again = named_artifact(version.uri)
    assert again is not None
    assert again.address == version.uri


def test_brought_files_are_forgotten_when_nobody_else_uses_them(store: ArtifactStore, run: Path) -> None:
    address = registered(store, f"artifact:{publish_run(store, run)}")[1].uri
    code = "import sys; from pipeline.artifacts.address import named_artifact as named\n"
    code += f"print(named({address!r}).bring(), flush=True); sys.stdin.read()"
    other = subprocess.Popen([sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, text=True)
    assert other.stdin and other.stdout
    folder = Path(other.stdout.readline().strip())
    assert named_artifact(address).bring() == folder
    forget(folder)
    assert folder.is_dir(), "another process uses it"
    named_artifact(address).bring()
    other.stdin.close()
    other.wait()
    forget(folder)
    assert not folder.exists()
    run.mkdir(exist_ok=True)
    forget(run)
    assert run.is_dir(), "it was never brought"


def test_registered_weights_are_brought_once_and_verified(
    store: ArtifactStore, run: Path, tmp_path: Path
) -> None:
    _, version = registered(store, f"artifact:{publish_run(store, run)}")
    folder = local_weights(version)
    assert weights_sha256(folder) == version.sha256
    shard = folder / "model.safetensors"
    fetched: list[int] = []
    shard.write_bytes(b"Weights")  # of the same size
    assert weights_sha256(local_weights(version)) == version.sha256
    local_weights(version, advance=fetched.append)
    assert shard.read_bytes() == b"weights"
    (folder / "added.json").write_text("{}")
    with pytest.raises(ValueError, match=r"holds 'added\.json' too"):
        local_weights(version)


def test_two_that_bring_the_same_weights_at_once_do_not_meet(store: ArtifactStore, run: Path) -> None:
    _, version = registered(store, f"artifact:{publish_run(store, run)}")
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(local_weights(version))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert weights_sha256(found[0]) == version.sha256


def test_weights_that_are_not_the_registered_ones_are_not_fetched(
    store: ArtifactStore, run: Path, tmp_path: Path
) -> None:
    _, version = registered(store, f"artifact:{publish_run(store, run)}")
    other = ModelVersion(**{**vars(version), "sha256": "0" * 64})
    with pytest.raises(ValueError, match="registered was 000000000000"):
        local_weights(other)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "part/adapter.PT", "optimizer.pkl"])
def test_pickles_are_neither_registered_nor_loaded(name: str, store: ArtifactStore, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    (folder / name).parent.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / name).write_bytes(b"\x80\x04.")
    reference = f"artifact:{store.publish(folder, kind='model').digest}"
    with pytest.raises(ValueError, match=r"is a pickle.*safetensors"):
        registered(store, reference)
    sha256, address = weights_sha256(folder), Artifact(store, reference.removeprefix("artifact:")).address
    with pytest.raises(ValueError, match="is a pickle"):
        local_weights(ModelVersion("1", address, sha256, (), {}, 0))
    with pytest.raises(ValueError, match="is a pickle"):
        registered(store, str(folder))


def test_a_folder_is_put_into_the_store_and_registered_from_there(store: ArtifactStore, run: Path) -> None:
    _, version = registered(store, str(run / "model"))
    assert registered(store, version.uri)[1].uri == version.uri
    assert weights_sha256(local_weights(version)) == version.sha256 == weights_sha256(run / "model")
    with pytest.raises(ValueError, match=r"holds no Hugging Face model \(config\.json\)"):
        registered(store, str(run))


def test_a_registered_model_has_what_any_mlflow_client_reads(store: ArtifactStore, run: Path) -> None:
    (run / "model" / "tokenizer.json").write_text("{}")
    (run / "model" / "LICENSE").write_text("free")
    registry, version = registered(store, f"artifact:{publish_run(store, run)}")
    found = named_artifact(version.uri)
    assert found is not None
    (address,) = (one.address for one in registry.stored)
    assert address == found.mlflow_address
    folder = Path(address.removeprefix("file://"))
    described = yaml.safe_load((folder / "MLmodel").read_text())
    assert described["flavors"].keys() == {"transformers", "python_function"}
    assert described["metadata"]["weights_sha256"] == version.sha256
    assert weights_sha256(folder / "model") == version.sha256
    copies = sorted(path.name for path in (folder / "components" / "tokenizer").iterdir())
    assert (copies, (folder / "LICENSE").read_text()) == (["config.json", "tokenizer.json"], "free")
    card = (folder / "model_card.md").read_text()
    assert "| rows | 1 of picnics" in card and version.tags[LINEAGE_TAG] in card
    assert "torch==" in (folder / "requirements.txt").read_text()


def test_registering_weights_alone_leaves_the_card_of_their_lineage(store: ArtifactStore, run: Path) -> None:
    _, version = registered(store, f"artifact:{publish_run(store, run)}")
    found = named_artifact(version.uri)
    assert found is not None
    card = Path(found.mlflow_address.removeprefix("file://")) / "model_card.md"
    before = card.read_text()
    registered(store, f"artifact:{found.digest}")
    assert card.read_text() == before


def test_the_licence_is_that_of_the_first_ancestor_that_has_one(store: ArtifactStore, run: Path) -> None:
    first = read_lineage(store, publish_run(store, run))
    origin = Origin(
        name="base", source="hub", location="some/base", licence="Apache-2.0", end_token="</s>",
        num_parameters=1, dtype="bfloat16", fetched="2026", files={},
    )  # fmt: skip
    assert first.model and first.model.artifact
    model = first.model.artifact
    of_base = first.model_copy(update={"parent": first.parent.model_copy(update={"origin": origin})})
    parent = publish_record(store, of_base, model=model)
    child = first.model_copy(update={"parent": first.parent.model_copy(update={"lineage": parent})})
    _, version = registered(store, f"artifact:{publish_record(store, child, model=model)}")
    found = named_artifact(version.uri)
    assert found is not None
    folder = Path(found.mlflow_address.removeprefix("file://"))
    assert yaml.safe_load((folder / "MLmodel").read_text())["metadata"]["licence"] == "Apache-2.0"
    assert "license: apache-2.0" in (folder / "model_card.md").read_text()


def test_what_disagrees_with_the_store_is_not_registered(
    store: ArtifactStore, run: Path, tmp_path: Path
) -> None:
    lineage = f"artifact:{publish_run(store, run)}"
    made = read_lineage(store, lineage.removeprefix("artifact:"))
    assert made.model and made.model.artifact
    wrong = made.model_copy(update={"model": made.model.model_copy(update={"weights_sha256": "0" * 64})})
    with pytest.raises(ValueError, match="is the lineage of other weights than it names"):
        registered(store, publish_record(store, wrong, model=made.model.artifact))
    (tmp_path / "notes.txt").write_text("no model")
    notes = store.publish(tmp_path / "notes.txt", kind="files").digest
    with pytest.raises(ValueError, match=r"config\.json"):
        registered(store, f"artifact:{notes}")
    model = located(registered(store, lineage)[1].uri)
    assert model is not None
    (shard,) = (one for one in store.manifest(model[1]).files if one.path == "model.safetensors")
    store.backend.delete(store.manifest(model[1]).keys()[shard.path])
    with pytest.raises(ValueError, match="is missing; publish it again"):
        registered(store, lineage)


def test_what_the_gates_read_is_in_the_store_whatever_happens_to_a_folder(
    store: ArtifactStore, tmp_path: Path
) -> None:
    folder = write_evidence(tmp_path / "eval", evidence(better, num_items=4))
    content = (folder / "results.json").read_bytes()
    dry = bring_evidence(str(folder), store, is_dry=True)
    assert dry.artifact is None and not list(store.manifests())
    kept = store.publish(folder, kind="evaluation").digest
    assert {bring_evidence(one, store).artifact for one in (f"artifact:{kept}", str(folder))} == {kept}
    elsewhere = ArtifactStore(LocalBackend(tmp_path / "another"))
    copied = bring_evidence(Artifact(store, kept).address, elsewhere).artifact
    assert copied is not None and elsewhere.manifest(copied).kind == "evaluation"
    (folder / "results.json").write_text("{}")
    assert (Artifact(store, kept).bring() / "results.json").read_bytes() == content
    other = store.publish(folder, kind="files").digest
    with pytest.raises(ValueError, match="of kind files; publish it with --kind evaluation"):
        bring_evidence(f"artifact:{other}", store)
    with pytest.raises(FileNotFoundError):
        bring_evidence(str(tmp_path), store)


def test_gc_keeps_what_versions_and_runs_refer_to(store: ArtifactStore, run: Path, tmp_path: Path) -> None:
    lineage = publish_run(store, run)
    registry, version = registered(store, f"artifact:{lineage}")
    (tmp_path / "loose").write_text("loose")
    loose = store.publish(tmp_path / "loose", kind="files").digest
    of_run = store.publish(kind="lineage", record={"lineage": {}}).digest
    registry.runs = [Artifact(store, of_run).address, "s3://elsewhere/manifests/sha256/00/" + "0" * 64]
    kept = references(cast(Registry, registry), store)
    assert {lineage, of_run} < kept
    remove(store, find_garbage(store, references=kept, grace=ALL_AGES), grace=ALL_AGES)
    there = set(store.manifests())
    assert loose not in there
    assert {lineage, of_run, *store.manifest(lineage).refers} == there
    assert weights_sha256(local_weights(version)) == version.sha256


@pytest.mark.parametrize("lost", ["model", "lineage", "run"])
def test_gc_stops_where_what_is_registered_is_not_there(lost: str, store: ArtifactStore, run: Path) -> None:
    lineage = publish_run(store, run)
    registry, version = registered(store, f"artifact:{lineage}")
    place = located(version.uri)
    assert place is not None
    gone = {"model": place[1], "lineage": lineage}.get(lost, "0" * 64)
    if lost == "run":
        registry.runs = [Artifact(store, gone).address]
    store.backend.delete(manifest_key(gone))
    with pytest.raises(ValueError, match=f"has no manifest {gone}, which the registry refers to"):
        references(cast(Registry, registry), store)


def test_a_reference_holds_by_whatever_name_the_store_has(
    store: ArtifactStore, run: Path, tmp_path: Path
) -> None:
    lineage = publish_run(store, run)
    (tmp_path / "mounted").symlink_to(store.backend.address)
    mounted = open_store(StoreSettings(location=str(tmp_path / "mounted")))
    registry, version = registered(store, f"artifact:{lineage}")
    other = version.uri.replace(store.backend.address, "/on/another/machine")
    registry.versions_of["m"] = [ModelVersion(**{**vars(version), "tags": {**version.tags, URI_TAG: other}})]
    assert lineage in references(cast(Registry, registry), mounted)
    assert references(cast(Registry, registry), mounted) == references(cast(Registry, registry), store)


def test_what_is_registered_is_made_young_for_gc(store: ArtifactStore, run: Path) -> None:
    lineage = publish_run(store, run)
    root = Path(store.backend.address)
    patterns = ("manifests/*/*/*", "objects/*/*/*", "models/*/model/*")
    for path in (path for pattern in patterns for path in root.rglob(pattern)):
        os.utime(path, (0, 0))
    assert find_garbage(store).manifests
    registered(store, f"artifact:{lineage}")
    assert not find_garbage(store).manifests
    assert not find_garbage(store).objects


def test_a_version_says_who_promoted_it_when_and_by_which_gates(tmp_path: Path) -> None:
    evil = "<b>[red]worse</b>"
    gates = (GateResult(gate="primary", state=GateState.PASSED, reason=evil, bound="low > 0"),)
    report = GateReport(gates=gates, policy_sha256="p" * 64)
    decisions = decisions_over(DecidedRegistry(), tmp_path)
    for number in "12":
        trial = Trial(version(number), report, decisions.state())
        decisions.promote(trial, GatePolicy())
    node = version_node(decisions, decisions.version("1"))
    made = [one for one in node.below if one.label.startswith("decision ")]
    assert [one.label for one in made] == ["decision 1: promote version 1", "decision 2: promote version 2"]
    assert made[0].value.startswith("by ann at ")
    shown = made[0].below[-1]
    assert (shown.value, shown.below[0].label) == ("passed", "primary")
    page = render_html(node)
    assert evil not in page
    assert "&lt;b&gt;" in page


@pytest.mark.parametrize("action", ["promote", "approve", "rollback"])
def test_nothing_without_weights_becomes_champion(action: str, store: ArtifactStore, tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/config.json").write_text("{}")
    made = Artifact(store, store.publish(tmp_path / "weights", kind="model").digest)
    decisions = decisions_over(DecidedRegistry(), Path(store.backend.address))
    lost = replace(version("1"), uri=made.address)
    if action != "promote":
        promote(decisions, lost, required=action == "approve")
    if action == "rollback":
        promote(decisions, "2")
    state = decisions.state()
    store.backend.delete(*made.manifest().keys().values())
    with pytest.raises(ValueError, match="is missing; publish it again"):
        {
            "promote": lambda: promote(decisions, lost),
            "approve": lambda: decisions.approve("1"),
            "rollback": decisions.rollback,
        }[action]()
    assert decisions.state() == state


def test_what_mlflows_clients_would_run_is_only_what_was_registered(
    store: ArtifactStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "config.json").write_text("{}")
    model = Artifact(store, store.publish(tmp_path / "weights", kind="model").digest)
    assert foreign_code(model) == "", "there is nothing yet"
    write_mlflow_model(model, weights_sha256="a" * 64, lineage=None)
    assert foreign_code(model) == ""
    verify = ["artifacts", "verify", "--read", "--store", store.backend.address]
    assert march(*verify) == 0
    written = {name: store.backend.read(model_key(model.digest, name)) for name in (MLMODEL, REQUIREMENTS)}
    changes = {
        MLMODEL: [
            (b"loader_module: mlflow.transformers", b"loader_module: evil"),
            (b"code: null", b"code: code"),
        ],
        REQUIREMENTS: [(b"torch", b"evil\ntorch"), (b"mlflow==", b"mlflow @ https://evil/")],
    }
    changes[MLMODEL] += [(b"model_binary: model", b"model_binary: ../other"), (b"flavors:", b"flavors: [")]
    for name, edits in changes.items():
        before = written[name]
        assert before is not None
        for old, new in edits:
            store.backend.write(model_key(model.digest, name), before.content.replace(old, new))
            assert "was not written by `march model register`" in foreign_code(model), new
        assert march(*verify) == 1
        assert f"{model_key(model.digest, MLMODEL)}: was not written by" in capsys.readouterr().out
        store.backend.write(model_key(model.digest, name), before.content)
    assert march(*verify) == 0

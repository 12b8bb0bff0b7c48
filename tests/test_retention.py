"""What retrainings leave in the store, what pruning takes, and what it never takes."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from orchestration.registry.chain import Chosen, State
from orchestration.registry.decisions import Decisions
from orchestration.registry.register import register_weights
from orchestration.registry.store import ModelVersion, Registry
from orchestration.registry.stored import hold_weights, references
from orchestration.retrain.loop import retrain
from orchestration.retrain.records import Ending, Stage, StageRequest, StageResult, stage_folder, stage_key
from orchestration.retrain.results import Results
from orchestration.retrain.retention import idle_versions, prune_after, results_of_versions, stale_results
from pipeline.artifacts.address import Artifact, cached_artifacts, located, named_artifact
from pipeline.artifacts.backend import StoreError
from pipeline.artifacts.settings import StoreSettings
from pipeline.artifacts.store import ArtifactStore, open_store
from pipeline.artifacts.upkeep import find_damage, find_garbage, remove
from pipeline.lineage.publish import publish_record
from pipeline.lineage.record import DataRecord, EvaluationRecord, Lineage, ModelRecord
from reward.offline.files import digest_of_files
from tests.march_cli import march, refused
from tests.retrainings import Factory, Rig, rig
from tests.test_registry_stored import MemoryRegistry

ALL_AGES = timedelta(0)
WEIGHTS_BYTES, ROWS_BYTES = 40_000, 5_000


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestration.retrain.loop._POLL_S", 0.0)


class Registrations(MemoryRegistry):
    """A registry whose versions can be deleted."""

    def versions(self, model: str) -> list[ModelVersion]:
        return self.versions_of.get(model, [])

    def delete(self, model: str, version: str) -> None:
        self.versions_of[model] = [one for one in self.versions_of[model] if one.version != version]


@dataclass
class Shop:
    """What a retraining and its retention ask about one model."""

    model: str = "shop-solver"
    registry: Registrations = field(default_factory=Registrations)
    num_registered: int = 0
    champion: str | None = None
    previous: str | None = None
    asked_for: str | None = None

    def state(self) -> State:
        asked = self.chosen(self.asked_for)
        waiting = {"request": asked} if asked else {}
        return State(
            champion=self.chosen(self.champion), previous=self.chosen(self.previous), waiting=waiting
        )

    def chosen(self, number: str | None) -> Chosen | None:
        if number is None:
            return None
        found = self.version(number)
        return Chosen(version=number, sha256=found.sha256, uri=found.uri)

    def version(self, reference: str) -> ModelVersion:
        number = self.champion if reference == "@champion" else reference
        return next(one for one in self.registry.versions(self.model) if one.version == number)

    def register(self, found: Artifact, evaluation: str) -> str:
        """The next number, also where a version was deleted."""
        registry = MemoryRegistry()
        register_weights(cast(Registry, registry), self.model, found.address)
        self.num_registered += 1
        (made,) = registry.versions_of[self.model]
        tags = {**made.tags, "march.evaluation_uri": Artifact(found.store, evaluation).address}
        there = self.registry.versions_of.setdefault(self.model, [])
        number = str(self.num_registered)
        a_minute_ago = int((time.time() - 60) * 1000)
        there.append(replace(made, version=number, tags=tags, created_ms=a_minute_ago + self.num_registered))
        return there[-1].version

    def promote(self, version: str) -> None:
        self.champion, self.previous = version, self.champion


class Publishing(Factory):
    """Stages that publish small files as the real ones publish theirs, and register what they made."""

    def __init__(self, results: Results, shop: Shop, folder: Path) -> None:
        super().__init__(results)
        self.shop, self.folder = shop, folder

    def made(self, request: StageRequest) -> StageResult:
        store, done = self.results.store, request.done
        outputs: dict[str, str] = {}
        facts: dict[str, Any] = {}
        if request.stage is Stage.PREPARE:
            outputs["rows"], facts["rows_sha256"] = self.put("data", ROWS_BYTES), os.urandom(32).hex()
        elif request.stage is Stage.TRAIN:
            outputs = {"model": self.put("model", WEIGHTS_BYTES), "run": self.put("run", 100)}
            files = {one.path: one.sha256 for one in store.manifest(outputs["model"]).files}
            facts["weights_sha256"] = digest_of_files(files)
        elif request.stage in (Stage.EVALUATE, Stage.EVALUATE_CHAMPION):
            outputs["evaluation"] = self.put("evaluation", 1_000)
        elif request.stage is Stage.PUBLISH:
            outputs["lineage"] = self.lineage(request)
        elif request.stage is Stage.REGISTER:
            lineage = done[Stage.PUBLISH].outputs["lineage"]
            evaluation = done[Stage.EVALUATE].outputs["evaluation"]
            version = self.shop.register(Artifact(store, lineage), evaluation)
            facts = {"version": version, "registered_ms": int(version)}
        else:
            number = str(request.inputs["version"])
            if self.outcome is Ending.PROMOTED:
                self.shop.promote(number)
            facts = {"outcome": self.outcome, "version": number}
        return StageResult(stage=request.stage.result_name, key=request.key, outputs=outputs, facts=facts)

    def put(self, kind: str, num_bytes: int) -> str:
        made = self.folder / kind
        made.mkdir(parents=True, exist_ok=True)
        (made / "config.json").write_text("{}")
        (made / "model.safetensors").write_bytes(os.urandom(num_bytes))
        return self.results.store.publish(made, kind=kind).digest

    def lineage(self, request: StageRequest) -> str:
        store, none, parent = self.results.store, "0" * 64, request.parent
        names = {name: one for made in request.done.values() for name, one in made.outputs.items()}
        names["evaluation"] = request.done[Stage.EVALUATE].outputs["evaluation"]
        sha256 = digest_of_files({one.path: one.sha256 for one in store.manifest(names["model"]).files})
        data = DataRecord(source="tiny", num_rows=1, rows_sha256=none)
        evaluation = EvaluationRecord(
            model="m", judge=None, settings_sha256=none, artifact=names["evaluation"]
        )
        made = Lineage(
            run="run",
            recipe_name="tiny",
            recipe_digest=none,
            recipe={},
            data=data,
            parent=ModelRecord(name="parent", lineage=parent.lineage if parent else None),
            model=ModelRecord(name="model", weights_sha256=sha256),
            seed=0,
            prompt_digests={},
            surroundings=(),
            mlflow_run_id="a" * 32,
            num_steps=1,
        )
        return publish_record(store, made, model=names["model"], rows=names["rows"], evaluations=[evaluation])


@dataclass
class Loop:
    """A job that is retrained again and again, on new data each time."""

    rig: Rig
    shop: Shop
    num_done: int = 0

    @property
    def store(self) -> ArtifactStore:
        return self.rig.place.results.store

    def retrain(self, outcome: Ending) -> None:
        self.num_done += 1
        place = self.rig.place
        plan = replace(place.plan, data=str(self.num_done))
        self.rig.factory.outcome = outcome
        retrain(replace(place, plan=plan))
        prune_after(plan.job, self.store, cast(Decisions, self.shop))

    def num_bytes(self) -> int:
        return sum(entry.size for entry in self.store.backend.entries(""))

    def kinds(self) -> Counter[str]:
        return Counter(self.store.manifest(digest).kind for digest in self.store.manifests())


def loop(folder: Path, *assignments: str) -> Loop:
    made = rig(folder, f"work={folder / 'work'}", *assignments)
    shop = Shop()
    factory = Publishing(made.place.results, shop, folder / "made")
    place = replace(made.place, decisions=cast(Decisions, shop), start=factory)
    return Loop(replace(made, place=place, factory=factory), shop)


KEEP_3 = ("retention.keep_last=3", "retention.grace_hours=0")


@pytest.mark.slow
def test_a_hundred_retrainings_leave_a_bounded_store(tmp_path: Path) -> None:
    tested = loop(tmp_path, *KEEP_3, "retention.versions=3", "retention.ancestors=false")
    sizes = []
    for number in range(100):
        tested.retrain(Ending.REFUSED if number % 10 else Ending.PROMOTED)
        sizes.append(tested.num_bytes())
    # The last three, the champion and the one before; rows and evaluations of the same.
    assert tested.kinds()["model"] <= 5 and tested.kinds()["data"] <= 5 and tested.kinds()["evaluation"] <= 11
    records = 10 * 2_000  # of the lineages of those that were champion, which stay
    assert max(sizes[10:]) <= 5 * (WEIGHTS_BYTES + ROWS_BYTES) + 100_000 + records
    assert max(sizes[90:]) - max(sizes[10:20]) <= records
    assert len(list(tested.store.backend.entries(""))) < 200
    assert not list(find_damage(tested.store, tested.store.manifests(), read=True))
    decisions = cast(Decisions, tested.shop)
    champion = tested.shop.version(str(tested.shop.champion))
    assert tested.store.get(digest_in(champion.uri), tmp_path / "champion").kind == "model"
    assert [one.version for one in tested.shop.registry.versions(decisions.model)] == [
        "81",
        "91",
        "98",
        "99",
        "100",
    ]


def test_prune_and_gc_give_back_all_that_nothing_needs(tmp_path: Path) -> None:
    tested = loop(tmp_path)
    for outcome in (Ending.PROMOTED, Ending.REFUSED, Ending.PROMOTED):
        tested.retrain(outcome)
    assert tested.kinds()["model"] == 3 and len(stale_results(tested.store, 1)) == 11
    registry = cast(Registry, tested.shop.registry)
    every = {name for name in tested.store.pointers() if name.startswith("retrain/")}
    kept = references(registry, tested.store)
    garbage = find_garbage(tested.store, references=kept, grace=ALL_AGES, stale=every)
    remove(tested.store, garbage, grace=ALL_AGES)
    assert tested.kinds()["model"] == 3 and not tested.store.pointers()  # all three are registered
    assert not {"stage", "run"} & tested.kinds().keys()
    remove(tested.store, find_garbage(tested.store, grace=ALL_AGES), grace=ALL_AGES)
    assert [entry.key for entry in tested.store.backend.entries("")] == [".lock"]


def test_what_versions_and_their_lineage_need_is_kept_by_default(tmp_path: Path) -> None:
    tested = loop(tmp_path, *KEEP_3)
    for _ in range(6):
        tested.retrain(Ending.PROMOTED)
    assert tested.kinds()["model"] == tested.kinds()["lineage"] == tested.kinds()["data"] == 6
    assert not list(find_damage(tested.store, tested.store.manifests(), read=True))
    assert len([name for name in tested.store.pointers() if "/train/" in name]) == 3


def test_the_results_of_another_job_are_none_of_a_jobs_own(tmp_path: Path) -> None:
    tested = loop(tmp_path, *KEEP_3)
    for number in range(4):
        digest = tested.store.publish(kind="stage", record={"number": number}).digest
        tested.store.move(f"retrain/other/train/{number}", digest, expected=None)
    for _ in range(4):
        tested.retrain(Ending.REFUSED)
    assert len([name for name in tested.store.pointers() if name.startswith("retrain/other/")]) == 4
    assert len([name for name in tested.store.pointers() if "/train/" in name]) == 4 + 3


def test_a_job_without_retention_removes_nothing(tmp_path: Path) -> None:
    tested = loop(tmp_path)
    for _ in range(4):
        tested.retrain(Ending.REFUSED)
    assert tested.kinds()["stage"] == 4 * 6


def test_what_is_within_the_grace_stays(tmp_path: Path) -> None:
    tested = loop(tmp_path, "retention.keep_last=1", "retention.versions=1")
    for _ in range(3):
        tested.retrain(Ending.REFUSED)
    assert tested.kinds()["model"] == len(tested.shop.registry.versions("shop-solver")) == 3


def test_an_old_version_that_gates_look_at_stays(tmp_path: Path) -> None:
    tested = loop(tmp_path)
    for _ in range(3):
        tested.retrain(Ending.REFUSED)
    for entry in list(tested.store.backend.entries("")):
        os.utime(Path(tested.store.backend.address) / entry.key, (0, 0))
    versions = tested.shop.registry.versions_of
    versions["shop-solver"] = [replace(one, created_ms=0) for one in versions["shop-solver"]]
    given = cast(Decisions, tested.shop), 1, tested.store
    hold_weights(tested.shop.version("1").uri, tested.store)
    assert [one.version for one in idle_versions(*given, grace=timedelta(hours=1))] == ["2"]


def test_a_result_that_is_used_again_is_none_of_the_oldest(tmp_path: Path) -> None:
    tested = loop(tmp_path)
    for _ in range(3):
        tested.retrain(Ending.REFUSED)
    tested.num_done = 0
    tested.rig.ledger.runs.clear()
    tested.retrain(Ending.REFUSED)  # the first one's data: all of its results stand
    stale = stale_results(tested.store, 1)
    again = [name for name in tested.store.pointers() if name not in stale]
    assert tested.store.manifest(str(tested.store.pointed(again[0]))).kind == "stage"
    (rows,) = [name for name in again if "/prepare/" in name]
    plan = replace(tested.rig.place.plan, data="1")
    assert rows.endswith(stage_key(Stage.PREPARE, {"code": plan.code, "data": plan.data}))


def test_checkpoints_of_a_finished_training_go_and_those_of_another_stay(tmp_path: Path) -> None:
    tested = loop(tmp_path, *KEEP_3)
    job = tested.rig.place.plan.job
    other = stage_folder(job, Stage.TRAIN, "f" * 64)
    tested.rig.factory.before_end = lambda stage: stage_folder(
        job, stage, tested.rig.factory.requests[-1].key
    ).mkdir(parents=True)
    other.mkdir(parents=True)
    tested.retrain(Ending.REFUSED)
    assert list(job.folder.glob("train-*")) == [other]
    assert not list(job.folder.glob("evaluate-*")), "it has a copy of the weights"


def test_cached_weights_of_versions_that_lost_go_and_the_champions_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tested = loop(tmp_path, *KEEP_3)
    for outcome in (Ending.PROMOTED, Ending.REFUSED, Ending.REFUSED):
        tested.retrain(outcome)
        for version in tested.shop.registry.versions(tested.shop.model):
            named_artifact(version.uri).bring()
    tested.retrain(Ending.REFUSED)
    left = {path.name for path in cached_artifacts().iterdir() if path.is_dir()}
    assert left == {digest_in(tested.shop.version("1").uri)}


def test_a_version_is_deleted_with_everything_that_only_it_needs(tmp_path: Path) -> None:
    tested = loop(tmp_path)
    for outcome in (Ending.PROMOTED, Ending.REFUSED):
        tested.retrain(outcome)
    store, registry = tested.store, cast(Registry, tested.shop.registry)
    lost = tested.shop.version("2")
    stale = results_of_versions(store, [lost])
    assert {name.split("/")[2] for name in stale} == {"train", "evaluate", "publish"}
    kept = references(registry, store, without=[lost])
    remove(store, find_garbage(store, references=kept, grace=ALL_AGES, stale=stale), grace=ALL_AGES)
    assert tested.kinds()["model"] == tested.kinds()["lineage"] == 1
    assert digest_in(lost.uri) not in set(store.manifests())
    assert references(registry, store, without=[lost]) <= set(store.manifests())
    assert not list(find_damage(store, store.manifests(), read=True))


def test_a_result_is_read_once_however_many_versions_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All results were read for each version: of 1,000 each, a million requests to the bucket."""
    tested = loop(tmp_path)
    for _ in range(3):
        tested.retrain(Ending.REFUSED)
    store, versions = tested.store, tested.shop.registry.versions(tested.shop.model)
    apart = [results_of_versions(store, [one]) for one in versions]
    read, pointed = list[str](), ArtifactStore.pointed
    monkeypatch.setattr(ArtifactStore, "pointed", lambda store, one: read.append(one) or pointed(store, one))
    assert results_of_versions(store, versions) == set[str]().union(*apart) != set()
    assert len(versions) == 3 and len(read) == len(set(read))


def test_a_store_that_refuses_to_remove_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tested = loop(tmp_path, "retention.keep_last=1", "retention.grace_hours=0")

    def refuse(key: str) -> None:
        raise StoreError(f"{key}: AccessDenied")

    monkeypatch.setattr(tested.store.backend, "delete", refuse)
    for _ in range(2):
        tested.retrain(Ending.REFUSED)
    assert "AccessDenied" in caplog.text


def test_pruning_beside_publishers_loses_nothing_of_theirs(tmp_path: Path) -> None:
    """Old content is reused while another process finds that nothing needs it, and removes it."""
    store = open_store(StoreSettings(location=str(tmp_path / "store")))
    (tmp_path / "old").mkdir()
    for number in range(4):
        (tmp_path / "old" / f"{number}.bin").write_bytes(bytes([number]) * 50_000)
    is_over = threading.Event()

    def prune() -> None:
        while not is_over.is_set():
            remove(store, find_garbage(store, grace=timedelta(hours=1)), grace=timedelta(hours=1))

    pruning = threading.Thread(target=prune)
    pruning.start()
    try:
        for number in range(40):
            published = store.publish(tmp_path / "old", kind="model", record={"number": number})
            assert not list(find_damage(store, [published.digest], read=True))
            for entry in list(store.backend.entries("")):
                with suppress(FileNotFoundError):
                    os.utime(Path(store.backend.address) / entry.key, (0, 0))
    finally:
        is_over.set()
        pruning.join()


def test_the_command_says_what_would_go_and_removes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)  # where no retraining has left a registry
    tested = loop(tmp_path)
    for _ in range(3):
        tested.retrain(Ending.REFUSED)
    capsys.readouterr()
    prune = ["artifacts", "prune", "--store", tested.store.backend.address, "--keep-last", "1"]
    assert "no registry is set" in refused(capsys, *prune)
    prune += ["--no-registry", "--grace-hours", "0"]
    assert march(*prune, "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "11 pointers" in shown and "nothing was removed" in shown and tested.kinds()["model"] == 3
    assert march(*prune) == 0 and tested.kinds()["model"] == 1
    assert not list(find_damage(tested.store, tested.store.manifests(), read=True))


def test_only_a_version_that_nobody_needs_can_be_deleted(tmp_path: Path) -> None:
    store = open_store(StoreSettings(location=str(tmp_path)))
    shop = Shop(champion="1", previous="2", asked_for="3")
    versions = [ModelVersion(str(number), "", "", (), {}, 0) for number in range(1, 7)]
    versions = [replace(one, sha256=one.version) for one in versions]
    versions[3] = replace(versions[3], aliases=("shadow",))
    shop.registry.versions_of[shop.model] = versions
    assert [one.version for one in idle_versions(cast(Decisions, shop), 1, store)] == ["5"]
    assert idle_versions(cast(Decisions, shop), None, store) == []


def digest_in(uri: str) -> str:
    found = located(uri)
    assert found is not None
    return found[1]

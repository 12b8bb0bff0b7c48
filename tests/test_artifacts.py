"""The artifact store in a local folder: layout, manifests, pointers, verification, garbage."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestration.cli import main
from orchestration.registry.register import register_weights
from orchestration.registry.store import Registry
from orchestration.registry.stored import local_weights
from pipeline.artifacts import backend
from pipeline.artifacts import store as store_module
from pipeline.artifacts.backend import CorruptError, MovedError, StoreError
from pipeline.artifacts.layout import manifest_key, pointer_key
from pipeline.artifacts.manifest import File, Manifest
from pipeline.artifacts.s3 import make_client
from pipeline.artifacts.settings import StoreSettings, settings_from_environment
from pipeline.artifacts.store import ArtifactStore, open_store
from pipeline.artifacts.upkeep import find_damage, find_garbage, remove
from pipeline.lineage.publish import LINEAGE
from pipeline.redaction import redact
from reward.offline.files import file_sha256, only_writer, weights_sha256
from tests.march_cli import march, refused

ALL_AGES = timedelta(0)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return open_store(StoreSettings(location=str(tmp_path / "store")))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder of two files, one of them in a folder of its own."""
    folder = tmp_path / "model"
    (folder / "shards").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "shards" / "1.safetensors").write_bytes(os.urandom(300_000))
    return folder


def test_what_is_put_comes_out_the_same(store: ArtifactStore, model: Path, tmp_path: Path) -> None:
    published = store.publish(model, kind="model")
    store.get(published.digest, tmp_path / "out")
    for file in published.manifest.files:
        assert file_sha256(tmp_path / "out" / file.path) == file.sha256 == file_sha256(model / file.path)
    assert not list((tmp_path / "out").rglob("*.part"))


def test_the_same_content_is_stored_once_and_has_one_digest(store: ArtifactStore, model: Path) -> None:
    first, second = store.publish(model, kind="model"), store.publish(model, kind="model")
    assert (second.digest, second.num_sent) == (first.digest, 0)
    assert store.publish(model, kind="data").digest != first.digest


def test_a_manifest_refers_only_to_what_stands(store: ArtifactStore) -> None:
    with pytest.raises(ValueError, match="has no manifest"):
        store.publish(kind="lineage", refers=["0" * 64])


@pytest.mark.parametrize("path", ["/etc/passwd", "../up", "a/../../b", "a\\b", "", "a//b", "./a"])
def test_a_manifest_names_no_file_outside_its_folder(path: str) -> None:
    with pytest.raises(ValueError, match="no relative path"):
        File(path=path, sha256="0" * 64, size=1)


def test_a_pointer_moves_only_from_what_was_expected(store: ArtifactStore, model: Path) -> None:
    one, two = (store.publish(model, kind=kind).digest for kind in ("one", "two"))
    store.move("models/champion", one, expected=None)
    with pytest.raises(MovedError, match="points to"):
        store.move("models/champion", two, expected=two)
    store.move("models/champion", two, expected=one)
    assert store.pointers() == {"models/champion": two}
    assert store.resolve("models/champion") == store.resolve(two[:8]) == two


def test_of_two_that_move_a_pointer_one_wins_and_the_other_is_told(store: ArtifactStore) -> None:
    digests = [store.publish(kind=f"kind{number}").digest for number in range(8)]
    told: list[str] = []

    def move(digest: str) -> None:
        try:
            store.move("champion", digest, expected=None)
        except MovedError:
            told.append(digest)

    threads = [threading.Thread(target=move, args=(digest,)) for digest in digests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 7
    assert set(digests) - set(told) == {store.pointed("champion")}


def test_damage_is_found(store: ArtifactStore, model: Path, tmp_path: Path) -> None:
    published = store.publish(model, kind="model")
    whole = list(find_damage(store, store.manifests(), read=True))
    keys = published.manifest.keys()
    config, shard = (Path(store.backend.address) / keys[file.path] for file in published.manifest.files)
    config.write_text("[]")  # of the same size
    assert not list(find_damage(store, store.manifests(), read=False))
    (damage,) = find_damage(store, store.manifests(), read=True)
    shard.unlink()
    (missing,) = find_damage(store, store.manifests(), read=False)
    assert missing.problem.startswith("is missing: shards/1.safetensors of ")
    assert not whole and damage.problem.startswith("has another content than its name says: config.json")
    with pytest.raises(CorruptError, match="another content"):
        store.get_file(published.manifest.files[0], keys["config.json"], tmp_path / "config.json")
    assert not (tmp_path / "config.json").exists()


@pytest.mark.parametrize("what", ["object", "manifest"])
def test_what_is_of_another_content_is_named_and_published_again_when_it_is_gone(
    what: str,
    store: ArtifactStore,
    model: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MARCH_ARTIFACTS", store.backend.address)
    published = store.publish(model, kind="model")
    keys = {"object": published.manifest.keys()["config.json"], "manifest": manifest_key(published.digest)}
    path = Path(store.backend.address) / keys[what]
    content = path.read_bytes()
    path.write_bytes(content[::-1])  # of the same size, which publishing looks at
    assert march("artifacts", "verify", "--read") == 1
    said = capsys.readouterr()
    assert keys[what] in said.out and "remove what is there of another content" in said.err
    path.unlink()
    assert store.publish(model, kind="model").digest == published.digest and path.read_bytes() == content
    assert march("artifacts", "verify", "--read") == 0


def test_a_store_that_does_not_answer_is_not_called_damaged(
    store: ArtifactStore, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = store.publish(model, kind="model").digest

    def gone(key: str) -> None:
        raise StoreError("gone")

    monkeypatch.setattr(store.backend, "read", gone)
    with pytest.raises(StoreError, match="gone"):
        list(find_damage(store, [digest], read=True))


def test_a_file_that_changes_while_it_is_stored_is_refused(
    store: ArtifactStore, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its digest and its copy, too: the same size is no sign of the same content."""
    file_sha256s, config = store_module.file_sha256, model / "config.json"

    def then_changed(path: Path) -> str:
        found = file_sha256s(path)
        config.write_text("[]")
        return found

    monkeypatch.setattr(store_module, "file_sha256", then_changed)
    with pytest.raises(CorruptError, match="has changed while it was stored"):
        store.publish(model, kind="model")
    assert not list(store.manifests()) and not list(store.backend.entries("models/"))


def test_a_manifest_that_was_changed_is_refused(store: ArtifactStore) -> None:
    digest = store.publish(kind="lineage").digest
    path = Path(store.backend.address) / manifest_key(digest)
    path.write_text(path.read_text().replace("lineage", "data"))
    with pytest.raises(CorruptError, match="content is another"):
        store.manifest(digest)


def test_gc_keeps_what_pointers_and_references_reach(store: ArtifactStore, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("data", "model", "registered", "loose")}
    for name, path in files.items():
        path.write_text(name)
    data = store.publish(files["data"], kind="data").digest
    model = store.publish(files["model"], kind="model", refers=[data]).digest
    registered = store.publish(files["registered"], kind="model").digest
    loose = store.publish(files["loose"], kind="model")
    store.move("champion", model, expected=None)
    assert not find_garbage(store).manifests  # all within the grace
    garbage = find_garbage(store, references=[registered], grace=ALL_AGES)
    assert [entry.key for entry in garbage.manifests] == [manifest_key(loose.digest)]
    assert [entry.key for entry in garbage.objects] == list(loose.manifest.keys().values())
    assert remove(store, garbage, grace=ALL_AGES) == 2
    assert set(store.manifests()) == {data, model, registered}
    assert not list(find_damage(store, store.manifests(), read=True))


def test_gc_finds_nothing_to_remove_where_a_reference_is_broken(store: ArtifactStore) -> None:
    store.publish(kind="loose")
    with pytest.raises(ValueError, match="has no manifest"):
        find_garbage(store, references=["0" * 64], grace=ALL_AGES)


def test_gc_leaves_what_was_used_since_it_was_found(store: ArtifactStore, model: Path) -> None:
    store.publish(model, kind="model")
    garbage = find_garbage(store, grace=ALL_AGES)
    assert len(garbage.objects) == 2
    assert remove(store, garbage, grace=timedelta(hours=1)) == 0


def test_gc_finds_copies_that_a_kill_left(store: ArtifactStore) -> None:
    left = Path(store.backend.address) / "uploads" / "left"
    left.parent.mkdir(parents=True)
    left.write_text("half")
    remove(store, find_garbage(store, grace=ALL_AGES), grace=ALL_AGES)
    assert not left.exists()


def test_a_full_disk_leaves_no_file_and_no_manifest(tmp_path: Path, model: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", full], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        store = open_store(StoreSettings(location=str(full)))
        with pytest.raises(OSError, match="No space left"):
            store.publish(model, kind="model")
        assert not list(store.manifests())
        assert not list(store.backend.entries("uploads/"))
        subprocess.run(["mount", "-o", "remount,size=1m", full], check=True)
        assert store.publish(model, kind="model").digest
    finally:
        subprocess.run(["umount", full], check=True)


def test_secrets_in_addresses_are_refused_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert redact("http://me:hidden@host:1/x") == "http://host:1/x"
    assert redact("postgresql://h/db?user=u&PassWord=hidden&a=b") == "postgresql://h/db?user=u&a=b"
    assert redact("http://h/x?password_hint=none&") == "http://h/x?password_hint=none&"
    for variables in ({"endpoint": "http://me:hidden@host"}, {"location": "s3://me:hidden@bucket"}):
        with pytest.raises(ValueError, match="environment") as caught:
            settings_from_environment(**variables)
        assert "hidden" not in str(caught.value)


def test_a_mistyped_folder_of_a_store_is_no_empty_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = f"--store: {tmp_path}/typo: no such folder; give a store that is used"
    for command in (("ls",), ("gc", "--no-registry", "--delete"), ("prune", "--dry-run")):
        assert said in refused(capsys, "artifacts", *command, "--store", tmp_path / "typo")
    assert list(tmp_path.iterdir()) == []


def test_an_endpoint_without_a_scheme_is_refused_where_it_is_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost:9")
    monkeypatch.setenv("MARCH_ARTIFACTS", "s3://b/x")
    for command in (("artifacts", "ls"), ("doctor", "--only", "s3")):
        said = "endpoint: 'localhost:9' is no address; write http://HOST:PORT or https://HOST (AWS_ENDPOINT"
        assert said in refused(capsys, *command)
    assert not settings_from_environment("a/folder").is_s3


def test_a_client_speaks_with_the_keys_of_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = StoreSettings(location="s3://bucket", endpoint="http://127.0.0.1:9")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    for key in ("of-the-first", "of-the-second"):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        client = make_client(settings)
        assert key in client.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": "one"})


def test_a_pointer_that_holds_no_digest_is_an_error_that_names_it(store: ArtifactStore) -> None:
    store.backend.write(pointer_key("champion"), json.dumps({"manifest": 7}).encode())
    with pytest.raises(CorruptError, match="pointer champion"):
        store.pointed("champion")


def test_the_digest_of_a_manifest_is_that_of_its_canonical_text() -> None:
    manifest = Manifest(
        kind="model", files=(File(path="a", sha256="0" * 64, size=1),), record={"b": 1, "a": 2}
    )
    assert Manifest.model_validate_json(manifest.text) == manifest
    assert manifest.text.index(b'"a"') < manifest.text.index(b'"b"')


def test_the_command_puts_lists_verifies_gets_and_collects(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARCH_ARTIFACTS", str(tmp_path / "store"))

    def march(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["artifacts", *arguments])
        assert not ended.value.code
        return capsys.readouterr().out

    digest = march("put", str(model), "--kind", "model", "--pointer", "champion").strip()
    assert "champion" in march("ls")
    assert "every object was read" in march("verify", "--read")
    assert "verified" in march("get", digest[:10], str(tmp_path / "out"))
    address = (tmp_path / "store" / manifest_key(digest)).as_uri()
    assert "verified" in march("get", address, str(tmp_path / "again"), "--store", "elsewhere")
    assert "nothing was removed" in march("gc", "--grace-hours", "0", "--no-registry")
    assert "removed: 0" in march("gc", "--grace-hours", "0", "--delete", "--no-registry")


@pytest.mark.parametrize("paths", [("a", "a"), ("a", "a/b"), ("a/b/c", "a/b")])
def test_two_files_of_a_manifest_have_places_of_their_own(paths: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="same place"):
        Manifest(kind="x", files=tuple(File(path=path, sha256="0" * 64, size=1) for path in paths))


def test_what_is_too_large_for_a_manifest_is_not_read(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = store.publish(kind="x", record={"text": "x" * 1000}).digest
    monkeypatch.setattr(backend, "MOST_BYTES", 500)
    with pytest.raises(CorruptError, match="which no manifest"):
        store.manifest(digest)
    with pytest.raises(CorruptError, match="which no manifest"):
        store.publish(kind="y", record={"text": "y" * 1000})


def test_names_in_a_store_command_neither_the_terminal_nor_its_markup(
    store: ArtifactStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "\x1b[2J[red]name").write_text("")
    digest = store.publish(tmp_path / "odd", kind="[bold]\x1b[31m").digest
    at = ["--store", store.backend.address]
    for command in (["ls", *at], ["get", digest[:9], "--store", "nowhere"]):
        with pytest.raises(SystemExit):
            main(["artifacts", *command])
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "[bold]" in shown.out


def test_gc_without_a_registry_removes_only_when_told_that_there_is_none(
    store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)  # where no retraining has left a registry
    digest = store.publish(kind="x").digest
    command = ["artifacts", "gc", "--grace-hours", "0", "--store", store.backend.address]
    assert "no registry is set" in refused(capsys, *command, "--delete")
    assert march(*command) == 0
    assert "no registry was asked" in capsys.readouterr().err
    assert march(*command, "--delete", "--keep", digest) == 0
    assert list(store.manifests()) == [digest]
    assert march(*command, "--delete", "--no-registry") == 0
    assert not list(store.manifests())


def publish_text(store: ArtifactStore, folder: Path, name: str, *refers: str, kind: str = "model") -> str:
    """A manifest of one file of its own."""
    (folder / name).write_text(name)
    return store.publish(folder / name, kind=kind, refers=refers).digest


def test_gc_keeps_what_the_record_of_a_kept_manifest_names(store: ArtifactStore, tmp_path: Path) -> None:
    weights, loose = (publish_text(store, tmp_path, name) for name in ("two", "three"))
    decision = store.publish(kind="decision", record={"weights": weights}).digest
    store.move("shop", decision, expected=None)
    garbage = find_garbage(store, grace=ALL_AGES)
    assert [entry.key for entry in garbage.manifests] == [manifest_key(loose)]


def test_ancestors_keep_their_records_and_only_on_request_lose_their_weights(
    store: ArtifactStore, tmp_path: Path
) -> None:
    weights = [publish_text(store, tmp_path, f"weights-{number}") for number in range(3)]
    lineages: list[str] = []
    for one in weights:
        lineages.append(store.publish(kind=LINEAGE, refers=[one, *lineages[-1:]]).digest)
    references = [lineages[2], lineages[0]]  # the one between was deleted
    assert not find_garbage(store, references=references, grace=ALL_AGES).manifests
    found = find_garbage(store, references=references, grace=ALL_AGES, with_ancestors=False)
    assert [entry.key for entry in found.manifests] == [manifest_key(weights[1])]
    assert remove(store, found, grace=ALL_AGES) == 2
    assert not find_garbage(store, references=references, grace=ALL_AGES).manifests
    with pytest.raises(
        ValueError, match="has no manifest"
    ):  # of a kept version itself nothing may be missing
        find_garbage(store, references=lineages, grace=ALL_AGES)


def test_what_a_publisher_refers_to_meanwhile_is_not_removed(store: ArtifactStore, tmp_path: Path) -> None:
    """gc has called the rows garbage; before it removes them a publisher refers to them."""
    rows, loose = (publish_text(store, tmp_path, name, kind="data") for name in ("rows", "loose"))
    for entry in store.backend.entries(""):
        os.utime(Path(store.backend.address) / entry.key, (0, 0))
    garbage = find_garbage(store)
    assert {entry.key for entry in garbage.manifests} == {manifest_key(rows), manifest_key(loose)}
    store.publish(kind="lineage", refers=[rows])
    assert remove(store, garbage) == 2
    assert rows in set(store.manifests()) and not list(find_damage(store, store.manifests(), read=True))


def test_making_something_young_copies_none_of_its_ancestors(
    store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lineages: list[str] = []
    for number in range(6):
        weights = publish_text(store, tmp_path, f"weights-{number}")
        lineages.append(store.publish(kind=LINEAGE, refers=[weights, *lineages[-1:]]).digest)
    touched: list[str] = []
    monkeypatch.setattr(store.backend, "touch", lambda entry: touched.append(entry.key))
    store.renew(lineages[-1])
    assert touched == [manifest_key(lineages[-1])]


def test_gc_leaves_no_link_to_a_model_that_is_gone(store: ArtifactStore, tmp_path: Path, model: Path) -> None:
    """Links of MLflow's logged models led nowhere after their model was removed."""
    gone, kept = (store.publish(one, kind="model").digest for one in (model, model / "config.json"))
    links = {digest: tmp_path / "store/mlflow/models" / digest[:8] / "artifacts" for digest in (gone, kept)}
    for digest, link in links.items():
        link.parent.mkdir(parents=True)
        link.symlink_to(tmp_path / "store/models" / digest, target_is_directory=True)
    remove(store, find_garbage(store, references=[kept], grace=ALL_AGES), grace=ALL_AGES)
    assert [link.is_symlink() for link in links.values()] == [False, True]


def test_links_are_followed_and_one_that_leads_nowhere_is_refused(
    store: ArtifactStore, model: Path, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "config.json").symlink_to(model / "config.json")
    (linked / "shards").symlink_to(model / "shards")
    assert store.publish(linked, kind="model").digest == store.publish(model, kind="model").digest
    assert weights_sha256(linked) == weights_sha256(model)
    for target in ("/nowhere", str(tmp_path)):
        (linked / "more").symlink_to(target)
        with pytest.raises(ValueError, match="linked/more: a link that leads nowhere or round in a circle"):
            store.publish(linked, kind="model")
        (linked / "more").unlink()


def test_a_pointer_or_a_manifest_that_leads_nowhere_is_damage(
    store: ArtifactStore, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = store.publish(model, kind="model").digest
    store.move("named", weights, expected=None)
    store.move("naming", store.publish(kind="note", refers=[weights]).digest, expected=None)
    verify = ["artifacts", "verify", "--store", store.backend.address]
    assert march(*verify) == 0
    store.backend.delete(manifest_key(weights))
    capsys.readouterr()
    assert march(*verify) == 1
    shown = capsys.readouterr().out
    assert f"pointers/named: leads to {weights[:12]}, which is missing" in shown
    assert f"{manifest_key(weights)}: is missing: " in shown and "naming" not in shown


def test_a_file_that_changed_and_cannot_be_taken_back_is_said(
    store: ArtifactStore, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = store.backend.store

    def changing(source: Path, key: str, **more: Any) -> None:
        put(source, key, **more)
        source.write_bytes(b"other")

    def refuse(key: str) -> None:
        raise StoreError(f"{key}: AccessDenied")

    monkeypatch.setattr(store.backend, "store", changing)
    monkeypatch.setattr(store.backend, "delete", refuse)
    with pytest.raises(
        CorruptError, match=r"has changed while it was stored.* have objects/.* removed first"
    ):
        store.publish(model, kind="data")


def test_gc_asks_the_registry_that_lies_here(
    store: ArtifactStore,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    Path("runs").mkdir()
    registry = f"sqlite:///{tmp_path}/runs/mlflow.db"
    register_weights(Registry(registry, creates=True), "shop", str(model), store=lambda: store)
    (tmp_path / "other").write_text("other")
    kept = store.publish(tmp_path / "other", kind="data").digest
    gc = ["artifacts", "gc", "--delete", "--grace-hours", "0", "--store", store.backend.address]
    assert march(*gc, "--keep", kept) == 0
    assert f"registry that protects its versions: {registry}\n" in capsys.readouterr().err
    (version,) = Registry(registry).versions("shop")
    assert local_weights(version).is_dir()


def test_a_wrong_name_of_a_pointer_is_said_before_anything_is_sent(
    store: ArtifactStore, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put = ["artifacts", "put", str(model), "--store", store.backend.address]
    assert "'bad name' is no name" in refused(capsys, *put, "--pointer", "bad name")
    assert not list(store.backend.entries(""))


def test_a_damaged_manifest_is_listed_and_published_again(
    store: ArtifactStore, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = store.publish(model, kind="model").digest
    (Path(store.backend.address) / manifest_key(digest)).write_text("{}")
    assert march("artifacts", "ls", "--store", store.backend.address) == 0
    assert re.search(rf"{digest[:12]} +damaged ", capsys.readouterr().out)
    assert store.publish(model, kind="model").digest == digest
    assert not list(find_damage(store, [digest], read=True))


def test_two_that_fetch_into_one_folder_do_so_one_after_the_other(
    store: ArtifactStore, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digest, out = store.publish(model, kind="model").digest, tmp_path / "out"
    get = ["artifacts", "get", digest, str(out), "--store", store.backend.address]
    with only_writer(out / ".lock"):
        assert "out/.lock: another command writes it; wait for it" in refused(capsys, *get)
    assert march(*get) == 0 and not (out / ".lock").exists()


def test_what_a_user_has_in_a_folder_is_never_replaced(
    store: ArtifactStore, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digest, out = store.publish(model, kind="model").digest, tmp_path / "out"
    get = ["artifacts", "get", digest, str(out), "--store", store.backend.address]
    out.mkdir()
    (out / "config.json").write_text("precious")
    assert f"{out}/config.json: is there already, with another content" in refused(capsys, *get)
    assert (out / "config.json").read_text() == "precious"
    (out / "config.json").unlink()
    (out / "model-00002.safetensors").write_text("of another model")
    assert "model-00002.safetensors: is none of the files that are brought" in refused(capsys, *get)
    (out / "model-00002.safetensors").rename(out / ".cut.part")
    assert march(*get) == 0, "a part of an earlier command"
    (out / "config.json").unlink()
    assert march(*get) == 0, "the same command goes on"


def test_a_name_below_another_name_is_refused_in_a_folder(store: ArtifactStore) -> None:
    digest = store.publish(kind="note").digest
    store.move("models", digest, expected=None)
    with pytest.raises(ValueError, match="pointers/models/prod: in a folder, no name can begin with another"):
        store.move("models/prod", digest, expected=None)


def test_a_long_name_comes_back(store: ArtifactStore, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / ("n" * 250)).write_text("long")
    store.get(store.publish(tmp_path / "in", kind="data").digest, tmp_path / "out")
    assert (tmp_path / "out" / ("n" * 250)).read_text() == "long"

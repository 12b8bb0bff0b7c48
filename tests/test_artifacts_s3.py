"""The artifact store against real servers: OpenStack Swift's s3api, killed clients, harm on the wire.

Swift has no IfMatch and its IfNoneMatch is not atomic, so pointers by compare-and-set are tested on moto's
server, whose conditions hold one after the other; races of it prove nothing about Amazon's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from orchestration.registry.chain import Chain
from orchestration.registry.store import Registry
from orchestration.registry.stored import local_weights, references
from pipeline.artifacts.backend import CorruptError, MovedError, StoreError, UnsafeEndpointError
from pipeline.artifacts.layout import manifest_key
from pipeline.artifacts.s3 import S3Backend, make_client
from pipeline.artifacts.settings import MIB
from pipeline.artifacts.store import ArtifactStore
from pipeline.artifacts.upkeep import find_damage, find_garbage, remove
from reward.offline.files import file_sha256, weights_sha256
from tests.fault_proxy import Fault, FaultProxy, Harm, proxy_to
from tests.s3_server import S3Server, serve_moto, serve_swift
from tests.test_decision_chain import add
from tests.test_registry_stored import registered

pytestmark = pytest.mark.slow
WORKERS, PART = 2, 5 * MIB
PART_PUT, COMPLETE = "PUT .*partNumber=", "POST .*uploadId="
ALL_AGES = timedelta(seconds=-2)  # Swift's times are whole seconds, rounded up
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def swift(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with serve_swift(tmp_path_factory.mktemp("swift")) as server:
        yield server


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with serve_moto(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture
def proxy(swift: S3Server) -> Iterator[FaultProxy]:
    with proxy_to(swift.endpoint) as made:
        yield made


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a small file and one of four parts and a half."""
    folder = tmp_path_factory.mktemp("checkpoint")
    (folder / "config.json").write_text("{}")
    (folder / "model.bin").write_bytes(os.urandom(PART * 9 // 2))
    return folder


_NUMBER = iter(range(1000))


def open_bucket(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, *, through: FaultProxy | None = None, **more: Any
) -> ArtifactStore:
    """A store in a new bucket."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    settings = server.settings(
        f"bucket-{next(_NUMBER)}", part_mib=5, workers=WORKERS, retries="standard", **more
    )
    make_client(settings).create_bucket(Bucket=settings.bucket)
    if through:
        settings = settings.model_copy(update={"endpoint": through.endpoint})
    return ArtifactStore(S3Backend(settings))


@pytest.fixture
def store(swift: S3Server, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> ArtifactStore:
    return open_bucket(swift, monkeypatch, through=proxy)


def test_what_is_put_in_parts_comes_out_the_same(
    store: ArtifactStore, checkpoint: Path, tmp_path: Path
) -> None:
    published = store.publish(checkpoint, kind="model")
    assert store.publish(checkpoint, kind="model").num_sent == 0
    store.get(published.digest, tmp_path)
    for file in published.manifest.files:
        assert file_sha256(tmp_path / file.path) == file.sha256
    assert not list(find_damage(store, store.manifests(), read=True))
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    "fault",
    [
        Fault(PART_PUT, Harm.INTERNAL_ERROR, times=2),
        Fault(PART_PUT, Harm.SLOW_DOWN, times=3),
        Fault(PART_PUT, Harm.RESET, times=2),
        Fault(PART_PUT, Harm.LOSE_ANSWER, times=2),
        Fault(PART_PUT, Harm.DAMAGE_REQUEST, times=2),
        Fault("PUT .*/(objects|models)/[^?]*$", Harm.INTERNAL_ERROR, times=2),
        Fault("PUT .*/(objects|models)/[^?]*$", Harm.DAMAGE_REQUEST, times=2),
        Fault("PUT .*/manifests/", Harm.SLOW_DOWN, times=2),
        Fault("PUT .*/manifests/", Harm.LOSE_ANSWER),
        Fault("HEAD ", Harm.INTERNAL_ERROR, times=2),
    ],
    ids=lambda fault: f"{fault.harm.name}-{fault.pattern}",
)
def test_uploads_get_over_faults(
    store: ArtifactStore, proxy: FaultProxy, checkpoint: Path, fault: Fault
) -> None:
    proxy.faults = [fault]
    published = store.publish(checkpoint, kind="model")
    assert fault.times == 0
    assert not list(find_damage(store, [published.digest], read=True))


@pytest.mark.parametrize(
    "harm", [Harm.INTERNAL_ERROR, Harm.SLOW_DOWN, Harm.RESET, Harm.CUT_ANSWER, Harm.DAMAGE_ANSWER]
)
def test_downloads_get_over_faults(
    store: ArtifactStore, proxy: FaultProxy, checkpoint: Path, tmp_path: Path, harm: Harm
) -> None:
    published = store.publish(checkpoint, kind="model")
    proxy.faults = [Fault("GET .*/(objects|models)/", harm)]
    store.get(published.digest, tmp_path)
    assert proxy.faults[0].times == 0
    assert [file_sha256(tmp_path / file.path) for file in published.manifest.files] == [
        file.sha256 for file in published.manifest.files
    ]


def test_a_line_that_damages_every_byte_is_an_error_and_never_a_file(
    store: ArtifactStore, proxy: FaultProxy, checkpoint: Path, tmp_path: Path
) -> None:
    proxy.faults = [Fault(PART_PUT, Harm.DAMAGE_REQUEST, times=10**6)]
    with pytest.raises(CorruptError, match="otherwise than it was sent"):
        store.publish(checkpoint, kind="model")
    assert not list(store.manifests())
    proxy.faults = []
    published = store.publish(checkpoint, kind="model")
    proxy.faults = [Fault("GET .*/(objects|models)/", Harm.DAMAGE_ANSWER, times=10**6)]
    with pytest.raises(CorruptError, match="came 3 times with another content"):
        store.get(published.digest, tmp_path)
    assert not [path for path in tmp_path.iterdir() if not path.name.startswith(".")]


def test_a_full_server_is_one_line_and_leaves_no_manifest(
    swift: S3Server, proxy: FaultProxy, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_bucket(swift, monkeypatch, through=proxy, max_attempts=2)
    proxy.faults = [Fault(PART_PUT, Harm.FULL, times=10**6)]
    with pytest.raises(StoreError, match="InsufficientStorage"):
        store.publish(checkpoint, kind="model")
    assert not list(store.manifests())
    proxy.faults = []
    assert store.publish(checkpoint, kind="model").digest


# Where a publisher is killed: the request at which it stands, and whether the server has done it already.
KILLS = {
    "first part": Fault(PART_PUT, Harm.HOLD, times=WORKERS),
    "third part": Fault(PART_PUT, Harm.HOLD, times=WORKERS, after=2),
    "after the third part": Fault(PART_PUT, Harm.HOLD_ANSWER, times=WORKERS, after=2),
    "before complete": Fault(COMPLETE, Harm.HOLD),
    "after complete": Fault(COMPLETE, Harm.HOLD_ANSWER),
    "between upload and manifest": Fault("PUT .*/manifests/", Harm.HOLD),
    "after the manifest": Fault("PUT .*/manifests/", Harm.HOLD_ANSWER),
}
PUBLISH = """
import sys
from pathlib import Path
from pipeline.artifacts.settings import StoreSettings
from pipeline.artifacts.store import open_store
settings = StoreSettings.model_validate_json(sys.argv[1])
print(open_store(settings).publish(Path(sys.argv[2]), kind="model").digest)
"""
FETCH = PUBLISH.replace(
    'publish(Path(sys.argv[2]), kind="model").digest', "get(sys.argv[3], Path(sys.argv[2])).digest"
)


def run_until_held(script: str, store: ArtifactStore, proxy: FaultProxy, *arguments: str) -> None:
    """Runs a script until the proxy holds it, and kills it there."""
    assert isinstance(store.backend, S3Backend)
    settings = store.backend.settings.model_dump_json()
    process = subprocess.Popen([sys.executable, "-c", script, settings, *arguments], cwd=ROOT)
    try:
        assert proxy.held.wait(300)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("where", KILLS)
def test_a_killed_publisher_is_followed_by_the_same_command(
    store: ArtifactStore, proxy: FaultProxy, checkpoint: Path, where: str
) -> None:
    kill = KILLS[where]
    proxy.faults = [Fault(kill.pattern, kill.harm, kill.times, kill.after)]
    run_until_held(PUBLISH, store, proxy, str(checkpoint))
    proxy.faults = []
    published_before = list(store.manifests())
    published = store.publish(checkpoint, kind="model")
    assert published_before == ([published.digest] if where == "after the manifest" else [])
    assert not list(find_damage(store, store.manifests(), read=True))
    garbage = find_garbage(store, references=[published.digest], grace=ALL_AGES)
    assert not garbage.manifests
    assert not garbage.objects
    left = where in ("first part", "third part", "after the third part", "before complete")
    assert len(garbage.uploads) == left  # the killed one's, until gc takes it


def test_an_upload_that_nobody_goes_on_with_is_found_by_gc(
    store: ArtifactStore, proxy: FaultProxy, checkpoint: Path
) -> None:
    proxy.faults = [Fault(COMPLETE, Harm.HOLD)]
    run_until_held(PUBLISH, store, proxy, str(checkpoint))
    garbage = find_garbage(store, grace=ALL_AGES)
    assert len(garbage.uploads) == 1
    assert not find_garbage(store).uploads  # within the grace
    remove(store, garbage, grace=ALL_AGES)
    assert not list(store.backend.entries("uploads/"))


def test_a_killed_download_reads_only_files_that_it_lacks(
    store: ArtifactStore, proxy: FaultProxy, checkpoint: Path, tmp_path: Path
) -> None:
    published = store.publish(checkpoint, kind="model")
    config = published.manifest.keys()["config.json"]
    proxy.faults = [Fault("GET .*/(objects|models)/", Harm.HOLD, times=WORKERS, after=3)]
    run_until_held(FETCH, store, proxy, str(tmp_path), published.digest)
    proxy.faults = []
    asked = len(proxy.seen)
    store.get(published.digest, tmp_path)
    assert not [request for request, _ in proxy.seen[asked:] if config in request]
    assert file_sha256(tmp_path / "model.bin") == published.manifest.files[1].sha256


def test_registered_weights_come_from_the_bucket_by_their_address(
    store: ArtifactStore, proxy: FaultProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "model" / "model.safetensors").write_bytes(os.urandom(2 * PART))
    published = store.publish(tmp_path / "model", kind="model")
    registry, version = registered(store, f"artifact:{published.digest}")
    assert version.uri == f"{store.backend.address}/{manifest_key(published.digest)}"
    assert weights_sha256(local_weights(version)) == version.sha256
    assert references(cast(Registry, registry), store) == {published.digest}
    num_asked = len(proxy.seen)
    local_weights(version)
    assert not [request for request, _ in proxy.seen[num_asked:] if "/models/" in request]


def test_two_publishers_of_one_checkpoint_end_in_one_manifest(store: ArtifactStore, checkpoint: Path) -> None:
    assert isinstance(store.backend, S3Backend)
    other = ArtifactStore(S3Backend(store.backend.settings))
    digests: list[str] = []
    threads = [
        threading.Thread(target=lambda one=one: digests.append(one.publish(checkpoint, kind="model").digest))
        for one in (store, other)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(digests) == 2
    assert list(store.manifests()) == [digests[0]] == [digests[1]]


def test_swift_lacks_compare_and_set_so_pointers_need_a_lock(
    swift: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_bucket(swift, monkeypatch)
    one, two = (store.publish(kind=kind).digest for kind in ("one", "two"))
    store.move("champion", one, expected=None)
    with pytest.raises(UnsafeEndpointError, match="no conditional writes"):
        store.move("champion", two, expected=one)
    with pytest.raises(UnsafeEndpointError, match=r"lacks IfMatch.*MARCH_ARTIFACTS_LOCK"):
        add(Chain(store, "m"), "promote", "1")
    assert Chain(store, "m").last() is None
    locked = open_bucket(swift, monkeypatch, pointer_lock=tmp_path / "lock")
    add(Chain(locked, "m"), "promote", "1")
    one, two = (locked.publish(kind=kind).digest for kind in ("one", "two"))
    assert _race(locked, [one, two]) == 1
    with pytest.raises(MovedError):
        locked.move("champion", one, expected="0" * 64)


def test_pointers_move_by_compare_and_set_where_there_is_one(
    moto: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_bucket(moto, monkeypatch)
    one, two = (store.publish(kind=kind).digest for kind in ("one", "two"))
    store.move("champion", one, expected=None)
    blob = store.backend.read("pointers/champion")
    assert blob
    store.move("champion", two, expected=one)
    with pytest.raises(MovedError, match="somebody else"):
        store.backend.compare_and_set("pointers/champion", b"late", tag=blob.tag)
    with pytest.raises(MovedError, match="somebody else"):
        store.backend.compare_and_set("pointers/champion", b"late", tag=None)
    assert store.pointed("champion") == two


def test_a_manifest_that_is_published_again_becomes_young(
    moto: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bucket's refusal was taken for a retry of our own write, and gc could remove an old manifest."""
    store = open_bucket(moto, monkeypatch)
    key, touched = manifest_key(store.publish(kind="one").digest), list[str]()
    monkeypatch.setattr("pipeline.artifacts.store._FRESH", timedelta(days=-1))
    monkeypatch.setattr(store.backend, "touch", lambda entry: touched.append(entry.key))
    store.publish(kind="one")
    assert touched == [key]


def test_an_unreachable_endpoint_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    server = S3Server("http://127.0.0.1:9", {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "hidden"})
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    store = ArtifactStore(S3Backend(server.settings("bucket", max_attempts=1)))
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:9") as caught:
        list(store.manifests())
    assert "hidden" not in str(caught.value)


def _race(store: ArtifactStore, digests: list[str]) -> int:
    """Points one pointer to each at once; returns how many were not told that they lost."""
    won: list[str] = []

    def move(digest: str) -> None:
        try:
            store.move("champion", digest, expected=None)
        except MovedError:
            return
        won.append(digest)

    threads = [threading.Thread(target=move, args=(digest,)) for digest in digests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.pointed("champion")] == won
    return len(won)


def test_only_what_a_manifest_names_is_there(store: ArtifactStore, checkpoint: Path) -> None:
    published = store.publish(checkpoint, kind="model")
    keys = {entry.key for entry in store.backend.entries("")}
    wanted = set(published.manifest.keys().values())
    assert keys == wanted | {manifest_key(published.digest)}


def test_gc_takes_no_other_programs_uploads_and_goes_on_past_one_that_ended(
    moto: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_bucket(moto, monkeypatch)
    assert isinstance(store.backend, S3Backend)
    client, bucket = store.backend.client, store.backend.settings.bucket
    client.create_multipart_upload(Bucket=bucket, Key="billing/nightly.tar")
    ours = [store.backend.begin_upload(f"objects/sha256/ab/{number}") for number in range(2)]
    garbage = find_garbage(store, grace=ALL_AGES)
    assert {entry.key for entry in garbage.uploads} == set(ours)
    store.backend.delete(ours[0])
    remove(store, garbage, grace=ALL_AGES)
    (left,) = client.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert left["Key"] == "billing/nightly.tar"


def test_a_download_of_what_is_touched_meanwhile_is_one_line_and_may_pass(
    moto: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_bucket(moto, monkeypatch)
    assert isinstance(store.backend, S3Backend)
    (tmp_path / "large").write_bytes(os.urandom(12 * PART))
    (key,) = store.publish(tmp_path / "large", kind="data").manifest.keys().values()
    toucher, asked = S3Backend(store.backend.settings), iter(range(100))

    def touch(**_request: Any) -> None:
        if next(asked) == 3:
            there = toucher.stat(key)
            assert there is not None
            toucher.touch(there)

    store.backend.client.meta.events.register("before-send.s3.GetObject", touch)
    with pytest.raises(StoreError, match="the same command goes on"):
        store.backend.fetch(key, tmp_path / "got", advance=lambda _: None)

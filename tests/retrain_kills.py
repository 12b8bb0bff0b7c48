"""Where a retraining is killed, and what must be so when it has gone on: for the slow and the long tests.

A point is a request at which every process is killed with SIGKILL: before the server has it (HOLD), or after
it has done what was asked and before anybody is told (HOLD_ANSWER). The points lie in all stages, in the loop
between them, and in the lease.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from orchestration.registry.chain import Action, Chain
from orchestration.registry.store import Registry
from orchestration.registry.stored import references
from orchestration.retrain.ledger import Ledger
from orchestration.retrain.records import Ending, Stage
from pipeline.artifacts.store import ArtifactStore
from pipeline.artifacts.upkeep import find_damage, find_garbage, remove
from tests.fault_proxy import Fault, Harm
from tests.retrain_process import Kept, Retraining, Servers, copy_tree, outputs_of

HOLD, DONE = Harm.HOLD, Harm.HOLD_ANSWER
PARTS = 3
PART_PUT, COMPLETE = "PUT .*partNumber=", "POST .*uploadId="
OBJECT, MANIFEST, RANGE = "PUT .*/(objects|models)/[^?]*$", "PUT .*/manifests/", "GET .*/(objects|models)/"
DECISION = "PUT .*/pointers/decisions/"
ALL_AGES = timedelta(seconds=-2)  # Swift's times are whole seconds, rounded up


def pointer(stage: str) -> str:
    return f"PUT .*/pointers/retrain/small/{stage}/"


S3_POINTS = {
    "lease: taken": Fault("PUT .*/leases/", DONE),
    "prepare: before the first object": Fault(OBJECT, HOLD),
    "prepare: after the first object": Fault(OBJECT, DONE),
    "prepare: in the first parts": Fault(PART_PUT, HOLD, times=PARTS),
    "prepare: after the third part": Fault(PART_PUT, DONE, after=PARTS - 1),
    "prepare: before the parts are one object": Fault(COMPLETE, HOLD),
    "prepare: after they are": Fault(COMPLETE, DONE),
    "prepare: between upload and manifest": Fault(MANIFEST, HOLD),
    "prepare: after the manifest": Fault(MANIFEST, DONE),
    "prepare: before the result's manifest": Fault(MANIFEST, HOLD, after=1),
    "prepare: before the result stands": Fault(pointer("prepare"), HOLD),
    "prepare: after it stands": Fault(pointer("prepare"), DONE),
    "train: while rows are fetched": Fault(RANGE, HOLD),
    "train: while weights are stored": Fault(OBJECT, DONE, after=4),
    "train: between weights and their manifest": Fault(MANIFEST, HOLD, after=2),
    "train: before the result stands": Fault(pointer("train"), HOLD),
    "train: after it stands": Fault(pointer("train"), DONE),
    "evaluate: while weights are fetched": Fault(RANGE, HOLD, after=4),
    "evaluate: before the result stands": Fault(pointer("evaluate"), HOLD),
    "evaluate: after it stands": Fault(pointer("evaluate"), DONE),
    "publish: after the lineage": Fault(MANIFEST, DONE, after=7),
    "publish: before the result stands": Fault(pointer("publish"), HOLD),
    "register: before the result stands": Fault(pointer("register"), HOLD),
    "promote: before the decision": Fault(DECISION, HOLD),
    "promote: after the decision": Fault(DECISION, DONE),
    "promote: before the result stands": Fault(pointer("promote"), HOLD),
    "promote: after it stands": Fault(pointer("promote"), DONE),
}
VERSION, ALIAS = "POST .*/model-versions/create", "POST .*/registered-models/alias"
MLFLOW_POINTS = {
    "loop: after the run was made": Fault("POST .*/runs/create", DONE),
    "loop: while a stage is said to be done": Fault("POST .*/runs/log-batch", HOLD, after=4),
    "loop: before the run is said to be finished": Fault("POST .*/runs/update", HOLD),
    "register: before the version": Fault(VERSION, HOLD),
    "register: after the version": Fault(VERSION, DONE),
    "register: before its alias": Fault(ALIAS, HOLD),
    "promote: between the aliases": Fault(ALIAS, DONE, after=1),
}
POINTS = S3_POINTS | MLFLOW_POINTS


def kill_and_go_on(servers: Servers, kept: Kept, name: str) -> None:
    """Kills a retraining at a point, goes on with it, and holds it against one that nobody killed."""
    model = f"solver-{list(POINTS).index(name)}"
    bucket = f"kill-{list(POINTS).index(name)}"
    store = servers.store(bucket, make=True)
    kept.restore()
    job = kept.job(model, **_big_rows(kept, name))
    kill_at(servers, POINTS[name], job, servers.env(bucket), on_s3=name in S3_POINTS)
    said = Retraining(job, servers.env(bucket)).end()
    assert f"{model} version 1 is the champion" in said
    assert_as_if_never_killed(servers, kept, store, model, same_rows=not _has_parts(name))


def kill_at(servers: Servers, point: Fault, job: Path, env: Mapping[str, str], *, on_s3: bool) -> None:
    """Starts a retraining, and kills all its processes at a request."""
    proxy = servers.s3 if on_s3 else servers.mlflow
    proxy.faults = [replace(point)]
    killed = Retraining(job, env)
    try:
        assert proxy.held.wait(600), point
        assert killed.process.poll() is None
    finally:
        killed.kill()
        servers.calm()


def assert_as_if_never_killed(
    servers: Servers, kept: Kept, store: ArtifactStore, model: str, *, same_rows: bool
) -> None:
    """The same hashes, one version, one decision, nothing damaged, and nothing lost that gc does not find."""
    registry = Registry(servers.registry)
    assert [one.version for one in registry.versions(model)] == ["1"]
    assert registry.aliases(model) == {"champion": "1"}
    history = Chain(store, model).history()
    made = [one for one in history if one.decision.action is Action.PROMOTE]
    assert len(made) == 1
    found = next(one for one in Ledger(servers.registry).retrainings("small") if one.model == model)
    assert found.outcome is Ending.PROMOTED
    assert sum(one.attempts > 1 for one in found.stages) <= 1
    outputs = outputs_of(store, found)
    compared = set(kept.outputs) - (set() if same_rows else {"rows", "lineage"})
    assert {name: outputs[name] for name in compared} == {name: kept.outputs[name] for name in compared}
    assert_gc_finds_the_rest(store, registry)


def assert_gc_finds_the_rest(store: ArtifactStore, registry: Registry) -> None:
    """What a kill left in the store is found as garbage and removed; all else is undamaged."""
    referred = references(registry, store)
    remove(store, find_garbage(store, references=referred, grace=ALL_AGES), grace=ALL_AGES)
    left = find_garbage(store, references=referred, grace=ALL_AGES)
    assert not (left.manifests or left.objects or left.uploads)
    assert not list(find_damage(store, store.manifests(), read=True))
    rooms = {entry.key.split("/")[0] for entry in store.backend.entries("")}
    assert rooms <= {"objects", "models", "manifests", "pointers", "leases"}


def _has_parts(name: str) -> bool:
    return POINTS[name].pattern in (PART_PUT, COMPLETE)


def _big_rows(kept: Kept, name: str) -> dict[str, object]:
    """Rows with a list of removed ones that takes three parts; only where parts matter."""
    if not _has_parts(name):
        return {}
    folder = kept.folder / "big-rows"
    if not folder.exists():
        copy_tree(kept.rows, folder)
        (folder / "removed.jsonl").write_bytes(b'{"id": "a"}\n' * 3_600_000)
    return {"data": {"rows": str(folder)}}


def stages_killed(names: list[str]) -> set[str]:
    """The stages that points lie in."""
    return {name.partition(":")[0] for name in names} & {str(stage) for stage in Stage}

"""The chain that decides who is champion: one of two wins, evidence stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.registry.chain import Action, Chain, Chosen, Decision, Made, following
from pipeline.artifacts.backend import CorruptError, MovedError, StoreError
from pipeline.artifacts.layout import manifest_key, object_key, pointer_key
from pipeline.artifacts.local import LocalBackend
from pipeline.artifacts.store import ArtifactStore
from pipeline.artifacts.upkeep import find_garbage, remove

ROOT = Path(__file__).parents[1]


def decision(action: str, version: str = "1", *, model: str = "m", **more: object) -> Decision:
    about = Chosen(version=version, sha256=version * 64, uri=f"s3://b/{version}")
    tree = {"id": os.urandom(4).hex(), "model": model, "action": action, "about": about, "by": "a", "at": ""}
    return Decision.model_validate(tree | more)


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(LocalBackend(tmp_path / "store"))


def add(chain: Chain, action: str, version: str = "1", **more: object) -> Made:
    return chain.append(decision(action, version, model=chain.model, **more), chain.last())


def roles(made: Made | None) -> tuple[str | None, str | None]:
    assert made is not None
    after = made.decision.after
    champion, previous = after.champion, after.previous
    return champion.version if champion else None, previous.version if previous else None


def test_each_decision_names_its_parent_and_holds_the_state_after_it(store: ArtifactStore) -> None:
    chain = Chain(store, "m")
    first, second, back = add(chain, "promote", "1"), add(chain, "promote", "2"), add(chain, "rollback", "1")
    assert [roles(one) for one in (first, second, back)] == [("1", None), ("2", "1"), ("1", "2")]
    assert [one.decision.parent for one in (first, second, back)] == [None, first.digest, second.digest]
    assert [one.decision.number for one in chain.history()] == [3, 2, 1]
    assert [one.decision.was for one in chain.history()] == ["2", "1", None]
    assert roles(add(chain, "refuse", "3")) == ("1", "2"), "a refusal changes nothing"
    asked = add(chain, "request", "3", id="r").decision
    assert asked.after.waiting == {"r": asked.about}
    approved = add(chain, "approve", "3", request="r")
    assert (roles(approved), approved.decision.after.waiting) == (("3", "1"), {})


# Moves the pointer when it is told to, from the parent that it saw before.
RACER = """
import sys
from pathlib import Path
from orchestration.registry.chain import Chain
from pipeline.artifacts.backend import MovedError
from pipeline.artifacts.local import LocalBackend
from pipeline.artifacts.store import ArtifactStore
from tests.test_decision_chain import decision
chain = Chain(ArtifactStore(LocalBackend(Path(sys.argv[1]))), "m")
parent = chain.last()
print("ready", flush=True)
sys.stdin.readline()
try:
    chain.append(decision("promote", sys.argv[2]), parent)
    print("won")
except MovedError as error:
    print("lost:", error)
"""


def test_of_two_processes_that_decide_at_once_exactly_one_wins(store: ArtifactStore) -> None:
    add(Chain(store, "m"), "promote", "1")
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, store.backend.address, version],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        for version in "23"
    ]
    for one in racers:
        assert one.stdout is not None and one.stdout.readline() == "ready\n"
    for one in racers:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    said = [one.communicate(timeout=300)[0] for one in racers]
    assert sorted(one[:3] for one in said) == ["los", "won"], said
    winner = "23"[said.index("won\n")]
    assert roles(Chain(store, "m").last()) == (winner, "1")
    assert [one.decision.about.version for one in Chain(store, "m").history()] == [winner, "1"]


def test_of_many_threads_each_decision_is_made_on_the_one_before_it(store: ArtifactStore) -> None:
    num, start = 6, threading.Barrier(6)

    def decide(number: int) -> None:
        chain = Chain(store, "m")
        start.wait()
        while True:
            try:
                add(chain, "refuse", str(number))
                return
            except MovedError:
                continue

    with ThreadPoolExecutor(num) as pool:
        list(pool.map(decide, range(num)))
    history = list(Chain(store, "m").history())
    assert [one.decision.number for one in history] == list(range(num, 0, -1))
    assert {one.decision.about.version for one in history} == {str(number) for number in range(num)}


@pytest.mark.parametrize("later", [False, True], ids=["last", "another behind it"])
def test_a_move_whose_answer_was_lost_is_made(
    later: bool, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain, move = Chain(store, "m"), store.move

    def lose(name: str, digest: str, *, expected: str | None) -> None:
        move(name, digest, expected=expected)
        monkeypatch.undo()
        if later:
            add(chain, "promote", "2")
        raise (MovedError if later else StoreError)("reset")

    monkeypatch.setattr(store, "move", lose)
    made = add(chain, "promote", "1")
    assert made.digest in {one.digest for one in chain.history()}


def test_a_move_that_was_not_done_is_an_error(store: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object, **_named: object) -> None:
        raise StoreError("AccessDenied")

    monkeypatch.setattr(store, "move", refuse)
    with pytest.raises(StoreError, match="AccessDenied"):
        add(Chain(store, "m"), "promote", "1")
    assert Chain(store, "m").last() is None


def test_gc_keeps_every_decision_its_evidence_and_the_champions_weights(
    store: ArtifactStore, tmp_path: Path
) -> None:
    def put(name: str, kind: str) -> str:
        (tmp_path / name).write_text(name)
        return store.publish(tmp_path / name, kind=kind).digest

    chain, evaluations = Chain(store, "m"), [put(f"evaluation{number}", "evaluation") for number in (1, 2)]
    weights = put("weights", "model")
    loose = put("loose", "files")
    uri = f"{tmp_path.as_uri()}/store/{manifest_key(weights)}"
    about = Chosen(version="1", sha256="1" * 64, uri=uri)
    add(chain, "promote", "1", about=about, evaluation=evaluations[0])
    add(chain, "promote", "2", evaluation=evaluations[1], champion_evaluation=evaluations[0])
    add(chain, "refuse", "3")
    remove(store, find_garbage(store, grace=timedelta(0)), grace=timedelta(0))
    left = set(store.manifests())
    assert {*evaluations, weights, *(one.digest for one in chain.history())} == left and loose not in left
    assert store.backend.stat(object_key(store.manifest(evaluations[0]).files[0].sha256)) is not None


@pytest.mark.parametrize(
    "harm",
    [
        lambda record: {"kind": "files", "record": record},
        lambda record: {"kind": "decision", "record": record | {"model": "other"}},
        lambda record: {"kind": "decision", "record": record | {"action": "crown"}},
    ],
    ids=["another kind", "another model", "a later release"],
)
def test_a_pointer_to_something_else_decides_nothing(
    harm: Callable[[dict[str, object]], dict[str, object]], store: ArtifactStore
) -> None:
    chain = Chain(store, "m")
    made = add(chain, "promote", "1")
    strange = store.publish(**harm(made.decision.model_dump(mode="json"))).digest  # type: ignore[arg-type]
    store.move(chain.pointer, strange, expected=made.digest)
    with pytest.raises(CorruptError, match=f"decisions/m: leads to {strange}, no decision about m"):
        chain.last()


def test_an_edited_manifest_is_refused(store: ArtifactStore, tmp_path: Path) -> None:
    chain = Chain(store, "m")
    made = add(chain, "promote", "1")
    file = tmp_path / "store" / manifest_key(made.digest)
    tree = json.loads(file.read_text())
    tree["record"]["by"] = "mallory"
    file.write_text(json.dumps(tree))
    with pytest.raises(CorruptError):
        chain.last()


@pytest.mark.parametrize("name", ["shop", "my shop", "Läden", "a.b", "a_b-c"])
def test_every_name_of_a_model_has_a_pointer(name: str, store: ArtifactStore) -> None:
    assert pointer_key(Chain(store, name).pointer)
    add(Chain(store, name), "promote", "1")
    assert roles(Chain(store, name).last()) == ("1", None)


STEP = st.tuples(st.sampled_from(list(Action)), st.sampled_from("123"), st.integers(0, 7))


@given(st.lists(STEP, max_size=8))
def test_a_chain_is_in_one_line_and_a_version_is_not_both(steps: list[tuple[Action, str, int]]) -> None:
    parent: Made | None = None
    for number, (action, version, request) in enumerate(steps, start=1):
        champion = parent.decision.after.champion if parent else None
        moves = action in (Action.PROMOTE, Action.APPROVE)
        if moves and champion and champion.version == version:
            continue  # refused before it comes here
        made = following(decision(action, version, id=str(number), request=str(request)), parent)
        assert made.parent == (parent.digest if parent else None)
        assert made.number == (parent.decision.number + 1 if parent else 1)
        assert str(request) not in made.after.waiting
        parent = Made(str(number), made)
        assert made.after.champion is None or made.after.champion != made.after.previous


def test_weights_of_decisions_that_are_past_are_garbage(store: ArtifactStore, tmp_path: Path) -> None:
    chain, made = Chain(store, "m"), dict[str, str]()

    def decide(action: str, version: str, **more: object) -> Made:
        if version not in made:
            (tmp_path / version).write_text(version)
            made[version] = store.publish(tmp_path / version, kind="model").digest
        uri = f"{store.backend.address}/{manifest_key(made[version])}"
        about = Chosen(version=version, sha256=version * 64, uri=uri)
        return add(chain, action, version, about=about, **more)

    for version in "123":
        decide("promote", version)
    decide("request", "4", id="asked")
    decide("refuse", "5")
    decide("refuse", "6")
    remove(store, find_garbage(store, grace=timedelta(0)), grace=timedelta(0))
    left = {version for version, digest in made.items() if digest in set(store.manifests())}
    assert left == {"2", "3", "4", "6"}, "champion, previous, who waits, and the last one decided about"
    assert [one.decision.about.version for one in chain.history()] == ["6", "5", "4", "3", "2", "1"]

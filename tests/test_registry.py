"""The registry on a real MLflow server: the race of two processes, kills, approval, the way back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities.model_registry import ModelVersion

from orchestration.registry.decisions import LostRaceError
from orchestration.registry.logged import StoredModel
from orchestration.registry.open import open_decisions
from orchestration.registry.register import register_weights
from orchestration.registry.store import Registry
from pipeline.artifacts.local import LocalBackend
from pipeline.artifacts.store import ArtifactStore
from pipeline.settings.recipe import TINY_POLICY
from tests.march_cli import march, refused
from tests.memory_registry import promote
from tests.mlflow_process import mlflow_server
from tests.postgres import serve_postgres
from tests.registry_place import POLICY, Place, make_place

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield request.getfixturevalue("mlflow_uri")
        return
    with (
        serve_postgres() as address,
        mlflow_server(tmp_path_factory.mktemp("mlflow"), database=address) as uri,
    ):
        yield uri


@pytest.fixture
def place(server: str, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    """A model of the test's own, whose three sets of weights are registered."""
    made = make_place(server, request.node.name.partition("[")[0], tmp_path)
    assert [made.register(number)[0] for number in (1, 2, 3)] == ["1", "2", "3"]
    return made


def test_promotions_and_the_list_as_json(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    def printed() -> Any:
        return json.loads(capsys.readouterr().out)

    assert place.promote(1, None, "--json") == 0
    made = printed()
    assert (made["model"], made["version"], made["ending"]) == (place.model, "1", "promoted")
    assert {gate["state"] for gate in made["report"]["gates"]} == {"passed"}
    assert place.promote(2, 1, "--dry-run", "--json") == 0
    assert printed()["ending"] == "would_promote"
    assert place.promote(2, 1) == 0
    capsys.readouterr()
    assert place.promote(3, 2, "--json") == 3, "it is only as good"
    assert printed()["ending"] == "refused"
    assert march("model", "list", place.model, *place.common[:4], "--json") == 0
    [listed] = printed()
    assert (listed["champion"], listed["waiting"], listed["problems"]) == ("2", [], [])
    assert [one["version"] for one in listed["versions"]] == ["1", "2", "3"]
    assert listed["last_decision"]["action"] == "refuse"
    elsewhere = ["--mlflow", place.uri, "--store", place.folder / "another"]
    assert march("model", "list", place.model, *elsewhere, "--json") == 2, "nobody can say"
    assert printed()[0]["champion"] is None


def test_promote_and_roll_back(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.aliases() == {"candidate": "3"}
    assert place.promote(1, None) == 0
    assert place.promote(2, 1, "--dry-run") == 0
    assert place.aliases() == {"champion": "1", "candidate": "3"}
    assert place.promote(2, 1) == 0
    assert place.aliases() == {"champion": "2", "previous": "1", "candidate": "3"}
    assert place.promote(3, 2) == 3, "it is only as good"
    assert "primary: failed: +0.000, not better" in capsys.readouterr().err
    assert march("model", "rollback", place.model, *place.common[:4]) == 0
    assert place.aliases() == {"champion": "1", "previous": "2", "candidate": "3"}
    assert march("model", "list", place.model, *place.common[:4]) == 0
    assert "champion" in capsys.readouterr().out
    assert "is the champion already" in refused(capsys, "model", "promote", place.model, "--candidate", 1,
        "--evaluation", place.folder / "eval1", *place.common)  # fmt: skip
    made = [one.decision for one in place.decisions.chain.history()]
    assert [str(one.action) for one in made] == ["rollback", "refuse", "promote", "promote"]
    assert all(one.report and one.evaluation for one in made[1:]), "gates and evaluation are named"
    shutil.rmtree(place.folder / "eval2")  # the evidence is in the store
    assert place.store.manifest(str(made[2].evaluation)).kind == "evaluation"


def test_the_same_weights_are_one_version(place: Place) -> None:
    assert place.register(1) == ("1", False)
    registry, version = place.decisions.registry, place.decisions.version("1")
    for uri, lineage in (("s3://b/1", "f" * 64), ("s3://b/2", "0" * 64)):
        assert registry.register(place.model, StoredModel(uri, uri, version.sha256, lineage)) == ("1", False)
    found = place.decisions.version("1")
    assert (found.uri, found.tags["march.lineage_sha256"]) == ("s3://b/2", "f" * 64), "the first one stays"
    assert registry.register(place.model, StoredModel("s3://b/m", "s3://b/m", "e" * 64)) == ("4", True)
    assert place.decisions.version("@candidate").uri == "s3://b/m"


def test_a_person_has_the_last_word(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.policy.write_text(POLICY % ", approval: {required: true, by_another: true}")
    assert place.promote(1, None, "--by", "ann") == 0
    assert place.aliases() == {"candidate": "3"}
    approve = ["model", "approve", place.model, 1, *place.common[:4]]
    assert "another one must approve it" in refused(capsys, *approve, "--by", "ann")
    assert march(*approve, "--by", "bob") == 0
    assert place.aliases()["champion"] == "1"
    assert place.promote(2, 1, "--by", "ann") == 0
    assert (
        march("model", "reject", place.model, 2, *place.common[:4], "--by", "bob", "--reason", "not now") == 0
    )
    capsys.readouterr()
    again = ["model", "approve", place.model, 2, *place.common[:4], "--by", "bob"]
    assert "does not wait" in refused(capsys, *again)
    assert place.aliases()["champion"] == "1"


# Decides when told to on standard input, by the state that it saw before.
RACER = """
import os, signal, sys
from pathlib import Path
from orchestration.registry.decisions import LostRaceError
from orchestration.registry.open import open_decisions
from orchestration.registry.store import Registry
from pipeline.artifacts.local import LocalBackend
from pipeline.artifacts.store import ArtifactStore
from tests.memory_registry import promote
uri, model, version, folder, kill_at = sys.argv[1:]
store = ArtifactStore(LocalBackend(Path(folder)))
decisions = open_decisions(model, uri, store, by=f"racer {version}")
seen, candidate = decisions.rebuild(), decisions.version(version)
def kill(*_given, **_named):
    os.kill(os.getpid(), signal.SIGKILL)
def killed(real, wanted):
    return lambda model, alias, version: kill() if alias == wanted else real(model, alias, version)
if kill_at == "move":
    ArtifactStore.move = kill
elif kill_at:
    decisions.registry.set_alias = killed(decisions.registry.set_alias, kill_at)
print("ready", flush=True)
sys.stdin.readline()
try:
    promote(decisions, candidate, seen=seen)
    print("won")
except LostRaceError as error:
    print("lost:", error)
"""


def racer(place: Place, version: int, *, kill_at: str = "") -> subprocess.Popen[str]:
    arguments = [place.uri, place.model, str(version), str(place.folder / "store"), kill_at]
    return subprocess.Popen(
        [sys.executable, "-c", RACER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def wait_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None and process.stdout.readline() == "ready\n"


def test_of_two_promotions_at_once_one_wins_and_the_other_is_told(place: Place) -> None:
    assert place.promote(1, None) == 0
    racers = [racer(place, version) for version in (2, 3)]
    for one in racers:
        wait_ready(one)
    for one in racers:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    said = [one.communicate(timeout=300)[0] for one in racers]
    won, lost = sorted(said, key=lambda text: not text.startswith("won"))
    winner = str(2 + said.index(won))
    assert won.startswith("won") and f"racer {winner} was first (promote of version {winner})" in lost
    state = place.decisions.rebuild()
    assert state.champion and state.previous
    assert (state.champion.version, state.previous.version) == (winner, "1")
    assert {key: place.aliases()[key] for key in ("champion", "previous")} == {
        "champion": winner,
        "previous": "1",
    }


@pytest.mark.parametrize(
    ("kill_at", "left", "champion"),
    [
        ("move", {"champion": "2", "previous": "1"}, "2"),
        ("previous", {"champion": "2", "previous": "1"}, "3"),
        ("champion", {"champion": "2", "previous": "2"}, "3"),
        ("candidate", {"champion": "3", "previous": "2"}, "3"),
    ],
)
def test_the_next_command_fixes_what_a_kill_left(
    kill_at: str, left: dict[str, str], champion: str, place: Place
) -> None:
    place.model = f"{place.model}-{kill_at}"
    for number in (1, 2, 3):
        place.register(number)
    assert place.promote(1, None) == 0 and place.promote(2, 1) == 0
    process = racer(place, 3, kill_at=kill_at)
    wait_ready(process)
    process.communicate("\n", timeout=300)
    assert process.returncode == -9
    assert place.aliases() == left | {"candidate": "3"}
    assert march("model", "list", place.model, "--rebuild", *place.common[:4]) == 0
    state = place.decisions.state()
    assert state.champion and state.champion.version == champion
    assert place.aliases().get("champion") == champion
    assert place.aliases().get("previous") == (state.previous.version if state.previous else None)
    assert place.aliases().get("candidate") == (None if champion == "3" else "3")


def test_what_is_edited_or_deleted_in_mlflow_is_reported_and_written_again(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """The champion stays the same, is served and can be rolled back, whatever MLflow shows."""
    assert place.promote(1, None) == 0 and place.promote(2, 1) == 0
    client, listed = MlflowClient(place.uri), ["model", "list", place.model, *place.common[:4]]
    client.set_registered_model_alias(place.model, "champion", "3")
    client.set_model_version_tag(place.model, "2", "march.gate_report", "{}")
    capsys.readouterr()
    assert march(*listed) == 0
    said = capsys.readouterr()
    assert "champion 2; decision 2: promote" in " ".join(said.out.split())
    assert "MLflow's alias champion is version 3, by the decisions it is 2" in said.err
    assert "MLflow's tag march.gate_report of version 2 is not that of the decision" in said.err
    assert place.aliases()["champion"] == "3", "a list writes nothing"
    assert march(*listed, "--rebuild") == 0 and place.aliases()["champion"] == "2"
    capsys.readouterr()
    assert march(*listed) == 0 and capsys.readouterr().err == ""
    client.delete_model_version(place.model, "2")
    assert march("model", "serve", f"{place.model}@champion", "--print", *place.common) == 0
    assert f" {place.model}@2 " in capsys.readouterr().out
    assert march("model", "rollback", place.model, *place.common[:4]) == 0
    assert place.aliases()["champion"] == "1"


def test_what_a_tag_of_mlflow_says_does_not_command_the_terminal(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = "\x1b]0;owned\x07\x1b[2J\nmarch: shop version 9 is the champion"
    MlflowClient(place.uri).set_model_version_tag(place.model, "1", "march.decision_uri", forged)
    capsys.readouterr()
    march("model", "list", place.model, *place.common[:4])
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("march: ") and "owned" in said and said.isprintable()


def test_a_stale_decision_says_who_was_first(place: Place) -> None:
    assert place.promote(1, None) == 0 and place.promote(2, 1) == 0
    seen = place.decisions.state()
    assert march("model", "rollback", place.model, *place.common[:4]) == 0
    with pytest.raises(LostRaceError, match="rollback of version 1"):
        promote(place.decisions, place.decisions.version("3"), seen=seen)


def test_a_first_decision_between_two_looks_is_seen(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer is between the look into the store and the one into MLflow."""
    other, versions, others = place.decisions, Registry.versions, ["first"]

    def after_the_other(self: Registry, model: str) -> list[ModelVersion]:
        if others:
            others.clear()
            promote(other, other.version("1"), "failed")
        return versions(self, model)

    decisions = open_decisions(place.model, place.uri, place.store)
    monkeypatch.setattr(Registry, "versions", after_the_other)
    assert decisions.state() == other.state()
    assert [one.decision.number for one in decisions.chain.history()] == [1]


def test_of_many_writers_at_once_none_is_lost(place: Place) -> None:
    """MLflow looks and then inserts: over PostgreSQL writers of one alias or tag meet."""
    num, start = 8, threading.Barrier(8)

    def write(number: int) -> None:
        decisions = open_decisions(place.model, place.uri, place.store, by=str(number))
        candidate = decisions.version("1")
        start.wait()
        promote(decisions, candidate, "failed")

    with ThreadPoolExecutor(num) as pool:
        list(pool.map(write, range(num)))
    made = [one.decision for one in place.decisions.chain.history()]
    assert [one.number for one in made] == list(range(num, 0, -1))
    assert {one.by for one in made} == {str(number) for number in range(num)}


def test_a_registered_model_is_evaluated_by_the_registry_that_lies_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    row = {"id": "1", "query": "How many?", "documents": ["84 cars."], "answers": ["84"]}
    Path("rows.jsonl").write_text(json.dumps(row))
    evaluate = ["evaluate", "models:/tiny/1", "--benchmark", "jsonl_compact=rows.jsonl", "--dry-run"]
    evaluate += ["--out", "evaluated"]
    assert "there is no runs/mlflow.db here" in refused(capsys, *evaluate)
    Path("runs").mkdir()
    here = Registry("sqlite:///runs/mlflow.db", creates=True)
    store = ArtifactStore(LocalBackend(tmp_path / "store"))
    register_weights(here, "tiny", str(TINY_POLICY), store=lambda: store)
    assert march(*evaluate) == 0
    assert not Path("mlflow.db").exists() and "MLFLOW_TRACKING_URI" not in os.environ

"""The registry on a real MLflow server: the race of two processes, kills, approval, the way back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestration.registry.decisions import Desk, LostRaceError
from orchestration.registry.log import Entry, State
from orchestration.registry.register import register_weights
from orchestration.registry.store import Registry
from tests.march_cli import march, refused
from tests.mlflow_process import mlflow_server
from tests.postgres import serve_postgres
from tests.registry_place import POLICY, Place, make_place
from tests.test_promotion_log import KEY, entry

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


def test_promote_and_roll_back(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.aliases() == {"candidate": "3"}
    assert place.promote(1, None) == 0
    assert place.promote(2, 1, "--dry-run") == 0
    assert place.aliases() == {"champion": "1", "candidate": "3"}
    assert place.promote(2, 1) == 0
    assert place.aliases() == {"champion": "2", "previous": "1", "candidate": "3"}
    assert place.promote(3, 2) == 3, "it is only as good"
    assert "primary: failed: +0.000, not better" in capsys.readouterr().err
    assert march("rollback", place.model, *place.common) == 0
    assert place.aliases() == {"champion": "1", "previous": "2", "candidate": "3"}
    assert march("registered", place.model, *place.common[:4]) == 0
    assert "champion" in capsys.readouterr().out
    assert "is the champion already" in refused(capsys, "promote", place.model, "--candidate", 1,
        "--evaluation", place.folder / "eval1", *place.common)  # fmt: skip
    lines = (place.folder / "history" / place.model / "history.jsonl").read_text().splitlines()
    said = [row["entry"]["action"] for row in map(json.loads, lines) if row["kind"] == "entry"]
    assert said == ["promote", "promote", "refuse", "rollback"]


def test_the_same_weights_are_one_version(place: Place) -> None:
    assert place.register(1) == ("1", False)
    s3 = register_weights(place.desk.registry, place.model, "s3://b/m", sha256="e" * 64, lineage="f" * 64)
    assert s3 == ("4", True) and place.desk.version("@candidate").uri == "s3://b/m"


def test_an_address_in_the_store_takes_the_place_of_another_and_keeps_it(place: Place) -> None:
    version, lineage = place.desk.version("1"), "f" * 64
    for uri in (f"s3://b/manifests/sha256/ab/ab{'0' * 62}", version.uri):
        register_weights(place.desk.registry, place.model, version.uri)
        tags = {"march.lineage_sha256": lineage, "note": uri}
        assert place.desk.registry.register(place.model, uri=uri, sha256=version.sha256, tags=tags)[0] == "1"
    found = place.desk.version("1")
    assert found.uri.startswith("s3://b/manifests/")
    assert (found.tags["march.lineage_sha256"], found.tags["note"]) == (lineage, found.uri)


def test_a_person_has_the_last_word(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.policy.write_text(POLICY % ", approval: {required: true, by_another: true}")
    assert place.promote(1, None, "--by", "ann") == 0
    assert place.aliases() == {"candidate": "3"}
    approve = ["approve", place.model, 1, *place.common]
    assert "another one must approve it" in refused(capsys, *approve, "--by", "ann")
    assert march(*approve, "--by", "bob") == 0
    assert place.aliases()["champion"] == "1"
    assert place.promote(2, 1, "--by", "ann") == 0
    assert march("reject", place.model, 2, *place.common, "--by", "bob", "--reason", "not now") == 0
    capsys.readouterr()
    assert "does not wait" in refused(capsys, "approve", place.model, 2, *place.common, "--by", "bob")
    assert place.aliases()["champion"] == "1"


# Decides when told to on standard input, by the state that it saw before.
RACER = """
import sys
from pathlib import Path
from orchestration.promotion.policy import GatePolicy
from orchestration.promotion.records import GateReport, GateResult, GateState
from orchestration.registry.decisions import Desk, LostRaceError
from orchestration.registry.store import Registry
uri, model, version, history, kill_at = sys.argv[1:]
desk = Desk(Registry(uri), model, Path(history), by=f"racer {version}")
seen, candidate = desk.fix(), desk.version(version)
gate = GateResult(gate="all", state=GateState.PASSED, reason="")
report = GateReport(gates=(gate,), policy_sha256="", candidate_sha256="")
def killed(real, wanted):
    def call(model, alias, version):
        if alias == wanted:
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
        real(model, alias, version)
    return call
if kill_at == "append":
    desk.registry.append = lambda *_: killed(None, "")("", "", "")
elif kill_at:
    desk.registry.set_alias = killed(desk.registry.set_alias, kill_at)
print("ready", flush=True)
sys.stdin.readline()
try:
    desk.promote(candidate, report, GatePolicy(), seen)
    print("won")
except LostRaceError as error:
    print("lost:", error)
"""


def racer(place: Place, version: int, *, kill_at: str = "") -> subprocess.Popen[str]:
    arguments = [place.uri, place.model, str(version), str(place.folder / "history"), kill_at]
    return subprocess.Popen(
        [sys.executable, "-c", RACER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
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
    state = place.desk.fix()
    assert (state.champion, state.previous) == (winner, "1")
    assert {key: place.aliases()[key] for key in ("champion", "previous")} == {
        "champion": winner,
        "previous": "1",
    }


@pytest.mark.parametrize(
    ("kill_at", "left", "champion"),
    [
        ("append", {"champion": "2", "previous": "1"}, "2"),
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
    assert march("registered", place.model, *place.common[:4]) == 0
    state: State = place.desk.state()
    assert state.champion == champion
    assert place.aliases().get("champion") == champion
    assert place.aliases().get("previous") == state.previous
    assert place.aliases().get("candidate") == (None if champion == "3" else "3")


def test_an_alias_that_was_moved_by_hand_is_put_back(place: Place) -> None:
    assert place.promote(1, None) == 0
    place.desk.registry.set_alias(place.model, "champion", "3")
    assert march("registered", place.model, *place.common[:4]) == 0
    assert place.aliases()["champion"] == "1"


def test_a_signed_history_takes_no_unsigned_decision(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MARCH_PROMOTION_KEY", KEY)
    assert place.promote(1, None) == 0
    monkeypatch.delenv("MARCH_PROMOTION_KEY")
    capsys.readouterr()
    assert place.promote(2, 1) == 2
    assert "set MARCH_PROMOTION_KEY" in capsys.readouterr().err
    assert place.aliases()["champion"] == "1"


def test_a_stale_decision_is_told_who_was_first(place: Place) -> None:
    assert place.promote(1, None) == 0 and place.promote(2, 1) == 0
    stale = Desk(place.desk.registry, place.model, place.folder / "history", by="slow")
    seen = stale.state()
    assert march("rollback", place.model, *place.common) == 0
    with pytest.raises(LostRaceError, match="rollback of version 1"):
        stale._decide(stale._entry("promote", seen, version="3"))  # type: ignore[arg-type]


def test_of_many_writers_at_once_none_is_lost(place: Place) -> None:
    """MLflow looks and then inserts: over PostgreSQL writers of one alias or tag meet."""
    entries = [entry("refuse", 0, str(number)) for number in range(8)]
    start = threading.Barrier(len(entries))

    def write(one: Entry) -> None:
        registry = Registry(place.uri)
        start.wait()
        registry.append(place.model, one)
        registry.set_alias(place.model, "champion", "1")
        registry.set_tag(place.model, "1", "seen", one.id)

    with ThreadPoolExecutor(len(entries)) as pool:
        list(pool.map(write, entries))
    found = place.desk.registry.entries(place.model)
    assert [number for number, _ in found] == list(range(1, len(entries) + 1))
    assert {one.id for _, one in found} == {one.id for one in entries}

"""An MLflow server that fails in the middle of a command: one line, nothing half done, fixed by the next."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault_proxy import Fault, FaultProxy, Harm, proxy_to
from tests.march_cli import MARCH, march
from tests.mlflow_process import running_mlflow
from tests.registry_place import Place, make_place

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
ALWAYS = 99
CREATE, ALIAS, TAG = "POST .*model-versions/create", "POST .*registered-models/alias", "POST .*/set-tag"
HARMS = (
    Harm.INTERNAL_ERROR,
    pytest.param(Harm.RESET, marks=pytest.mark.long),
    pytest.param(Harm.CUT_ANSWER, marks=pytest.mark.long),
    Harm.LOSE_ANSWER,
)


@pytest.fixture(autouse=True)
def _one_retry_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_JITTER", "0")


@pytest.fixture
def proxy(mlflow_uri: str) -> Iterator[FaultProxy]:
    with proxy_to(mlflow_uri) as found:
        yield found


@pytest.fixture
def place(proxy: FaultProxy, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    name = "".join(letter for letter in request.node.name if letter.isalnum() or letter in "-_")
    return make_place(proxy.endpoint, name, tmp_path)


def line_of(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command ended with."""
    error = capsys.readouterr().err
    assert error.startswith("march: --mlflow http://127.0.0.1:"), error
    assert error.count("\n") == 1, error
    return error


def register(place: Place, number: int) -> int:
    return march("model", "register", place.model, place.weights(number), *place.common[:4])


@pytest.mark.parametrize("harm", HARMS, ids=str)
@pytest.mark.parametrize("where", [CREATE, ALIAS], ids=["version", "alias"])
def test_a_registration_that_broke_off_is_gone_on_with(
    where: str, harm: Harm, place: Place, proxy: FaultProxy, capsys: pytest.CaptureFixture[str]
) -> None:
    proxy.faults = [Fault(where, harm, times=ALWAYS)]
    assert register(place, 1) == 2
    line_of(capsys)
    proxy.faults = []
    assert register(place, 1) == 0
    assert [one.version for one in place.decisions.registry.versions(place.model)] == ["1"]
    assert place.aliases() == {"candidate": "1"}


def test_an_answer_that_is_lost_once_makes_no_second_version(place: Place, proxy: FaultProxy) -> None:
    proxy.faults = [Fault(CREATE, Harm.LOSE_ANSWER)]
    assert register(place, 1) == 0
    assert [one.version for one in place.decisions.registry.versions(place.model)] == ["1"]
    assert place.aliases() == {"candidate": "1"}


@pytest.mark.parametrize("harm", HARMS, ids=str)
@pytest.mark.parametrize("where", [TAG, ALIAS], ids=["tag", "alias"])
def test_a_promotion_is_made_though_mlflow_cannot_show_it(
    where: str, harm: Harm, place: Place, proxy: FaultProxy, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2):
        assert register(place, number) == 0
    assert place.promote(1, None) == 0
    proxy.faults = [Fault(where, harm, times=ALWAYS)]
    assert place.promote(2, 1) == 0
    assert "is decided; `march model list --rebuild` shows it" in caplog.text
    proxy.faults = []
    assert march("model", "list", place.model, "--rebuild", *place.common[:4]) == 0
    champion = place.decisions.state().champion
    assert champion is not None and champion.version == "2"
    assert place.promote(2, 1) == 2, "it is the champion already"
    assert place.aliases() == {"champion": "2", "previous": "1"}


def test_a_server_that_hangs_is_given_up(
    place: Place, proxy: FaultProxy, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "5")
    proxy.faults = [Fault(CREATE, Harm.HOLD, times=ALWAYS)]
    assert register(place, 1) == 2
    line_of(capsys)
    proxy.faults = []
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_TIMEOUT")
    assert register(place, 1) == 0


def test_gc_stops_where_the_registry_fails(
    place: Place, proxy: FaultProxy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gc = ["artifacts", "gc", "--delete", "--grace-hours", "0", "--mlflow", place.uri]
    gc += ["--store", str(tmp_path / "store")]
    (tmp_path / "store" / "objects").mkdir(parents=True)
    (left := tmp_path / "store" / "objects" / "left").write_text("left")
    for where in ("registered-models/search", "experiments/search", "runs/search"):
        proxy.faults = [Fault(where, Harm.INTERNAL_ERROR, times=ALWAYS)]
        assert march(*gc) == 2
        line_of(capsys)
        assert left.exists()
    proxy.faults = []
    assert march(*gc) == 0
    assert not left.exists()


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(Harm.HOLD, marks=pytest.mark.long, id="before"),
        pytest.param(Harm.HOLD_ANSWER, id="after"),
    ],
)
def test_a_server_that_is_killed_in_the_middle_of_a_decision(
    harm: Harm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The request is held in front of the server, or has just been done, when SIGKILL comes."""
    with running_mlflow(tmp_path) as (first, process), proxy_to(first) as proxy:
        place = make_place(proxy.endpoint, "shop", tmp_path)
        for number in (1, 2):
            assert register(place, number) == 0
        assert place.promote(1, None) == 0
        proxy.faults = [Fault(ALIAS, harm)]
        command = [*MARCH, "model", "promote", "shop", "--candidate", "2", *map(str, place.common)]
        command += ["--evaluation", str(tmp_path / "eval2"), "--champion-evaluation", str(tmp_path / "eval1")]
        promoting = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
        )
        assert proxy.held.wait(300)
        os.killpg(process.pid, signal.SIGKILL)
        proxy.left.set()  # what is held ends, and what is asked from now on finds no server
        error = promoting.communicate(timeout=300)[1]
        assert promoting.returncode == 0 and "is decided" in error, error
        with running_mlflow(tmp_path) as (second, _):
            place.uri = second
            assert march("model", "list", "shop", "--rebuild", *place.common[:4]) == 0
            assert place.aliases() == {"champion": "2", "previous": "1"}

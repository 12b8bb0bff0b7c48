"""`march serve --lexical`: the audit without a model over HTTP; no GPU, no other server."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from orchestration.settings.serve import server_config
from reward.serving.client import SyncRewardClient
from reward.serving.config import ServerConfig
from reward.serving.server import create_app
from reward.types import Document, Outcome, RagQuery
from tests.serving import QUERY, RESPONSE, TOKEN, Serving

WRONG = "The July picnic raised 999 euros."


@pytest.fixture
def server() -> Iterator[Serving]:
    config = ServerConfig(sampler={"kind": "lexical"})
    serving = Serving(create_app(config, token=TOKEN), config)
    yield serving
    serving.close()


def test_it_answers_every_path_and_is_ready_at_once(server: Serving) -> None:
    assert server.http.get("/readyz").json() == {"status": "ready"}
    verdict = server.audit().json()["verdict"]
    assert (verdict["outcome"], verdict["provenance"]["auditor"]) == ("SUPPORTED", "lexical")
    assert verdict["claims"][0]["votes"][0]["evidence"] == RESPONSE
    assert server.get_reward().json()["rewards"] == 0.0
    assert server.get_reward(WRONG).json()["rewards"] == -1.0
    told = server.http.get("/version").json()
    assert (told["sampler"], told["model"]) == ("lexical", "")
    with SyncRewardClient(server.url, TOKEN) as client:
        results = [client.audit(QUERY, RESPONSE), client.audit(QUERY, WRONG)]
    assert [r.verdict.outcome for r in results] == [Outcome.SUPPORTED, Outcome.REFUTED]
    assert server.metric('march_audits_total{outcome="SUPPORTED"') == 1  # then it was kept


def test_the_query_decides_as_it_does_in_every_audit(server: Serving) -> None:
    """No claim is right where no document answers; nor is another count than the query asks for."""
    village = Document(id="d", text="At the 2006 census, its population was 274, in 61 families.")
    query = RagQuery(id="v", query="How many families lived there?", documents=(village,))
    asked = [
        (QUERY.model_copy(update={"unanswerable": True}), RESPONSE),
        (query, "Its population was 274."),
        (query, "It had 61 families."),
    ]
    with SyncRewardClient(server.url, TOKEN) as client:
        verdicts = [client.audit(*one).verdict for one in asked]
    assert [(one.reason, one.reward) for one in verdicts] == [
        ("unanswerable", -1.0),
        ("other_count", -1.0),
        ("supported", 0.0),
    ]


def test_what_is_too_long_is_422_and_a_bug_is_unscored(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.get_reward("1" * 100_001).status_code == 422

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("reward.serving.service.audit_by_lookup", broken)
    answer = server.get_reward(RESPONSE + " ")
    assert answer.status_code == 503 and answer.json()["reason"] == "internal"


def test_its_health_answers_while_it_computes(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object) -> None:
        end = time.monotonic() + 1.5
        while time.monotonic() < end:  # on the CPU, as a long text is
            pass
        raise ZeroDivisionError

    monkeypatch.setattr("reward.serving.service.audit_by_lookup", slow)
    threads = [threading.Thread(target=server.audit, args=(RESPONSE + " " * i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    waits = []
    for _ in range(5):
        start = time.monotonic()
        assert httpx.get(server.url + "/healthz", trust_env=False).status_code == 200
        waits.append(time.monotonic() - start)
    for thread in threads:
        thread.join()
    assert max(waits) < 1.0, waits


@pytest.mark.parametrize("options", [{"openai_url": "http://h:1"}, {"model": "m"}])
def test_it_asks_no_model(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="--lexical: asks no model"):
        server_config(None, lexical=True, **options)


def test_the_command_serves_without_a_model_and_ends_in_order() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = f"from orchestration.cli import main; main(['serve', '--lexical', '--port', '{port}'])"
    process = subprocess.Popen(
        [sys.executable, "-c", command],
        cwd=Path(__file__).parents[1],
        env={"MARCH_REWARD_TOKEN": TOKEN, "PATH": "", "PYTHONPATH": str(Path(__file__).parents[1])},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        with SyncRewardClient(f"http://127.0.0.1:{port}", TOKEN) as client:
            client.wait_ready(60)
            assert client.audit(QUERY, WRONG).verdict.outcome is Outcome.REFUTED
    finally:
        process.terminate()
        _, told = process.communicate(timeout=30)
    assert process.returncode == 0 and "Traceback" not in told

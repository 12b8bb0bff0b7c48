"""No caller fills the server alone: what is beyond its quota is 429, and the others get in."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from reward.serving.tokens import new_token
from tests.role_server import LABEL, RESPONSE, TOKEN, Running, Start, start_servers  # noqa: F401
from tests.test_backpressure import eventually


def another_caller(tmp_path: Path, name: str) -> tuple[Path, str]:
    made = new_token(name)
    file = tmp_path / "tokens"
    file.write_text(made.line + "\n")
    file.chmod(0o600)
    return file, made.token


def audit_by(running: Running, token: str, response: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = f'{{"query": {LABEL}, "response": "{response}"}}'
    return httpx.post(running.url + "/v1/audit", content=body, headers=headers, trust_env=False, timeout=20)


def test_one_caller_does_not_fill_the_server(start: Start, tmp_path: Path) -> None:
    file, token = another_caller(tmp_path, "trainer")
    running = start(tokens_file=file, max_in_flight=2, max_waiting=2)
    running.sampler.pause_s = 0.4
    with ThreadPoolExecutor(5) as pool:
        first = [pool.submit(running.audit, RESPONSE + " " * i) for i in range(3)]  # three quarters of four
        eventually(running, "march_audits_waiting", 1)
        refused = running.audit(RESPONSE + "    ")
        other = pool.submit(audit_by, running, token, RESPONSE)
        assert [one.result().status_code for one in [*first, other]] == [200] * 4
    assert refused.status_code == 429 and refused.headers["retry-after"] == "2"
    assert refused.json()["reason"] == "quota" and "'env'" in refused.json()["detail"]
    assert running.metric('march_requests_refused_total{reason="quota"}') == 1
    assert running.audit(RESPONSE + "    ").status_code == 200  # what ended has left its place


def test_bodies_that_are_only_announced_take_no_room(start: Start, tmp_path: Path) -> None:
    file, token = another_caller(tmp_path, "trainer")
    running = start(tokens_file=file, max_held_bytes=10_000, max_body_bytes=5_000)
    head = (
        f"POST /v1/audit HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 5000\r\n\r\n"
    )
    connections = [running.connect() for _ in range(4)]
    for connection in connections:
        connection.sendall(head.encode() + b"{")
    while running.service.admission.num_bytes < 4:
        time.sleep(0.01)
    assert audit_by(running, token, RESPONSE).status_code == 200
    for connection in connections:
        connection.close()


def test_one_caller_does_not_fill_the_memory_for_bodies(start: Start, tmp_path: Path) -> None:
    file, token = another_caller(tmp_path, "trainer")
    running = start(tokens_file=file, max_held_bytes=4_000)
    running.sampler.pause_s = 0.4
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(running.audit, RESPONSE + " " * 2_000)
        eventually(running, "march_audits_in_flight", 1)
        refused = running.audit(RESPONSE + " " * 1_000)
        assert audit_by(running, token, RESPONSE).status_code == first.result().status_code == 200
    assert refused.status_code == 429 and refused.headers["retry-after"] == "2"
    assert refused.json()["reason"] == "quota" and "'env'" in refused.json()["detail"]
    assert running.audit(RESPONSE + " " * 1_000).status_code == 200


def test_a_joined_audit_takes_no_place(start: Start) -> None:
    running = start(quota={"in_flight": 1})
    running.sampler.pause_s = 0.2
    with ThreadPoolExecutor(2) as pool:
        assert [a.status_code for a in pool.map(lambda _: running.audit(), range(2))] == [200, 200]


def test_a_token_may_have_a_quota_of_its_own(start: Start, tmp_path: Path) -> None:
    file, token = another_caller(tmp_path, "guest")
    running = start(tokens_file=file, quotas={"guest": {"in_flight": 1}})
    running.sampler.pause_s = 0.4
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(audit_by, running, token, RESPONSE)
        eventually(running, "march_audits_in_flight", 1)
        assert audit_by(running, token, RESPONSE + " ").status_code == 429
        others = [pool.submit(running.audit, RESPONSE + "  " * i) for i in range(1, 4)]
        assert [one.result().status_code for one in (first, *others)] == [200] * 4


def test_a_quota_of_nobody_is_named_at_the_start(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, _ = another_caller(tmp_path, "guest")
    start(tokens_file=file, quotas={"guest": {"in_flight": 1}, "gest": {"in_flight": 1}})
    (said,) = [one.getMessage() for one in caplog.records if one.getMessage().startswith("quotas")]
    assert said == "quotas: gest: no token has this name now; there are env, guest"


def test_the_only_caller_may_take_all_that_there_is(start: Start) -> None:
    running = start(max_in_flight=2, max_waiting=0)
    running.sampler.pause_s = 0.3
    with ThreadPoolExecutor(3) as pool:
        told = sorted(a.status_code for a in pool.map(lambda i: running.audit(RESPONSE + " " * i), range(3)))
    assert told == [200, 200, 503]

"""No caller fills the server alone: what is beyond its quota is 429, and the others get in."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from reward.serving.admission import Admission
from reward.serving.errors import Refused
from reward.serving.tokens import new_token
from tests.role_server import LABEL, RESPONSE, Running, Start, server_config, start_servers  # noqa: F401
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
    running = start(tokens_file=file, max_in_flight=2, max_waiting=2, cache_bytes=0)
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


def test_a_joined_or_kept_verdict_takes_no_place_and_a_rate_counts_both(start: Start) -> None:
    running = start(quota={"in_flight": 1, "per_minute": 3})
    running.sampler.pause_s = 0.2
    with ThreadPoolExecutor(2) as pool:
        assert [a.status_code for a in pool.map(lambda _: running.audit(), range(2))] == [200, 200]
    assert running.audit().status_code == 200
    refused = running.audit()
    assert refused.status_code == 429 and 1 <= int(refused.headers["retry-after"]) <= 20
    assert "3 audits a minute" in refused.json()["detail"]


def test_a_token_may_have_a_quota_of_its_own(start: Start, tmp_path: Path) -> None:
    file, token = another_caller(tmp_path, "guest")
    running = start(tokens_file=file, quotas={"guest": {"per_minute": 1}})
    assert [audit_by(running, token, RESPONSE).status_code for _ in range(2)] == [200, 429]
    assert [running.audit().status_code for _ in range(3)] == [200] * 3


def test_a_rate_comes_back_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    quotas = Admission(server_config(quota={"per_minute": 2}))
    quotas.spend("a")
    quotas.spend("a")
    with pytest.raises(Refused) as refused:
        quotas.spend("a")
    assert (refused.value.status, refused.value.retry_after_s) == (429, 30)
    quotas.spend("b")
    now += 30
    quotas.spend("a")
    with pytest.raises(Refused):
        quotas.spend("a")


def test_the_only_caller_may_take_all_that_there_is(start: Start) -> None:
    running = start(max_in_flight=2, max_waiting=0, cache_bytes=0)
    running.sampler.pause_s = 0.3
    with ThreadPoolExecutor(3) as pool:
        told = sorted(a.status_code for a in pool.map(lambda i: running.audit(RESPONSE + " " * i), range(3)))
    assert told == [200, 200, 503]

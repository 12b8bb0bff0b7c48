"""POST /v1/audits: in order, each audit for itself, and one failure loses nothing."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from reward.serving.signing import signature
from tests.role_server import LABEL, RESPONSE, PolicySampler, Start, start_servers  # noqa: F401
from tests.serving import KEY, serve_picnic
from tests.serving import QUERY as PICNIC


def asked(response: str, **more: Any) -> dict[str, Any]:
    return {"query": json.loads(LABEL), "response": response, **more}


def test_entries_come_in_order_and_fail_alone(start: Start) -> None:
    running = start(audit={"kinds": ["number"], "prompts": "compact", "max_response_chars": 200})
    body = [
        asked(RESPONSE),
        {"response": 5},
        asked("x" * 300),
        asked(RESPONSE, overrides={"voters": 1}),
        asked("Nobody came."),
        asked(RESPONSE, include_trajectories=True),
    ]
    answer = running.http.post("/v1/audits", json={"audits": body})
    assert answer.status_code == 200
    entries = answer.json()["entries"]
    results, errors = [e["result"] for e in entries], [e["error"] for e in entries]
    assert [r and r["verdict"]["outcome"] for r in results] == [
        "SUPPORTED",
        None,
        "UNSCORED",
        None,
        "NO_CLAIMS",
        "SUPPORTED",
    ]
    assert [e and e["status"] for e in errors] == [None, 422, None, 422, None, None]
    assert "query" in errors[1]["detail"] and "overrides.voters" in errors[3]["detail"]
    assert results[0]["trajectories"] == [] and results[5]["trajectories"]


def test_a_bug_and_a_quota_cost_their_own_entry(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = start(quota={"in_flight": 2})
    running.sampler.pause_s = 0.2
    body = {"audits": [asked(RESPONSE + " " * i) for i in range(4)]}
    entries = running.http.post("/v1/audits", json=body).json()["entries"]
    assert [e["error"] and e["error"]["status"] for e in entries] == [None, None, 429, 429]
    assert entries[3]["error"]["retry_after_s"] >= 1 and entries[3]["error"]["reason"] == "quota"

    async def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("secret words")

    monkeypatch.setattr(running.service, "audit", broken)
    answer = running.http.post("/v1/audits", json=body)
    assert {e["error"]["status"] for e in answer.json()["entries"]} == {500} and "secret" not in answer.text


@pytest.mark.parametrize(("num", "status"), [(0, 422), (2, 200), (3, 422)])
def test_a_batch_is_bounded(start: Start, num: int, status: int) -> None:
    answer = start(limits={"max_batch": 2}).http.post("/v1/audits", json={"audits": [asked(RESPONSE)] * num})
    assert answer.status_code == status
    if status == 422:
        assert "audits" in answer.json()["detail"]


def test_equal_entries_share_an_audit_and_one_gets_the_trajectories(start: Start) -> None:
    running = start(sampler=PolicySampler())
    body = {"audits": [asked(RESPONSE, include_trajectories=True)] * 2}
    results = [e["result"] for e in running.http.post("/v1/audits", json=body).json()["entries"]]
    assert [result["verdict"]["weights_version"] for result in results] == [9, 9]
    assert sorted(bool(result["trajectories"]) for result in results) == [False, True]


def test_a_batch_is_signed_too() -> None:
    serving = serve_picnic(signing_key=KEY)
    nonce = "n" * 16
    body = json.dumps({"audits": [{"query": PICNIC.model_dump(), "response": RESPONSE}]})
    try:
        headers = {"March-Nonce": nonce, "Content-Type": "application/json"}
        answer = serving.http.post("/v1/audits", content=body, headers=headers)
    finally:
        serving.close()
    asked = hashlib.sha256(body.encode()).hexdigest()
    signed = signature(KEY, "POST /v1/audits", asked, answer.content, nonce)
    assert answer.headers["March-Signature"] == signed

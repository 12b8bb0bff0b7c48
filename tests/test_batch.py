"""POST /v1/audits: in order, each audit for itself, and one failure loses nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from reward.serving.client import RewardClient, RewardServerError, SyncRewardClient
from reward.types import AuditResult, Outcome
from tests.role_server import LABEL, QUERY, RESPONSE, TOKEN, PolicySampler, Start, start_servers  # noqa: F401
from tests.serving import KEY, serve_picnic
from tests.serving import QUERY as PICNIC
from tests.serving import TOKEN as PICNIC_TOKEN


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
    sources = answer.headers["march-audit"].split(",")
    assert len(sources) == 6 and [i for i, source in enumerate(sources) if source == "error"] == [1, 3]


def test_a_bug_and_a_quota_cost_their_own_entry(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = start(quota={"per_minute": 2})
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


def test_equal_entries_share_an_audit_and_a_retry_gets_the_same(start: Start) -> None:
    running = start(sampler=PolicySampler())
    body = {"audits": [asked(RESPONSE, include_trajectories=True)] * 2}
    first = running.http.post("/v1/audits", json=body, headers={"Idempotency-Key": "k"})
    again = running.http.post("/v1/audits", json=body, headers={"Idempotency-Key": "k"})
    assert first.json() == again.json()
    assert [e["result"]["verdict"]["weights_version"] for e in first.json()["entries"]] == [9, 9]
    assert sorted(first.headers["march-audit"].split(",")) == ["fresh", "joined"]
    assert again.headers["march-audit"] == "cached,cached"
    assert [bool(e["result"]["trajectories"]) for e in first.json()["entries"]] == [True, False]


def test_our_clients_give_results_and_errors_of_their_own_kind(start: Start) -> None:
    running = start(audit={"kinds": ["number"], "prompts": "compact"}, limits={"max_documents": 1})
    two = QUERY.model_copy(
        update={"documents": (*QUERY.documents, QUERY.documents[0].model_copy(update={"id": "e"}))}
    )
    samples = [(QUERY, RESPONSE), (two, RESPONSE)]

    async def ask() -> list[AuditResult | RewardServerError]:
        async with RewardClient(running.url, TOKEN) as client:
            return await client.audit_batch(samples)

    with SyncRewardClient(running.url, TOKEN) as client:
        told = [asyncio.run(ask()), client.audit_batch(samples)]
    for result, error in told:
        assert isinstance(result, AuditResult) and result.verdict.outcome is Outcome.SUPPORTED
        assert isinstance(error, RewardServerError) and "422: query: documents: 2" in str(error)


def test_a_batch_is_signed_too() -> None:
    serving = serve_picnic(signing_key=KEY)
    try:
        with SyncRewardClient(serving.url, PICNIC_TOKEN, signing_key=KEY) as client:
            (result,) = client.audit_batch([(PICNIC, "The July picnic raised 466 euros.")])
        assert isinstance(result, AuditResult)
    finally:
        serving.close()

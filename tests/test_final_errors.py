"""What a client is told of a failure: 422 where no retry can help, and every error declared."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from reward.judging.vote import Reason
from reward.samplers import SamplerError
from reward.serving.client import RewardClient, RewardServerError
from reward.serving.errors import FINAL, TRIED_AGAIN
from reward.serving.wire import ErrorReply
from tests.role_server import DOCUMENT, LABEL, PROMPT, QUERY, RESPONSE, TOKEN, Start, start_servers  # noqa: F401

DECLARED = {"400", "401", "408", "413", "415", "422", "429", "431", "500", "503"}


@pytest.mark.parametrize(
    ("reason", "settings", "tail"),
    [
        (Reason.RESPONSE_TOO_LONG, {"max_response_chars": 10}, ""),
        (Reason.QUERY_TOO_LONG, {"max_query_chars": 10}, ""),
        (Reason.DOCUMENTS_TOO_LONG, {"max_documents_chars": 10}, ""),
        (Reason.TOO_MANY_CLAIMS, {"max_claims": 1}, " 1 2" * 20),
    ],
)
def test_content_that_fails_again_is_422(
    start: Start, reason: Reason, settings: dict[str, Any], tail: str
) -> None:
    running = start(audit={"prompts": "compact", **settings})
    answer = running.reward(PROMPT + RESPONSE + tail)
    assert answer.status_code == 422 and "retry-after" not in answer.headers
    assert answer.json()["reason"] == reason and answer.json()["id"] == QUERY.id
    assert "rewards" not in answer.json() and "UNSCORED" in answer.json()["detail"]
    verdict = running.audit(RESPONSE + tail).json()["verdict"]  # there the verdict itself says it
    assert (verdict["outcome"], verdict["reward"], verdict["reason"]) == ("UNSCORED", None, reason)


def test_half_a_surrogate_pair_and_a_long_prompt_are_422(start: Start) -> None:
    running = start(max_kept=0)
    running.sampler.failures = [SamplerError("prompt_too_long", "it is too long")]
    answer = running.reward()
    assert answer.status_code == 422 and answer.json()["reason"] == "prompt_too_long"
    body = {"query": [PROMPT + "466"], "prompts": [PROMPT], "labels": [LABEL.replace("July", "\\ud800")]}
    assert running.http.post("/get_reward", content=json.dumps(body)).status_code == 415
    answer = running.http.post("/get_reward", json=body)
    assert answer.status_code == 422


def test_one_final_failure_of_several_samples_is_final(start: Start) -> None:
    running = start(audit={"prompts": "compact", "max_response_chars": 60}, deadline_s=0.3)
    running.sampler.pause_s = 5  # the first sample runs out of time
    texts = [PROMPT + RESPONSE, PROMPT + RESPONSE * 3]
    answer = running.reward(query=texts, prompts=[PROMPT] * 2, labels=[LABEL] * 2)
    assert answer.status_code == 422 and answer.json()["reason"] == "response_too_long"


def test_final_reasons_are_none_that_another_try_can_change() -> None:
    assert not set(FINAL) & {*TRIED_AGAIN, Reason.DEADLINE, Reason.INTERNAL, Reason.TOO_FEW_VALID_VOTES}


def test_our_client_takes_a_422_as_final_at_once(start: Start) -> None:
    running = start(limits={"max_documents": 1})
    query = QUERY.model_copy(update={"documents": (DOCUMENT, DOCUMENT.model_copy(update={"id": "e"}))})

    async def ask() -> None:
        async with RewardClient(running.url, TOKEN, patience_s=60) as client:
            with pytest.raises(RewardServerError, match=r"422: query: documents: 2.*no retry can change it"):
                await client.audit(query, RESPONSE)

    asyncio.run(asyncio.wait_for(ask(), 5))


def test_openrlhfs_own_client_gets_no_reward_from_a_422(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.test_server import openrlhf_reward

    running = start(audit={"prompts": "compact", "max_response_chars": 10})
    sleep = asyncio.sleep
    monkeypatch.setattr("openrlhf.utils.agent.asyncio.sleep", lambda _: sleep(0))
    with pytest.raises(RuntimeError, match="5 times"):
        openrlhf_reward(running, PROMPT + RESPONSE)


def test_every_error_of_the_audits_is_declared_with_its_form(start: Start) -> None:
    schema = start().http.get("/openapi.json").json()
    for path in ("/get_reward", "/v1/audit", "/v1/audits"):
        responses = schema["paths"][path]["post"]["responses"]
        assert set(responses) == DECLARED | {"200"}
        for status in DECLARED:
            form = responses[status]["content"]["application/json"]["schema"]
            assert form == {"$ref": "#/components/schemas/ErrorReply"}


def test_the_description_says_which_paths_need_the_token(start: Start) -> None:
    schema = start().http.get("/openapi.json").json()
    assert schema["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    operations = {path: one for path, methods in schema["paths"].items() for one in methods.values()}
    needs = {path for path, one in operations.items() if one.get("security") == [{"token": []}]}
    assert needs == {"/get_reward", "/v1/audit", "/v1/audits", "/version", "/metrics"}
    assert all("401" in operations[path]["responses"] for path in needs)


def test_errors_have_the_declared_form(start: Start) -> None:
    running = start(max_body_bytes=2048, audit={"prompts": "compact"})
    answers = [
        httpx.post(running.url + "/v1/audit", trust_env=False),
        running.http.post("/v1/audit", json={}),
        running.http.post("/v1/audit", content=b"x" * 3000),
        running.http.post("/v1/audit", content=b"{}"),
        running.audit(headers_of="x" * 10),
        running.http.get("/version", headers={"X": "x" * 20_000}),
    ]
    running.service.drain()
    answers.append(running.audit())
    assert [answer.status_code for answer in answers] == [401, 422, 413, 415, 422, 431, 503]
    for answer in answers:
        assert ErrorReply.model_validate_json(answer.content).detail

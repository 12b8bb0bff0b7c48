"""The reward server's two wires over real HTTP: OpenRLHF's own client, our form, and what fails."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx
import pytest

from reward.samplers import SamplerError
from reward.types import AuditResult, Outcome
from tests.role_server import LABEL, PROMPT, RESPONSE, TOKEN, PolicySampler, Running, Start, start_servers  # noqa: F401

LOG_KEYS = {"audit_refuted", "audit_no_claims", "num_claims", "num_mentions", "num_uncovered"}


def openrlhf_reward(running: Running, query: str, **changes: Any) -> dict[str, Any]:
    """Asks as OpenRLHF's rollout actor does: its own client, the token inside the URL."""
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    url = httpx.URL(running.url).copy_with(username="march", password=TOKEN, path="/get_reward")
    executor = SingleTurnAgentExecutor(str(url))
    replies = asyncio.run(executor._fetch_rewards_via_http([query], [PROMPT], [changes.get("label", LABEL)]))
    assert len(replies) == 1
    return dict(replies[0])


@pytest.mark.parametrize(
    ("checked", "tail", "reward"), [("466", "", 0.0), ("466", "<|end|>", 0.0), ("999", "<|end|>", -1.0)]
)
def test_openrlhfs_own_client_gets_scalar_rewards(
    start: Start, checked: str, tail: str, reward: float
) -> None:
    running = start()
    running.sampler.checked = checked
    reply = openrlhf_reward(running, PROMPT + RESPONSE + tail)
    assert reply["rewards"] == reply["scores"] == reward
    assert type(reply["rewards"]) is float
    assert set(reply["extra_logs"]) == LOG_KEYS
    assert all(type(value) is float for value in reply["extra_logs"].values())
    assert reply["extra_logs"]["audit_refuted"] == float(reward == -1)


def test_openrlhfs_own_client_gets_no_reward_from_a_failed_audit(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    running.sampler.failures = [SamplerError("prompt_too_long", "too long")] * 5
    sleep = asyncio.sleep
    monkeypatch.setattr("openrlhf.utils.agent.asyncio.sleep", lambda _: sleep(0))
    with pytest.raises(RuntimeError, match="5 times"):
        openrlhf_reward(running, PROMPT + RESPONSE)
    assert running.sampler.num_calls == 5


def test_an_answer_without_numbers_has_the_same_log_keys(start: Start) -> None:
    reply = start().reward(PROMPT + "I do not know.").json()
    assert reply["rewards"] == -1.0
    assert set(reply["extra_logs"]) == LOG_KEYS
    assert reply["extra_logs"]["audit_no_claims"] == 1.0


def test_several_samples_get_lists(start: Start) -> None:
    running = start()
    queries = [PROMPT + RESPONSE, PROMPT + "I do not know."]
    reply = running.reward(query=queries, prompts=[PROMPT] * 2, labels=[LABEL] * 2).json()
    assert reply["rewards"] == reply["scores"] == [0.0, -1.0]
    assert reply["extra_logs"]["audit_no_claims"] == [0.0, 1.0]


@pytest.mark.parametrize("reason", ["timeout", "connection", "engine", "bad_response", "no_such_reason"])
def test_unscored_is_never_a_number(start: Start, reason: str) -> None:
    running = start()
    running.sampler.failures = [SamplerError(reason, "it failed")] * 2
    answer = running.reward()
    assert answer.status_code == 503
    assert answer.json()["reason"] == reason and "UNSCORED" in answer.json()["detail"]
    assert "rewards" not in answer.json() and answer.headers["retry-after"] == "1"


def test_a_bug_in_an_audit_is_unscored_too(start: Start) -> None:
    running = start()
    running.sampler.failures = [ZeroDivisionError("a bug")]
    assert running.reward().json()["reason"] == "internal"
    running.sampler.failures = [TimeoutError("not the deadline")]
    assert running.audit().json()["verdict"]["reason"] == "internal"


def test_one_unscored_sample_of_several_takes_all_numbers_away(start: Start) -> None:
    running = start()
    running.sampler.failures = [SamplerError("unheard_of", "odd")]
    answer = running.reward(
        query=[PROMPT + RESPONSE, PROMPT + "None."], prompts=[PROMPT] * 2, labels=[LABEL] * 2
    )
    assert answer.status_code == 503 and "rewards" not in answer.json()


@pytest.mark.parametrize(("reason", "num_calls", "status"), [("engine", 3, 200), ("prompt_too_long", 1, 422)])
def test_a_passing_failure_is_tried_once_more(start: Start, reason: str, num_calls: int, status: int) -> None:
    running = start()
    running.sampler.failures = [SamplerError(reason, "once")]
    assert running.reward().status_code == status
    assert running.sampler.num_calls == num_calls


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": ["466"]}, ["labels[0]", "RagQuery"]),
        ({"labels": ["not JSON"]}, ["labels[0]", "Invalid JSON"]),
        ({"labels": ['{"id": "q", "query": "?", "documents": []}']}, ["labels[0]", "documents"]),
        ({"labels": [json.loads(LABEL)]}, ["labels.0", "string"]),
        ({"labels": []}, ["[1, 1, 0] items"]),
        ({"query": [], "prompts": [], "labels": []}, ["query", "is empty; give one at least"]),
        ({"query": ["another text"]}, ["query[0]", "begin with its prompt", "prompt's length limit"]),
    ],
)
def test_a_malformed_sample_is_refused_by_field_and_fix(
    start: Start, changes: dict[str, Any], words: list[str]
) -> None:
    running = start()
    answer = running.reward(**changes)
    assert answer.status_code == 422
    detail = answer.json()["detail"]
    assert all(word in detail for word in words) and "\n" not in detail
    assert running.sampler.num_calls == 0


def test_a_refusal_does_not_send_the_input_back(start: Start) -> None:
    answer = start().audit(response=["x" * 5000])
    assert answer.status_code == 422
    assert "response" in answer.json()["detail"] and len(answer.text) < 300


def test_audit_gives_the_verdict_and_trajectories_only_when_asked(start: Start) -> None:
    running = start(sampler=PolicySampler())
    without = AuditResult.model_validate_json(running.audit().content)
    assert without.verdict.outcome is Outcome.SUPPORTED and without.verdict.weights_version == 9
    assert without.verdict.claims[0].claim.answer == "466" and without.trajectories == ()
    full = AuditResult.model_validate_json(running.audit(include_trajectories=True).content)
    assert [t.role for t in full.trajectories] == ["proposer", "checker", "checker", "checker"]
    assert full.trajectories[0].prompt_token_ids == (1, 2, 3)
    assert full.trajectories[0].response_token_ids == (5, 6)


def test_a_request_may_override_settings_within_bounds(start: Start) -> None:
    running = start(overrides={"may_weaken": ["early_stop"]})
    assert running.audit(overrides={"voters": 5, "seed": 4}).json()["verdict"]["num_voters"] == 5
    verdict = running.audit(overrides={"voters": 5, "early_stop": True}).json()["verdict"]
    assert (verdict["num_voters"], running.sampler.num_voters) == (3, 3)
    assert running.audit(overrides={}).json()["verdict"]["num_voters"] == 3


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"voters": 11}, ["overrides.voters", "9"]),
        ({"voters": 4}, ["overrides.voters: 4 is even", "use 5"]),
        ({"reward_supported": 1}, ["overrides.reward_supported"]),
        ({"voters": 1}, ["overrides.voters: 1 is weaker than this server's 3", "may_weaken"]),
        ({"uncovered": "ignore"}, ["overrides.uncovered: ignore is weaker than this server's refute"]),
    ],
)
def test_an_override_out_of_bounds_is_refused_in_one_line(
    start: Start, overrides: dict[str, Any], words: list[str]
) -> None:
    running = start()
    answer = running.audit(overrides=overrides)
    assert answer.status_code == 422 and running.sampler.num_calls == 0
    detail = answer.json()["detail"]
    assert all(word in detail for word in words) and "\n" not in detail


def test_the_trainers_reward_takes_no_overrides(start: Start) -> None:
    running = start()
    assert running.reward(overrides={"voters": 5}).status_code == 200
    assert running.sampler.num_voters == 3


def test_audit_says_unscored_in_the_verdict(start: Start) -> None:
    running = start()
    running.sampler.failures = [SamplerError("engine", "asleep")] * 2
    answer = running.audit()
    assert answer.status_code == 200
    verdict = answer.json()["verdict"]
    assert (verdict["outcome"], verdict["reward"], verdict["reason"]) == ("UNSCORED", None, "engine")


def test_a_deadline_ends_the_audit_and_its_retry(start: Start) -> None:
    running = start(deadline_s=0.3)
    running.sampler.pause_s = 5
    begin = time.monotonic()
    assert running.reward().json()["reason"] == "deadline"
    assert time.monotonic() - begin < 3


@pytest.mark.parametrize("text", ["466 \ud800", "\udc00"])
def test_half_a_surrogate_pair_is_no_json(start: Start, text: str) -> None:
    running = start()
    body = json.dumps({"query": json.loads(LABEL), "response": text})
    answer = running.http.post("/v1/audit", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422 and "Invalid JSON" in answer.json()["detail"]
    assert running.sampler.num_calls == 0


def test_what_is_not_said_to_be_json_is_refused(start: Start) -> None:
    running = start()
    body = json.dumps({"query": json.loads(LABEL), "response": RESPONSE})
    assert running.http.post("/v1/audit", content=body).status_code == 415
    odd = {"Content-Type": "application/vnd.march+json; charset=utf-8"}
    assert running.http.post("/v1/audit", content=body, headers=odd).status_code == 200


def test_the_api_describes_its_bodies(start: Start) -> None:
    paths = start().http.get("/openapi.json").json()["paths"]
    for path, body, reply in (
        ("/get_reward", "RewardRequest", "RewardReply"),
        ("/v1/audit", "AuditRequest", "AuditResult"),
    ):
        told = paths[path]["post"]
        assert told["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith(f"/{body}")
        assert told["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith(f"/{reply}")

"""The reward server over real HTTP: OpenRLHF's own client, our wire, the gates, and what fails."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from reward.config import AuditConfig, OpenAISamplerConfig, SamplingSettings, ServerConfig
from reward.samplers import Message, SamplerError
from reward.serving.server import create_app
from reward.types import AuditResult, Document, Outcome, RagQuery, Sample, SampleGroup

TOKEN = "a-token/of:32 characters, awkward"
DOCUMENT = Document(id="d", text="The July picnic in Kabul raised 466 euros.")
QUERY = RagQuery(id="q1", query="How many euros did the July picnic in Kabul raise?", documents=(DOCUMENT,))
LABEL = QUERY.model_dump_json()
PROMPT = "<|user|>Doc: The July picnic.<|end|><|assistant|>"
RESPONSE = "The July picnic raised 466 euros."
LOG_KEYS = {"audit_refuted", "audit_no_claims", "num_claims", "num_numbers", "num_uncovered"}


class RoleSampler:
    """Plays Proposer and Checker for `RESPONSE` by the compact prompts; `checked` is the Checker's number."""

    def __init__(self) -> None:
        self.checked = "466"
        self.failures: list[Exception] = []  # risen one a call, before anything is answered
        self.pause_s = 0.0
        self.num_calls = 0
        self.num_voters = 0  # of the last call
        self.is_ready = True

    model = "role-player"

    async def sample(
        self,
        messages: Sequence[Message],
        *,
        n: int,
        settings: SamplingSettings,
        pattern: str | None = None,
    ) -> SampleGroup:
        self.num_calls += 1
        self.num_voters = n
        await asyncio.sleep(self.pause_s)
        if self.failures:
            raise self.failures.pop(0)
        text = f"1. Evidence: it raised {self.checked} euros. [Answer: {self.checked}]"
        if messages[0]["content"] == "proposer":
            text = "- Question: How many euros did the July picnic raise? [Answer: 466]"
        sample = Sample(text=text, finish_reason="stop", token_ids=(5, 6), logprobs=(-0.1, -0.2))
        return SampleGroup(samples=(sample,) * n, prompt_token_ids=(1, 2, 3), weights_version=9)

    async def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(message["content"].split()) for message in messages)

    async def ready(self) -> None:
        if not self.is_ready:
            raise SamplerError("engine", "secret address")

    async def close(self) -> None: ...


class Running:
    """A server on a free port and the sampler behind it."""

    def __init__(self, app: FastAPI, sampler: RoleSampler) -> None:
        self.sampler = sampler
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()
        self.http = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=20, trust_env=False
        )

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()

    def audit(self, response: str = RESPONSE, **more: Any) -> httpx.Response:
        return self.http.post("/v1/audit", json={"query": json.loads(LABEL), "response": response, **more})

    def get_reward(self, text: str = PROMPT + RESPONSE, **changes: Any) -> httpx.Response:
        return self.http.post(
            "/get_reward", json={"query": [text], "prompts": [PROMPT], "labels": [LABEL]} | changes
        )


Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts servers for one test; keyword arguments are `ServerConfig`'s."""
    running: list[Running] = []

    def start_one(**settings: Any) -> Running:
        config = ServerConfig(
            audit=AuditConfig(prompts="compact"),
            sampler=OpenAISamplerConfig(base_url="http://127.0.0.1:9/v1", model="none"),
            **settings,
        )
        sampler = RoleSampler()
        running.append(Running(create_app(config, sampler=sampler, token=TOKEN), sampler))
        return running[-1]

    yield start_one
    for one in running:
        one.http.close()
        one.stop()


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
    reply = start().get_reward(PROMPT + "I do not know.").json()
    assert reply["rewards"] == -1.0
    assert set(reply["extra_logs"]) == LOG_KEYS
    assert reply["extra_logs"]["audit_no_claims"] == 1.0


def test_several_samples_get_lists(start: Start) -> None:
    running = start()
    queries = [PROMPT + RESPONSE, PROMPT + "I do not know."]
    reply = running.get_reward(query=queries, prompts=[PROMPT] * 2, labels=[LABEL] * 2).json()
    assert reply["rewards"] == reply["scores"] == [0.0, -1.0]
    assert reply["extra_logs"]["audit_no_claims"] == [0.0, 1.0]


@pytest.mark.parametrize(
    "reason", ["prompt_too_long", "timeout", "connection", "engine", "bad_response", "no_such_reason"]
)
def test_unscored_is_never_a_number(start: Start, reason: str) -> None:
    running = start()
    running.sampler.failures = [SamplerError(reason, "it failed")] * 2
    answer = running.get_reward()
    assert answer.status_code == 503
    assert answer.json()["reason"] == reason and "UNSCORED" in answer.json()["detail"]
    assert "rewards" not in answer.json() and answer.headers["retry-after"] == "1"


def test_a_bug_in_an_audit_is_unscored_too(start: Start) -> None:
    running = start()
    running.sampler.failures = [ZeroDivisionError("a bug")]
    assert running.get_reward().json()["reason"] == "internal"
    running.sampler.failures = [TimeoutError("not the deadline")]
    assert running.audit().json()["verdict"]["reason"] == "internal"


def test_one_unscored_sample_of_several_takes_all_numbers_away(start: Start) -> None:
    running = start()
    running.sampler.failures = [SamplerError("prompt_too_long", "too long")]
    answer = running.get_reward(
        query=[PROMPT + RESPONSE, PROMPT + "None."], prompts=[PROMPT] * 2, labels=[LABEL] * 2
    )
    assert answer.status_code == 503


@pytest.mark.parametrize(("reason", "num_calls", "status"), [("engine", 3, 200), ("prompt_too_long", 1, 503)])
def test_a_passing_failure_is_tried_once_more(start: Start, reason: str, num_calls: int, status: int) -> None:
    running = start()
    running.sampler.failures = [SamplerError(reason, "once")]
    assert running.get_reward().status_code == status
    assert running.sampler.num_calls == num_calls


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": ["466"]}, ["labels[0]", "RagQuery"]),
        ({"labels": ["not JSON"]}, ["labels[0]", "Invalid JSON"]),
        ({"labels": ['{"id": "q", "query": "?", "documents": []}']}, ["labels[0]", "documents"]),
        ({"labels": [json.loads(LABEL)]}, ["labels.0", "string"]),
        ({"labels": []}, ["[1, 1, 0] items"]),
        ({"query": [], "prompts": [], "labels": []}, ["query", "at least 1"]),
        ({"query": ["another text"]}, ["query[0]", "begin with its prompt", "prompt's length limit"]),
    ],
)
def test_a_malformed_sample_is_refused_by_field_and_mend(
    start: Start, changes: dict[str, Any], words: list[str]
) -> None:
    running = start()
    answer = running.get_reward(**changes)
    assert answer.status_code == 422
    detail = answer.json()["detail"]
    assert all(word in detail for word in words) and "\n" not in detail
    assert running.sampler.num_calls == 0


def test_a_refusal_does_not_send_the_input_back(start: Start) -> None:
    answer = start().audit(response=["x" * 5000])
    assert answer.status_code == 422
    assert "response" in answer.json()["detail"] and len(answer.text) < 300


def test_audit_gives_the_verdict_and_trajectories_only_when_asked(start: Start) -> None:
    running = start()
    without = AuditResult.model_validate_json(running.audit().content)
    assert without.verdict.outcome is Outcome.SUPPORTED and without.verdict.weights_version == 9
    assert without.verdict.claims[0].claim.answer == "466" and without.trajectories == ()
    full = AuditResult.model_validate_json(running.audit(include_trajectories=True).content)
    assert [t.role for t in full.trajectories] == ["proposer", "checker", "checker", "checker"]
    assert full.trajectories[0].prompt_token_ids == (1, 2, 3)
    assert full.trajectories[0].response_token_ids == (5, 6)


def test_a_request_may_override_settings_within_bounds(start: Start) -> None:
    running = start()
    assert running.audit(overrides={"voters": 5, "seed": 4}).json()["verdict"]["num_voters"] == 5
    verdict = running.audit(overrides={"voters": 5, "early_stop": True}).json()["verdict"]
    assert (verdict["num_voters"], running.sampler.num_voters) == (3, 3)
    assert running.audit(overrides={}).json()["verdict"]["num_voters"] == 3


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"voters": 11}, ["overrides.voters: 11", "bound 9"]),
        ({"voters": 99}, ["overrides.voters", "15"]),
        ({"voters": 4}, ["overrides.voters: 4 is even", "use 5"]),
        ({"reward_supported": 1}, ["overrides.reward_supported"]),
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
    assert running.get_reward(overrides={"voters": 5}).status_code == 200
    assert running.sampler.num_voters == 3


def test_half_a_surrogate_pair_is_unscored(start: Start, tmp_path: Path) -> None:
    running = start(audit_log=tmp_path / "audits.jsonl")
    body = json.dumps({"query": json.loads(LABEL), "response": "466 \ud800"})
    answer = running.http.post("/v1/audit", content=body, headers={"Content-Type": "application/json"})
    assert answer.json()["verdict"]["reason"] == "invalid_text"


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
    assert running.get_reward().json()["reason"] == "deadline"
    assert time.monotonic() - begin < 3


def test_identical_requests_join_one_audit_and_nothing_is_kept(start: Start) -> None:
    running = start()
    running.sampler.pause_s = 0.3
    with ThreadPoolExecutor(8) as pool:
        audits = [pool.submit(running.audit) for _ in range(4)]
        rewards = [pool.submit(running.get_reward) for _ in range(3)]
        others = pool.submit(running.audit, RESPONSE + " ")
        assert {future.result().json()["verdict"]["reward"] for future in audits} == {0.0}
        assert {future.result().json()["rewards"] for future in rewards} == {0.0}
        assert others.result().status_code == 200
    assert running.sampler.num_calls == 2 * 2  # Proposer and Checker, for two different responses
    running.audit()
    assert running.sampler.num_calls == 2 * 3


def test_a_client_that_gives_up_and_asks_again_joins_its_own_audit(start: Start) -> None:
    running = start()
    running.sampler.pause_s = 0.5
    with pytest.raises(httpx.ReadTimeout):
        running.http.post("/v1/audit", json={"query": json.loads(LABEL), "response": RESPONSE}, timeout=0.2)
    assert running.audit().json()["verdict"]["outcome"] == "SUPPORTED"
    assert running.sampler.num_calls == 2


def test_more_audits_than_allowed_are_told_to_come_back(start: Start) -> None:
    running = start(max_in_flight=1)
    running.sampler.pause_s = 0.5
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(running.audit)
        time.sleep(0.2)
        joined = pool.submit(running.audit)
        refused = running.audit(RESPONSE + " ")
        assert first.result().status_code == joined.result().status_code == 200
    assert refused.status_code == 503 and refused.headers["retry-after"] == "1"
    assert refused.json()["reason"] == "overloaded"
    assert running.audit(RESPONSE + " ").status_code == 200


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer {TOKEN}", 200),
        (basic("march", TOKEN), 200),
        (basic("", TOKEN), 200),
        (None, 401),
        ("", 401),
        ("Bearer", 401),
        ("Bearer wrong", 401),
        (f"Bearer {TOKEN}x", 401),
        (TOKEN, 401),
        (basic(TOKEN, "wrong"), 401),
        ("Basic not-base64!", 401),
        ("Basic /w==", 401),  # not UTF-8
        (f"Digest {TOKEN}", 401),
    ],
)
def test_only_the_token_opens(start: Start, authorization: str | None, status: int) -> None:
    running = start()
    headers = {} if authorization is None else {"Authorization": authorization}
    for path in ("/metrics", "/version", "/openapi.json"):
        assert httpx.get(running.url + path, headers=headers, trust_env=False).status_code == status
    posted = httpx.post(running.url + "/v1/audit", headers=headers, json={}, trust_env=False)
    assert posted.status_code == (422 if status == 200 else 401)
    assert running.sampler.num_calls == 0


def test_health_is_open_and_readiness_asks_the_sampler_without_telling_details(start: Start) -> None:
    running = start()
    with httpx.Client(base_url=running.url, trust_env=False) as stranger:
        assert stranger.get("/healthz").status_code == 200
        assert stranger.get("/readyz").status_code == 200
        running.sampler.is_ready = False
        answer = stranger.get("/readyz")
        assert answer.status_code == 503
        assert answer.json()["reason"] == "engine" and "secret" not in answer.text


def test_a_body_over_the_limit_is_refused_before_it_is_read(start: Start) -> None:
    running = start(max_body_bytes=2048)
    connection = http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=10)
    connection.putrequest("POST", "/v1/audit")
    connection.putheader("Authorization", f"Bearer {TOKEN}")
    connection.putheader("Content-Length", str(10**9))
    connection.endheaders(b"{")  # one byte of a thousand million
    assert connection.getresponse().status == 413
    connection.close()


def test_a_body_of_unknown_length_is_refused_where_it_passes_the_limit(start: Start) -> None:
    running = start(max_body_bytes=2048)

    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b"x" * 256

    answer = running.http.post("/v1/audit", content=endless())
    assert answer.status_code == 413
    assert "max_body_bytes 2048" in answer.json()["detail"]
    assert running.audit().status_code == 200


def test_version_names_what_answers(start: Start) -> None:
    running = start()
    told = running.http.get("/version").json()
    assert told["prompt_digest"] == running.audit().json()["verdict"]["provenance"]["prompt_digest"]
    assert told["sampler"] == "openai" and told["version"]


def test_metrics_count_outcomes_reasons_and_time(start: Start) -> None:
    running, other = start(), start()
    running.audit()
    running.sampler.failures = [SamplerError("prompt_too_long", "too long")]
    running.audit()
    text = running.http.get("/metrics").text
    assert 'march_audits_total{outcome="SUPPORTED",reason="supported"} 1.0' in text
    assert 'march_audits_total{outcome="UNSCORED",reason="prompt_too_long"} 1.0' in text
    assert "march_audit_seconds_count 2.0" in text
    assert "march_audits_in_flight 0.0" in text
    assert 'march_claims_total{state="supported"} 1.0' in text
    assert "march_numbers_total 2.0" in text
    assert "march_numbers_uncovered_total 0.0" in text
    assert "march_audits_total{" not in other.http.get("/metrics").text  # a registry of its own


def test_the_audit_log_holds_every_verdict_and_no_token(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "audits.jsonl"
    running = start(audit_log=log)
    running.audit()
    running.sampler.failures = [SamplerError("prompt_too_long", "too long")]
    running.get_reward()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["verdict"]["outcome"] for line in lines] == ["SUPPORTED", "UNSCORED"]
    assert all(line["seconds"] >= 0 and len(line["response_sha256"]) == 64 for line in lines)
    assert TOKEN not in log.read_text()


def test_an_audit_log_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    config = ServerConfig(
        audit_log=tmp_path, sampler=OpenAISamplerConfig(base_url="http://127.0.0.1:9/v1", model="none")
    )
    with pytest.raises(ValueError, match="audit_log: cannot write"):
        create_app(config, sampler=RoleSampler(), token=TOKEN)


def test_stopping_ends_an_audit_that_nobody_waits_for(start: Start) -> None:
    running = start()
    running.sampler.pause_s = 60
    with pytest.raises(httpx.ReadTimeout):
        running.http.post("/v1/audit", json={"query": json.loads(LABEL), "response": RESPONSE}, timeout=0.2)
    assert "march_audits_in_flight 1.0" in running.http.get("/metrics").text
    begin = time.monotonic()
    running.stop()
    assert time.monotonic() - begin < 5


def test_stopping_lets_an_audit_end_that_is_waited_for(start: Start) -> None:
    running = start()
    running.sampler.pause_s = 0.3
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(running.audit)
        time.sleep(0.2)
        running.stop()
        assert waiting.result().json()["verdict"]["outcome"] == "SUPPORTED"

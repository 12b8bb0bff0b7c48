"""Which requests share an audit, which are given a verdict again, and which never are."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from reward.config import AuditConfig
from reward.provenance import config_digest
from reward.samplers import SamplerError, Weights
from reward.serving.cache import VerdictCache, content_key, estimated_bytes
from reward.types import AuditResult, Document, Outcome, RagQuery, Trajectory, Verdict
from tests.role_server import QUERY, RESPONSE, PolicySampler, Running, Start, start_servers  # noqa: F401

A_AUDIT = 2  # calls of the sampler: Proposer and Checker


def source(answer: httpx.Response) -> str:
    assert answer.status_code == 200
    return str(answer.headers["march-audit"])


def trajectories(answer: httpx.Response) -> int:
    return len(answer.json()["trajectories"])


def test_a_frozen_model_gives_one_verdict_for_one_content_on_both_wires(start: Start) -> None:
    running = start()
    first = running.audit(key="a", include_trajectories=True)
    running.sampler.checked = "999"  # it would say otherwise now
    again = [running.audit(key="a"), running.audit(key="b", include_trajectories=True), running.audit()]
    assert [source(answer) for answer in (first, *again)] == ["fresh", "cached", "cached", "cached"]
    assert {answer.json()["verdict"]["reward"] for answer in again} == {0.0}
    assert [trajectories(answer) for answer in (first, *again)] == [4, 0, 4, 0]
    assert running.reward().json()["rewards"] == 0.0 and running.sampler.num_calls == A_AUDIT
    assert running.metric("march_audits_cached_total") == 4


@pytest.mark.parametrize(
    "change",
    [
        {"response": RESPONSE + " "},
        {"overrides": {"voters": 5}},
        {"query": {**QUERY.model_dump(), "id": "q2"}},
        {
            "query": {
                **QUERY.model_dump(),
                "documents": [{"id": "d", "text": "It raised 466 euros. Then rain."}],
            }
        },
    ],
)
def test_other_content_or_settings_are_another_audit(start: Start, change: dict[str, Any]) -> None:
    running = start()
    running.audit()
    body = {"query": QUERY.model_dump(), "response": RESPONSE} | change
    assert source(running.http.post("/v1/audit", json=body)) == "fresh"
    assert running.sampler.num_calls == 2 * A_AUDIT


def test_in_training_only_a_retry_gets_the_verdict_again(start: Start) -> None:
    running = start(sampler=PolicySampler())
    first = running.audit(key="a", include_trajectories=True)
    retry = running.audit(key="a", include_trajectories=True)
    assert (source(first), source(retry)) == ("fresh", "cached")
    assert first.content == retry.content and trajectories(retry) == 4
    another = running.audit(key="b", include_trajectories=True)  # another sample of the same words
    assert source(another) == "fresh" and trajectories(another) == 4
    assert running.sampler.num_calls == 2 * A_AUDIT


def test_on_openrlhfs_wire_the_same_content_is_a_retry(start: Start) -> None:
    running = start(sampler=PolicySampler())
    first = running.reward()
    running.sampler.checked = "999"
    again = running.reward()
    assert first.json() == again.json() and source(again) == "cached"
    assert trajectories(running.audit(include_trajectories=True)) == 0  # another's are not trained on twice


@pytest.mark.parametrize("change", [{"version": 10}, {"version": 8}, {"run": "run-2"}])
def test_no_verdict_outlives_the_weights_that_gave_it(start: Start, change: dict[str, Any]) -> None:
    policy = PolicySampler()
    running = start(sampler=policy)
    running.audit(key="a")
    before = (policy.run, policy.version)
    for name, value in change.items():
        setattr(policy, name, value)
    assert source(running.audit(key="a")) == "fresh"
    policy.run, policy.version = before
    assert source(running.audit(key="a")) == "fresh"  # not even when they come back


def test_an_audit_during_a_weight_sync_is_not_kept(start: Start) -> None:
    policy = PolicySampler()
    policy.pause_s = 0.3
    running = start(sampler=policy)
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(running.audit, key="a")
        time.sleep(0.1)
        policy.version = 10
        running.audit(RESPONSE + " ", key="b")
        assert under_way.result().json()["verdict"]["weights_version"] == 9
    policy.version = 9
    assert source(running.audit(key="a")) == "fresh"


def test_a_registry_that_fails_leaves_audits_unshared_and_not_unanswered(start: Start) -> None:
    policy = PolicySampler()
    policy.registry_fails = True
    running = start(sampler=policy)
    assert [source(running.audit(key="a")) for _ in range(2)] == ["fresh", "fresh"]


@pytest.mark.parametrize("trained", [False, True])
def test_unscored_is_never_given_again(start: Start, trained: bool) -> None:
    running = start(sampler=PolicySampler() if trained else None)
    running.sampler.failures = [SamplerError("prompt_too_long", "too long")]
    assert running.audit(key="a").json()["verdict"]["outcome"] == "UNSCORED"
    again = running.audit(key="a")
    assert source(again) == "fresh" and again.json()["verdict"]["outcome"] == "SUPPORTED"


def test_identical_requests_at_once_share_one_audit(start: Start) -> None:
    running = start(cache_bytes=0)
    running.sampler.pause_s = 0.3
    with ThreadPoolExecutor(8) as pool:
        audits = [pool.submit(running.audit) for _ in range(4)]
        rewards = [pool.submit(running.reward) for _ in range(3)]
        other = pool.submit(running.audit, RESPONSE + " ")
        assert {future.result().json()["verdict"]["reward"] for future in audits} == {0.0}
        assert {future.result().json()["rewards"] for future in rewards} == {0.0}
        assert source(other.result()) == "fresh"
    sources = sorted(source(future.result()) for future in audits + rewards)
    assert sources == ["fresh"] + ["joined"] * 6
    assert running.sampler.num_calls == 2 * A_AUDIT and running.metric("march_audits_joined_total") == 6
    running.audit()
    assert running.sampler.num_calls == 3 * A_AUDIT  # nothing was kept


def test_in_training_of_those_who_share_an_audit_one_gets_its_trajectories(start: Start) -> None:
    running = start(sampler=PolicySampler())
    running.sampler.pause_s = 0.3
    with ThreadPoolExecutor(3) as pool:
        asked = {
            key: pool.submit(running.audit, key=key, include_trajectories=True) for key in ("a", "b", "c")
        }
        answers = {key: future.result() for key, future in asked.items()}
    assert sorted(trajectories(answer) for answer in answers.values()) == [0, 0, 4]
    assert len({answer.json()["verdict"]["id"] for answer in answers.values()}) == 1
    for key, answer in answers.items():  # and a retry of each gets what it got, or would have got
        assert running.audit(key=key, include_trajectories=True).content == answer.content
        assert trajectories(answer) == (4 if source(answer) == "fresh" else 0)
    assert running.sampler.num_calls == A_AUDIT


def verdict(outcome: Outcome = Outcome.SUPPORTED, version: int | None = None) -> AuditResult:
    reward = None if outcome is Outcome.UNSCORED else 0.0
    return AuditResult(verdict=Verdict(id="q", outcome=outcome, reward=reward, weights_version=version))


def test_the_cache_is_bounded_and_the_longest_unused_goes_first() -> None:
    size = estimated_bytes(verdict())
    cache = VerdictCache(3 * size)
    for key in (b"a", b"b", b"c"):
        cache.keep(key, None, verdict(), weights=None)
    assert cache.get(b"a", None) is not None
    cache.keep(b"d", None, verdict(), weights=None)
    assert [cache.get(key, None) is not None for key in (b"a", b"b", b"c", b"d")] == [True, False, True, True]
    assert len(cache) == 3 and cache.num_bytes == 3 * size
    tokens = Trajectory(
        role="checker", prompt_token_ids=(1,) * 10**4, response_token_ids=(2,), finish_reason="stop"
    )
    cache.keep(b"e", None, verdict().model_copy(update={"trajectories": (tokens,)}), weights=None)
    assert cache.get(b"e", None) is None and cache.num_bytes <= 3 * size
    cache.keep(b"a", None, verdict(), weights=None)
    cache.keep(b"a", None, verdict(), weights=None)
    assert cache.num_bytes == len(cache) * size


@pytest.mark.parametrize(
    ("result", "weights", "is_kept"),
    [
        (verdict(version=3), Weights("r", 3), True),
        (verdict(), Weights("r", 3), True),  # no number, so no model was asked
        (verdict(version=4), Weights("r", 3), False),
        (verdict(version=3), Weights("other", 3), False),
        (verdict(Outcome.UNSCORED), Weights("r", 3), False),
        (verdict(version=3), None, False),
    ],
)
def test_the_cache_keeps_only_what_the_weights_of_now_gave(
    result: AuditResult, weights: Weights | None, is_kept: bool
) -> None:
    cache = VerdictCache(10**6)
    cache.seen(Weights("r", 3))
    cache.keep(b"k", "a", result, weights=weights)
    assert (cache.get(b"k", "a") is not None) == is_kept
    assert cache.get(b"k", None) is None and cache.get(b"k", "b") is None


def test_no_two_contents_have_one_key() -> None:
    settings = config_digest(AuditConfig(kinds=("number",)))

    def key(query: str, response: str, *texts: str, weights: Weights | None = None) -> bytes:
        documents = tuple(Document(id=str(i), text=text) for i, text in enumerate(texts))
        asked = RagQuery(id="q", query=query, documents=documents)
        return content_key(asked, response, settings=settings, weights=weights)

    keys = [
        key("ab", "c", "d"),
        key("a", "bc", "d"),
        key("ab", "cd", ""),
        key("ab", "c", "d", ""),
        key("ab", "c\ud800", "d"),
        key("ab", "c", "d", weights=Weights("r", 1)),
        key("ab", "c", "d", weights=Weights("r", 2)),
        key("ab", "c", "d", weights=Weights("s", 1)),
    ]
    assert len(set(keys)) == len(keys) and key("ab", "c", "d") == keys[0]

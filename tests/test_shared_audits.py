"""Which requests share an audit, who gets its trajectories, and which verdicts are given again."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from reward.config import AuditConfig
from reward.samplers import SamplerError, Weights
from reward.serving.service import _Asked
from reward.types import Document, RagQuery
from tests.role_server import RESPONSE, PolicySampler, Running, Start, start_servers  # noqa: F401
from tests.test_backpressure import eventually, send_raw

A_AUDIT = 2  # calls of the sampler: Proposer and Checker


def trajectories(answer: httpx.Response) -> int:
    assert answer.status_code == 200
    return len(answer.json()["trajectories"])


def at_once(running: Running, num: int) -> list[httpx.Response]:
    with ThreadPoolExecutor(num) as pool:
        asked = [pool.submit(running.audit, include_trajectories=True) for _ in range(num)]
        return [one.result() for one in asked]


def test_identical_requests_at_once_share_one_audit_on_both_wires(start: Start) -> None:
    running = start(max_kept=0)
    running.sampler.pause_s = 0.3
    with ThreadPoolExecutor(8) as pool:
        audits = [pool.submit(running.audit) for _ in range(4)]
        rewards = [pool.submit(running.reward) for _ in range(3)]
        pool.submit(running.audit, RESPONSE + " ")
        assert {future.result().json()["verdict"]["reward"] for future in audits} == {0.0}
        assert {future.result().json()["rewards"] for future in rewards} == {0.0}
    assert running.sampler.num_calls == 2 * A_AUDIT and running.metric("march_audits_joined_total") == 6
    running.audit()
    assert running.sampler.num_calls == 3 * A_AUDIT  # nothing was kept


def test_the_latest_verdicts_of_a_frozen_model_are_given_again(start: Start) -> None:
    running = start(max_kept=2)
    first = running.audit()
    running.sampler.checked = "999"  # it would say otherwise now
    assert running.audit().content == first.content and running.reward().json()["rewards"] == 0.0
    assert running.sampler.num_calls == A_AUDIT and running.metric("march_audits_cached_total") == 2
    assert running.audit(overrides={"voters": 5}).json()["verdict"]["reward"] == -1.0
    assert trajectories(running.audit(RESPONSE + " ", include_trajectories=True)) == 4
    assert running.audit().json()["verdict"]["reward"] == -1.0  # two others were asked for since


@pytest.mark.parametrize(("sampler", "given"), [(None, [4, 4, 4]), (PolicySampler, [0, 0, 4])])
def test_in_training_of_those_who_share_an_audit_one_gets_its_trajectories(
    start: Start, sampler: type[PolicySampler] | None, given: list[int]
) -> None:
    running = start(sampler=sampler and sampler())
    running.sampler.pause_s = 0.3
    answers = at_once(running, 3)
    assert sorted(map(trajectories, answers)) == given
    assert len({answer.json()["verdict"]["id"] for answer in answers}) == 1
    assert running.sampler.num_calls == A_AUDIT
    assert trajectories(running.audit(include_trajectories=True)) == 4  # another sample of the same words


def test_a_request_that_goes_takes_no_trajectories_along(start: Start) -> None:
    running = start(sampler=PolicySampler())
    running.sampler.pause_s = 0.3
    with ThreadPoolExecutor(2) as pool:
        first = send_raw(running)
        eventually(running, "march_audits_in_flight", 1)
        reward = pool.submit(running.reward)
        staying = pool.submit(running.audit, include_trajectories=True)
        eventually(running, "march_audits_joined_total", 2)
        first.close()
        assert trajectories(staying.result()) == 4 and reward.result().json()["rewards"] == 0.0
    assert running.sampler.num_calls == A_AUDIT


@pytest.mark.parametrize("change", [{"version": 10}, {"run": "run-2"}])
def test_requests_under_other_weights_do_not_share(start: Start, change: dict[str, object]) -> None:
    policy = PolicySampler()
    policy.pause_s = 0.4
    running = start(sampler=policy)
    with ThreadPoolExecutor(1) as pool:
        before = pool.submit(running.audit)
        time.sleep(0.1)
        vars(policy).update(change)
        after = running.audit()
    assert before.result().json()["verdict"]["weights_version"] == 9
    assert after.status_code == 200 and policy.num_calls == 2 * A_AUDIT


def test_a_registry_that_fails_leaves_no_audit_unanswered(start: Start) -> None:
    policy = PolicySampler()
    policy.registry_fails = True
    running = start(sampler=policy)
    assert [running.audit().status_code for _ in range(2)] == [200, 200]


def test_unscored_is_not_given_again(start: Start) -> None:
    running = start()
    running.sampler.failures = [SamplerError("prompt_too_long", "too long")]
    assert running.audit().json()["verdict"]["outcome"] == "UNSCORED"
    assert running.audit().json()["verdict"]["outcome"] == "SUPPORTED"


def test_no_two_contents_have_one_key() -> None:
    def key(
        query: str,
        response: str,
        *texts: str,
        weights: Weights | None = None,
        voters: int = 3,
        unanswerable: bool = False,
    ) -> bytes:
        documents = tuple(Document(id=str(i), text=text) for i, text in enumerate(texts))
        asked = RagQuery(id="q", query=query, documents=documents, unanswerable=unanswerable)
        return _Asked(asked, response, AuditConfig(voters=voters), weights, with_turns=False, ends=0.0).key

    keys = [
        key("ab", "c", "d"),
        key("ab", "c", "d", unanswerable=True),
        key("a", "bc", "d"),
        key("ab", "cd", ""),
        key("ab", "c", "d", ""),
        key("ab", "c\ud800", "d"),
        key("ab", "c", "d", voters=5),
        key("ab", "c", "d", weights=Weights("r", 1)),
        key("ab", "c", "d", weights=Weights("r", 2)),
        key("ab", "c", "d", weights=Weights("s", 1)),
    ]
    assert len(set(keys)) == len(keys) and key("ab", "c", "d") == keys[0]

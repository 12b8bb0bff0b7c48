"""What the server tells of itself: metrics, readiness, version."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from reward.config import AuditConfig
from reward.provenance import config_digest
from reward.samplers import SamplerError
from tests.role_server import RESPONSE, PolicySampler, Start, start_servers  # noqa: F401


def test_metrics_count_outcomes_reasons_claims_and_votes(start: Start) -> None:
    running, other = start(max_kept=0), start()
    running.audit()
    running.sampler.failures = [SamplerError("prompt_too_long", "too long")]
    running.audit()
    text = running.http.get("/metrics").text
    assert 'march_audits_total{outcome="SUPPORTED",reason="supported"} 1.0' in text
    assert 'march_audits_total{outcome="UNSCORED",reason="prompt_too_long"} 1.0' in text
    assert "march_audit_seconds_count 2.0" in text and "march_audit_wait_seconds_count 2.0" in text
    assert "march_audits_in_flight 0.0" in text and "march_audits_waiting 0.0" in text
    assert 'march_claims_total{state="supported"} 1.0' in text
    assert 'march_votes_total{state="valid"} 3.0' in text and "march_votes_agreeing_total 3.0" in text
    assert 'march_votes_total{state="unreadable"} 0.0' in text
    assert "march_mentions_total 2.0" in text
    assert "march_mentions_uncovered_total 0.0" in text
    assert 'outcome="SUPPORTED"' not in other.http.get("/metrics").text  # a registry of its own


def test_metrics_count_stages_tokens_and_failures_of_the_sampler(start: Start) -> None:
    running = start()
    running.sampler.failures = [SamplerError("engine", "asleep"), SamplerError("a word of its own", "odd")]
    running.audit()
    running.audit(RESPONSE + " ")
    text = running.http.get("/metrics").text
    assert 'march_sampler_failures_total{reason="engine"} 1.0' in text
    assert 'march_sampler_failures_total{reason="other"} 1.0' in text
    assert 'march_audits_total{outcome="UNSCORED",reason="other"} 1.0' in text
    assert "a word" not in text and "march_audits_retried_total 1.0" in text
    assert 'march_stage_seconds_count{stage="propose"} 3.0' in text
    assert 'march_stage_seconds_count{stage="check"} 1.0' in text
    for stage, kind, tokens in (
        ("propose", "prompt", 3),
        ("propose", "completion", 2),
        ("check", "prompt", 3),
        ("check", "completion", 2),  # one sample stands for all three voters
    ):
        assert f'march_tokens_total{{kind="{kind}",stage="{stage}"}} {tokens}.0' in text


def test_the_prefix_cache_is_counted_by_role_and_unknown_is_not_zero(start: Start) -> None:
    running = start()
    running.audit()
    assert "march_prompt_tokens_total{" not in running.http.get("/metrics").text
    running.sampler.num_cached = 2
    running.audit(RESPONSE + " ")
    for role in ("proposer", "checker"):
        assert running.metric(f'march_prompt_tokens_total{{role="{role}"}}') == 3
        assert running.metric(f'march_cached_prompt_tokens_total{{role="{role}"}}') == 2


def test_the_weights_of_a_training_are_shown_and_of_a_frozen_model_none_are(start: Start) -> None:
    frozen, trained = start(), start(sampler=PolicySampler())
    for running in (frozen, trained):
        running.audit()
    assert math.isnan(frozen.metric("march_weights_version"))
    assert trained.metric("march_weights_version") == 9


def test_unreadable_votes_are_counted(start: Start) -> None:
    running = start()
    running.sampler.checked = "?"
    running.audit()
    assert running.metric('march_votes_total{state="unreadable"}') == 3


def test_version_names_what_answers(start: Start) -> None:
    running = start()
    told = running.http.get("/version").json()
    provenance = running.audit().json()["verdict"]["provenance"]
    assert {name: told[name] for name in ("prompt_digest", "config_digest", "model", "version")} == {
        name: provenance[name] for name in ("prompt_digest", "config_digest", "model", "version")
    }
    assert told["sampler"] == "openai" and told["prompts"] == "compact"
    assert told["config_digest"] == config_digest(AuditConfig(kinds=("number",), prompts="compact"))


def test_health_is_open_and_readiness_tells_no_details(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward.serving.routes._CACHE_S", 0)
    running = start()
    with httpx.Client(base_url=running.url, trust_env=False) as stranger:
        assert stranger.get("/healthz").status_code == 200
        assert stranger.get("/readyz").status_code == 200
        running.sampler.is_ready = False
        answer = stranger.get("/readyz")
        assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
        assert answer.json()["reason"] == "engine" and "secret" not in answer.text


def test_readiness_is_asked_of_the_sampler_once_for_all_who_ask(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reward.serving.routes._CACHE_S", 0.3)
    running = start()
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: running.http.get("/readyz").status_code, range(40)))
    assert told == [200] * 40 and running.sampler.num_looks == 1
    running.sampler.is_ready = False
    assert running.http.get("/readyz").status_code == 200
    time.sleep(0.35)
    assert [running.http.get("/readyz").status_code for _ in range(3)] == [503] * 3
    assert running.sampler.num_looks == 2


def test_tokens_are_counted_for_a_sampler_that_tells_only_their_use(start: Start) -> None:
    running = start()
    running.sampler.tells_ids = False
    running.audit()
    for stage, kind, tokens in (
        ("propose", "prompt", 7),
        ("propose", "completion", 2),
        ("check", "prompt", 7),
        ("check", "completion", 6),  # of all three voters
    ):
        assert running.metric(f'march_tokens_total{{kind="{kind}",stage="{stage}"}}') == tokens


def test_voters_who_repeat_each_other_word_for_word_are_noticed(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    running = start(max_kept=0)
    for i in range(21):
        running.audit(RESPONSE + " " * i)
    assert running.metric("march_voters_asked_total") == 21
    assert running.metric("march_voters_repeating_total") == 21
    assert [r.message[:46] for r in caplog.records if "word for word" in r.message] == [
        "the voters of 20 audits in a row repeat each o"
    ]
    running.sampler.differs = True
    running.audit()
    assert running.metric("march_voters_repeating_total") == 21


def test_at_temperature_0_voters_may_repeat_each_other(start: Start) -> None:
    running = start(audit={"prompts": "compact", "checker": {"temperature": 0}})
    running.audit()
    assert running.metric("march_voters_asked_total") == 0

"""Traces: one answer is one trace from its rollout to its vote, and no trace costs an answer."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from pipeline import cpu
from reward import telemetry
from reward.config import OpenAISamplerConfig
from reward.samplers import SamplerError
from reward.samplers.openai import OpenAISampler
from reward.serving.client import RewardClient, RewardServerError
from tests.collector import Collector, attributes
from tests.openai_model import Model
from tests.role_server import Start, start_servers  # noqa: F401
from tests.rollout_runs import agent_settings
from tests.serving import KEY, QUERY, RESPONSE, TOKEN, serve_picnic

cpu.install()

from pipeline.training.rollout import AgentExecutor  # noqa: E402

ERROR, SERVER, CLIENT = Status.STATUS_CODE_ERROR, Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector, and tracing that is on; `telemetry.stop()` sends what there is."""
    collector = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    telemetry.start("test")
    yield collector
    telemetry.stop()
    collector.close()


class Engine:
    weights_version = 0

    async def generate(self, prompt_ids: list[int], params: Any) -> Any:
        output = SimpleNamespace(token_ids=[4, 5], finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[output])


class Tokenizer:
    def __call__(self, text: str, add_special_tokens: bool) -> dict[str, list[int]]:
        return {"input_ids": [1, 2, 3]}

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        return RESPONSE


def roll_out(monkeypatch: pytest.MonkeyPatch, url: str) -> Any:
    """One sample by the trainer's agent; its record."""
    for name, value in agent_settings(url).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MARCH_REWARD_TOKEN", TOKEN)
    monkeypatch.setenv("MARCH_SIGNING_KEY", KEY)
    params = SimpleNamespace(max_tokens=8)
    arguments = ("the prompt", QUERY.model_dump_json(), params, 64, Tokenizer(), Engine())
    return asyncio.run(AgentExecutor().execute(*arguments))["rollout"]


def test_one_answer_is_one_trace_from_its_rollout_to_its_vote(
    monkeypatch: pytest.MonkeyPatch, collector: Collector
) -> None:
    model, seen = Model(), []
    model.fault = lambda _, handler: seen.append(handler.headers["traceparent"]) is not None
    sampler = OpenAISampler(OpenAISamplerConfig(base_url=model.url, model="tiny"))
    server = serve_picnic(sampler=sampler, signing_key=KEY)  # type: ignore[arg-type]
    try:
        record = roll_out(monkeypatch, server.url)
    finally:
        server.close()
        model.close()
    telemetry.stop()
    assert record.verdict.reward == 0.0
    found = {span.name: (collector.parent_of(span), span.kind) for span in collector.spans}
    inner = Span.SPAN_KIND_INTERNAL
    assert found == {
        "march.rollout": ("", inner),
        "solver.generate": ("march.rollout", CLIENT),
        "audit": ("march.rollout", inner),
        "POST": ("audit", CLIENT),
        "POST /v1/audit": ("POST", SERVER),
        "march.audit": ("POST /v1/audit", inner),
        "queue": ("march.audit", inner),
        "proposer": ("march.audit", inner),
        "checker": ("march.audit", inner),
        "chat tiny": ("checker", CLIENT),  # the later one of two
        "engine.request": ("chat tiny", CLIENT),
        "vote": ("march.audit", inner),
    }
    (trace_id,) = {span.trace_id.hex() for span in collector.spans}
    assert [line.split("-")[1] for line in seen] == [trace_id, trace_id]  # the model's server goes on with it
    assert all(span.status.code != ERROR for span in collector.spans)
    audit = attributes(collector.named("march.audit")[0])
    assert audit["march.outcome"] == "SUPPORTED" and audit["march.reason"] == "supported"
    assert audit["march.num_claims"] == 1
    proposing, checking = map(attributes, collector.named("chat tiny"))
    assert (proposing["march.role"], checking["march.role"]) == ("proposer", "checker")
    assert checking["gen_ai.request.choice.count"] == 3 and checking["march.attempt"] == 0
    generated = attributes(collector.named("solver.generate")[0])
    assert generated["gen_ai.usage.input_tokens"] == 3 and generated["gen_ai.usage.output_tokens"] == 2
    assert collector.services == {"test"}


def test_a_span_says_tokens_and_no_text(start: Start, collector: Collector) -> None:
    running = start()
    assert running.audit().status_code == 200
    running.close()
    telemetry.stop()
    checking = attributes(collector.named("chat role-player")[1])
    assert checking["gen_ai.usage.input_tokens"] == 3 and checking["gen_ai.usage.output_tokens"] == 2
    for text in (RESPONSE, "How many euros", "picnic", running.http.headers["Authorization"][7:]):
        assert text.encode() not in collector.bodies


def test_a_joined_audit_is_linked_to_the_one_it_joined(start: Start, collector: Collector) -> None:
    running = start()
    running.sampler.pause_s = 0.2

    async def both() -> None:
        async with RewardClient(running.url, "a-token/of:32 characters, awkward") as client:
            await asyncio.gather(*(client.audit(QUERY, RESPONSE) for _ in range(2)))

    asyncio.run(both())
    running.close()
    telemetry.stop()
    fresh, joined = sorted(collector.named("march.audit"), key=lambda span: len(span.links))
    assert [link.span_id for link in joined.links] == [fresh.span_id] and not fresh.links
    assert joined.trace_id != fresh.trace_id


def test_failures_are_errors_named_by_one_word(start: Start, collector: Collector) -> None:
    running = start()
    running.sampler.failures = [SamplerError("unheard_of", "secret words")]
    assert running.http.get("/none").status_code == 404
    assert running.reward().status_code == 503
    running.close()
    telemetry.stop()
    errors = {span.name: span.status.message for span in collector.spans if span.status.code == ERROR}
    assert errors == {
        "POST /get_reward": "503",
        "march.audit": "unheard_of",
        "proposer": "unheard_of",
        "chat role-player": "unheard_of",
    }
    assert b"secret words" not in collector.bodies


@pytest.mark.parametrize(
    "traceparent",
    [
        "",
        "nonsense",
        "00-0-0-01",
        f"00-{'0' * 32}-{'0' * 16}-01",
        f"ff-{'a' * 32}-{'b' * 16}-01",
        "0" * 9000,
    ],
)
def test_a_malformed_traceparent_begins_a_trace_of_its_own(collector: Collector, traceparent: str) -> None:
    server = serve_picnic()
    server.http.headers.update({"traceparent": traceparent})
    assert server.audit().status_code == 200
    server.close()
    telemetry.stop()
    (span,) = collector.named("POST /v1/audit")
    assert not span.parent_span_id and not span.links


def test_strangers_write_no_trace(start: Start, collector: Collector) -> None:
    running = start()
    running.http.headers["Authorization"] = "Bearer wrong"
    assert running.audit().status_code == 401 and running.http.get("/healthz").status_code == 200
    running.close()
    telemetry.stop()
    assert not collector.spans


def test_the_audit_log_knows_the_trace(tmp_path: Path, collector: Collector) -> None:
    server = serve_picnic(audit_log=tmp_path / "audits.jsonl")
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    server.http.headers["traceparent"] = parent
    server.audit()
    server.close()
    line = json.loads((tmp_path / "audits.jsonl").read_text())
    assert line["trace_id"] == "a" * 32
    telemetry.stop()
    assert collector.named("POST /v1/audit")[0].parent_span_id.hex() == "b" * 16


def test_a_dead_collector_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "8")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
    telemetry.start("test")
    server = serve_picnic()
    try:
        assert {server.audit().status_code for _ in range(20)} == {200}
    finally:
        server.close()
        begin = time.monotonic()
        telemetry.stop()
    assert time.monotonic() - begin < 5


def test_nothing_is_traced_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry.start("test")
    assert not telemetry.is_on() and telemetry.current() is None and telemetry.inject({}) == {}


@pytest.mark.parametrize(
    ("environment", "is_asked"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, False),
    ],
)
def test_the_environment_asks_for_traces(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], is_asked: bool
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert telemetry.is_asked_for() is is_asked


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "set http/protobuf"),
        ({"WITHOUT": "1"}, "pip install '.[otel]'"),
    ],
)
def test_what_cannot_be_had_is_one_line_and_an_end(environment: dict[str, str], words: str) -> None:
    without = "import os, sys\nif 'WITHOUT' in os.environ: sys.modules['opentelemetry.sdk'] = None\n"
    serve = "from reward.__main__ import *\nserve(ServerConfig.model_validate_json(sys.argv[1]))"
    config = {"sampler": {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "model": "none"}}
    done = subprocess.run(
        [sys.executable, "-c", without + serve, json.dumps(config)],
        cwd=Path(__file__).parents[1],
        env={
            **os.environ,
            "MARCH_REWARD_TOKEN": TOKEN,
            telemetry.ENDPOINTS[0]: "http://c:4318",
            **environment,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and words in done.stderr and done.stderr.count("\n") == 1


def test_the_client_marks_its_failed_attempts(collector: Collector) -> None:
    async def ask() -> None:
        async with RewardClient("http://127.0.0.1:9", TOKEN, attempts=1) as client:
            await client.audit(QUERY, RESPONSE)

    with pytest.raises(RewardServerError):
        asyncio.run(ask())
    telemetry.stop()
    (span,) = collector.named("POST")
    assert span.status.code == ERROR and attributes(span)["error.type"] == "ConnectError"

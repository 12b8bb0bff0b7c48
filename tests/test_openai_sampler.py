"""OpenAISampler against a real HTTP server that plays an OpenAI-compatible one, well and badly."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse

from reward.config import OpenAISamplerConfig, SamplingSettings
from reward.samplers import Message, SamplerError
from reward.samplers.openai import OpenAISampler
from reward.types import SampleGroup, TokenUse

MESSAGES = [Message(role="user", content="How many?")]
SETTINGS = SamplingSettings(temperature=0.7, top_p=0.9, max_tokens=32)
MODEL = "tiny"


class FakeServer:
    """Answers as `behaviour` says and keeps what it was asked."""

    def __init__(self) -> None:
        self.behaviour = "good"
        self.requests: list[dict[str, Any]] = []
        self.base_url = self.authorization = self.request_id = ""
        self.usage: dict[str, Any] = {}
        self.num_led_on = 0

    async def complete(self, request: Request) -> Response:
        body = await request.json()
        self.authorization = request.headers["authorization"]
        self.request_id = request.headers["x-request-id"]
        self.requests.append(body)
        return await self._answer(body)

    async def _answer(self, body: dict[str, Any]) -> Response:
        match self.behaviour:
            case "slow":
                await asyncio.sleep(5)
            case "busy_once" if len(self.requests) == 1:
                return _refusal(503, "busy", headers={"Retry-After": "0"})
            case "broken":
                return _refusal(500, "the engine died")
            case "forbidden":
                return _refusal(401, "wrong key")
            case "too_long":
                return _refusal(400, "This model's maximum context length is 64 tokens, you asked for 99.")
            case "refuses_ids" if "return_token_ids" in body:
                return _refusal(400, "Unrecognized request argument supplied: return_token_ids")
            case "refuses_patterns" if "structured_outputs" in body:
                return _refusal(422, "extra fields not permitted: structured_outputs")
            case "refuses_schemas" if "response_format" in body:
                return _refusal(400, "'json_schema' is not supported with this model")
            case "refuses_top_k" if "top_k" in body:
                return _refusal(400, "Unrecognized request argument supplied: top_k")
            case "quotes_once" if len(self.requests) <= 2:
                return _refusal(400, 'not understood: "... what return_token_ids means to a server"')
            case "chatty":
                return _refusal(400, "e" * 480 + self.authorization + "e" * 1_000_000)
            case "elsewhere":
                return RedirectResponse(f"{self.base_url}/models")  # 307: the request is repeated there
            case "compressed":
                data = gzip.compress(json.dumps(self._completion(body)).encode())
                return Response(data, media_type="application/json", headers={"Content-Encoding": "gzip"})
            case "endless":
                return StreamingResponse(b" " * 65_536 for _ in range(1_000))
            case "html":
                return HTMLResponse("<html>a proxy's page</html>")
            case "not_a_completion":
                return JSONResponse({"hello": "world"})
        return JSONResponse(self._completion(body))

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        num = {"no_choices": 0, "ignores_n": 1}.get(self.behaviour, body["n"])
        content = None if self.behaviour == "no_content" else "466"
        finish = {"filtered": "content_filter", "cut": "length"}.get(self.behaviour, "stop")
        choices = [
            {"index": i, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
            for i in range(num)
        ]
        names = {"names_it": f"chatcmpl-{self.request_id}", "anothers": f"chatcmpl-march-{'0' * 32}"}
        name = names.get(self.behaviour, "x")
        answer = {"id": name, "object": "chat.completion", "created": 0, "model": MODEL, "choices": choices}
        answer |= {"usage": self.usage} if self.usage else {}
        if self.behaviour == "good" and body.get("return_token_ids"):
            answer["prompt_token_ids"] = [1, 2, 3]
            for choice in choices:
                choice["token_ids"] = [10 + int(str(choice["index"])), 4]
        return answer


def _refusal(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": "x", "code": status}}, status, headers=headers)


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    server = FakeServer()
    app = FastAPI()
    app.post("/v1/chat/completions")(server.complete)

    @app.post("/v1/models")
    async def led_on() -> dict[str, Any]:
        server.num_led_on += 1
        return {"secret": "of another server"}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "x"}]}

    listener = socket.create_server(("127.0.0.1", 0))
    server.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    running = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    yield server
    running.should_exit = True
    thread.join(10)


def make_sampler(fake: FakeServer, **overrides: Any) -> OpenAISampler:
    values = {"base_url": fake.base_url, "model": MODEL, "timeout_s": 5, "max_retries": 0} | overrides
    return OpenAISampler(OpenAISamplerConfig(**values))


def sample(
    fake: FakeServer,
    *,
    n: int = 3,
    settings: SamplingSettings = SETTINGS,
    pattern: str | None = None,
    json_schema: dict[str, Any] | None = None,
    **overrides: Any,
) -> SampleGroup:
    async def run() -> SampleGroup:
        sampler = make_sampler(fake, **overrides)
        try:
            return await sampler.sample(
                MESSAGES, n=n, settings=settings, pattern=pattern, json_schema=json_schema
            )
        finally:
            await sampler.close()

    return asyncio.run(run())


def test_one_request_brings_n_samples_with_their_token_ids(fake: FakeServer) -> None:
    group = sample(fake, n=3)
    assert [s.token_ids for s in group.samples] == [(10, 4), (11, 4), (12, 4)]
    assert {s.text for s in group.samples} == {"466"}
    assert {s.finish_reason for s in group.samples} == {"stop"}
    assert group.prompt_token_ids == (1, 2, 3)
    (request,) = fake.requests
    assert request["n"] == 3 and request["return_token_ids"] is True
    assert (request["temperature"], request["top_p"], request["max_tokens"]) == (0.7, 0.9, 32)
    assert request["messages"] == MESSAGES
    assert not {"seed", "structured_outputs"} & set(request), "sent without being asked for"


def test_seed_and_pattern_are_passed_on(fake: FakeServer) -> None:
    sample(fake, settings=SamplingSettings(seed=7), pattern="[0-9]+")
    (request,) = fake.requests
    assert request["seed"] == 7 and request["structured_outputs"] == {"regex": "[0-9]+"}


def test_a_server_without_patterns_is_warned_about_once(
    fake: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    fake.behaviour = "refuses_patterns"

    async def run() -> None:
        sampler = make_sampler(fake)
        for _ in range(2):
            await sampler.sample(MESSAGES, n=1, settings=SETTINGS, pattern="[0-9]+")
        await sampler.close()

    asyncio.run(run())
    assert ["structured_outputs" in request for request in fake.requests] == [True, False, False]
    assert [request["return_token_ids"] for request in fake.requests] == [True] * 3
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "not bound to a pattern" in warning.message


def test_a_schema_and_top_k_are_passed_on_and_do_without(fake: FakeServer) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"verdict": {"enum": ["yes", "no"]}}}
    settings = SamplingSettings(top_k=20)
    for behaviour in ("good", "refuses_schemas", "refuses_top_k"):
        fake.behaviour = behaviour
        assert len(sample(fake, settings=settings, json_schema=schema).samples) == 3
    format_ = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    sent = [(request.get("response_format"), request.get("top_k")) for request in fake.requests]
    assert sent == [(format_, 20), (format_, 20), (None, 20), (format_, 20), (format_, None)]


def test_the_cost_of_a_request_is_read_where_it_is_given(fake: FakeServer) -> None:
    assert sample(fake).use is None
    fake.usage = {"prompt_tokens": 30, "completion_tokens": 6, "total_tokens": 36}
    assert sample(fake).use == TokenUse(num_prompt=30, num_completion=6)


def test_the_answer_to_another_request_is_not_believed(fake: FakeServer) -> None:
    fake.behaviour = "names_it"  # as vLLM does
    assert len(sample(fake, n=3).samples) == 3
    fake.behaviour = "anothers"
    with pytest.raises(SamplerError, match="another request") as caught:
        sample(fake, n=3)
    assert caught.value.reason == "bad_response"


@pytest.mark.parametrize(("behaviour", "num_requests"), [("ignores_ids", 1), ("refuses_ids", 2)])
def test_a_server_without_token_ids_still_serves(fake: FakeServer, behaviour: str, num_requests: int) -> None:
    fake.behaviour = behaviour
    group = sample(fake, n=2)
    assert len(group.samples) == 2
    assert group.prompt_token_ids is None and group.samples[0].token_ids is None
    assert len(fake.requests) == num_requests


def test_a_refused_key_is_not_sent_again(fake: FakeServer) -> None:
    fake.behaviour = "refuses_ids"

    async def run() -> None:
        sampler = make_sampler(fake)
        for _ in range(2):
            await sampler.sample(MESSAGES, n=1, settings=SETTINGS)
        await sampler.close()

    asyncio.run(run())
    assert ["return_token_ids" in request for request in fake.requests] == [True, False, False]


def test_an_error_that_only_quotes_a_keys_name_takes_no_key_away(fake: FakeServer) -> None:
    fake.behaviour = "quotes_once"

    async def run() -> None:
        sampler = make_sampler(fake)
        with pytest.raises(SamplerError, match="not understood"):
            await sampler.sample(MESSAGES, n=1, settings=SETTINGS)
        await sampler.sample(MESSAGES, n=1, settings=SETTINGS)
        await sampler.close()

    asyncio.run(run())
    assert ["return_token_ids" in request for request in fake.requests] == [True, False, True]


def test_greedy_samples_are_asked_for_once_and_repeated(fake: FakeServer) -> None:
    group = sample(fake, n=3, settings=SamplingSettings(temperature=0))
    assert fake.requests[0]["n"] == 1
    assert [s.token_ids for s in group.samples] == [(10, 4)] * 3


def test_a_cut_completion_says_so(fake: FakeServer) -> None:
    fake.behaviour = "cut"
    assert sample(fake).samples[0].finish_reason == "length"


def test_a_busy_server_is_asked_again_by_the_package(fake: FakeServer) -> None:
    fake.behaviour = "busy_once"
    assert len(sample(fake, max_retries=2).samples) == 3
    assert len(fake.requests) == 2


@pytest.mark.parametrize(
    ("behaviour", "reason", "words"),
    [
        ("slow", "timeout", "0.3 s"),
        ("broken", "engine", "the engine died"),
        ("forbidden", "bad_response", "401"),
        ("too_long", "prompt_too_long", "maximum context length"),
        ("no_choices", "bad_response", "0 of 3"),
        ("ignores_n", "bad_response", "1 of 3"),
        ("no_content", "bad_response", "no content"),
        ("filtered", "bad_response", "content_filter"),
        ("html", "bad_response", "not a chat completion"),
        ("elsewhere", "bad_response", "answered 307"),
        ("compressed", "bad_response", "came as 'gzip'"),
        ("endless", "bad_response", "over 33554432 bytes"),
        ("chatty", "bad_response", "Error code: 400 - eee"),
        ("not_a_completion", "bad_response", "0 of 3"),
    ],
)
def test_every_failure_has_its_reason(fake: FakeServer, behaviour: str, reason: str, words: str) -> None:
    fake.behaviour = behaviour
    with pytest.raises(SamplerError) as caught:
        sample(fake, timeout_s=0.3 if behaviour == "slow" else 5)
    assert caught.value.reason == reason
    assert words in caught.value.detail and len(caught.value.detail) < 700


def test_a_redirect_is_not_followed_and_no_half_of_a_key_is_quoted(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret-of-the-model-server")
    for fake.behaviour in ("elsewhere", "chatty"):
        with pytest.raises(SamplerError) as caught:
            sample(fake, api_key_env="SOME_KEY")
        assert "sk-" not in caught.value.detail
    assert not fake.num_led_on


def test_no_server_is_a_connection_failure(fake: FakeServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        base_url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(SamplerError) as caught:
        sample(fake, base_url=base_url)
    assert caught.value.reason == "connection"
    assert base_url in caught.value.detail


def test_ready_asks_for_the_model_by_name(fake: FakeServer) -> None:
    asyncio.run(make_sampler(fake).ready())
    with pytest.raises(SamplerError, match=r"'other' is not among \['tiny'\]"):
        asyncio.run(make_sampler(fake, model="other").ready())


def test_the_key_comes_from_the_environment(fake: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-test\n")  # of a file
    sample(fake, api_key_env="SOME_KEY")
    assert fake.authorization == "Bearer sk-test"


def test_a_sampler_names_its_model(fake: FakeServer) -> None:
    assert make_sampler(fake).model == MODEL


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens_details": None}, None),
        ({"prompt_tokens_details": {}}, None),
        ({"prompt_tokens_details": {"cached_tokens": 0}}, 0),  # known to be none
        ({"prompt_tokens_details": {"cached_tokens": 16}}, 16),
        ({"prompt_tokens_details": {"cached_tokens": 31}}, None),  # more than there are
        ({"prompt_tokens_details": {"cached_tokens": -1}}, None),
        ({"prompt_tokens_details": {"cached_tokens": "many"}}, None),
    ],
)
def test_what_was_cached_is_read_where_it_is_given(
    fake: FakeServer, usage: dict[str, Any], expected: int | None
) -> None:
    fake.usage = {"prompt_tokens": 30, "completion_tokens": 2, "total_tokens": 32} | usage
    assert sample(fake, n=2).use == TokenUse(num_prompt=30, num_completion=2, num_cached=expected)


def test_a_cost_without_a_prompts_length_is_none(fake: FakeServer) -> None:
    fake.usage = {"prompt_tokens": None, "prompt_tokens_details": {"cached_tokens": 16}}
    assert sample(fake, n=2).use is None

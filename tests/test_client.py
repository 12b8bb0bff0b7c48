"""RewardClient over real HTTP: against the real server, and against one that misbehaves."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from reward.config import AuditConfig, OpenAISamplerConfig
from reward.samplers import Sampler, SamplerError
from reward.serving.client import RewardClient, RewardServerError
from reward.serving.config import ServerConfig
from reward.serving.server import create_app
from reward.types import AuditResult, Document, Outcome, RagQuery

TOKEN = "a-token-of-at-least-16-characters"
QUERY = RagQuery(id="q1", query="How many?", documents=(Document(id="d", text="It raised 466 euros."),))
RESPONSE = "It raised 466 euros."
PROPOSED = "- Question: How many euros did it raise? [Answer: 466]"
CHECKED = "1. Evidence: it raised 466 euros. [Answer: 466]"

Serve = Callable[[FastAPI], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def serve_one(app: FastAPI) -> str:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        listener = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        running.append((server, thread))
        while not server.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield serve_one
    for server, thread in running:
        server.should_exit = True
        thread.join(10)


class Misbehaving:
    """Gives scripted answers, one a request, the last for ever."""

    def __init__(self, *answers: Response) -> None:
        self.answers = list(answers)
        self.num_requests = 0
        self.pause_s = 0.0
        self.app = FastAPI()
        self.app.api_route("/{path:path}", methods=["GET", "POST"])(self.answer)

    async def answer(self, request: Request) -> Response:
        self.num_requests += 1
        await asyncio.sleep(self.pause_s)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def real_app(sampler: Sampler) -> FastAPI:
    config = ServerConfig(
        audit=AuditConfig(kinds=("number",), prompts="compact"),
        sampler=OpenAISamplerConfig(base_url="http://127.0.0.1:9/v1", model="none"),
    )
    return create_app(config, sampler=sampler, token=TOKEN)


@pytest.fixture
def good_app(scripted: Callable[..., Sampler]) -> FastAPI:
    script = {"proposer": [PROPOSED], "checker": [CHECKED] * 3}
    return real_app(scripted(script, with_tokens=True, weights_version=4))


def call(
    url: str, what: Callable[[RewardClient], Coroutine[Any, Any, Any]], *, token: str = TOKEN, **options: Any
) -> Any:
    async def run() -> Any:
        async with RewardClient(url, token, **options) as client:
            return await what(client)

    return asyncio.run(run())


def ask(url: str, **options: Any) -> AuditResult:
    result = call(url, lambda client: client.audit(QUERY, RESPONSE), **options)
    assert isinstance(result, AuditResult)
    return result


def free_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def good_answer() -> Response:
    verdict = {"id": "q1", "outcome": "SUPPORTED", "reward": 0.0}
    return JSONResponse({"verdict": verdict, "trajectories": []})


def refusal(status: int, detail: str = "not now") -> Response:
    return JSONResponse({"detail": detail}, status_code=status)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reward.serving.client._FIRST_WAIT_S", 0.01)


@pytest.mark.parametrize("include_trajectories", [False, True])
def test_an_audit_of_the_real_server(serve: Serve, good_app: FastAPI, include_trajectories: bool) -> None:
    url = serve(good_app)
    result = call(url + "/", lambda c: c.audit(QUERY, RESPONSE, include_trajectories=include_trajectories))
    assert result.verdict.outcome is Outcome.SUPPORTED and result.verdict.reward == 0.0
    assert len(result.trajectories) == (4 if include_trajectories else 0)


def test_an_unscored_verdict_is_an_answer_and_not_an_error(
    serve: Serve, scripted: Callable[..., Sampler]
) -> None:
    sampler = scripted({"proposer": [SamplerError("prompt_too_long", "too long")]})
    verdict = ask(serve(real_app(sampler))).verdict
    assert (verdict.outcome, verdict.reward, verdict.reason) == (Outcome.UNSCORED, None, "prompt_too_long")


@pytest.mark.parametrize("status", [502, 503, 504])
def test_what_passes_by_itself_is_tried_again(serve: Serve, status: int) -> None:
    server = Misbehaving(refusal(status), refusal(status), good_answer())
    assert ask(serve(server.app)).verdict.outcome is Outcome.SUPPORTED
    assert server.num_requests == 3


@pytest.mark.parametrize(
    ("answer", "num_requests", "words"),
    [
        (refusal(503), 3, "answered 503: not now; give the server time"),
        (refusal(401), 1, "answered 401: not now; give the client the server's token"),
        (refusal(413), 1, "max_body_bytes"),
        (refusal(422, "query.id: Field required"), 1, "query.id: Field required"),
        (refusal(500), 1, "see the server's log"),
        (Response("<html>\nBad\ngateway</html>", status_code=502), 3, "<html> Bad gateway</html>"),
        (Response("[" * 200_000, status_code=500), 1, "answered 500: [[["),
        (Response('{"a":' * 2_000 + "1" + "}" * 2_000, status_code=500), 1, 'answered 500: {"a":{"a":'),
        (Response("<html>ok</html>"), 1, "its answer is no verdict"),
        (JSONResponse({"rewards": 0.0}), 1, "its answer is no verdict"),
        (JSONResponse({"verdict": {"id": "q1", "outcome": "UNSCORED", "reward": 0.0}}), 1, "no verdict"),
    ],
)
def test_what_does_not_pass_is_one_clear_line(
    serve: Serve, answer: Response, num_requests: int, words: str
) -> None:
    server = Misbehaving(answer)
    url = serve(server.app)
    with pytest.raises(RewardServerError) as caught:
        ask(url)
    assert f"reward server {url} " in str(caught.value) and words in str(caught.value)
    assert "\n" not in str(caught.value) and TOKEN not in str(caught.value)
    assert server.num_requests == num_requests


def test_no_server_is_one_clear_line() -> None:
    url = free_url()
    with pytest.raises(
        RewardServerError, match=f"reward server {url} cannot be reached .*; start the server"
    ):
        ask(url)


def test_an_attempt_that_ran_out_of_time_is_not_repeated(serve: Serve) -> None:
    server = Misbehaving(good_answer())
    server.pause_s = 1
    with pytest.raises(RewardServerError, match=r"did not answer in 0\.2 s"):
        ask(serve(server.app), timeout_s=0.2)
    assert server.num_requests == 1


def test_a_wrong_token_is_refused_by_the_real_server(serve: Serve, good_app: FastAPI) -> None:
    with pytest.raises(RewardServerError, match="401"):
        ask(serve(good_app), token="another-token-of-16-characters")


def test_many_audits_at_once_do_not_wait_for_connections(serve: Serve) -> None:
    server = Misbehaving(good_answer())
    server.pause_s = 1.0
    url = serve(server.app)

    async def many(client: RewardClient) -> None:
        await asyncio.gather(*(client.audit(QUERY, f"{RESPONSE} {i}") for i in range(200)))

    begin = time.monotonic()
    call(url, many, timeout_s=30)
    assert server.num_requests == 200
    assert time.monotonic() - begin < 20


def test_a_proxy_of_the_machine_does_not_come_between(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", free_url())
    monkeypatch.setenv("ALL_PROXY", free_url())
    assert ask(serve(Misbehaving(good_answer()).app)).verdict.outcome is Outcome.SUPPORTED


@pytest.mark.parametrize("address", ["http://march:SECRET@127.0.0.1:1", "http://127.0.0.1:1/?key=SECRET"])
def test_an_address_with_a_secret_in_it_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(ValueError, match=r"base_url: \['http://127\.0\.0\.1:1'\] came with a user") as caught:
        RewardClient(address, token="x" * 16)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("address", ["127.0.0.1:5003", "localhost:5003", "http://", "ftp://h", "http://h:x"])
def test_what_is_no_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(ValueError, match=r"base_url: .* is no address; write http://host:port"):
        RewardClient(address, TOKEN)


@pytest.mark.parametrize("token", ["", None, " ", f"{TOKEN}\n", "\u00fc" * 16])
def test_a_token_that_no_header_can_hold_is_refused_at_once(token: Any) -> None:
    with pytest.raises(ValueError, match="token: is empty or cannot be in a header") as caught:
        RewardClient("http://127.0.0.1:1", token)
    assert TOKEN not in str(caught.value)


def test_ready_and_wait_ready(serve: Serve) -> None:
    server = Misbehaving(JSONResponse({"status": "not ready", "reason": "engine"}, 503), good_answer())
    url = serve(server.app)
    with pytest.raises(RewardServerError, match="is not ready: engine"):
        call(url, lambda client: client.wait_ready())
    call(url, lambda client: client.wait_ready())
    with pytest.raises(RewardServerError, match="cannot be reached"):
        call(free_url(), lambda client: client.wait_ready(0.7))


def test_wait_ready_waits_for_a_server_that_is_still_starting(serve: Serve) -> None:
    not_ready = JSONResponse({"status": "not ready", "reason": "engine"}, 503)
    server = Misbehaving(not_ready, not_ready, good_answer())
    call(serve(server.app), lambda client: client.wait_ready(30))
    assert server.num_requests == 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Response(b"x" * 2000, 200), "sends an answer over 1500 bytes"),
        (Response(gzip.compress(b"x" * 10**6), 200, headers={"Content-Encoding": "gzip"}), "no verdict"),
    ],
)
def test_an_answer_that_swells_is_not_read(
    serve: Serve, answer: Response, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reward.serving.client._MAX_ANSWER_BYTES", 1500)
    with pytest.raises(RewardServerError, match=words):
        ask(serve(Misbehaving(answer).app))


def test_an_answer_that_drips_ends_with_the_time(serve: Serve) -> None:
    async def drops() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" "
            await asyncio.sleep(0.1)

    begin = time.monotonic()
    with pytest.raises(RewardServerError, match=r"did not answer in 0\.5 s"):
        ask(serve(Misbehaving(StreamingResponse(drops())).app), timeout_s=0.5)
    assert time.monotonic() - begin < 5

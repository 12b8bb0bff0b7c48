"""OpenAISampler.count_tokens: vLLM's tokenizer where there is one, else bytes as an upper bound."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from reward.config import OpenAISamplerConfig
from reward.samplers import Message, SamplerError
from reward.samplers.openai import OpenAISampler

MESSAGES = [Message(role="system", content="abc"), Message(role="user", content="466 €")]
BOUND = 3 + 16 + 7 + 16


class Tokenizer:
    """A server that gives one answer to everything and keeps the requests."""

    def __init__(self, status: int, answer: object) -> None:
        self.status, self.answer = status, answer
        self.requests: list[tuple[str, Any]] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        body = await reader.readexactly(int(head.lower().partition("content-length:")[2].split()[0]))
        self.requests.append((head.split()[1], json.loads(body)))
        text = json.dumps(self.answer)
        lines = f"HTTP/1.1 {self.status} X\r\nContent-Type: application/json\r\nContent-Length: {len(text)}"
        writer.write(f"{lines}\r\nConnection: close\r\n\r\n{text}".encode())
        await writer.drain()
        writer.close()


def counts(server: Tokenizer, *, path: str = "/v1", num_times: int = 1) -> list[int]:
    async def run() -> list[int]:
        listener = await asyncio.start_server(server.talk, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}{path}"
        sampler = OpenAISampler(OpenAISamplerConfig(base_urls=(url,), model="m", max_retries=0))
        try:
            return [await sampler.count_tokens(MESSAGES) for _ in range(num_times)]
        finally:
            await sampler.close()
            listener.close()

    return asyncio.run(run())


def test_a_server_that_has_counted_is_not_taken_for_one_that_cannot() -> None:
    class Moody(Tokenizer):
        async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.status = (200, 403)[len(self.requests)]
            await super().talk(reader, writer)

    with pytest.raises(SamplerError):
        counts(Moody(200, {"count": 11}), num_times=2)


@pytest.mark.parametrize(
    ("path", "asked"), [("/v1", "/tokenize"), ("", "/tokenize"), ("/api/v2", "/api/tokenize")]
)
def test_tokens_are_counted_by_the_servers_tokenizer(path: str, asked: str) -> None:
    server = Tokenizer(200, {"count": 11, "max_model_len": 64, "tokens": [1] * 11})
    assert counts(server, path=path) == [11]
    assert server.requests == [(asked, {"model": "m", "messages": MESSAGES})]


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (404, {"detail": "Not Found"}),
        (405, {"detail": "Method Not Allowed"}),
        (501, {"error": {"message": "no tokenizer"}}),
        (200, {"count": "many"}),
        (200, {"count": 0}),
        (200, ["a page"]),
    ],
)
def test_without_a_tokenizer_bytes_bound_the_tokens(status: int, answer: object) -> None:
    server = Tokenizer(status, answer)
    assert counts(server, num_times=3) == [BOUND] * 3
    assert len(server.requests) == 1, "it was asked again"


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_failed_count_is_a_failure_and_not_a_bound(status: int) -> None:
    with pytest.raises(SamplerError, match="the engine died") as caught:
        counts(Tokenizer(status, {"error": {"message": "the engine died"}}))
    assert caught.value.reason == "engine"

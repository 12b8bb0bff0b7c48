"""OpenAISampler over several servers: small real ones that answer, hang, close or refuse."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from reward.config import OpenAISamplerConfig, SamplingSettings
from reward.samplers import Message, SamplerError
from reward.samplers.openai import OpenAISampler

MESSAGES = [Message(role="user", content="How many?")]
SETTINGS = SamplingSettings(temperature=0.7, max_tokens=32)


class SmallServer:
    """Plays an OpenAI-compatible server over plain sockets; its completions are its name."""

    def __init__(self, name: str, behaviour: str = "answer", delay_s: float = 0.0) -> None:
        self.name, self.behaviour, self.delay_s = name, behaviour, delay_s
        self.num_requests = 0
        self.base_url = ""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
            self.num_requests += 1
            await self._answer(writer)
        writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30 if self.behaviour == "hang" else self.delay_s)
        if self.behaviour == "close":
            return
        status, headers = 200, ""
        if self.behaviour.isdecimal():
            status = int(self.behaviour)
        if self.behaviour == "later":
            status, headers = 429, "Retry-After: 60\r\n"
        message = {"role": "assistant", "content": self.name}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        good: dict[str, Any] = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
        bad = {"error": {"message": f"{self.name} refuses"}}
        body = json.dumps(good | {"choices": [choice]} if status == 200 else bad)
        lines = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{lines}{headers}Connection: close\r\n\r\n{body}".encode())
        await writer.drain()


@contextlib.asynccontextmanager
async def running(*servers: SmallServer) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as stack:
        for server in servers:
            listener = await asyncio.start_server(server.talk, "127.0.0.1", 0)
            stack.callback(listener.close)
            server.base_url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
        yield


@contextlib.asynccontextmanager
async def sampling(*servers: SmallServer, **settings: Any) -> AsyncIterator[OpenAISampler]:
    async with running(*servers):
        values = {"timeout_s": 5.0, "max_retries": 0} | settings
        urls = tuple(server.base_url for server in servers)
        sampler = OpenAISampler(OpenAISamplerConfig(base_urls=urls, model="m", **values))
        try:
            yield sampler
        finally:
            await sampler.close()


async def text_of(sampler: OpenAISampler) -> str:
    return (await sampler.sample(MESSAGES, n=1, settings=SETTINGS)).samples[0].text


@pytest.mark.parametrize("behaviour", ["500", "503", "429", "408", "close", "later"])
def test_the_next_server_answers_for_one_that_fails(behaviour: str) -> None:
    async def run() -> None:
        ill, well = SmallServer("ill", behaviour), SmallServer("well")
        async with sampling(ill, well) as sampler:
            assert [await text_of(sampler) for _ in range(5)] == ["well"] * 5
        assert (ill.num_requests, well.num_requests) == (1, 5), "the ill one was not avoided"

    asyncio.run(run())


def test_a_server_that_is_not_there_is_passed_over() -> None:
    async def run() -> None:
        gone, well = SmallServer("gone"), SmallServer("well")
        async with running(gone, well):
            with socket.create_server(("127.0.0.1", 0)) as free:
                gone.base_url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
            config = OpenAISamplerConfig(base_urls=(gone.base_url, well.base_url), model="m", max_retries=0)
            sampler = OpenAISampler(config)
            assert await text_of(sampler) == "well"
            await sampler.close()

    asyncio.run(run())


def test_a_hanging_server_leaves_time_for_the_next() -> None:
    async def run() -> None:
        hanging, well = SmallServer("hanging", "hang"), SmallServer("well")
        async with sampling(hanging, well, timeout_s=1.0) as sampler:
            start = time.monotonic()
            assert await text_of(sampler) == "well"
            assert 0.4 < time.monotonic() - start < 0.9
            start = time.monotonic()
            assert await text_of(sampler) == "well"
            assert time.monotonic() - start < 0.3, "it was asked again at once"
        assert hanging.num_requests == 1

    asyncio.run(run())


@pytest.mark.parametrize("num_servers", [1, 3])
def test_one_deadline_holds_for_everything(num_servers: int) -> None:
    async def run() -> None:
        servers = [SmallServer(f"s{i}", "hang") for i in range(num_servers)]
        async with sampling(*servers, timeout_s=2.0, max_retries=10) as sampler:
            start = time.monotonic()
            with pytest.raises(SamplerError) as caught:
                await text_of(sampler)
            assert 1.9 < time.monotonic() - start < 3.9, "two servers' own deadlines make 4 s"
            assert caught.value.reason == "timeout"
            assert all(server.base_url in caught.value.detail for server in servers)
        assert [server.num_requests for server in servers] == [1] * num_servers

    asyncio.run(run())


def test_a_wait_that_cannot_end_in_time_is_not_begun() -> None:
    async def run() -> None:
        async with sampling(SmallServer("busy", "later"), max_retries=5) as sampler:
            start = time.monotonic()
            with pytest.raises(SamplerError, match="429"):
                await text_of(sampler)
            assert time.monotonic() - start < 1

    asyncio.run(run())


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_wrong_request_is_not_taken_elsewhere(status: int) -> None:
    async def run() -> None:
        strict, other = SmallServer("strict", str(status)), SmallServer("other")
        async with sampling(strict, other, max_retries=3) as sampler:
            with pytest.raises(SamplerError, match="strict refuses") as caught:
                await text_of(sampler)
        assert caught.value.reason == "bad_response"
        assert (strict.num_requests, other.num_requests) == (1, 0)

    asyncio.run(run())


def test_a_round_asks_every_server_and_all_failures_are_named() -> None:
    async def run() -> None:
        servers = [SmallServer("first", "503"), SmallServer("second", "500")]
        async with sampling(*servers, max_retries=1) as sampler:
            with pytest.raises(SamplerError) as caught:
                await text_of(sampler)
        assert caught.value.reason == "engine"
        assert "first refuses" in caught.value.detail and "second refuses" in caught.value.detail
        assert [server.num_requests for server in servers] == [2, 2]

    asyncio.run(run())


def test_a_server_that_recovers_is_used_again_after_one_request_has_tried_it() -> None:
    async def run() -> None:
        ill, well = SmallServer("ill", "503"), SmallServer("well", delay_s=0.01)
        async with sampling(ill, well, cool_down_s=0.2) as sampler:
            assert await text_of(sampler) == "well"
            ill.behaviour, ill.delay_s = "answer", 0.1
            await asyncio.sleep(0.25)
            texts = await asyncio.gather(*(text_of(sampler) for _ in range(6)))
            assert sorted(texts) == ["ill", *["well"] * 5]
            texts = await asyncio.gather(*(text_of(sampler) for _ in range(6)))
            assert sorted(texts) == [*["ill"] * 3, *["well"] * 3]

    asyncio.run(run())


def test_requests_go_to_the_least_busy_server() -> None:
    async def run() -> None:
        servers = [SmallServer(f"s{i}", delay_s=0.1) for i in range(2)]
        async with sampling(*servers) as sampler:
            await asyncio.gather(*(text_of(sampler) for _ in range(8)))
        assert [server.num_requests for server in servers] == [4, 4]

    asyncio.run(run())


def test_a_caller_who_gives_up_blames_nobody() -> None:
    async def run() -> None:
        server = SmallServer("slow", delay_s=0.3)
        async with sampling(server) as sampler:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(text_of(sampler), 0.05)
            assert await asyncio.wait_for(text_of(sampler), 2) == "slow"
        (inner,) = sampler._pool.engines
        assert inner.num_requests == 0 and not inner.failed

    asyncio.run(run())

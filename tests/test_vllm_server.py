"""OpenAISampler against a real vLLM server, alone and beside servers that are broken (about a minute)."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from reward.config import OpenAISamplerConfig, SamplingSettings
from reward.samplers import Message, SamplerError
from reward.samplers.openai import OpenAISampler
from reward.samplers.token_ids import load_tokenizer, prompt_token_ids

pytestmark = [pytest.mark.slow, pytest.mark.core]

TINY_POLICY = Path(__file__).parents[1] / "pipeline" / "tiny" / "checkpoint"
MESSAGES = [Message(role="user", content="How many euros did the July picnic in Kabul raise?")]
HOT = SamplingSettings(temperature=1.9, max_tokens=48)


@contextlib.asynccontextmanager
async def sampling(*urls: str, **settings: Any) -> AsyncIterator[OpenAISampler]:
    sampler = OpenAISampler(OpenAISamplerConfig(base_urls=urls, model="tiny", **settings))
    try:
        yield sampler
    finally:
        await sampler.close()


def test_ids_counts_and_log_probabilities_are_exact(vllm_url: str) -> None:
    tokenizer = load_tokenizer(str(TINY_POLICY), field="x")
    prompt = tuple(prompt_token_ids(tokenizer, MESSAGES))

    async def run() -> None:
        async with sampling(vllm_url) as sampler:
            await sampler.ready()
            assert await sampler.count_tokens(MESSAGES) == len(prompt)
            group = await sampler.sample(MESSAGES, n=4, settings=HOT)
        assert group.prompt_token_ids == prompt
        assert group.use.num_prompt == len(prompt) and group.use.num_cached is not None
        for sample in group.samples:
            assert sample.token_ids
            assert tokenizer.decode(sample.token_ids, skip_special_tokens=True) == sample.text

    asyncio.run(run())


@pytest.mark.parametrize(
    "pattern", [r"(Q[1-3]: [0-9]{1,3}\n){2}", r"\[Answer: -?[0-9]{1,9}(\.[0-9]{1,2})?\]"]
)
def test_completions_match_their_pattern(pattern: str, vllm_url: str) -> None:
    async def run() -> None:
        async with sampling(vllm_url) as sampler:
            group = await sampler.sample(MESSAGES, n=16, settings=HOT, pattern=pattern)
        assert [sample.text for sample in group.samples if not re.fullmatch(pattern, sample.text)] == []

    asyncio.run(run())


def test_the_same_seed_gives_the_same_completions(vllm_url: str) -> None:
    prompts = [[Message(role="user", content=f"{i} {'euros ' * 1000}")] for i in range(8)]

    async def run() -> None:
        async with sampling(vllm_url) as sampler:

            async def texts(prompt: list[Message], seed: int) -> list[str]:
                settings = HOT.model_copy(update={"seed": seed})
                return [s.text for s in (await sampler.sample(prompt, n=2, settings=settings)).samples]

            first = await asyncio.gather(*(texts(prompt, 7) for prompt in prompts))
            assert await asyncio.gather(*(texts(prompt, 7) for prompt in prompts)) == first
            assert await asyncio.gather(*(texts(prompt, 70) for prompt in prompts)) != first

    asyncio.run(run())


def test_a_prompt_that_does_not_fit_is_named(vllm_url: str) -> None:
    async def run() -> None:
        async with sampling(vllm_url) as sampler:
            with pytest.raises(SamplerError) as caught:
                await sampler.sample([Message(role="user", content="euros " * 5000)], n=1, settings=HOT)
        assert caught.value.reason == "prompt_too_long"

    asyncio.run(run())


@pytest.mark.parametrize("behaviour", ["hang", "503", "close", "gone"])
def test_the_real_server_answers_for_a_broken_one(behaviour: str, vllm_url: str) -> None:
    num_asked = 0

    async def break_it(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal num_asked
        num_asked += 1
        await reader.readuntil(b"\r\n\r\n")
        if behaviour == "hang":
            await asyncio.sleep(60)
        if behaviour == "503":
            writer.write(b"HTTP/1.1 503 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        writer.close()

    async def run() -> None:
        listener = await asyncio.start_server(break_it, "127.0.0.1", 0)
        broken = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
        if behaviour == "gone":
            listener.close()
            await listener.wait_closed()
        async with sampling(broken, vllm_url, timeout_s=8, max_retries=0) as sampler:
            groups = await asyncio.gather(
                *(sampler.sample(MESSAGES, n=3, settings=HOT) for _ in range(6)),
            )
            assert [len(group.samples) for group in groups] == [3] * 6
            num_before = num_asked
            assert len((await sampler.sample(MESSAGES, n=3, settings=HOT)).samples) == 3
            assert num_asked == num_before, "the broken one was not avoided"
        listener.close()

    asyncio.run(run())
    assert num_asked == {"gone": 0}.get(behaviour, 3), "the load was not shared until it broke"


def test_a_request_out_of_time_is_taken_back(vllm_url: str) -> None:
    async def run() -> None:
        async with sampling(vllm_url, timeout_s=0.5, max_retries=0) as sampler:
            with pytest.raises(SamplerError) as caught:
                await sampler.sample(
                    MESSAGES, n=4, settings=SamplingSettings(max_tokens=3000), pattern="[0-9]{2000}"
                )
        assert caught.value.reason == "timeout"
        root = vllm_url.removesuffix("/v1")
        async with httpx.AsyncClient(trust_env=False) as client:
            async with asyncio.timeout(20):
                while not re.search(
                    r"num_requests_running{.*} 0\.0", (await client.get(f"{root}/metrics")).text
                ):
                    await asyncio.sleep(0.2)

    asyncio.run(run())

"""LocalEngineSampler: vLLM on the tiny policy, one engine for all tests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reward.config import LocalSamplerConfig, SamplingSettings
from reward.roles.prompts import load_prompts
from reward.samplers import Message, SamplerError
from reward.samplers.local import LocalEngineSampler
from reward.types import Document, RagQuery, SampleGroup

pytestmark = pytest.mark.slow

TINY_POLICY = Path(__file__).parents[1] / "pipeline" / "tiny" / "checkpoint"
QUERY = RagQuery(
    id="q",
    query="How many euros did the July picnic in Kabul raise?",
    documents=(Document(id="d", text="The July picnic in Kabul raised 466 euros."),),
)
MESSAGES = load_prompts("compact").checker(QUERY.documents, [QUERY.query])
HOT = SamplingSettings(temperature=1.9, max_tokens=48)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def sampler(runner: asyncio.Runner) -> Iterator[LocalEngineSampler]:
    sampler = LocalEngineSampler(LocalSamplerConfig(model=str(TINY_POLICY)))
    runner.run(sampler.ready())
    yield sampler
    runner.run(sampler.close())


def test_ids_are_exact_and_log_probabilities_are_of_the_tempered_distribution(
    runner: asyncio.Runner, sampler: LocalEngineSampler
) -> None:
    async def run() -> list[SampleGroup]:
        return list(await asyncio.gather(*(_sampled(sampler, MESSAGES, t) for t in (0.0, 1.0, 1.9))))

    greedy, warm, hot = groups = runner.run(run())
    for group in groups:
        _assert_exact(sampler._tokenizer, MESSAGES, group)
    assert len({s.token_ids for s in greedy.samples}) == 1
    assert len({s.token_ids for s in hot.samples}) > 1
    # The likeliest first token is less likely when it is hot.
    first = greedy.samples[0].token_ids[0]
    assert _first_logprob(hot, first) < _first_logprob(warm, first)


def test_tokens_are_counted_without_the_engine(runner: asyncio.Runner, sampler: LocalEngineSampler) -> None:
    group = runner.run(_sampled(sampler, MESSAGES, 0.0))
    assert runner.run(sampler.count_tokens(MESSAGES)) == len(group.prompt_token_ids or ())
    assert sampler.model == str(TINY_POLICY)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(Q[1-3]: [0-9]{1,3}\n){2}",
        r"(yes|no)",
        r"(\[Answer: -?[0-9]{1,9}(\.[0-9]{1,2})?%?\]\n){1,3}",
        r"(Question: [^\n\[\]]{1,12}\?\n\[Answer: [0-9]{1,3}\]\n){1,2}",
    ],
)
def test_completions_match_their_pattern(
    pattern: str, runner: asyncio.Runner, sampler: LocalEngineSampler
) -> None:
    settings = SamplingSettings(temperature=2.0, max_tokens=200)
    free = runner.run(sampler.sample(MESSAGES, n=16, settings=settings))
    assert not all(re.fullmatch(pattern, sample.text) for sample in free.samples), "it proves nothing"
    bound = runner.run(sampler.sample(MESSAGES, n=16, settings=settings, pattern=pattern))
    assert [sample.finish_reason for sample in bound.samples] == ["stop"] * 16
    # Bytes of a lone surrogate are one character to the grammar, and three replacement characters to Python.
    texts = [re.sub("\ufffd{3}", "\ufffd", sample.text) for sample in bound.samples]
    assert [text for text in texts if not re.fullmatch(pattern, text)] == []
    _assert_exact(sampler._tokenizer, MESSAGES, bound)


def test_a_pattern_that_no_grammar_knows_is_a_failure(
    runner: asyncio.Runner, sampler: LocalEngineSampler
) -> None:
    with pytest.raises(SamplerError, match=r"look-?around") as caught:
        runner.run(sampler.sample(MESSAGES, n=1, settings=HOT, pattern="a(?=b)b"))
    assert caught.value.reason == "engine"
    runner.run(sampler.ready())


def test_the_same_seed_gives_the_same_completions_whatever_else_runs(
    runner: asyncio.Runner, sampler: LocalEngineSampler
) -> None:
    # More tokens than vLLM takes into one step; read in chunks, a seeded one would kill it (see engine.py).
    prompts = [[Message(role="user", content=f"{i} {'euros ' * 1000}")] for i in range(16)]

    async def run() -> list[list[tuple[int, ...] | None]]:
        groups = await asyncio.gather(
            *(
                sampler.sample(prompt, n=2, settings=HOT.model_copy(update={"seed": seed}))
                for prompt, seed in zip(prompts, [1, 2, None, 3] * 4, strict=True)
            )
        )
        return [[sample.token_ids for sample in group.samples] for group in groups]

    first, second = runner.run(run()), runner.run(run())
    seeded = [i for i in range(16) if i % 4 != 2]
    assert [first[i] for i in seeded] == [second[i] for i in seeded]
    assert any(first[i] != second[i] for i in range(2, 16, 4)), "without a seed they differ, too"
    assert any(a != b for a, b in first), "the samples of one request are independent"


def test_a_request_out_of_time_is_taken_back(runner: asyncio.Runner, sampler: LocalEngineSampler) -> None:
    hasty = LocalEngineSampler(LocalSamplerConfig(model=str(TINY_POLICY), timeout_s=0.2))
    hasty._engine = sampler._engine
    endless = SamplingSettings(temperature=2.0, max_tokens=3000)

    async def run() -> None:
        with pytest.raises(SamplerError, match=r"over 0\.2 s; raise sampler\.timeout_s") as caught:
            await hasty.sample(MESSAGES, n=4, settings=endless, pattern="[0-9]{2000}")
        assert caught.value.reason == "timeout"
        engine = await sampler._engine.get()
        assert not engine.output_processor.has_unfinished_requests()

    runner.run(run())
    assert len(runner.run(_sampled(sampler, MESSAGES, 1.0)).samples) == 16


async def _sampled(sampler: LocalEngineSampler, messages: list[Message], temperature: float) -> SampleGroup:
    return await sampler.sample(
        messages, n=16, settings=SamplingSettings(temperature=temperature, max_tokens=48)
    )


def _first_logprob(group: SampleGroup, token: int) -> float:
    return next(
        s.logprobs[0] for s in group.samples if s.token_ids and s.logprobs and s.token_ids[0] == token
    )


def _assert_exact(tokenizer: Any, messages: list[Message], group: SampleGroup) -> None:
    rendered = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    special = {token for token, added in tokenizer.added_tokens_decoder.items() if added.special}
    for sample in group.samples:
        assert group.prompt_token_ids and sample.token_ids and sample.logprobs
        assert len(sample.logprobs) == len(sample.token_ids)
        end = tokenizer.eos_token if sample.finish_reason == "stop" else ""
        whole = tokenizer.decode([*group.prompt_token_ids, *sample.token_ids])
        assert whole == rendered + tokenizer.decode(sample.token_ids)
        if not set(sample.token_ids[:-1]) & special:  # which the text leaves out
            assert whole == rendered + sample.text + end

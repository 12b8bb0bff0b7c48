"""The token work of audits: recorded from the engine that the server asks, and given to that engine again."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from reward.config import LocalSamplerConfig, SamplingSettings
from reward.samplers import Message
from reward.samplers.local import LocalEngineSampler
from reward.types import SampleGroup

_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Work:
    """One request that was made of the engine."""

    prompt: tuple[int, ...]
    lengths: tuple[int, ...]  # tokens of each completion: one of a Proposer, several of voters


class RecordingSampler(LocalEngineSampler):
    """The engine in this process, which remembers what was asked of it."""

    def __init__(self, config: LocalSamplerConfig) -> None:
        super().__init__(config)
        self.work: list[Work] = []

    async def sample(
        self, messages: Sequence[Message], *, n: int, settings: SamplingSettings, pattern: str | None = None
    ) -> SampleGroup:
        """As the engine samples; the request is kept in `work`."""
        group = await super().sample(messages, n=n, settings=settings, pattern=pattern)
        lengths = tuple(len(sample.token_ids or ()) for sample in group.samples)
        self.work.append(Work(group.prompt_token_ids or (), lengths))
        return group


async def run_whole(engine: Any, work: Sequence[Work]) -> None:
    """Two whole batches: all Proposers, then all voters of all Checkers."""
    proposals, checks = _by_role(work)
    await _batch(engine, proposals)
    await _batch(engine, checks)


async def run_published(engine: Any, work: Sequence[Work], *, batch_size: int, keeps_cache: bool) -> None:
    """Batches of `batch_size` audits, one after the other, each with a barrier after each of four passes.

    The passes are the Proposers and then three times the Checkers, one sample each. The published code
    reads the documents in each of the three again (its engines drop their cache between generations);
    with `keeps_cache` it is spared that.
    """
    proposals, checks = _by_role(work)
    num_batches = -(-len(checks) // batch_size)
    for share_of_proposals, share in zip(
        _shares(proposals, num_batches), _shares(checks, num_batches), strict=True
    ):
        votes = ([Work(check.prompt, (length,)) for length in check.lengths] for check in share)
        passes = zip(*votes, strict=True)
        for batch in itertools.chain([share_of_proposals], passes):
            if not keeps_cache:
                await engine.reset_prefix_cache()
            await _batch(engine, batch)


def num_tokens(work: Sequence[Work]) -> dict[str, int]:
    """Tokens in and out by role; a prompt counts once a request, however many voters read it."""
    counts = {}
    for role, requests in zip(("proposer", "checker"), _by_role(work), strict=True):
        counts[f"{role}_prompt_tokens"] = sum(len(one.prompt) for one in requests)
        counts[f"{role}_completion_tokens"] = sum(sum(one.lengths) for one in requests)
        counts[f"{role}_requests"] = len(requests)
    return counts


def _by_role(work: Sequence[Work]) -> tuple[list[Work], list[Work]]:
    return [one for one in work if len(one.lengths) == 1], [one for one in work if len(one.lengths) > 1]


def _shares(work: Sequence[Work], num: int) -> list[Sequence[Work]]:
    """`num` consecutive shares, as equal as can be."""
    cuts = [len(work) * i // num for i in range(num + 1)]
    return [work[start:end] for start, end in itertools.pairwise(cuts)]


async def at_once(num: int, work: Callable[[_T], Awaitable[_R]], items: Iterable[_T]) -> list[_R]:
    """What the work made of each item, so many of them in flight."""
    slots = asyncio.Semaphore(num)

    async def one(item: _T) -> _R:
        async with slots:
            return await work(item)

    return await asyncio.gather(*map(one, items))


async def _batch(engine: Any, work: Sequence[Work]) -> None:
    await asyncio.gather(*(generate(engine, one.prompt, n) for one in work for n in one.lengths))


async def generate(engine: Any, prompt: tuple[int, ...], num_tokens: int) -> int:
    """Samples so many tokens; returns how many of the prompt the engine's prefix cache held."""
    from vllm import SamplingParams
    from vllm.inputs import TokensPrompt
    from vllm.sampling_params import RequestOutputKind

    params = SamplingParams(
        temperature=1.0,
        max_tokens=num_tokens,
        min_tokens=num_tokens,
        ignore_eos=True,
        logprobs=0,
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )
    tokens = TokensPrompt(prompt_token_ids=list(prompt))
    num_cached = 0
    async for output in engine.generate(tokens, params, f"bench-{random.getrandbits(64):x}"):
        num_cached = output.num_cached_tokens or 0
    return num_cached

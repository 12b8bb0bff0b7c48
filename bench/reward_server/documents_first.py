"""Documents first against the role first: the same words to the same engine, in two orders.

An answer and its audit are a Solver's turn, a Proposer's, and three voters', one after the other, so many
in flight. Solver and Checker read the same documents. With the role before them the two prompts part at their
first words, and the engine reads the documents for each; with the role behind them (`full.yaml`) it reads
them once. Prompts are of about 1,500 words; lengths of completions are fixed, so that both ways sample
equally many tokens, whatever the tiny policy would say to an order that it was not trained on. The two ways
take turns within one run, the first one of a round alternating, each with an empty prefix cache.
"""

import asyncio
import os
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.measure import median_ratio
from bench.reward_server.work import Work, at_once, generate
from pipeline.settings.recipe import TINY_POLICY
from reward.config import LocalSamplerConfig
from reward.samplers import Message
from reward.samplers.local import LocalEngineSampler
from reward.samplers.token_ids import load_tokenizer, prompt_token_ids
from reward.types import Document, RagQuery, Role

Turns = tuple[Work, ...]  # of one answer and its audit, in order
WAYS = ("role_first", "documents_first")
_ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
_MAX_MODEL_LEN = 4096  # all that the tiny policy has
_WORDS, _IN_FLIGHT, _ANSWERS = 1500, 64, 128
_SOLVER_TOKENS, _PROPOSER_TOKENS, _VOTER_TOKENS, _VOTERS = 24, 40, 48, 3


@dataclass
class Samples:
    """Of one way, over the rounds."""

    seconds: list[float] = field(default_factory=list)
    num_prompt_tokens: int = 0  # as the engine was asked: three voters ask thrice
    num_cached_tokens: int = 0

    def figures(self) -> dict[str, float]:
        """Audits a second, and the share of the prompts that the prefix cache held."""
        return {
            "audits_per_s": _ANSWERS / statistics.median(self.seconds),
            "prefix_hit_rate": self.num_cached_tokens / self.num_prompt_tokens,
            "prompt_tokens_per_audit": self.num_prompt_tokens / (_ANSWERS * len(self.seconds)),
        }


def measure() -> dict[str, Any]:
    """`documents_first_speedup` and the figures of both ways."""
    samples = asyncio.run(_measure())
    seconds = {way: one.seconds for way, one in samples.items()}
    return {
        "documents_first_speedup": median_ratio(seconds, "role_first", "documents_first"),
        "documents_first": {
            "document_words": _WORDS,
            "in_flight": _IN_FLIGHT,
            "audits": _ANSWERS,
            **{way: one.figures() for way, one in samples.items()},
        },
    }


def messages(way: str, role: Role, documents: Sequence[Document], asked: str) -> list[Message]:
    """A prompt of the tiny policy in one of two orders; both have the same words."""
    shown = "".join(f"Doc: {document.text}\n" for document in documents)
    if way == "role_first":
        return [Message(role="system", content=role), Message(role="user", content=f"{shown}{asked}")]
    return [Message(role="user", content=f"{shown}{role}\n{asked}")]


def lengthened(query: RagQuery, num_words: int, words: Sequence[str]) -> RagQuery:
    """With a document of drawn words before its own, so that all together have `num_words`."""
    own = sum(len(document.text.split()) for document in query.documents)
    drawn = random.Random(query.id).choices(words, k=max(num_words - own, 0))
    noise = Document(id="noise", text=" ".join(drawn))
    return query.model_copy(update={"documents": (noise, *query.documents)})


def answers(way: str, queries: Sequence[RagQuery], tokenizer: Any) -> list[Turns]:
    """What is asked of the engine for each query."""
    found = []
    for query in queries:
        response = " ".join(document.text.strip() for document in query.documents[1:3])
        questions = "\n".join(f"{i}. {line}?" for i, line in enumerate(response.split(".")[:2], 1))
        proposer = [Message(role="system", content=Role.PROPOSER), Message(role="user", content=response)]
        prompts = (
            (messages(way, Role.SOLVER, query.documents, f"Query: {query.query}"), (_SOLVER_TOKENS,)),
            (proposer, (_PROPOSER_TOKENS,)),
            (messages(way, Role.CHECKER, query.documents, questions), (_VOTER_TOKENS,) * _VOTERS),
        )
        found.append(
            tuple(Work(tuple(prompt_token_ids(tokenizer, prompt)), lengths) for prompt, lengths in prompts)
        )
    return found


async def _measure() -> dict[str, Samples]:
    sampler = LocalEngineSampler(LocalSamplerConfig(model=str(TINY_POLICY), max_model_len=_MAX_MODEL_LEN))
    await sampler.ready()
    engine, tokenizer = await sampler._started(), load_tokenizer(str(TINY_POLICY), field="model")
    samples = {way: Samples() for way in WAYS}
    for number in range(_ROUNDS + 1):
        queries = _queries()
        for way in WAYS if number % 2 else reversed(WAYS):
            seen = samples[way] if number else Samples()  # the first round warms up
            await _round(engine, answers(way, queries, tokenizer), seen)
    await sampler.close()
    return samples


def _queries() -> list[RagQuery]:
    from pipeline.tiny.world import worlds

    queries = list(worlds(_ANSWERS, random.getrandbits(31), "train"))
    texts = (document.text for query in queries for document in query.documents)
    words = sorted({word for text in texts for word in text.split() if word.isalpha()})
    return [lengthened(query, _WORDS, words) for query in queries]


async def _round(engine: Any, asked: Sequence[Turns], seen: Samples) -> None:
    async def one(turns: Turns) -> None:
        for turn in turns:
            cached = await asyncio.gather(*(generate(engine, turn.prompt, n) for n in turn.lengths))
            seen.num_prompt_tokens += len(turn.prompt) * len(turn.lengths)
            seen.num_cached_tokens += sum(cached)

    await engine.reset_prefix_cache()
    start = time.perf_counter()
    await at_once(_IN_FLIGHT, one, asked)
    seen.seconds.append(time.perf_counter() - start)

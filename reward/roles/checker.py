"""The Checker's step: several voters answer questions from the documents (paper section 2.2).

Blind by construction: it is given documents and questions, and neither the response nor a claim. Documents
that are too long for one prompt are read in parts, each part by all voters, and what one voter says of the
parts is brought together here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import TypeVar

from reward.claims.numbers import parse_number
from reward.config import AuditConfig, Structured
from reward.judging.bounds import AuditFailure
from reward.judging.readings import same
from reward.judging.vote import Reason
from reward.roles.asking import Means
from reward.roles.parse import parse_answers
from reward.roles.parts import Parts, split_documents
from reward.roles.patterns import checker_pattern
from reward.roles.thought import answer_of
from reward.types import Answer, Document, Role, SampleGroup

_MOST_CHARS_A_TOKEN = 16  # longer texts are taken not to fit without counting; real tokens are far shorter
T = TypeVar("T")


@dataclass(frozen=True)
class Reading:
    """What voters answered."""

    answers: tuple[tuple[Answer | None, ...], ...]  # (V, Q): one row a voter, one entry a question
    groups: tuple[SampleGroup, ...]  # one a part of the documents


async def plan_parts(documents: Sequence[Document], questions: Sequence[str], *, means: Means) -> Parts:
    """The documents in parts that each fit into a prompt with all questions; one part without a limit.

    Raises:
        AuditFailure: the questions alone exceed the limit, or leave no room for any text.
        SamplerError: the sampler could not count tokens.
    """
    limit = means.config.max_prompt_tokens
    if limit is None:
        return Parts((tuple(documents),))

    async def fits(some: Sequence[Document]) -> bool:
        return await means.sampler.count_tokens(means.prompts.checker(some, questions)) <= limit

    if not await fits([documents[0].model_copy(update={"title": "", "text": ""})]):
        detail = f"{len(questions)} questions alone exceed max_prompt_tokens: {limit}"
        raise AuditFailure(Reason.PROMPT_TOO_LONG, detail)
    max_chars = _MOST_CHARS_A_TOKEN * limit
    parts = await split_documents(documents, fits=fits, max_parts=means.config.max_parts, max_chars=max_chars)
    if not parts.parts:
        detail = f"max_prompt_tokens: {limit} leaves no room for any text of the documents"
        raise AuditFailure(Reason.PROMPT_TOO_LONG, detail)
    return parts


async def check(parts: Parts, questions: Sequence[str], *, n: int, attempt: int, means: Means) -> Reading:
    """Puts the questions to `n` voters, one request a part; all requests end before a failure rises.

    Args:
        parts: The documents.
        questions: What is asked, in order.
        n: Voters.
        attempt: From 0; which request of these questions it is.
        means: The sampler, the prompts and the settings.

    Raises:
        SamplerError: a request failed.
    """
    pattern = checker_pattern(len(questions)) if means.config.structured is Structured.ALL else None
    prompted = [means.prompts.checker(part, questions) for part in parts.parts]
    requests = [
        means.ask(Role.CHECKER, messages, n=n, attempt=attempt, pattern=pattern) for messages in prompted
    ]
    groups = await gathered(requests)
    read = [[_answers(group, voter, len(questions), means.config) for group in groups] for voter in range(n)]
    answers = tuple(tuple(map(merge_parts, zip(*voter, strict=True))) for voter in read)
    return Reading(answers, tuple(groups))


def merge_parts(answers: Sequence[Answer | None]) -> Answer | None:
    """One voter's answer to one question over all parts of the documents.

    The one number that was given; "cannot answer" when all parts say so; else None, an unreadable vote: two
    parts gave different numbers, or no part gave one and not all could be read.
    """
    given = [answer for answer in answers if answer is not None and answer.value is not None]
    if not given:
        return answers[0] if None not in answers else None
    first = parse_number(given[0].value or "")
    for answer in given[1:]:
        other = parse_number(answer.value or "")
        if first is None or other is None or not same(first, other):
            return None
    return given[0]


async def gathered(works: Sequence[Coroutine[object, object, T]]) -> list[T]:
    """The results in order; waits for all of them before the first failure rises."""
    if len(works) == 1:  # mostly; a task of its own would cost more than the rest of this step
        return [await works[0]]
    results: list[T] = []
    for result in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
        results.append(result)
    return results


def _answers(group: SampleGroup, voter: int, num_questions: int, config: AuditConfig) -> list[Answer | None]:
    sample = group.samples[voter]
    text = answer_of(sample.text, config)
    return parse_answers(text, num_questions, complete=sample.finish_reason == "stop")

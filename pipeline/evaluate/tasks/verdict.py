"""The verdict on an answer: the judge's, by its schema, or a rule's where the benchmark has one.

A judge is pinned: temperature 0, a fixed seed, its verdict bound to a JSON schema and read strictly. A
reply that cannot be read is asked for again with another seed, then counted apart (`grader_failed`) and in no
figure. A question that failed is no verdict either (`grader_error`): were it an error of Inspect's, the epoch
would be missing, and the others would decide alone. A judge that mostly talks nonsense is asked no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inspect_ai.model import CachePolicy
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import LimitExceededError

from pipeline.evaluate.benchmark import JudgeRequest, Prompt
from pipeline.evaluate.benchmarks.replies import judged_text
from pipeline.evaluate.majority import Judged, Judgement
from pipeline.evaluate.sampling import JUDGE_RETRIES, JUDGING, MOST_UNREAD, attempt_settings
from pipeline.evaluate.tasks.grader import generate_config, grader
from pipeline.evaluate.tasks.naming import of_march
from pipeline.evaluate.tasks.samples import Asked, Generation, asked_of, chat, generation_of, generations_of
from pipeline.evaluate.tasks.scores import FIGURES, JUDGED, KIND, REPLIES, Kind, as_values, unanswered
from reward.config import SamplingSettings

_FEWEST_TO_TELL = 20  # judgements, before the share of useless ones means anything
GRADER_FAILED, GRADER_ERROR = "grader_failed", "grader_error"


class NonsenseError(ValueError):
    """Too many replies could not be read; what was done is kept."""


@dataclass(frozen=True)
class _Found:
    judgement: Judgement | None
    replies: tuple[str, ...] = ()  # of the judge, the last one read or not
    error: str = ""  # why it did not answer


@dataclass(frozen=True)
class _Asking:
    """How the judge is asked."""

    settings: SamplingSettings
    retries: int
    schema: bool
    cache: bool


@scorer(metrics=FIGURES, name="march/verdict")
@of_march
def verdict(
    retries: int = JUDGE_RETRIES,
    schema: bool = True,
    cache: bool = False,
    settings: Mapping[str, Any] | None = None,
    most_unread: float = MOST_UNREAD,
) -> Scorer:
    """Judges each answer by itself.

    Args:
        retries: Further questions to the judge after a reply that cannot be read.
        schema: Whether its server is asked to bind the reply to the JSON schema.
        cache: Whether the judge's first replies are kept by Inspect and reused for equal questions.
        settings: How it is sampled (`SamplingSettings`), where not as usual.
        most_unread: Share of useless replies at which judging stops.
    """
    sampled = SamplingSettings.model_validate(settings) if settings else JUDGING
    asking = _Asking(sampled, retries, schema, cache)
    counts = {True: 0, False: 0}  # replies by whether they could be read

    async def score(state: TaskState, target: Target) -> Score:
        asked = asked_of(state)
        generations = generations_of(state, asked.prompts)
        about = {**asked.about, "prompts": [prompt.name for prompt in asked.prompts]}
        if failures := [one.failure for one in generations.values() if one.failure]:
            return unanswered(about, Kind.VERDICT, failures[0])
        found = {}
        for prompt in asked.prompts:
            try:
                refuse_nonsense(counts[True], counts[False], most_unread)
                found[prompt.name] = await _found(asked, prompt, generations[prompt.name].text, asking)
            except LimitExceededError:
                raise
            except Exception as error:  # each provider has its own
                found[prompt.name] = _Found(None, error=f"{type(error).__name__}: {error}")
        for one in found.values():
            counts[one.judgement is not None] += bool(one.replies)
        return _score(asked, about, generations, found)

    return score


def refuse_nonsense(num_read: int, num_unread: int, most_unread: float) -> None:
    """Raises `NonsenseError` where too many of a judge's replies could not be read."""
    total = num_read + num_unread
    if total >= _FEWEST_TO_TELL and num_unread > most_unread * total:
        raise NonsenseError(
            f"judge: {num_unread} of {total} judgements could not be read, more than most_unread: "
            f"{most_unread:g}; fix the judge, and the same command goes on"
        )


async def _found(asked: Asked, prompt: Prompt, text: str, asking: _Asking) -> _Found:
    """The judgement of one generation, asked for until it can be read."""
    read = asked.benchmark.read_judgement
    request = asked.benchmark.judge_request(asked.item, prompt, text)
    if request is None:
        return _Found(read(asked.item, prompt, text))
    replies: list[str] = []
    for attempt in range(asking.retries + 1):
        replies.append(await _reply(request, attempt, asking))
        judgement = read(asked.item, prompt, replies[-1])
        if judgement is not None:
            return _Found(judgement, tuple(replies))
    return _Found(None, tuple(replies))


async def _reply(request: JudgeRequest, attempt: int, asking: _Asking) -> str:
    settings = attempt_settings(asking.settings, attempt)
    config = generate_config(settings, request.json_schema if asking.schema else None)
    asked = chat(request.messages)
    if not asking.cache or attempt:  # the answer to an unread reply is another one each time
        return generation_of(await grader().generate(asked, config=config)).text
    kept = CachePolicy(expiry=None, per_epoch=False)  # equal answers are one question
    return generation_of(await grader().generate(asked, config=config, cache=kept)).text


def _score(
    asked: Asked,
    about: Mapping[str, object],
    generations: Mapping[str, Generation],
    found: Mapping[str, _Found],
) -> Score:
    judgements = {name: one.judgement for name, one in found.items()}
    texts = {name: judged_text(name, one.text) for name, one in generations.items()}
    scores = asked.benchmark.by_majority(
        {name: [Judged(text=texts[name], judgement=one)] for name, one in judgements.items()}
    )
    kept = {name: None if one is None else one.model_dump() for name, one in judgements.items()}
    replies = {name: list(one.replies) for name, one in found.items() if one.replies}
    metadata = {**about, KIND: Kind.VERDICT.value, JUDGED: kept, REPLIES: replies}
    answer, said = "\n\n".join(texts.values()), _said(found)
    primary = asked.benchmark.card.primary
    if scores[primary] is None:
        has_error = any(one.error for one in found.values())
        reason = GRADER_ERROR if has_error else GRADER_FAILED if replies else "invalid_response_format"
        return Score.unscored(reason=reason, answer=answer, explanation=said, metadata=metadata)
    values = as_values({primary: scores[primary]})
    return Score(value=values, answer=answer, explanation=said, metadata=metadata)


def _said(found: Mapping[str, _Found]) -> str:
    return "\n\n".join(
        f"**{name}: {one.judgement.label}**\n\n{one.judgement.reason}"
        if one.judgement
        else f"**{name}: could not be judged** {one.error}".strip()
        for name, one in found.items()
    )

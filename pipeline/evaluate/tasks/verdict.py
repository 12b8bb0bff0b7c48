"""The verdict on an answer: the judge's, by its schema, or a rule's where the benchmark has one.

A judge is pinned: temperature 0, a fixed seed, its verdict bound to a JSON schema and read strictly. A
reply that cannot be read is asked for again with another seed, then counted apart (`grader_failed`) and in no
figure. A question that failed is no verdict either (`grader_error`): were it an error of Inspect's, the epoch
would be missing, and the others would decide alone. A judge that mostly talks nonsense is asked no more.

What a rule measures of an answer is beside the verdict: official EM and F1; of made-up worlds, coverage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inspect_ai.model import CachePolicy
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import LimitExceededError

from pipeline.evaluate.benchmark import JudgeRequest, Prompt
from pipeline.evaluate.benchmarks.prompts import judged_text
from pipeline.evaluate.majority import Judgement
from pipeline.evaluate.sampling import JUDGE_RETRIES, JUDGING, MOST_UNREAD, attempt_settings
from pipeline.evaluate.tasks.grader import generate_config, grader
from pipeline.evaluate.tasks.naming import of_march
from pipeline.evaluate.tasks.samples import Asked, asked_of, chat, generation_of, generations_of
from pipeline.evaluate.tasks.scores import FIGURES, JUDGED, MEASURED, NAN, REPLIES, as_values, unanswered
from reward.config import SamplingSettings

_FEWEST_TO_TELL = 20  # judgements, before the share of useless ones means anything
GRADER_FAILED, GRADER_ERROR = "grader_failed", "grader_error"
_REASONS = (GRADER_ERROR, GRADER_FAILED, "invalid_response_format")  # the first one tells of several


class NonsenseError(ValueError):
    """Too many replies could not be read; what was done is kept."""


@dataclass(frozen=True)
class _Found:
    judgement: Judgement | None
    replies: tuple[str, ...] = ()  # of the judge, the last one read or not
    error: str = ""  # why it did not answer

    @property
    def reason(self) -> str:
        """Why there is no judgement."""
        return GRADER_ERROR if self.error else GRADER_FAILED if self.replies else "invalid_response_format"

    @property
    def text(self) -> str:
        if self.judgement is None:
            return f"could not be judged** {self.error}".strip()
        return f"{self.judgement.label}**\n\n{self.judgement.reason}"


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
    judging = SamplingSettings.model_validate(settings) if settings else JUDGING
    counts: Counter[bool] = Counter()  # generations by whether a reply of the judge could be read

    async def reply(request: JudgeRequest, attempt: int) -> str:
        config = generate_config(attempt_settings(judging, attempt), request.verdict if schema else None)
        if cache and not attempt:  # the answer to an unread reply is another one each time
            config.cache = CachePolicy(expiry=None, per_epoch=False)  # equal answers are one question
        return generation_of(await grader().generate(chat(request.messages), config=config)).text

    async def judge(asked: Asked, prompt: Prompt, text: str) -> _Found:
        request = asked.benchmark.judge_request(asked.item, prompt, text)
        if request is None:
            return _Found(asked.benchmark.read_judgement(asked.item, prompt, text))
        refuse_nonsense(counts[True], counts[False], most_unread)
        replies, found = list[str](), None
        while found is None and len(replies) <= retries:
            replies.append(await reply(request, len(replies)))
            found = asked.benchmark.read_judgement(asked.item, prompt, replies[-1])
        counts[found is not None] += 1
        return _Found(found, tuple(replies))

    async def score(state: TaskState, target: Target) -> Score:
        asked = asked_of(state)
        texts = generations_of(state, asked.prompts)
        measured = {name: asked.benchmark.measured(asked.item, name, one.text) for name, one in texts.items()}
        if failures := [one.failure for one in texts.values() if one.failure]:
            nothing = {name: dict.fromkeys(values) for name, values in measured.items()}
            return unanswered({**asked.about, MEASURED: nothing}, failures[0])
        found = {}
        for prompt in asked.prompts:
            try:
                found[prompt.name] = await judge(asked, prompt, texts[prompt.name].text)
            except LimitExceededError:
                raise
            except Exception as error:  # each provider has its own
                found[prompt.name] = _Found(None, error=f"{type(error).__name__}: {error}")
        said = {name: judged_text(name, one.text) for name, one in texts.items()}
        return _score(asked, said, measured, found)

    return score


def refuse_nonsense(num_read: int, num_unread: int, most_unread: float) -> None:
    """Raises `NonsenseError` where too many of a judge's replies could not be read."""
    total = num_read + num_unread
    if total >= _FEWEST_TO_TELL and num_unread > most_unread * total:
        raise NonsenseError(
            f"judge: {num_unread} of {total} judgements could not be read, more than most_unread: "
            f"{most_unread:g}; fix the judge, and the same command goes on"
        )


def _score(
    asked: Asked,
    texts: Mapping[str, str],
    measured: Mapping[str, Mapping[str, float | None]],
    found: Mapping[str, _Found],
) -> Score:
    judged = {name: [one.judgement] for name, one in found.items()}
    primary = asked.benchmark.card.primary
    verdict = asked.benchmark.by_majority(judged)[primary]
    values = {primary: verdict} | {name: one for each in measured.values() for name, one in each.items()}
    reasons = [one.reason for one in found.values() if one.judgement is None]
    return Score(
        value=NAN if set(values.values()) == {None} else as_values(values),
        answer="\n\n".join(texts.values()),
        explanation="\n\n".join(f"**{name}: {one.text}" for name, one in found.items()),
        reason=min(reasons, key=_REASONS.index) if verdict is None else None,
        metadata={
            **asked.about,
            JUDGED: {name: one.judgement and one.judgement.model_dump() for name, one in found.items()},
            REPLIES: {name: list(one.replies) for name, one in found.items() if one.replies},
            MEASURED: measured,
        },
    )

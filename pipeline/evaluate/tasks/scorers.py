"""What is said of an answer, how the epochs of an item become its scores, and the figure over items.

The verdict is a judge's, or a rule's. A judge is pinned: temperature 0, a fixed seed, its reply bound to a
JSON schema and read strictly; one that cannot be read is asked for again with another seed. A question that
failed is no error of Inspect's: then the epoch would be missing, and the others would decide alone.

What could not be scored is no score: such a value is NaN, which Inspect leaves out of every figure and counts
(`unscored_samples`); a figure of nothing is NaN, where Inspect's own `mean` says 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import starmap
from statistics import fmean
from typing import Any, NamedTuple

from inspect_ai.log import EvalLog
from inspect_ai.model import CachePolicy, GenerateConfig, ResponseSchema, get_model
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    ScoreReducer,
    Target,
    Value,
    mean_score,
    metric,
    score_reducer,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState
from inspect_ai.util import LimitExceededError, json_schema

from pipeline.evaluate.benchmark import Prompt
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.evaluate.benchmarks.prompts import judged_text
from pipeline.evaluate.majority import Judgement, Scores, means, numeric_scores
from pipeline.evaluate.plan import JUDGE_RETRIES, JUDGING
from pipeline.evaluate.tasks.samples import Asked, asked_of, chat, generation_of, of_march
from pipeline.evaluate.tasks.served import ROLE, grader_sampler
from reward.auditor import audit
from reward.config import AuditConfig, SamplingSettings
from reward.roles.prompts import load_prompts
from reward.samplers import Message
from reward.types import ClaimState, Outcome, Verdict

# Why there is no verdict, or no audit: the reason of an epoch's score.
GRADER_ERROR, GRADER_FAILED, UNREADABLE = "grader_error", "grader_failed", "invalid_response_format"
NOT_AUDITED, _NO_NUMBERS = "scoring_failed", "no_numbers"
# In the metadata of an epoch's score: a verdict's has MEASURED and, by prompt, JUDGED, an audit's AUDITOR and
# VERDICT; and of an epoch without an answer FAILURE, and nothing that was found.
MEASURED, JUDGED, AUDITOR, VERDICT, FAILURE = "measured", "judged", "auditor", "verdict", "failure"
_RETRY_TEMPERATURE = 0.6  # at 0 the reply would be the same


@metric(name="average")  # without "march/", as the viewer's narrow columns show the first letters of a name
@of_march
def average() -> Metric:
    """The mean over the items that have the score; NaN where none has."""

    def compute(scores: list[SampleScore]) -> Value:
        return fmean(one.score.as_float() for one in scores) if scores else math.nan

    return compute


@metric(name="stderr")
@of_march
def standard_error() -> Metric:
    """Clustered by document; NaN with fewer than two, where Inspect's would be 0."""
    clustered: Any = stderr(cluster="cluster")  # typed as of Inspect's older metrics

    def compute(scores: list[SampleScore]) -> Value:
        documents = {(one.sample_metadata or {}).get("cluster") for one in scores}
        return clustered(scores) if len(documents) > 1 else math.nan

    return compute


FIGURES: Mapping[str, Sequence[Metric]] = {"*": (average(), standard_error())}  # of every score


class _Judged(NamedTuple):
    judgement: Judgement | None
    reason: str = ""  # why there is none
    detail: str = ""


@scorer(metrics=FIGURES, name="march/verdict")
@of_march
def verdict(
    retries: int = JUDGE_RETRIES, cache: bool = False, settings: Mapping[str, Any] | None = None
) -> Scorer:
    """Judges each answer by itself; beside the verdict is what a rule measures, as official EM and F1.

    Args:
        retries: Further questions to the judge after a reply that cannot be read.
        cache: Whether the judge's first replies are kept by Inspect and reused for equal questions.
        settings: How it is sampled (`SamplingSettings`), where not as usual.
    """
    judging = SamplingSettings.model_validate(settings) if settings else JUDGING

    async def reply(asked: Asked, request: Sequence[Message], attempt: int) -> str:
        sampled = judging.model_dump(include={"temperature", "max_tokens", "seed"})
        config = GenerateConfig(**sampled, top_p=judging.top_p if judging.top_p < 1 else None)
        if attempt:  # the answer to an unread reply is another one each time
            config.temperature = max(judging.temperature, _RETRY_TEMPERATURE)
            config.seed = (judging.seed or 0) + attempt
        elif cache:
            config.cache = CachePolicy(expiry=None, per_epoch=False)  # equal answers are one question
        if asked.benchmark.verdict is not None:
            bound = json_schema(asked.benchmark.verdict)
            config.response_schema = ResponseSchema(name="verdict", json_schema=bound, strict=True)
        grader = get_model(role=ROLE, required=True)  # the model under test never judges itself unasked
        return generation_of(await grader.generate(chat(request), config=config)).text

    async def judge(asked: Asked, prompt: Prompt, text: str) -> _Judged:
        benchmark, item = asked.benchmark, asked.item
        request = benchmark.judge_request(item, prompt, text)
        if not request:
            return _Judged(benchmark.read_judgement(item, prompt, text), UNREADABLE)
        try:
            for attempt in range(retries + 1):
                found = benchmark.read_judgement(item, prompt, await reply(asked, request, attempt))
                if found is not None:
                    return _Judged(found)
        except LimitExceededError:
            raise
        except Exception as error:  # each provider has its own
            return _Judged(None, GRADER_ERROR, f"{type(error).__name__}: {error}")
        return _Judged(None, GRADER_FAILED)

    async def score(state: TaskState, target: Target) -> Score:
        asked = asked_of(state)
        benchmark, answers, measured = asked.benchmark, asked.answers(state.output), dict[str, float | None]()
        for name, one in answers.items():
            measured |= benchmark.measured(asked.item, name, one.text)
        about = {"benchmark": benchmark.name}
        if failures := [one.failure for one in answers.values() if one.failure]:
            nothing = {JUDGED: dict.fromkeys(answers), MEASURED: dict.fromkeys(measured)}
            return _unanswered({**about, **nothing}, failures[0])
        found = {one.name: await judge(asked, one, answers[one.name].text) for one in asked.prompts}
        scores = benchmark.by_majority({name: [one.judgement] for name, one in found.items()})
        values = {benchmark.primary: scores[benchmark.primary], **measured}
        reasons = sorted(one.reason for one in found.values() if one.judgement is None)  # an error first
        kept = {name: one.judgement and one.judgement.model_dump() for name, one in found.items()}
        return Score(
            value=math.nan if set(values.values()) == {None} else _values(values),
            answer="\n\n".join(judged_text(name, one.text) for name, one in answers.items()),
            explanation="\n\n".join(starmap(_explained, found.items())),
            reason=next(iter(reasons), None),
            metadata={**about, JUDGED: kept, MEASURED: measured},
        )

    return score


@scorer(metrics=FIGURES, name="march/numbers")
@of_march
def numbers(auditor: str = "lexical", settings: Mapping[str, Any] | None = None) -> Scorer:
    """Audits each answer: do its numbers come from its documents?

    The audit's verdict is in the score's metadata, with the claims' places in the answer and what was found;
    Inspect's viewer shows a table of them. An answer without numbers is neither faithful nor unfaithful.

    Args:
        auditor: "lexical" looks the numbers up; "model" has the grader propose, check and vote.
        settings: Of the audit (`AuditConfig`), such as `{"checks": ["ratings"]}` for documents of one layout.
    """
    config = AuditConfig.model_validate(settings or {})
    prompts = load_prompts(config.prompts) if auditor == "model" else None

    async def score(state: TaskState, target: Target) -> Score:
        asked = asked_of(state)
        ((name, generation),) = asked.answers(state.output).items()
        about = {"benchmark": asked.benchmark.name, AUDITOR: auditor}
        if generation.failure:
            return _unanswered(about, generation.failure)
        text = judged_text(name, generation.text)
        sampler = await grader_sampler() if auditor == "model" else None
        result = await audit(asked.item.query, text, sampler=sampler, prompts=prompts, config=config)
        found = result.verdict
        reason = {Outcome.UNSCORED: NOT_AUDITED, Outcome.NO_CLAIMS: _NO_NUMBERS}.get(found.outcome)
        return Score(
            value=math.nan if reason else {f"numeric_{auditor}": float(found.outcome is Outcome.SUPPORTED)},
            answer=text,
            explanation=_table(found, text),
            reason=reason,
            metadata={**about, VERDICT: found.model_dump(mode="json")},
        )

    return score


@score_reducer(name="march/majority")
@of_march
def majority() -> ScoreReducer:
    """The verdict of more than half of the judged epochs; a tie is no pass, an unread verdict no vote.

    Where fewer than half of the epochs could be judged, or were answered at all, there is no verdict. What is
    measured and no verdict is averaged, as are scores of other scorers.
    """

    def reduce(scores: list[Score]) -> Score:
        kept = [one.metadata or {} for one in scores]
        if "benchmark" not in kept[0]:
            return mean_score()(scores)
        answered = [one for one in kept if FAILURE not in one]
        if 2 * len(answered) < len(scores):
            answered = []
        num_missing = len(scores) - len(answered)
        if AUDITOR in kept[0]:
            audited = [Verdict.model_validate(one[VERDICT]) for one in answered]
            return Score(value=_values(numeric_scores(kept[0][AUDITOR], audited, num_missing)))
        found = _judged(kept[0], answered, num_missing)
        if num_missing or GRADER_ERROR in [one.reason for one in scores]:
            found |= dict.fromkeys(found.keys() & {make_benchmark(kept[0]["benchmark"]).official})
        return Score(value=_values(found))

    return reduce


def item_scores(log: EvalLog) -> dict[str, dict[str, float | None]]:
    """The scores of every item of a log that `march/majority` reduced, by the item's id and their names."""
    found: dict[str, dict[str, float | None]] = {}
    for one in (one for reduction in log.reductions or () for one in reduction.samples):
        assert isinstance(one.value, Mapping), f"{log.location}: its reducer is not march/majority"
        for name, value in one.value.items():
            number = float(str(value))
            found.setdefault(str(one.sample_id), {})[name] = None if math.isnan(number) else number
    return found


def _judged(
    about: Mapping[str, Any], answered: Sequence[Mapping[str, Any]], num_missing: int
) -> dict[str, float | None]:
    judged = {
        name: [epoch[JUDGED][name] and Judgement.model_validate(epoch[JUDGED][name]) for epoch in answered]
        for name in about[JUDGED]
    }
    votes = {name: [*found, *[None] * num_missing] for name, found in judged.items()}
    # Every item has every name, or Inspect has no figures.
    measured = dict.fromkeys(about[MEASURED]) | means([one[MEASURED] for one in answered])
    return {**make_benchmark(about["benchmark"]).by_majority(votes), **measured}


def _explained(prompt: str, one: _Judged) -> str:
    if one.judgement is None:
        return f"**{prompt}: could not be judged** {one.detail}".strip()
    return f"**{prompt}: {one.judgement.label}**\n\n{one.judgement.reason}"


def _values(scores: Scores) -> dict[str, str | int | float | bool | None]:
    """Scores as a value of Inspect's."""
    return {name: math.nan if score is None else score for name, score in scores.items()}


def _unanswered(about: Mapping[str, Any], failure: str) -> Score:
    """The score of an epoch in which the model gave no answer: none."""
    explanation = f"The model gave no answer: {failure}."
    return Score.unscored(reason=failure, explanation=explanation, metadata={**about, FAILURE: failure})


def _table(verdict: Verdict, text: str) -> str:
    rows = [["claim", "found", "documents say", "evidence"], ["---"] * 4] if verdict.claims else []
    for one in verdict.claims:
        span, state = one.claim.span, one.state.value.replace("_", " ")
        claimed = text[span.start : span.end] if span else one.claim.answer
        found = state if one.state is ClaimState.SUPPORTED else f"**{state}**"
        evidence = next((vote.evidence for vote in one.votes if vote and vote.evidence), one.note)
        cells = (" ".join(str(cell).split()) for cell in (claimed, found, one.consensus or "", evidence))
        rows.append([cell.replace("|", "\\|") for cell in cells])
    head = f"**{verdict.outcome.value}** {verdict.detail or verdict.reason}".strip()
    return "\n".join([head, "", *(f"| {' | '.join(row)} |" for row in rows)])

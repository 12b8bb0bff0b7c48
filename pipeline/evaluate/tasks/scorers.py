"""What is said of an answer, how the epochs of an item become its scores, and the figure over items.

The verdict is a judge's, or a rule's. A judge is pinned: temperature 0, a fixed seed, its reply bound to a
JSON schema and read strictly. A reply that cannot be read is asked for again with another seed, then counted
apart (`grader_failed`). A question that failed is no verdict either (`grader_error`): were it an error of
Inspect's, the epoch would be missing, and the others would decide alone.

What could not be scored is no score: such a value is NaN, which Inspect leaves out of every figure and counts
(`unscored_samples`); a figure of nothing is NaN, where Inspect's own `mean` says 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.log import EvalLog
from inspect_ai.model import CachePolicy, ResponseSchema
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
)
from inspect_ai.solver import TaskState
from inspect_ai.util import LimitExceededError, json_schema

from pipeline.evaluate.benchmark import JudgeRequest, Prompt
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.evaluate.benchmarks.prompts import judged_text
from pipeline.evaluate.majority import Auditor, Judged, means, numeric_scores
from pipeline.evaluate.plan import JUDGE_RETRIES, JUDGING
from pipeline.evaluate.statistics import ItemScores, clustered_error
from pipeline.evaluate.tasks.samples import Asked, asked_of, chat, generation_of, of_march
from pipeline.evaluate.tasks.served import generate_config, grader, grader_sampler
from reward.auditor import audit
from reward.config import AuditConfig, SamplingSettings
from reward.roles.prompts import load_prompts
from reward.types import ClaimState, Outcome, Verdict

NAN = float("nan")
GRADER_FAILED, GRADER_ERROR = "grader_failed", "grader_error"
# In the metadata of an epoch's score. A verdict's has MEASURED and JUDGED by prompt; an audit's has AUDITOR
# and VERDICT. Of an epoch without an answer only the first of them is there.
MEASURED, JUDGED, AUDITOR, VERDICT = "measured", "judged", "auditor", "verdict"
_REASONS = (GRADER_ERROR, GRADER_FAILED, "invalid_response_format")  # the first one tells of several
_UNSCORED = {Outcome.UNSCORED: "scoring_failed", Outcome.NO_CLAIMS: "no_numbers"}
_RETRY_TEMPERATURE = 0.6  # at 0 the reply would be the same
_HEAD = ("", "| claim | found | documents say | evidence |", "|---|---|---|---|")

Scores = Mapping[str, float | None]


# Without "march/" before them, as the viewer's narrow columns show the first letters of a name.
@metric(name="average")
@of_march
def average() -> Metric:
    """The mean over the items that have the score; NaN where none has."""

    def compute(scores: list[SampleScore]) -> Value:
        return math.fsum(one.score.as_float() for one in scores) / len(scores) if scores else NAN

    return compute


@metric(name="se")
@of_march
def standard_error() -> Metric:
    """Its standard error, clustered by document; NaN with fewer than two documents."""

    def compute(scores: list[SampleScore]) -> Value:
        found = [(str((one.sample_metadata or {})["cluster"]), one.score.as_float()) for one in scores]
        error = clustered_error(found)
        return NAN if error is None else error

    return compute


FIGURES: Mapping[str, Sequence[Metric]] = {"*": (average(), standard_error())}  # of every score of a scorer


@scorer(metrics=FIGURES, name="march/verdict")
@of_march
def verdict(
    retries: int = JUDGE_RETRIES,
    schema: bool = True,
    cache: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Scorer:
    """Judges each answer by itself; beside the verdict is what a rule measures, as official EM and F1.

    Args:
        retries: Further questions to the judge after a reply that cannot be read.
        schema: Whether its server is asked to bind the reply to the JSON schema.
        cache: Whether the judge's first replies are kept by Inspect and reused for equal questions.
        settings: How it is sampled (`SamplingSettings`), where not as usual.
    """
    judging = SamplingSettings.model_validate(settings) if settings else JUDGING

    async def reply(request: JudgeRequest, attempt: int) -> str:
        config = generate_config(judging)
        if attempt:  # the answer to an unread reply is another one each time
            config.temperature = max(judging.temperature, _RETRY_TEMPERATURE)
            config.seed = (judging.seed or 0) + attempt
        elif cache:
            config.cache = CachePolicy(expiry=None, per_epoch=False)  # equal answers are one question
        if schema and request.verdict is not None:
            bound = json_schema(request.verdict)
            config.response_schema = ResponseSchema(name="verdict", json_schema=bound, strict=True)
        return generation_of(await grader().generate(chat(request.messages), config=config)).text

    async def judge(asked: Asked, prompt: Prompt, text: str) -> Judged:
        request = asked.benchmark.judge_request(asked.item, prompt, text)
        if request is None:
            return Judged(judgement=asked.benchmark.read_judgement(asked.item, prompt, text))
        replies, found = list[str](), None
        try:
            while found is None and len(replies) <= retries:
                replies.append(await reply(request, len(replies)))
                found = asked.benchmark.read_judgement(asked.item, prompt, replies[-1])
        except LimitExceededError:
            raise
        except Exception as error:  # each provider has its own
            return Judged(error=f"{type(error).__name__}: {error}")
        return Judged(judgement=found, replies=tuple(replies))

    async def score(state: TaskState, target: Target) -> Score:
        asked = asked_of(state)
        benchmark, answers = asked.benchmark, asked.answers(state.output)
        measured = {name: benchmark.measured(asked.item, name, one.text) for name, one in answers.items()}
        if failures := [one.failure for one in answers.values() if one.failure]:
            nothing = {name: dict.fromkeys(values) for name, values in measured.items()}
            return _unanswered({**asked.about, MEASURED: nothing}, failures[0])
        found = {one.name: await judge(asked, one, answers[one.name].text) for one in asked.prompts}
        primary = benchmark.card.primary
        passed = benchmark.by_majority({name: [one.judgement] for name, one in found.items()})[primary]
        values = {primary: passed} | {name: one for each in measured.values() for name, one in each.items()}
        reasons = [_reason(one) for one in found.values() if one.judgement is None]
        kept = {name: one.model_dump(mode="json") for name, one in found.items()}
        return Score(
            value=NAN if set(values.values()) == {None} else _values(values),
            answer="\n\n".join(judged_text(name, one.text) for name, one in answers.items()),
            explanation="\n\n".join(f"**{name}: {_said(one)}" for name, one in found.items()),
            reason=min(reasons, key=_REASONS.index) if passed is None else None,
            metadata={**asked.about, JUDGED: kept, MEASURED: measured},
        )

    return score


@scorer(metrics=FIGURES, name="march/numbers")
@of_march
def numbers(auditor: Auditor = "lexical", settings: Mapping[str, Any] | None = None) -> Scorer:
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
        about = {**asked.about, AUDITOR: auditor}
        if generation.failure:
            return _unanswered(about, generation.failure)
        text = judged_text(name, generation.text)
        sampler = await grader_sampler() if auditor == "model" else None
        result = await audit(asked.item.query, text, sampler=sampler, prompts=prompts, config=config)
        found, primary = result.verdict, f"numeric_{auditor}"
        reason = _UNSCORED.get(found.outcome)
        return Score(
            value=NAN if reason else _values({primary: numeric_scores(auditor, [found])[primary]}),
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
        if "benchmark" not in (about := kept[0]):
            return mean_score()(scores)
        key, reduced = (VERDICT, _audited) if AUDITOR in about else (JUDGED, _judged)
        answered = [one for one in kept if key in one]
        found = reduced(about, answered if 2 * len(answered) >= len(scores) else [])
        named = {name: about[name] for name in ("benchmark", "slice", "cluster")}
        return Score(value=_values(found), metadata={**named, "epochs": len(scores)})

    return reduce


def item_scores(log: EvalLog) -> list[ItemScores]:
    """The scores of every item of a log, as the statistics read them.

    Raises:
        ValueError: the log was not reduced by `march/majority`.
    """
    items: dict[str, ItemScores] = {}
    for reduction in log.reductions or ():
        for one in reduction.samples:
            about, item = one.metadata or {}, str(one.sample_id)
            if "cluster" not in about or not isinstance(one.value, Mapping):
                said = f"{log.location}: {reduction.reducer}: is not march/majority; score it again"
                raise ValueError(said)
            values = {name: float(str(value)) for name, value in one.value.items()}
            scores = dict(items[item].scores) if item in items else {}
            scores |= {name: None if math.isnan(value) else value for name, value in values.items()}
            items[item] = ItemScores(item=item, slice=about["slice"], cluster=about["cluster"], scores=scores)
    return list(items.values())


def _judged(about: Mapping[str, Any], answered: Sequence[Mapping[str, Any]]) -> Scores:
    judged, measured = {}, dict[str, float | None]()  # every item has every name, or Inspect has no figures
    for prompt, names in about[MEASURED].items():
        judged[prompt] = [Judged.model_validate(one[JUDGED][prompt]).judgement for one in answered]
        measured |= dict.fromkeys(names) | means([one[MEASURED][prompt] for one in answered])
    return {**make_benchmark(about["benchmark"]).by_majority(judged), **measured}


def _audited(about: Mapping[str, Any], answered: Sequence[Mapping[str, Any]]) -> Scores:
    return numeric_scores(about[AUDITOR], [Verdict.model_validate(one[VERDICT]) for one in answered])


def _values(scores: Scores) -> dict[str, str | int | float | bool | None]:
    """Scores as a value of Inspect's."""
    return {name: NAN if score is None else score for name, score in scores.items()}


def _unanswered(about: Mapping[str, Any], failure: str) -> Score:
    """The score of an epoch in which the model gave no answer: none."""
    explanation = f"The model gave no answer: {failure}."
    return Score.unscored(reason=failure, explanation=explanation, metadata=dict(about))


def _reason(found: Judged) -> str:
    """Why there is no judgement."""
    return GRADER_ERROR if found.error else GRADER_FAILED if found.replies else _REASONS[-1]


def _said(found: Judged) -> str:
    if found.judgement is None:
        return f"could not be judged** {found.error}".strip()
    return f"{found.judgement.label}**\n\n{found.judgement.reason}"


def _table(verdict: Verdict, text: str) -> str:
    """The claims as a table of Markdown."""
    lines = [f"**{verdict.outcome.value}** {verdict.detail or verdict.reason}".strip()]
    lines += _HEAD if verdict.claims else ()
    for one in verdict.claims:
        span, state = one.claim.span, one.state.value.replace("_", " ")
        claimed = text[span.start : span.end] if span else one.claim.answer
        found = state if one.state is ClaimState.SUPPORTED else f"**{state}**"
        evidence = next((vote.evidence for vote in one.votes if vote and vote.evidence), one.note)
        cells = (claimed, found, one.consensus or "", evidence)
        shown = (" ".join(str(cell).split()).replace("|", "\\|") for cell in cells)
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)

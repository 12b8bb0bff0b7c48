"""What Inspect's logs of an evaluation say: the items with their scores, and what went wrong.

A log holds a sample for each item and epoch. Its scores' metadata keep judgements and audits; the majority
over the epochs stands in its reductions (`tasks/scores.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from inspect_ai.log import EvalLog, EvalSample, ProvenanceData, invalidate_samples, write_eval_log
from inspect_ai.model import ModelUsage

from pipeline.evaluate.benchmark import Item, Prompt
from pipeline.evaluate.majority import Judgement
from pipeline.evaluate.plan import PlannedBenchmark
from pipeline.evaluate.results import Counts, ItemResult, JudgedGeneration
from pipeline.evaluate.tasks.grader import ROLE
from pipeline.evaluate.tasks.samples import NO_RESPONSE, Generation, asked_of, generations_of
from pipeline.evaluate.tasks.scores import JUDGED, REPLIES, VERDICT, item_scores
from pipeline.evaluate.tasks.verdict import GRADER_ERROR, GRADER_FAILED
from reward.offline.resume import FINAL_REASONS
from reward.types import Outcome, TokenUse, Verdict

_TOO_LONG = "model_length"


@dataclass(frozen=True)
class _Part:
    """What the model wrote to one prompt, and what was said of it."""

    item: str
    prompt: str
    made: Generation
    judgement: Judgement | None
    replies: Sequence[str]  # of the judge
    verdict: Verdict | None  # of the audit


def answered_samples(log: EvalLog) -> dict[tuple[str, int], EvalSample]:
    """The samples in which the model answered, by item and epoch."""
    found = (one for one in log.samples or () if one.error is None and is_answered(one))
    return {(str(one.id), one.epoch): one for one in found}


def results_of(one: PlannedBenchmark, answers: EvalLog | None, log: EvalLog) -> list[ItemResult]:
    """The result of every item, in order.

    Args:
        one: The benchmark.
        answers: The log of the model's answers; None where they are given.
        log: The log of their judgements.

    Raises:
        ValueError: the log holds more items than are asked for.
    """
    samples: dict[str, list[_Part]] = defaultdict(list)
    for part in _parts(one, answers, log):
        samples[part.item].append(part)
    if extra := {str(sample.id) for sample in log.samples or ()} - {item.id for item in one.asked}:
        raise ValueError(
            f"{log.location}: item {min(extra)!r} is beyond --limit; leave --limit out, or --overwrite"
        )
    scores = {found.item: found.scores for found in item_scores(log)}
    return [_result(one, item, samples[item.id], scores.get(item.id, {})) for item in one.asked]


def count(one: PlannedBenchmark, answers: EvalLog | None, log: EvalLog) -> Counts:
    """Counts what a benchmark's results rest on.

    Args:
        one: The benchmark.
        answers: The log of the model's answers; None where they are given.
        log: The log of their judgements.
    """
    parts = list(_parts(one, answers, log))
    failures = Counter(part.made.failure for part in parts if part.made.failure)
    made = [part for part in parts if not part.made.failure]
    num_judged = sum(part.judgement is not None for part in made)
    num_unread = sum(bool(part.replies) and part.judgement is None for part in made)
    return Counts(
        num_items=len(one.asked),
        num_generations=len(made),
        num_truncated=sum(part.made.is_cut for part in made),
        num_too_long=failures.pop(_TOO_LONG, 0),
        num_failed=failures.total(),
        num_judgements=num_judged,
        num_unread=num_unread,
        num_unjudged=len(made) - num_judged - num_unread,
        num_retries=sum(len(part.replies) - 1 for part in made if part.replies),
        num_unaudited=sum(
            part.verdict is not None and part.verdict.outcome is Outcome.UNSCORED for part in made
        ),
        model_use=_use(answers.stats.model_usage.values()) if answers else None,
        judge_use=_use([log.stats.role_usage[ROLE]]) if ROLE in log.stats.role_usage else None,
    )


def ask_again(log: EvalLog, is_final: Callable[[EvalSample], bool]) -> None:
    """Has Inspect ask again for what is not final."""
    again = [one.uuid for one in log.samples or () if one.uuid and not is_final(one)]
    if again and log.status != "started":  # of a kill: Inspect recovers it first
        told = ProvenanceData(timestamp=datetime.now(UTC), author="march", reason="could not be read")
        write_eval_log(invalidate_samples(log, again, told))


def is_answered(sample: EvalSample) -> bool:
    """Whether the model gave its answers, or never will."""
    made = generations_of(sample, asked_of(sample).prompts)
    return all(one.failure != NO_RESPONSE for one in made.values())


def is_judged(sample: EvalSample) -> bool:
    """Whether a sample needs no other judgement or audit: all was read, or fails for good."""
    score, verdict = (sample.scores or {}).get("verdict"), _verdict(sample)
    is_read = score is not None and score.reason not in (GRADER_FAILED, GRADER_ERROR)
    is_audited = verdict is None or verdict.outcome is not Outcome.UNSCORED
    return is_read and (is_audited or (verdict is not None and verdict.reason in FINAL_REASONS))


def _result(
    one: PlannedBenchmark, item: Item, parts: Sequence[_Part], scores: Mapping[str, float | None]
) -> ItemResult:
    failures = [part.made.failure for part in parts if part.made.failure]
    order = [prompt.name for prompt in one.prompts(item)]
    made = sorted(
        (part for part in parts if not part.made.failure), key=lambda part: order.index(part.prompt)
    )
    return ItemResult(
        item=item.id,
        slice=item.slice,
        cluster=item.cluster,
        scores=dict(scores),
        failure="prompt_too_long" if _TOO_LONG in failures else "failed" if failures else "",
        generations=tuple(_judged(part) for part in made),
    )


def _judged(part: _Part) -> JudgedGeneration:
    return JudgedGeneration(
        prompt=part.prompt,
        text=part.made.text,
        is_cut=part.made.is_cut,
        judgement=part.judgement,
        reply=part.replies[-1] if part.replies else None,
        verdict=part.verdict,
    )


def _parts(one: PlannedBenchmark, answers: EvalLog | None, log: EvalLog) -> Iterator[_Part]:
    """By epoch. What the model wrote is taken from its own log."""
    prompts = {item.id: one.prompts(item) for item in one.asked}
    answered = answered_samples(answers) if answers else {}
    for sample in sorted(log.samples or (), key=lambda sample: sample.epoch):
        item, about, verdict = str(sample.id), _metadata(sample, "verdict"), _verdict(sample)
        for name, made in _made(answered.get((item, sample.epoch)), prompts.get(item, ())).items():
            found = about.get(JUDGED, {}).get(name)
            judgement = Judgement.model_validate(found) if found else None
            yield _Part(item, name, made, judgement, about.get(REPLIES, {}).get(name, ()), verdict)


def _made(sample: EvalSample | None, prompts: Sequence[Prompt]) -> Mapping[str, Generation]:
    """What the model wrote to each prompt, or the given answer."""
    if sample is not None:
        return generations_of(sample, prompts)
    nothing = Generation("", NO_RESPONSE)
    return {one.name: nothing if one.given is None else Generation(one.given) for one in prompts}


def _verdict(sample: EvalSample) -> Verdict | None:
    found = _metadata(sample, "numbers").get(VERDICT)
    return Verdict.model_validate(found) if found else None


def _metadata(sample: EvalSample, scorer: str) -> dict[str, Any]:
    score = (sample.scores or {}).get(scorer)
    return score.metadata or {} if score else {}


def _use(usages: Iterable[ModelUsage]) -> TokenUse | None:
    found = list(usages)
    used = TokenUse(
        num_prompt=sum(one.input_tokens for one in found),
        num_completion=sum(one.output_tokens for one in found),
    )
    return used if used.num_prompt else None

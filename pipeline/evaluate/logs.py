"""What Inspect's logs of an evaluation say: the items with their scores, and what went wrong.

A log holds a sample for each item and epoch. Its scores' metadata keep judgements and audits; the majority
over the epochs is in its reductions (`tasks/scores.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
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


def answered_samples(log: EvalLog) -> dict[tuple[str, int], EvalSample]:
    """The samples in which the model answered, by item and epoch."""
    found = (one for one in log.samples or () if one.error is None and is_answered(one))
    return {(str(one.id), one.epoch): one for one in found}


def read_log(one: PlannedBenchmark, log: EvalLog, answers: EvalLog | None) -> tuple[list[ItemResult], Counts]:
    """The result of every item, in order, and what they rest on.

    Args:
        one: The benchmark.
        log: Of its judgements.
        answers: The log of the model's answers, for its tokens; None where they are given.

    Raises:
        ValueError: the log holds more items than are asked for.
    """
    samples: dict[str, list[EvalSample]] = defaultdict(list)
    for sample in sorted(log.samples or (), key=lambda sample: sample.epoch):
        samples[str(sample.id)].append(sample)
    if extra := samples.keys() - {item.id for item in one.asked}:
        raise ValueError(
            f"{log.location}: item {min(extra)!r} is beyond --limit; leave --limit out, or --overwrite"
        )
    scores = {found.item: found.scores for found in item_scores(log)}
    count = Counter(num_items=len(one.asked))
    items = [
        _result(item, one.prompts(item), samples[item.id], scores.get(item.id, {}), count)
        for item in one.asked
    ]
    uses = {
        "model_use": _use(answers.stats.model_usage.values() if answers else ()),
        "judge_use": _use([log.stats.role_usage[ROLE]] if ROLE in log.stats.role_usage else ()),
    }
    return items, Counts.model_validate({**count, **uses})


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
    item: Item,
    prompts: Sequence[Prompt],
    samples: Sequence[EvalSample],
    scores: Mapping[str, float | None],
    count: Counter[str],
) -> ItemResult:
    generations, failures = [], []
    for prompt in prompts:
        for sample in samples:
            made = generations_of(sample, prompts)[prompt.name]
            if made.failure:
                failures.append(made.failure)
            else:
                generations.append(_judged(sample, prompt.name, made, count))
    num_too_long = failures.count(_TOO_LONG)
    count.update(num_too_long=num_too_long, num_failed=len(failures) - num_too_long)
    return ItemResult(
        item=item.id,
        slice=item.slice,
        cluster=item.cluster,
        scores=dict(scores),
        failure="prompt_too_long" if num_too_long else "failed" if failures else "",
        generations=tuple(generations),
    )


def _judged(sample: EvalSample, prompt: str, made: Generation, count: Counter[str]) -> JudgedGeneration:
    about, verdict = _metadata(sample, "verdict"), _verdict(sample)
    found, replies = about.get(JUDGED, {}).get(prompt), about.get(REPLIES, {}).get(prompt, ())
    count.update(
        num_generations=1,
        num_truncated=made.is_cut,
        num_judgements=bool(found),
        num_unread=bool(replies) and not found,
        num_unjudged=not replies and not found,
        num_retries=len(replies[1:]),
        num_unaudited=verdict is not None and verdict.outcome is Outcome.UNSCORED,
    )
    return JudgedGeneration(
        prompt=prompt,
        text=made.text,
        is_cut=made.is_cut,
        judgement=Judgement.model_validate(found) if found else None,
        reply=replies[-1] if replies else None,
        verdict=verdict,
    )


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

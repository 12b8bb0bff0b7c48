"""What Inspect's logs of an evaluation say: the items with their scores, and what went wrong.

A log holds a sample for each item and epoch. Its scores' metadata keep judgements and audits; the majority
over the epochs is in its reductions (`tasks/scorers.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from inspect_ai.log import (
    EvalLog,
    EvalSample,
    ProvenanceData,
    invalidate_samples,
    list_eval_logs,
    read_eval_log,
    write_eval_log,
)
from inspect_ai.model import ModelUsage

from pipeline.evaluate.benchmark import Item
from pipeline.evaluate.plan import EvaluationJob, PlannedBenchmark, Stage
from pipeline.evaluate.results import Counts, ItemResult, JudgedGeneration, count
from pipeline.evaluate.tasks.samples import Generation, asked_of
from pipeline.evaluate.tasks.scorers import (
    GRADER_ERROR,
    GRADER_FAILED,
    JUDGED,
    VERDICT,
    item_scores,
)
from pipeline.evaluate.tasks.served import ROLE
from reward.offline.resume import FINAL_REASONS
from reward.types import Outcome, TokenUse, Verdict


def newest_logs(job: EvaluationJob, stage: Stage) -> dict[str, EvalLog]:
    """The newest log of each benchmark."""
    folder = job.log_dir(stage)
    infos = list_eval_logs(str(folder), descending=False) if folder.is_dir() else []
    return {log.eval.task: log for log in map(read_eval_log, infos)}


def answered_samples(log: EvalLog) -> dict[tuple[str, int], EvalSample]:
    """The samples in which the model answered, by item and epoch."""
    return {(str(one.id), one.epoch): one for one in log.samples or () if one.error is None}


def read_log(one: PlannedBenchmark, log: EvalLog, answers: EvalLog | None) -> tuple[list[ItemResult], Counts]:
    """The result of every item, in order, and what they rest on.

    Args:
        one: The benchmark.
        log: Of its judgements.
        answers: The log of the model's answers, for its tokens; None where they are given.
    """
    samples: dict[str, list[EvalSample]] = defaultdict(list)
    for sample in sorted(log.samples or (), key=lambda sample: sample.epoch):
        samples[str(sample.id)].append(sample)
    scores = {found.item: found.scores for found in item_scores(log)}
    items = [_result(item, samples[item.id], scores.get(item.id, {})) for item in one.asked]
    model_use = _use(answers.stats.model_usage.values() if answers else ())
    judge_use = _use([log.stats.role_usage[ROLE]] if ROLE in log.stats.role_usage else ())
    return items, count(items, model_use=model_use, judge_use=judge_use)


def ask_again(log: EvalLog) -> None:
    """Has Inspect ask again for what was not judged or audited, and may yet be."""
    again = [one.uuid for one in log.samples or () if one.uuid and not _is_final(one)]
    if again and log.status != "started":  # of a kill: Inspect recovers it first
        provenance = ProvenanceData(timestamp=datetime.now(UTC), author="march", reason="could not be read")
        write_eval_log(invalidate_samples(log, again, provenance))


def _is_final(sample: EvalSample) -> bool:
    score, verdict = (sample.scores or {}).get("verdict"), _verdict(sample)
    if score is None or score.reason in (GRADER_FAILED, GRADER_ERROR):
        return False
    return verdict is None or verdict.outcome is not Outcome.UNSCORED or verdict.reason in FINAL_REASONS


def _result(item: Item, samples: Sequence[EvalSample], scores: Mapping[str, float | None]) -> ItemResult:
    generations, failures = [], []
    for sample in samples:
        for prompt, made in asked_of(sample).answers(sample.output).items():
            if made.failure:
                failures.append(made.failure)
            else:
                generations.append(_judged(sample, prompt, made))
    # All answers to a prompt are side by side.
    prompts = list(dict.fromkeys(one.prompt for one in generations))
    return ItemResult(
        item=item.id,
        slice=item.slice,
        cluster=item.cluster,
        scores=dict(scores),
        failures=tuple(failures),
        generations=tuple(sorted(generations, key=lambda one: prompts.index(one.prompt))),
    )


def _judged(sample: EvalSample, prompt: str, made: Generation) -> JudgedGeneration:
    judged = _metadata(sample, "verdict").get(JUDGED, {}).get(prompt, {})
    about = {"prompt": prompt, "text": made.text, "is_cut": made.is_cut, "verdict": _verdict(sample)}
    return JudgedGeneration.model_validate({**judged, **about})


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

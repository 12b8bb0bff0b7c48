"""What an evaluation found, item by item: worked out from what was kept, and written in the items' order.

    OUT/BENCHMARK/items.jsonl    one item a line: its scores, its generations, their judgements and audits

Judgements are read out of the judge's replies here, so that scores can be worked out again without a judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field, ValidationError

from pipeline.evaluate.benchmark import Item, Judged, Judgement, Prompt
from pipeline.evaluate.generate import texts_of
from pipeline.evaluate.majority import item_scores
from pipeline.evaluate.numeric_faithfulness import Auditor, numeric_scores
from pipeline.evaluate.plan import AuditKind, Plan, PlannedBenchmark
from pipeline.evaluate.statistics import ItemScores
from pipeline.evaluate.store import Store, total_use
from reward.types import Outcome, Record, TokenUse, Verdict

ITEMS_FILE = "items.jsonl"


class JudgedGeneration(Record):
    """One generation and everything that was said of it."""

    prompt: str = Field(description="Name of the prompt.")
    text: str
    finish_reason: str = Field(default="", description="Empty where the response was given.")
    judgement: Judgement | None = None
    reply: str | None = Field(default=None, description="The judge's last; None where no judge was asked.")
    verdict: Verdict | None = Field(default=None, description="Of the audit of its numbers.")


class ItemResult(ItemScores):
    """One item's scores and what they rest on."""

    failure: str = Field(default="", description="Why there is no generation at all.")
    generations: tuple[JudgedGeneration, ...] = ()


class Counts(Record):
    """What was asked of a benchmark's items, and what went wrong; nothing of it is a score."""

    num_items: int = 0
    num_generations: int = 0
    num_truncated: int = Field(default=0, description="Generations that were cut at max_tokens.")
    num_too_long: int = Field(default=0, description="Prompts that do not fit the model.")
    num_failed: int = Field(default=0, description="Prompts without an answer: the same command asks again.")
    num_judgements: int = Field(default=0, description="Of the judge, or by rule.")
    num_unread: int = Field(default=0, description="Replies that could not be read, after all retries.")
    num_unjudged: int = Field(default=0, description="Generations that no judge has answered for.")
    num_retries: int = Field(default=0, description="Questions to the judge beyond the first.")
    num_unaudited: int = Field(default=0, description="Answers whose audit failed.")
    model_use: TokenUse | None = Field(default=None, description="None where the server does not tell all.")
    judge_use: TokenUse | None = None


def results(plan: Plan, one: PlannedBenchmark, store: Store) -> Iterator[ItemResult]:
    """Yields the result of every item, in order."""
    for item in one.items:
        prompts = one.prompts[item.id]
        generations = {prompt.name: list(_generations(one, store, item, prompt)) for prompt in prompts}
        judged = {
            name: [Judged(text=found.text, judgement=found.judgement) for found in of_prompt]
            for name, of_prompt in generations.items()
        }
        scores = item_scores(one.benchmark, item, judged)
        flat = tuple(found for of_prompt in generations.values() for found in of_prompt)
        yield ItemResult(
            item=item.id,
            slice=item.slice,
            cluster=item.cluster,
            scores=scores | _numeric(plan.job.audit, one, flat),
            failure=_failure(store, item, prompts),
            generations=flat,
        )


def count(one: PlannedBenchmark, store: Store, found: Sequence[ItemResult]) -> Counts:
    """Counts what a benchmark's results rest on."""
    asked = [(item, prompt) for item in one.items for prompt in one.prompts[item.id] if prompt.given is None]
    kept = [store.generations(item.id, prompt.name) for item, prompt in asked]
    generations = [generation for result in found for generation in result.generations]
    replies = [
        store.judgement(place.item, place.prompt, place.generation)
        for place in store.places
        if place.kind == "judgement"
    ]
    said = [reply for reply in replies if reply is not None]
    outcomes = Counter(one.verdict.outcome for one in generations if one.verdict)
    num_judged = sum(generation.judgement is not None for generation in generations)
    num_unread = sum(not reply.read for reply in said)
    return Counts(
        num_items=len(one.items),
        num_generations=len(generations),
        num_truncated=sum(generation.finish_reason == "length" for generation in generations),
        num_too_long=sum(record is not None and bool(record.failure) for record in kept),
        num_failed=sum(record is None for record in kept),
        num_judgements=num_judged,
        num_unread=num_unread,
        num_unjudged=len(generations) - num_judged - num_unread,
        num_retries=sum(len(reply.replies) - 1 for reply in said),
        num_unaudited=outcomes[Outcome.UNSCORED],
        model_use=total_use([record.use for record in kept if record is not None and record.texts]),
        judge_use=total_use([reply.use for reply in said]),
    )


def read_results(path: Path) -> Iterator[ItemResult]:
    """Yields the results that an evaluation wrote.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line is no result.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; give the folder of a whole evaluation")
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield ItemResult.model_validate_json(line)
            except ValidationError as error:
                raise ValueError(f"{path}:{number}: is no result of this version; evaluate again") from error


def _generations(
    one: PlannedBenchmark, store: Store, item: Item, prompt: Prompt
) -> Iterator[JudgedGeneration]:
    record = store.generations(item.id, prompt.name)
    reasons: Mapping[int, str] = dict(enumerate(record.finish_reasons)) if record else {}
    for index, text in enumerate(texts_of(store, item, prompt)):
        said = store.judgement(item.id, prompt.name, index)
        reply = said.replies[-1] if said else None
        is_ruled = said is None and one.benchmark.judge_request(item, prompt, text) is None
        read = text if is_ruled else reply
        audited = store.audit(item.id, prompt.name, index)
        yield JudgedGeneration(
            prompt=prompt.name,
            text=text,
            finish_reason=reasons.get(index, ""),
            judgement=one.benchmark.read_judgement(item, prompt, read) if read is not None else None,
            reply=reply,
            verdict=audited.verdict if audited else None,
        )


def _failure(store: Store, item: Item, prompts: Sequence[Prompt]) -> str:
    """Why a prompt of the item has no answer; empty when all have one."""
    for prompt in prompts:
        record = store.generations(item.id, prompt.name)
        if prompt.given is None and (record is None or record.failure):
            return record.failure if record else "failed"
    return ""


def _numeric(
    audit: AuditKind, one: PlannedBenchmark, generations: Sequence[JudgedGeneration]
) -> dict[str, float | None]:
    verdicts = [found.verdict for found in generations if found.verdict is not None]
    if audit is AuditKind.NONE or not (verdicts or one.is_judged):
        return {}
    auditor: Auditor = "lexical" if audit is AuditKind.LEXICAL else "model"
    return numeric_scores(auditor, verdicts)

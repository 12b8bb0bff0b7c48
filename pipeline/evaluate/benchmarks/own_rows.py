"""Rows of your own with known answers: right or wrong by rule, and no judge is asked.

    {"id": "1", "query": "How many came?", "documents": ["50 people came."], "answers": ["50", "fifty"]}
    {"id": "2", "query": "Who sang?", "documents": ["50 people came."], "unanswerable": true}

The rows of `march prepare jsonl` with another key, `answers`: several ways to write the one answer. An answer
is right if it states one of them, by the audit's own kinds of claims ("on July 10, 1883" states "10 July
1883"), and no other number or date where the answer is one; what is no claim ("yes", "the first film") is
looked for word by word. Where no document answers, an abstention is right. `jsonl` asks in the prompts of
`audit.prompts: full`, `jsonl_compact` in those of `compact`, as the model was trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from pipeline.data.plain import PlainRow
from pipeline.evaluate.benchmark import Benchmark, BenchmarkCard, Item, Prompt, PromptStyle
from pipeline.evaluate.benchmarks.files import rows
from pipeline.evaluate.benchmarks.multihop import linked
from pipeline.evaluate.majority import Judgement
from pipeline.evaluate.official_qa import normalise
from reward.claims import kinds_for, targets_of
from reward.claims.kind import Target
from reward.config import AuditConfig
from reward.judging.unjudged import abstains
from reward.roles.prompts import load_prompts
from reward.types import RagQuery

_CONFIG = AuditConfig(kinds=("number", "name", "date"))


class _Row(PlainRow):
    answers: tuple[Annotated[str, Field(min_length=1)], ...] = ()

    @model_validator(mode="after")
    def _has_a_known_answer(self) -> Self:
        if bool(self.answers) == self.unanswerable:
            raise ValueError("answers: give at least one, or unanswerable: true and none")
        return self


class OwnRows(Benchmark):
    """The benchmark `jsonl`."""

    prompt_set = "full"
    card = BenchmarkCard(
        name="jsonl",
        title="Your rows",
        url="docs/evaluation-benchmarks.md",
        licence="yours",
        primary="right",
        scored_by="rule: it states the known answer; or a right abstention",
        styles=(PromptStyle.PLAIN,),
        prompt_digest=load_prompts(prompt_set).digest,
    )

    def items(self, source: Path) -> Iterator[Item]:
        """The rows; those that share a document are one cluster. See `Benchmark.items`."""
        found = [(row, query) for place, row in rows(source, _Row) for query in row.queries(place)]
        clusters = linked([[one.text for one in query.documents] for _, query in found])
        for (row, query), cluster in zip(found, clusters, strict=True):
            yield Item(
                id=row.id,
                slice="no document answers" if row.unanswerable else "answerable",
                cluster=found[cluster][0].id,
                # Without its mark, which would decide what an audit says of the answers.
                query=query.model_copy(update={"unanswerable": False}),
                references=row.answers,
            )

    def prompts(self, item: Item, style: PromptStyle) -> tuple[Prompt, ...]:
        """The Solver's chat, as in training."""
        return (Prompt(name=style.value, messages=tuple(load_prompts(self.prompt_set).solver(item.query))),)

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement:
        """What the known answers say of a reply."""
        answers = item.references
        passed = any(states(item.query, reply, one) for one in answers) if answers else abstains(reply)
        return Judgement(passed=passed, label="right" if passed else "wrong")


class CompactOwnRows(OwnRows):
    """The benchmark `jsonl_compact`."""

    prompt_set = "compact"
    card = OwnRows.card.model_copy(
        update={"name": "jsonl_compact", "prompt_digest": load_prompts(prompt_set).digest}
    )


def states(query: RagQuery, reply: str, answer: str) -> bool:
    """Whether a reply states a known answer."""
    kinds = kinds_for(_CONFIG, query, reply)
    wanted = targets_of(answer, kinds)
    if not wanted:
        return f" {normalise(answer)} " in f" {normalise(reply)} "
    said = targets_of(reply, kinds)
    named = targets_of(query.query, kinds)
    stated = [one for one in said if any(_same(one, other) for other in wanted)]
    beside = [one for one in said if one not in stated and not any(_same(one, other) for other in named)]
    exact = {one.kind.name for one in wanted} - {"name"}
    return all(any(_same(one, other) for other in stated) for one in wanted) and not any(
        one.kind.name in exact for one in beside
    )


def _same(one: Target, other: Target) -> bool:
    return one.kind.name == other.kind.name and one.kind.equal(one.mention, other.mention)

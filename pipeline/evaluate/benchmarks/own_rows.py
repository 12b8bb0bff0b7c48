"""Rows of your own with known answers: right or wrong by rule, and no judge is asked.

    {"id": "1", "query": "How many came?", "documents": ["50 people came."], "answers": ["50", "fifty"]}
    {"id": "2", "query": "Who sang?", "documents": ["50 people came."], "unanswerable": true}

The rows of `march prepare jsonl` with another key, `answers`: several ways to write the one answer. An answer
is right by the rules of `pipeline.worlds.known`; where no document answers, an abstention is. `jsonl` asks in
the prompts of `audit.prompts: full`, `jsonl_compact` in those of `compact`, as the model was trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self

from pydantic import model_validator

from pipeline.data.plain import AnsweredPlainRow
from pipeline.evaluate.benchmark import Benchmark, Item, Prompt, PromptStyle
from pipeline.evaluate.benchmarks.files import rows
from pipeline.evaluate.benchmarks.multihop import linked
from pipeline.evaluate.benchmarks.replies import judged_text
from pipeline.evaluate.majority import Judgement
from pipeline.worlds.known import is_right


class _Row(AnsweredPlainRow):
    @model_validator(mode="after")
    def _has_a_known_answer(self) -> Self:
        if not (self.answers or self.unanswerable):
            raise ValueError("answers: give at least one, or unanswerable: true")
        return self


class OwnRows(Benchmark):
    """The benchmark `jsonl`."""

    name, title, licence = "jsonl", "Your rows", "yours"
    url = "docs/evaluation-benchmarks.md"
    primary, scored_by = "right", "rule: it states the known answer; or a right abstention"
    styles = (PromptStyle.PLAIN,)
    prompt_set = "full"

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

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement:
        """What the known answers say of a reply."""
        query = item.query.model_copy(update={"unanswerable": not item.references})
        passed = bool(is_right(query, judged_text(prompt.name, reply), item.references))
        return Judgement(passed=passed, label="right" if passed else "wrong")


class CompactOwnRows(OwnRows):
    """The benchmark `jsonl_compact`."""

    name, prompt_set = "jsonl_compact", "compact"

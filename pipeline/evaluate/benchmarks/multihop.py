"""What HotpotQA, 2WikiMultihopQA and MuSiQue share: short answers to questions that take several documents.

The model is given the question and its paragraphs and answers in one of three styles (paper, Table 4); a
judge holds each answer against the reference. The paper takes the first 500 rows of the development sets.
Beside the judge's accuracy stand the official EM and F1 of the answer line, as means over the generations,
and `numeric_em` for references that are numbers (`pipeline/evaluate/official_qa.py`).

The ten examples of the 10-shot style are rows of 2WikiMultihopQA's train split with the paragraphs that they
need, for all three benchmarks. One that shares its question or a paragraph with an item is passed over.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pipeline.data.rows import QuestionRow
from pipeline.evaluate.benchmark import Benchmark, BenchmarkCard, Item, PromptStyle
from pipeline.evaluate.benchmarks.files import published, rows
from pipeline.evaluate.benchmarks.prompts import load_texts, shots_digest
from pipeline.evaluate.benchmarks.replies import JudgeVerdict, judged_text, last_answer
from pipeline.evaluate.majority import Judgement
from pipeline.evaluate.official_qa import best_of, exact_match, numeric_match

TEXTS = "multihop_qa"
NUM_ROWS = 500


class _Verdict(JudgeVerdict):
    reasoning: str = Field(description="Why, before the verdict.")
    verdict: Literal["correct", "incorrect"]

    @property
    def judgement(self) -> Judgement:
        return Judgement(passed=self.verdict == "correct", label=self.verdict, reason=self.reasoning)


class AnsweredRow(QuestionRow):
    """A row for training with what tells its answer."""

    answer: Annotated[str, Field(min_length=1)]
    answer_aliases: tuple[str, ...] = ()
    answer_id: str | None = None
    type: str = "all"

    @property
    def slice(self) -> str:
        """What figures are also given by."""
        return self.type

    @abstractmethod
    def irrelevant(self) -> list[int] | None:
        """The places of the paragraphs that the answer does not take; None where the file does not tell."""


class MultiHopBenchmark(Benchmark):
    """One of the three; a subclass says what a row is."""

    texts, verdict = TEXTS, _Verdict
    file: ClassVar[str]  # as it is published
    row: ClassVar[type[AnsweredRow]]

    @staticmethod
    @abstractmethod
    def f1(prediction: str, gold: str) -> float:
        """The official F1 of one answer."""

    def aliases(self, file: Path) -> Mapping[str, tuple[str, ...]]:
        """Other names of an answer by its id, where the release has a file of them."""
        return {}

    def items(self, source: Path) -> Iterator[Item]:
        """Yields the first rows of the file, or of the folder that holds it; see `Benchmark.items`."""
        (file,) = published(source, self.file, url=self.card.url, renamed=True)
        aliases = self.aliases(file)
        first = islice(rows(file, self.row), NUM_ROWS)
        found = [(row, query) for place, row in first for query in row.queries(place)]
        needed = []
        for row, query in found:
            irrelevant = row.irrelevant()
            if irrelevant is None:
                irrelevant = list(range(len(query.documents)))
            needed.append([one.text for place, one in enumerate(query.documents) if place not in irrelevant])
        for (row, query), cluster in zip(found, linked(needed), strict=True):
            others = [one for one in aliases.get(row.answer_id or "", ()) if one != row.answer]
            yield Item(
                id=row.id,
                slice=row.slice,
                cluster=found[cluster][0].id,
                query=query,
                references=(row.answer, *row.answer_aliases, *dict.fromkeys(others)),
            )

    def measured(self, item: Item, prompt: str, generation: str) -> Mapping[str, float | None]:
        """Official EM and F1 of the last "Answer:" line, or of all without one; they need no judge."""
        text = judged_text(prompt, generation)
        answer = last_answer(text) or text
        return {
            "em": best_of(exact_match, answer, item.references),
            "f1": best_of(self.f1, answer, item.references),
            "numeric_em": numeric_match(answer, item.references),
        }


def multihop_card(name: str, title: str, url: str, licence: str, script: str) -> BenchmarkCard:
    """The card of one of the three; `script` is the official scorer's name."""
    return BenchmarkCard(
        name=name,
        title=title,
        url=url,
        licence=licence,
        primary="accuracy",
        scored_by=f"judge against the reference; EM and F1 as {script}",
        styles=tuple(PromptStyle),
        prompt_digest=hashlib.sha256(f"{load_texts(TEXTS).digest}{shots_digest()}".encode()).hexdigest(),
    )


def linked(needed: Sequence[Iterable[str]]) -> list[int]:
    """Groups rows that need a paragraph in common, directly or over others.

    Returns:
        For each row the first row of its group.
    """
    groups, first = list(range(len(needed))), dict[str, int]()
    for row, keys in enumerate(needed):
        joined = {row, *(groups[first.setdefault(key, row)] for key in keys)}
        groups = [min(joined) if group in joined else group for group in groups]
    return groups

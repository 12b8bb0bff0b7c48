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
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from pipeline.evaluate.benchmark import Benchmark, Item, JudgeRequest, Prompt, PromptStyle
from pipeline.evaluate.benchmarks.prompts import load_texts, shots_digest
from pipeline.evaluate.benchmarks.replies import (
    judged_text,
    last_answer,
    read_json,
    schema_of,
)
from pipeline.evaluate.majority import Judgement
from pipeline.evaluate.official_qa import best_of, exact_match, numeric_match
from reward.types import RagQuery, Record

TEXTS = "multihop_qa"
STYLES = tuple(PromptStyle)
NUM_ROWS = 500


class _Verdict(Record):
    reasoning: str = Field(description="Why, before the verdict.")
    verdict: Literal["correct", "incorrect"]


@dataclass(frozen=True)
class Question:
    """A row of a benchmark, with its answers."""

    query: RagQuery
    references: tuple[str, ...]  # the official answer first, then its aliases
    slice: str
    needed: tuple[str, ...]  # what tells the paragraphs apart that the answer takes


@dataclass(frozen=True)
class MultiHopBenchmark(Benchmark):
    """One of the three; a subclass reads the rows.

    Args:
        num_rows: How many rows of the file, from the first, are asked.
    """

    num_rows: int = NUM_ROWS
    file: ClassVar[str]  # as it is published
    texts = TEXTS

    @abstractmethod
    def questions(self, file: Path) -> Iterator[Question]:
        """Yields the rows of a file, in order.

        Raises:
            ValueError: a row is not what it must be.
        """

    @staticmethod
    @abstractmethod
    def f1(prediction: str, gold: str) -> float:
        """The official F1 of one answer."""

    def items(self, source: Path) -> Iterator[Item]:
        """Yields the first rows of the file, or of the folder that holds it under its published name.

        Raises:
            FileNotFoundError: the file is not there.
            ValueError: a row is not what it must be.
        """
        file = source / self.file if source.is_dir() else source
        if not file.is_file():
            raise FileNotFoundError(f"{file}: no such file; it is published at {self.card.url}")
        questions = list(islice(self.questions(file), self.num_rows))
        clusters = linked([question.needed for question in questions])
        for question, cluster in zip(questions, clusters, strict=True):
            yield Item(
                id=question.query.id,
                slice=question.slice,
                cluster=questions[cluster].query.id,
                query=question.query,
                references=question.references,
            )

    def judge_request(self, item: Item, prompt: Prompt, generation: str) -> JudgeRequest:
        """The question, the reference with its aliases, and the answer; no documents."""
        messages = load_texts(TEXTS).render(
            "judge",
            query=item.query.query,
            references=item.references,
            response=judged_text(prompt.name, generation),
        )
        return JudgeRequest(messages=messages, json_schema=schema_of(_Verdict))

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement | None:
        """Reads the JSON verdict."""
        found = read_json(reply, _Verdict)
        if found is None:
            return None
        return Judgement(passed=found.verdict == "correct", label=found.verdict, reason=found.reasoning)

    def measured(self, item: Item, prompt: str, generation: str) -> Mapping[str, float | None]:
        """Official EM and F1, which need no judge."""
        answer = answer_line(prompt, generation)
        return {
            "em": best_of(exact_match, answer, item.references),
            "f1": best_of(self.f1, answer, item.references),
            "numeric_em": numeric_match(answer, item.references),
        }


def answer_line(prompt: str, generation: str) -> str:
    """What EM and F1 are of: the last "Answer:" line's text, or all of it without one."""
    text = judged_text(prompt, generation)
    return last_answer(text) or text


def multihop_digest() -> str:
    """SHA-256 of the prompts and the examples of all three."""
    return hashlib.sha256(f"{load_texts(TEXTS).digest}{shots_digest()}".encode()).hexdigest()


def linked(needed: Sequence[Iterable[str]]) -> list[int]:
    """Groups rows that need a paragraph in common, directly or over others.

    Returns:
        For each row the first row of its group.
    """
    groups = list(range(len(needed)))
    first: dict[str, int] = {}

    def root(row: int) -> int:
        while groups[row] != row:
            row = groups[row]
        return row

    for row, keys in enumerate(needed):
        for key in keys:
            a, b = sorted((root(row), root(first.setdefault(key, row))))
            groups[b] = a
    return [root(row) for row in range(len(needed))]

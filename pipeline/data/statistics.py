"""The figures of the paper's Table 1, of the rows that were written.

Lengths are words between spaces, as the paper's heading says; characters are given too, because its MuSiQue
documents (11,221.72 "words") have as many characters as MuSiQue's have here. Nothing but counts is
kept of a row.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pydantic import Field

from pipeline.data.duplicates import Reason
from pipeline.data.work import WorkedRow
from reward.types import Record

_LENGTHS = ("query_words", "num_documents", "document_words", "document_chars")


class Spread(Record, extra="ignore"):  # earlier versions wrote a histogram, too
    """Mean and extremes of a length or a count."""

    mean: float
    max: int
    min: int

    @classmethod
    def of(cls, counts: Counter[int]) -> Spread:
        """The spread of values, each with how many rows have it."""
        mean = sum(value * num for value, num in counts.items()) / max(counts.total(), 1)
        return cls(mean=mean, max=max(counts, default=0), min=min(counts, default=0))


class SourceStatistics(Record):
    """Of the rows of one source, or of all."""

    source: str
    num_rows: int
    num_unanswerable: int = Field(default=0, description="Rows that their documents do not answer.")
    query_words: Spread
    num_documents: Spread = Field(description="A query.")
    document_words: Spread = Field(description="All documents of a query together.")
    document_chars: Spread = Field(description="The same in characters.")
    prompt_tokens: Spread | None = Field(default=None, description="Of the Solver's prompt, if counted.")
    irrelevant_ratio: float | None = Field(default=None, description="Irrelevant by all documents, if known.")
    unused_keys: dict[str, int] = Field(
        default_factory=dict, description="Keys that are not read, to rows that have them; removed ones, too."
    )
    shared_documents: dict[int, int] = Field(
        default_factory=dict,
        description="Documents that evaluation sets have, too, to rows of the source, removed ones included.",
    )


@dataclass(frozen=True)
class PaperRow:
    dataset: str
    num_rows: int
    query_words: float
    num_documents: tuple[float, int, int]  # mean, max, min
    document_words: tuple[float, int, int]
    irrelevant_ratio: float


PAPER = {
    "bioasq": PaperRow("STEM: BioASQ", 4721, 8.62, (9.03, 157, 1), (1314.86, 22135, 1), 0.3014),
    "2wikimultihopqa": PaperRow(
        "General: 2WikiMultiHopQA", 4500, 12.87, (10, 10, 10), (575.65, 2099, 95), 0.244
    ),
    "musique": PaperRow("General: MuSiQue", 4500, 15.85, (19.99, 20, 16), (11221.72, 20741, 4112), 0.8835),
}


class RunningStatistics:
    """The statistics of one source in the making; of a row, nothing but counts is kept."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lengths: dict[str, Counter[int]] = {name: Counter() for name in _LENGTHS}
        self._num_irrelevant = self._num_told = self._num_unanswerable = 0
        self._shared: Counter[int] = Counter()
        self._unused_keys: Counter[str] = Counter()
        self.tokens: Counter[int] = Counter()  # of prompts, if they are counted
        self.removed: Counter[Reason] = Counter()

    def add(self, row: WorkedRow, reason: Reason | None, *, num_shared: int) -> None:
        """Counts a row, and why it is left out if it is; the documents of evaluation sets in any case."""
        self._shared[num_shared] += 1
        self._unused_keys.update(row.unused_keys)
        if reason is not None:
            self.removed[reason] += 1
            return
        for name, length in row.lengths.items():
            self._lengths[name][length] += 1
        if row.num_tokens is not None:
            self.tokens[row.num_tokens] += 1
        self._num_unanswerable += row.unanswerable
        if row.num_irrelevant is not None:
            self._num_irrelevant += row.num_irrelevant
            self._num_told += row.lengths["num_documents"]

    def result(self) -> SourceStatistics:
        return SourceStatistics(
            source=self._source,
            num_rows=self._lengths["num_documents"].total(),
            num_unanswerable=self._num_unanswerable,
            **{name: Spread.of(lengths) for name, lengths in self._lengths.items()},
            prompt_tokens=Spread.of(self.tokens) if self.tokens else None,
            irrelevant_ratio=self._num_irrelevant / self._num_told if self._num_told else None,
            unused_keys=dict(sorted(self._unused_keys.items())),
            shared_documents=dict(sorted(self._shared.items())),
        )

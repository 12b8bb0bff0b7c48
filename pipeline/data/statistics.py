"""The figures of the paper's Table 1, of the rows that were written.

Lengths are words between spaces, as the paper's heading says; characters are given too, because its MuSiQue
documents (11,221.72 "words") have as many characters as MuSiQue's have here. Histograms have fixed edges, so
that nothing but counts is kept of a row.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from pydantic import Field

from pipeline.data.duplicates import Reason
from pipeline.data.work import WorkedRow
from reward.types import Record

_BINS_A_DOUBLING = 4
_LENGTHS = ("query_words", "num_documents", "document_words", "document_chars")


class Spread(Record):
    """Mean and extremes of a length or a count."""

    mean: float
    max: int
    min: int
    histogram: dict[int, int] = Field(
        description="Bin to rows; bin b holds values from 2^(b/4) to below 2^((b+1)/4), bin -1 holds 0."
    )

    @classmethod
    def of(cls, counts: Counter[int]) -> Spread:
        """The spread of values, each with how many rows have it."""
        histogram: Counter[int] = Counter()
        for value, num in sorted(counts.items()):
            histogram[bin_of(value)] += num
        return cls(
            mean=sum(value * num for value, num in counts.items()) / max(counts.total(), 1),
            max=max(counts, default=0),
            min=min(counts, default=0),
            histogram=dict(histogram),
        )


class SourceStatistics(Record):
    """Of the rows of one source, or of all."""

    source: str
    num_rows: int
    num_unanswerable: int = Field(default=0, description="Rows whose answering documents were taken away.")
    query_words: Spread
    num_documents: Spread = Field(description="A query.")
    document_words: Spread = Field(description="All documents of a query together.")
    document_chars: Spread = Field(description="The same in characters.")
    prompt_tokens: Spread | None = Field(default=None, description="Of the Solver's prompt, if counted.")
    irrelevant_ratio: float | None = Field(
        default=None, description="Irrelevant documents by all, of the rows whose source tells."
    )
    shared_documents: dict[int, int] = Field(
        default_factory=dict,
        description="Documents that evaluation sets have, too, to rows of the source, removed ones included.",
    )


@dataclass(frozen=True)
class PaperRow:
    """One row of the paper's Table 1."""

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


def bin_of(value: float) -> int:
    """The bin of a histogram that a value is in."""
    return math.floor(_BINS_A_DOUBLING * math.log2(value)) if value >= 1 else -1


def bin_start(place: int) -> float:
    """The least value of a histogram's bin."""
    return 0.0 if place < 0 else 2 ** (place / _BINS_A_DOUBLING)


class RunningStatistics:
    """The statistics of one source in the making; of a row, nothing but counts is kept."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lengths: dict[str, Counter[int]] = {name: Counter() for name in _LENGTHS}
        self._num_irrelevant = self._num_told = self._num_unanswerable = 0
        self._shared: Counter[int] = Counter()
        self.tokens: Counter[int] = Counter()  # of prompts, if they are counted
        self.removed: Counter[Reason] = Counter()

    def add(self, row: WorkedRow, reason: Reason | None) -> None:
        """Counts a row, and why it is left out if it is; what it shares with evaluation sets in any case."""
        self._shared[row.num_shared] += 1
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
        """The figures so far."""
        return SourceStatistics(
            source=self._source,
            num_rows=self._lengths["num_documents"].total(),
            num_unanswerable=self._num_unanswerable,
            **{name: Spread.of(lengths) for name, lengths in self._lengths.items()},
            prompt_tokens=Spread.of(self.tokens) if self.tokens else None,
            irrelevant_ratio=self._num_irrelevant / self._num_told if self._num_told else None,
            shared_documents=dict(sorted(self._shared.items())),
        )

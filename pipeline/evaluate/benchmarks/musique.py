"""MuSiQue, answerable set: twenty paragraphs, of which two to four are needed.

`pipeline/data/musique.py` has URL, licence (CC BY 4.0) and an example row. The file is
`musique_ans_v1.0_dev.jsonl`; the test set has no answers. EM and F1 are those of metrics/answer.py, the
best over the answer and its aliases. A slice is a number of hops, the beginning of an id:
`2hop__85463_33311`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from pipeline.data.musique import MusiqueRelevance, MusiqueRow
from pipeline.data.rows import parse_row
from pipeline.data.values import raw_rows
from pipeline.evaluate.benchmark import BenchmarkCard
from pipeline.evaluate.benchmarks.multihop import STYLES, MultiHopBenchmark, Question, multihop_digest
from pipeline.evaluate.official_qa import musique_f1


class _Row(MusiqueRow):
    answer: Annotated[str, Field(min_length=1)]
    answer_aliases: tuple[str, ...] = ()
    answerable: bool = True


class MuSiQue(MultiHopBenchmark):
    """MuSiQue's development set of answerable questions."""

    file = "musique_ans_v1.0_dev.jsonl"

    card = BenchmarkCard(
        name="musique",
        title="MuSiQue",
        url="https://github.com/StonyBrookNLP/musique",
        licence="CC-BY-4.0",
        primary="accuracy",
        scored_by="judge against the reference; EM and F1 as metrics/answer.py",
        styles=STYLES,
        prompt_digest=multihop_digest(),
    )

    f1 = staticmethod(musique_f1)

    def questions(self, file: Path) -> Iterator[Question]:
        """Yields the rows of a file, in order.

        Raises:
            ValueError: a row is not what it must be, or cannot be answered.
        """
        for raw in raw_rows(file):
            row = parse_row(raw, _Row)
            if not row.answerable:
                raise ValueError(f"{raw.place}: answerable: is false; use the answerable set, {self.file}")
            (query,) = row.queries(raw.place)
            support = parse_row(raw, MusiqueRelevance).paragraphs
            needed = tuple(
                document.text
                for document, one in zip(query.documents, support, strict=True)
                if one.is_supporting
            )
            hops = row.id.partition("__")[0][:4]
            yield Question(query, (row.answer, *row.answer_aliases), hops, needed)

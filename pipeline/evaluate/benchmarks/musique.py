"""MuSiQue, answerable set: twenty paragraphs, of which two to four are needed.

`pipeline/data/musique.py` has URL, licence (CC BY 4.0) and an example row. The file is
`musique_ans_v1.0_dev.jsonl`; the test set has no answers. EM and F1 are those of metrics/answer.py, the
best over the answer and its aliases. A slice is a number of hops, the beginning of an id:
`2hop__85463_33311`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipeline.data.musique import MusiqueParagraph, MusiqueRelevance, MusiqueRow, MusiqueSupport
from pipeline.evaluate.benchmarks.multihop import AnsweredRow, MultiHopBenchmark, multihop_card
from pipeline.evaluate.official_qa import musique_f1


class _Paragraph(MusiqueParagraph, MusiqueSupport): ...


class _Row(MusiqueRow, MusiqueRelevance, AnsweredRow):
    paragraphs: tuple[_Paragraph, ...] = Field(min_length=1)
    answerable: Literal[True] = True  # the full set has rows that are not

    @property
    def slice(self) -> str:
        return self.id.partition("__")[0][:4]


class MuSiQue(MultiHopBenchmark):
    """MuSiQue's development set of answerable questions."""

    file, row, f1 = "musique_ans_v1.0_dev.jsonl", _Row, staticmethod(musique_f1)
    card = multihop_card(
        "musique", "MuSiQue", "https://github.com/StonyBrookNLP/musique", "CC-BY-4.0", "metrics/answer.py"
    )

"""HotpotQA, distractor setting: ten paragraphs, of which two are needed.

`pipeline/data/hotpotqa.py` has URL, licence (CC BY-SA 4.0) and example rows of both layouts. The file is
`hotpot_dev_distractor_v1.json`; the test sets have no answers. EM and F1 are those of
hotpot_evaluate_v1.py; the supporting facts are not asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from pipeline.data.hotpotqa import HotpotRelevance, HotpotRow
from pipeline.data.rows import parse_row
from pipeline.data.twowiki import ParagraphsRelevance
from pipeline.data.values import raw_rows
from pipeline.evaluate.benchmark import BenchmarkCard
from pipeline.evaluate.benchmarks.multihop import STYLES, MultiHopBenchmark, Question, multihop_digest
from pipeline.evaluate.official_qa import hotpot_f1
from reward.types import RagQuery


class _Row(HotpotRow):
    answer: Annotated[str, Field(min_length=1)]
    type: str = "all"


class HotpotQA(MultiHopBenchmark):
    """HotpotQA's development set."""

    file = "hotpot_dev_distractor_v1.json"

    card = BenchmarkCard(
        name="hotpotqa",
        title="HotpotQA",
        url="https://hotpotqa.github.io",
        licence="CC-BY-SA-4.0",
        primary="accuracy",
        scored_by="judge against the reference; EM and F1 as hotpot_evaluate_v1.py",
        styles=STYLES,
        prompt_digest=multihop_digest(),
    )

    f1 = staticmethod(hotpot_f1)

    def questions(self, file: Path) -> Iterator[Question]:
        """Yields the rows of a file, in order."""
        for raw in raw_rows(file):
            row = parse_row(raw, _Row)
            (query,) = row.queries(raw.place)
            needed = needed_paragraphs(query, parse_row(raw, HotpotRelevance))
            yield Question(query, (row.answer,), row.type, needed)


def needed_paragraphs(query: RagQuery, relevance: ParagraphsRelevance) -> tuple[str, ...]:
    """The texts of the paragraphs that a supporting fact stands in."""
    titles = {title for title, _ in relevance.supporting_facts or ()}
    return tuple(document.text for document in query.documents if document.title in titles)

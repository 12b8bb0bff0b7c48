"""2WikiMultihopQA: ten paragraphs, of which two or four are needed.

`pipeline/data/twowiki.py` has URL, licence (Apache-2.0) and an example row. The file is `dev.json`; the
test set has no answers. EM and F1 are those of 2wikimultihop_evaluate_v1.1.py, with the aliases of the
answer when `id_aliases.json` of the release lies beside it (one object a line):

    {"Q_id": "Q30", "aliases": ["USA", "United States"], "demonyms": ["American"]}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from pipeline.data.rows import parse_row
from pipeline.data.twowiki import ParagraphsRelevance, TwoWikiRow
from pipeline.data.values import raw_rows
from pipeline.evaluate.benchmark import BenchmarkCard
from pipeline.evaluate.benchmarks.hotpotqa import needed_paragraphs
from pipeline.evaluate.benchmarks.multihop import STYLES, MultiHopBenchmark, Question, multihop_digest
from pipeline.evaluate.official_qa import hotpot_f1
from reward.offline.rows import InputRecord, read_records

ALIASES = "id_aliases.json"


class _Row(TwoWikiRow):
    answer: Annotated[str, Field(min_length=1)]
    answer_id: str | None = None
    type: str = "all"


class _Aliases(InputRecord):
    id: str = Field(alias="Q_id")
    aliases: tuple[str, ...]
    demonyms: tuple[str, ...]


class TwoWiki(MultiHopBenchmark):
    """2WikiMultihopQA's development set."""

    file = "dev.json"

    card = BenchmarkCard(
        name="2wikimultihopqa",
        title="2WikiMultihopQA",
        url="https://github.com/Alab-NII/2wikimultihop",
        licence="Apache-2.0",
        primary="accuracy",
        scored_by="judge against the reference; EM and F1 as 2wikimultihop_evaluate_v1.1.py",
        styles=STYLES,
        prompt_digest=multihop_digest(),
    )

    f1 = staticmethod(hotpot_f1)

    def questions(self, file: Path) -> Iterator[Question]:
        """Yields the rows of a file, in order."""
        aliases = _read_aliases(file.with_name(ALIASES))
        for raw in raw_rows(file):
            row = parse_row(raw, _Row)
            (query,) = row.queries(raw.place)
            others = aliases.get(row.answer_id or "", ())
            references = tuple(dict.fromkeys((row.answer, *others)))
            needed = needed_paragraphs(query, parse_row(raw, ParagraphsRelevance))
            yield Question(query, references, row.type, needed)


def _read_aliases(file: Path) -> Mapping[str, tuple[str, ...]]:
    """Other names by entity; empty where the file is not there."""
    if not file.is_file():
        return {}
    return {row.id: (*row.aliases, *row.demonyms) for _, row in read_records(file, _Aliases)}

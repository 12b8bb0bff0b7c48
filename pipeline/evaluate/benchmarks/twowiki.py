"""2WikiMultihopQA: ten paragraphs, of which two or four are needed.

`pipeline/data/twowiki.py` has URL, licence (Apache-2.0) and an example row. The file is `dev.json`; the
test set has no answers. EM and F1 are those of 2wikimultihop_evaluate_v1.1.py, with the aliases of the
answer when `id_aliases.json` of the release lies beside it (one object a line):

    {"Q_id": "Q30", "aliases": ["USA", "United States"], "demonyms": ["American"]}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from pipeline.data.twowiki import ParagraphsRelevance, TwoWikiRow
from pipeline.evaluate.benchmarks.files import rows
from pipeline.evaluate.benchmarks.multihop import AnsweredRow, MultiHopBenchmark, multihop_card
from pipeline.evaluate.official_qa import hotpot_f1
from reward.offline.rows import InputRecord

ALIASES = "id_aliases.json"


class _Aliases(InputRecord):
    id: str = Field(alias="Q_id")
    aliases: tuple[str, ...]
    demonyms: tuple[str, ...]


class _Row(TwoWikiRow, ParagraphsRelevance, AnsweredRow): ...


class TwoWiki(MultiHopBenchmark):
    """2WikiMultihopQA's development set."""

    file, row, f1 = "dev.json", _Row, staticmethod(hotpot_f1)
    card = multihop_card(
        "2wikimultihopqa",
        "2WikiMultihopQA",
        "https://github.com/Alab-NII/2wikimultihop",
        "Apache-2.0",
        "2wikimultihop_evaluate_v1.1.py",
    )

    def aliases(self, file: Path) -> Mapping[str, tuple[str, ...]]:
        """Other names by entity; none where the file of them is not there."""
        beside = file.with_name(ALIASES)
        found = rows(beside, _Aliases) if beside.is_file() else ()
        return {row.id: (*row.aliases, *row.demonyms) for _, row in found}

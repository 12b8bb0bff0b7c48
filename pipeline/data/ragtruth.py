"""RAGTruth's sources as queries: what its six models were asked, without what they answered.

`reward/offline/ragtruth.py` has URL, licence (MIT), example rows and the reading of a source. The file of
sources does not say which split a source is of, so it is taken from `response.jsonl` beside it: only sources
of the train split are read, since the others are what models are evaluated on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipeline.data.rows import SourceRow, Split, parse_row
from pipeline.data.values import RawRow, raw_rows
from reward.offline.ragtruth import RESPONSES, SOURCES, RagTruthSource, source_documents, source_query
from reward.offline.rows import InputRecord, RowId, make_query, read_records
from reward.types import RagQuery


class _SourceId(InputRecord):
    source_id: RowId


class _Response(_SourceId):
    split: Split


class RagTruthRow(RagTruthSource, SourceRow):
    """A source as a query."""

    @classmethod
    def files(cls, path: Path) -> tuple[Path, ...]:
        """Both files, of their folder or of one of them."""
        folder = path if path.is_dir() else path.parent
        return (folder / SOURCES, folder / RESPONSES)

    @classmethod
    def raw_rows(cls, path: Path, split: Split = "train") -> Iterator[RawRow]:
        """Yields the sources of a split, in the order of their file."""
        sources, responses = cls.files(path)
        wanted = {row.source_id for _, row in read_records(responses, _Response) if row.split == split}
        return (raw for raw in raw_rows(sources) if parse_row(raw, _SourceId).source_id in wanted)

    def queries(self, place: str) -> tuple[RagQuery, ...]:
        """The question or the instruction, over the passages, the article or the data."""
        documents = source_documents(place, self)
        return (make_query(place, self.source_id, source_query(self), documents),)

"""RAGTruth's sources as queries: what its six models were asked, without what they answered.

`reward/offline/ragtruth.py` has URL, licence (MIT), example rows and the reading of a source. The file of
sources does not say which split a source is of, so it is taken from `response.jsonl` beside it: only sources
of the train split are read, since the others are what models are evaluated on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pipeline.data.rows import SourceRow, parse_row
from pipeline.data.values import RawRow, raw_rows
from reward.offline.ragtruth import RESPONSES, SOURCES, RagTruthSource, source_documents, source_query
from reward.offline.rows import InputRecord, RowId, make_query, read_records
from reward.types import RagQuery

Split = Literal["train", "test"]


class RagTruthRow(RagTruthSource, SourceRow):
    """A source as a query."""

    def queries(self, place: str) -> tuple[RagQuery, ...]:
        """The question or the instruction, over the passages, the article or the data."""
        documents = source_documents(place, self)
        return (make_query(place, self.source_id, source_query(self), documents),)


class _Response(InputRecord):
    source_id: RowId
    split: Split


class _SourceId(InputRecord):
    source_id: RowId


def ragtruth_rows(path: Path, split: Split = "train") -> Iterator[RawRow]:
    """Yields the sources of a split, in the order of their file.

    Args:
        path: The folder of both files, or one of them.
        split: Which sources.

    Raises:
        FileNotFoundError: one of the files is not there.
        ValueError: a row is not what it must be.
    """
    folder = path if path.is_dir() else path.parent
    wanted = {row.source_id for _, row in read_records(folder / RESPONSES, _Response) if row.split == split}
    for raw in raw_rows(folder / SOURCES):
        if parse_row(raw, _SourceId).source_id in wanted:
            yield raw

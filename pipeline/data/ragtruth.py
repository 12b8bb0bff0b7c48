"""RAGTruth's sources as queries: what its six models were asked, and what people marked in their answers.

`reward/offline/ragtruth.py` has URL, licence (MIT), example rows and the reading of a source. The file of
sources does not say which split a source is of, so it is taken from `response.jsonl` beside it: trainings
read the sources of the train split alone, since the others are what models are evaluated on.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from pipeline.data.rows import SourceRow, Split, parse_row
from pipeline.data.values import RawRow, raw_rows
from reward.offline.ragtruth import RESPONSES, SOURCES, RagTruthSource, source_documents, source_query
from reward.offline.rows import InputRecord, RowId, make_query, read_records
from reward.types import RagQuery


class RagTruthLabel(InputRecord):
    text: str
    label_type: str
    meta: str | None = None
    implicit_true: bool | None = None
    due_to_null: bool | None = None

    @property
    def note(self) -> str:
        note = f'{self.label_type}: "{self.text}"'
        note += f" - {self.meta}" if self.meta else ""
        note += " (perhaps true, but the source does not say it)" if self.implicit_true else ""
        return note + (" (a null of the data was read as false)" if self.due_to_null else "")


class RagTruthResponse(InputRecord):
    """An answer of one of the models; of a quality other than "good", it takes no part in an evaluation."""

    id: RowId
    source_id: RowId
    split: Split
    response: str
    labels: tuple[RagTruthLabel, ...]
    quality: str | None = None


class _SourceId(InputRecord):
    source_id: RowId


class RagTruthRow(RagTruthSource, SourceRow):
    @classmethod
    def files(cls, path: Path) -> tuple[Path, ...]:
        """Both files, of their folder or of one of them."""
        folder = path if path.is_dir() else path.parent
        return (folder / SOURCES, folder / RESPONSES)

    @classmethod
    def raw_rows(cls, path: Path, split: Split = "train") -> Iterator[RawRow]:
        """Yields the sources of a split, in the order of their file."""
        sources, _ = cls.files(path)
        wanted = responses_by_source(path, split)
        return (raw for raw in raw_rows(sources) if parse_row(raw, _SourceId).source_id in wanted)

    def queries(self, place: str) -> tuple[RagQuery, ...]:
        return (make_query(place, self.source_id, source_query(self), source_documents(place, self)),)


def responses_by_source(path: Path, split: Split) -> dict[str, list[RagTruthResponse]]:
    """The answers of a split, by their source; `path` as for `RagTruthRow.files`."""
    found: dict[str, list[RagTruthResponse]] = defaultdict(list)
    for _, row in read_records(RagTruthRow.files(path)[1], RagTruthResponse):
        if row.split == split:
            found[row.source_id].append(row)
    return found

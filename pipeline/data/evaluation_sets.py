"""The questions and documents of evaluation sets, to keep them out of the training rows.

A file may be in any layout that `march prepare` trains on, or in that of FaithBench (a batch or FaithJudge's
copy), ContextualJudgeBench or FACTS Grounding. Which one it is, its first row tells. Of RAGTruth's two files
the test split is meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AliasChoices, Field

from pipeline.data.ragtruth import RagTruthRow
from pipeline.data.rows import SourceRow, parse_row
from pipeline.data.sources import SOURCES
from pipeline.data.values import RawRow, raw_rows
from reward.offline.ragtruth import RESPONSES
from reward.offline.ragtruth import SOURCES as RAGTRUTH_SOURCES
from reward.offline.rows import RowId, make_query
from reward.types import Document, RagQuery


class _OneDocumentRow(SourceRow):
    """A row with one document, and a question of its own or none."""

    id: RowId = Field(
        validation_alias=AliasChoices("source_id", "sample_id", "question_id", "id"), default=""
    )
    question: str = Field(validation_alias=AliasChoices("question", "user_request"), default="")
    document: Annotated[str, Field(validation_alias=AliasChoices("source", "context", "context_document"))]

    def queries(self, place: str) -> tuple[RagQuery, ...]:
        name = self.id or place.rpartition("/")[2]
        return (make_query(place, name, self.question, [Document(id=name, text=self.document)]),)


class _FaithBenchRow(_OneDocumentRow):
    list_key: ClassVar[str | None] = "samples"


_MODELS: tuple[type[SourceRow], ...] = (
    *(source.model for source in SOURCES.values()),
    _FaithBenchRow,
    _OneDocumentRow,
)


def evaluation_queries(path: Path) -> Iterator[RagQuery]:
    """Yields what an evaluation set asks, in order.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is in no known layout, or a row is not what the first one is.
    """
    is_ragtruth = path.is_dir() or path.name in (RESPONSES, RAGTRUTH_SOURCES)
    model = RagTruthRow if is_ragtruth else _model_of(path)
    for raw in model.raw_rows(path, "test"):
        yield from parse_row(raw, model).queries(raw.place)


def _model_of(path: Path) -> type[SourceRow]:
    for model in _MODELS:
        first = next(raw_rows(path, model.list_key), None)
        if first is not None and _fits(first, model):
            return model
    raise ValueError(
        f"{path}: its first row is in no layout that is known; give the published file, or rows like "
        '{"id": ..., "query": ..., "documents": [...]}'
    )


def _fits(raw: RawRow, model: type[SourceRow]) -> bool:
    try:
        parse_row(raw, model)
    except ValueError:
        return False
    return True

"""Rows of a benchmark, checked: what every row model can do, and how files are read with one.

A row model for training names the id, the question and the documents, and nothing else of the row: what it
does not name is never read, so no reference answer can reach a training row. The evaluation reads answers by
a model that adds them:

    class AnsweredRow(MusiqueRow):
        answer: str

    for raw in AnsweredRow.raw_rows(path):
        row = parse_row(raw, AnsweredRow)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from pipeline.data.values import RawRow, raw_rows
from reward.offline.rows import InputRecord, RowId, explain, make_query
from reward.types import Document, RagQuery

_M = TypeVar("_M", bound=BaseModel)
Split = Literal["train", "test"]


class SourceRow(InputRecord, ABC):
    """One row of a benchmark's file; keys that it does not name are ignored."""

    list_key: ClassVar[str | None] = None  # the rows may stand in a list under this key

    @classmethod
    def files(cls, path: Path) -> tuple[Path, ...]:
        """What is read of a source at a path."""
        return (path,)

    @classmethod
    def raw_rows(cls, path: Path, split: Split = "train") -> Iterator[RawRow]:
        """The rows of its files, not yet checked; of a split, where the files do not say so themselves."""
        return raw_rows(path, cls.list_key)

    @abstractmethod
    def queries(self, place: str) -> tuple[RagQuery, ...]:
        """What the row asks of which documents; one query, or several of the same documents.

        Raises:
            ValueError: there is no document, or one id occurs twice; begins with `place`.
        """


class QuestionRow(SourceRow):
    """A row that asks one question, of documents of its own."""

    id: RowId
    question: Annotated[str, Field(min_length=1)]

    @abstractmethod
    def to_documents(self) -> list[Document]:
        """What the question is asked of, in the file's order."""

    def queries(self, place: str) -> tuple[RagQuery, ...]:
        """The one question; nothing where there is no document."""
        documents = self.to_documents()
        return (make_query(place, self.id, self.question, documents),) if documents else ()


def parse_row(raw: RawRow, model: type[_M]) -> _M:
    """Checks one row.

    Raises:
        ValueError: it is not such a record; names file, line, field, value and fix.
    """
    try:
        return model.model_validate_json(raw.text)
    except ValidationError as error:
        raise ValueError(f"{raw.place}: {explain(error)}") from error

"""Rows of a benchmark, checked: what every row model can do. Trainings and evaluations read by the same ones.

No reference answer can reach a training row: a row turns into `RagQuery`, which has no place for one.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from pipeline.data.values import RawRow, raw_rows
from reward.offline.rows import BadRowError, InputRecord, RowId, explain, make_query, refuse_repeated_keys
from reward.types import Document, RagQuery

_M = TypeVar("_M", bound=BaseModel)
Split = Literal["train", "test"]


class SourceRow(InputRecord, ABC):
    """One row of a benchmark's file; keys that it does not name are ignored."""

    list_key: ClassVar[str | None] = None  # the rows may stand in a list under this key

    @classmethod
    def files(cls, path: Path) -> tuple[Path, ...]:
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

    def irrelevant(self) -> list[int] | None:
        """Places of the documents that the answer does not take; None where the file does not tell."""
        return None


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


class MultiHopRow(QuestionRow):
    """A question over several paragraphs, whose file tells the answer and which paragraphs it takes."""

    answer: str = ""
    answer_aliases: tuple[str, ...] = ()
    answer_id: str | None = None
    type: str = "all"

    @property
    def answers(self) -> tuple[str, ...]:
        """The known answer and its aliases; empty where there is none."""
        return (self.answer, *self.answer_aliases) if self.answer else ()

    @property
    def slice(self) -> str:
        """What an evaluation's figures are also given by."""
        return self.type


def parse_row(raw: RawRow, model: type[_M]) -> _M:
    """Checks one row; raises `BadRowError` with file, line, field, value and fix when it is none."""
    try:
        found = model.model_validate_json(raw.text)
        refuse_repeated_keys(raw.text, model)
    except ValidationError as error:
        raise BadRowError(f"{raw.place}: {explain(error)}") from error
    except ValueError as error:
        raise BadRowError(f"{raw.place}: {error}") from error
    return found

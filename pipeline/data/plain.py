"""Plain JSONL: rows of your own, one a line.

    {"id": "1", "query": "How many came?", "documents": [
        {"id": "d1", "title": "", "text": "50 people came."}]}

With `"unanswerable": true` the documents are known not to answer it. `"answers": ["50", "fifty"]` are several
ways to write the one answer, for an evaluation; no training reads them. The format of `march audit` without
the response; a document may be a text alone, and is then called by its place from 1. Other keys are counted
and not read, but one that looks like a misspelt key is an error. Licence: that of your data.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from pipeline.data.rows import QuestionRow, Split
from pipeline.data.values import RawRow
from reward.offline.rows import InputDocument, OwnRow, make_query, texts_as_documents
from reward.types import Document, RagQuery


class PlainRow(QuestionRow, OwnRow):
    question: Annotated[str, Field(alias="query", min_length=1)]
    documents: Annotated[tuple[InputDocument, ...], BeforeValidator(texts_as_documents)]
    unanswerable: bool = False
    answers: tuple[Annotated[str, Field(min_length=1)], ...] = ()

    @classmethod
    def raw_rows(cls, path: Path, split: Split = "train") -> Iterator[RawRow]:
        if path.suffix.lower() in (".csv", ".tsv"):
            raise ValueError(f"{path}: is a table, of which `march audit` alone reads rows; write JSON lines")
        return super().raw_rows(path, split)

    @model_validator(mode="after")
    def _has_no_answer_to_what_nothing_answers(self) -> Self:
        if self.answers and self.unanswerable:
            raise ValueError("answers: given beside unanswerable: true; leave one out")
        return self

    def to_documents(self) -> list[Document]:
        return [Document(id=d.id, title=d.title or "", text=d.text) for d in self.documents]

    def query(self, place: str) -> RagQuery:
        """The question; raises `ValueError` where there is no document."""
        documents = self.to_documents()
        return make_query(place, self.id, self.question, documents, unanswerable=self.unanswerable)

    def queries(self, place: str) -> tuple[RagQuery, ...]:
        """The question; nothing where no document holds a text."""
        return (self.query(place),) if any(one.text.strip() for one in self.documents) else ()

"""Plain JSONL: rows of your own, one a line.

    {"id": "1", "query": "How many came?", "documents": [
        {"id": "d1", "title": "", "text": "50 people came."}]}

With `"unanswerable": true` the documents are known not to answer it. `"answers": ["50", "fifty"]` are several
ways to write the one answer, for an evaluation; no training reads them. The format of `march audit` without
the response; a document may be a text alone, and is then called by its place from 1. Other keys are counted
and not read, but one that looks like a misspelt key is an error. Licence: that of your data.
"""

from difflib import get_close_matches
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from pipeline.data.rows import QuestionRow
from reward.offline.rows import InputDocument, make_query, texts_as_documents
from reward.types import Document, RagQuery

_LEAST_SIMILARITY = 0.8  # of a misspelt key and the right one


class PlainRow(QuestionRow):
    model_config = ConfigDict(extra="allow")  # so that unused keys can be counted

    question: Annotated[str, Field(alias="query", min_length=1)]
    documents: Annotated[tuple[InputDocument, ...], BeforeValidator(texts_as_documents)]
    unanswerable: bool = False
    answers: tuple[Annotated[str, Field(min_length=1)], ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _has_no_misspelt_key(cls, value: Any) -> Any:
        if isinstance(value, dict):
            known = {field.alias or name for name, field in cls.model_fields.items()}
            for key in sorted(value.keys() - known):
                near = get_close_matches(key, known - value.keys(), n=1, cutoff=_LEAST_SIMILARITY)
                if near and near[0] != f"{key}s":  # an `answer` of other tools is no misspelt `answers`
                    raise ValueError(f"{key}: is no key of a row, but {near[0]} is")
        return value

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

"""Rows to audit, read from files one at a time: a response, what it was asked and what it was given.

A JSONL row is `{"id", "query", "documents": [{"id", "title", "text"}], "response"}`; `title` may be left out
and other keys are ignored, so that an export with scores or model names needs no rewriting. RAGTruth's two
files are read as they are published (`reward/offline/ragtruth.py`).

Every error is one line that names file, line, field and mend. Reading is lazy: a row is checked when it is
reached.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reward.types import Document, RagQuery, Record, Span

_BOM = b"\xef\xbb\xbf"
_DIGIT = re.compile(r"\d")
# Exports hold ids as numbers, too; everything else must be what it says it is.
RowId = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True)]
_M = TypeVar("_M", bound=BaseModel)


class RowFormat(StrEnum):
    """What the input is."""

    JSONL = "jsonl"
    RAGTRUTH = "ragtruth"


class AuditRow(Record):
    """One response to audit."""

    place: str = Field(description="Where the row stands, FILE:LINE, for messages.")
    query: RagQuery
    response: str
    task_type: str | None = Field(default=None, description="Part of a benchmark that the row belongs to.")
    human_spans: tuple[Span, ...] | None = Field(
        default=None, description="What people marked as hallucinated; None without human labels."
    )
    excluded: str = Field(default="", description="Why the row takes no part, or nothing.")

    @property
    def human_refuted(self) -> bool | None:
        """Whether people marked a passage with a digit in it; None without human labels."""
        if self.human_spans is None:
            return None
        return any(_DIGIT.search(self.response[span.start : span.end]) for span in self.human_spans)

    @property
    def digest(self) -> str:
        """SHA-256 of what is audited: query, documents and response."""
        content = [self.query.model_dump(mode="json"), self.response]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class InputRecord(BaseModel):
    """A row of somebody's file: keys that are not asked for are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _InputDocument(InputRecord):
    id: RowId
    title: str = ""
    text: str


class _InputRow(InputRecord):
    id: RowId
    query: str
    documents: tuple[_InputDocument, ...] = Field(min_length=1)
    response: str


def read_rows(path: Path, row_format: RowFormat) -> Iterator[AuditRow]:
    """Yields the rows of an input, in order.

    Args:
        path: A JSONL file; for RAGTruth the folder of its two files, or its `response.jsonl`.
        row_format: What the input is.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a row is not what it must be.
    """
    if row_format is RowFormat.RAGTRUTH:
        from reward.offline.ragtruth import read_ragtruth

        return read_ragtruth(path)
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; give a JSONL file, or --format ragtruth for RAGTruth's files")
    return _read_jsonl(path)


def _read_jsonl(path: Path) -> Iterator[AuditRow]:
    for place, row in read_records(path, _InputRow):
        documents = [Document(id=d.id, title=d.title, text=d.text) for d in row.documents]
        yield AuditRow(
            place=place, query=make_query(place, row.id, row.query, documents), response=row.response
        )


def read_records(path: Path, model: type[_M]) -> Iterator[tuple[str, _M]]:
    """Yields the place (FILE:LINE) and the record of each line of a JSONL file; blank lines are passed over.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line is not JSON or not such a record.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; mend the path")
    with path.open("rb") as file:  # bytes, because text mode would also split at other line ends
        for number, line in enumerate(file, start=1):
            text = line.removeprefix(_BOM) if number == 1 else line
            if text.strip():
                place = f"{path}:{number}"
                try:
                    yield place, model.model_validate_json(text)
                except ValidationError as error:
                    raise ValueError(f"{place}: {explain(error)}") from error


def make_query(place: str, query_id: str, query: str, documents: list[Document]) -> RagQuery:
    """Builds a query whose errors name the place that it was read at."""
    try:
        return RagQuery(id=query_id, query=query, documents=tuple(documents))
    except ValidationError as error:
        raise ValueError(f"{place}: row {query_id!r}: {explain(error)}") from error


def explain(error: ValidationError) -> str:
    """The first problem of a record in one line: field, what is wrong, how to mend it."""
    problem: Any = error.errors(include_url=False, include_context=False)[0]
    field = ".".join(str(part) for part in problem["loc"])
    text = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "json_invalid":
        return f"not JSON ({text.removeprefix('Invalid JSON: ')}); mend the line or remove it"
    if problem["type"] == "missing":
        return f"{field}: missing; add it"
    found = f" (found {problem['input']!r:.60})" if field and problem["type"] != "too_short" else ""
    return " ".join(f"{field}: {text}{found}; mend the row or remove it".removeprefix(": ").split())

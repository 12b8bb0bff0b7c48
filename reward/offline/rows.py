"""Rows to audit, read from files one at a time: a response, what it was asked and what it was given.

A row has `id`, `query`, `response` and `documents`, and may have `task_type`, `source_id` and `human_spans`;
other keys are ignored, so that an export with scores or model names needs no rewriting. A document is
`{"id", "title", "text"}`, whose `title` may be left out, or a text, whose id is then its place from 1.

    JSONL     one such object a line
    CSV       columns of these names; `documents` in JSON, or a column a document (`reward/offline/tables.py`)
    Parquet   the same columns, nested or in JSON
    RAGTruth  its two files as they are published (`reward/offline/ragtruth.py`)

Every error is one line that names file, line, field and mend. Reading is lazy: a row is checked when it is
reached, and no reader holds more than a few rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from reward.offline.targets import Target, marks_a_number
from reward.types import Document, RagQuery, Record, Span

_BOM = b"\xef\xbb\xbf"
# Exports hold ids as numbers, too; everything else must be what it says it is.
RowId = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True)]
_M = TypeVar("_M", bound=BaseModel)


class RowFormat(StrEnum):
    """What the input is."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    RAGTRUTH = "ragtruth"


_SUFFIXES = {
    ".jsonl": RowFormat.JSONL,
    ".ndjson": RowFormat.JSONL,
    ".csv": RowFormat.CSV,
    ".tsv": RowFormat.CSV,
    ".parquet": RowFormat.PARQUET,
    ".pq": RowFormat.PARQUET,
}


class AuditRow(Record):
    """One response to audit."""

    place: str = Field(description="Where the row stands, FILE:LINE, for messages.")
    query: RagQuery
    response: str
    task_type: str | None = Field(default=None, description="Part of a benchmark that the row belongs to.")
    source_id: str | None = Field(default=None, description="Rows of one source are no independent evidence.")
    human_spans: tuple[Span, ...] | None = Field(
        default=None, description="What people marked as hallucinated; None without human labels."
    )
    excluded: str = Field(default="", description="Why the row takes no part, or nothing.")

    def marked(self, target: Target) -> bool | None:
        """Whether people marked a number, as the target counts numbers; None without human labels."""
        if self.human_spans is None:
            return None
        return marks_a_number(self.response, self.human_spans, target)

    @property
    def cluster(self) -> str:
        """What intervals resample: the row's source if it has one, else a digest of query and documents."""
        if self.source_id is not None:
            return self.source_id
        return _digest(self.query.model_dump(mode="json", exclude={"id"}))

    @property
    def digest(self) -> str:
        """SHA-256 of what is audited: query, documents and response."""
        return _digest([self.query.model_dump(mode="json"), self.response])


class InputRecord(BaseModel):
    """A row of somebody's file: keys that are not asked for are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class InputDocument(InputRecord):
    """A document as a file holds it."""

    id: RowId
    title: str | None = None
    text: str


def texts_as_documents(value: Any) -> Any:
    """A list whose texts are documents, each called by its place from 1; anything else as it is."""
    if not isinstance(value, list):
        return value
    return [
        {"id": place, "text": item} if isinstance(item, str) else item
        for place, item in enumerate(value, start=1)
    ]


class InputRow(InputRecord):
    """A row to audit as a file holds it."""

    id: RowId
    query: str
    documents: Annotated[tuple[InputDocument, ...], BeforeValidator(texts_as_documents)] = Field(min_length=1)
    response: str
    task_type: str | None = None
    source_id: RowId | None = None
    human_spans: tuple[Span, ...] | None = None


def format_of(path: Path) -> RowFormat:
    """What an input is, by its suffix; a folder or a `response.jsonl` beside its sources is RAGTruth's.

    Raises:
        ValueError: the name does not say.
    """
    from reward.offline.ragtruth import RESPONSES, SOURCES

    if (path.is_dir() and (path / RESPONSES).exists()) or (
        path.name == RESPONSES and path.with_name(SOURCES).exists()
    ):
        return RowFormat.RAGTRUTH
    if path.is_dir():
        raise ValueError(f"{path}: is a folder without RAGTruth's {RESPONSES}; give a file")
    if path.suffix.lower() not in _SUFFIXES:
        raise ValueError(
            f"{path}: suffix {path.suffix!r} does not say what it is; add --format jsonl, csv, parquet or "
            "ragtruth"
        )
    return _SUFFIXES[path.suffix.lower()]


def read_rows(path: Path, row_format: RowFormat) -> Iterator[AuditRow]:
    """Yields the rows of an input, in order.

    Args:
        path: A file; for RAGTruth the folder of its two files, or its `response.jsonl`.
        row_format: What the input is.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a row is not what it must be.
    """
    if row_format is RowFormat.RAGTRUTH:
        from reward.offline.ragtruth import read_ragtruth

        return read_ragtruth(path)
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; give a file, or --format ragtruth for RAGTruth's files")
    if row_format is RowFormat.JSONL:
        return _audit_rows(read_records(path, InputRow))
    from reward.offline.tables import read_csv_rows, read_parquet_rows

    return _audit_rows(read_csv_rows(path) if row_format is RowFormat.CSV else read_parquet_rows(path))


def read_records(path: Path, model: type[_M]) -> Iterator[tuple[str, _M]]:
    """Yields the place (FILE:LINE) and the record of each line of a JSONL file; blank lines are passed over.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line is not JSON or not such a record.
    """
    require_file(path)
    with path.open("rb") as file:  # bytes, because text mode would also split at other line ends
        for number, line in enumerate(file, start=1):
            text = line.removeprefix(_BOM) if number == 1 else line
            if text.strip():
                place = f"{path}:{number}"
                try:
                    yield place, model.model_validate_json(text)
                except ValidationError as error:
                    raise ValueError(f"{place}: {explain(error)}") from error


def require_file(path: Path) -> None:
    """Raises `FileNotFoundError` unless there is such a file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; mend the path")


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


def _audit_rows(records: Iterable[tuple[str, InputRow]]) -> Iterator[AuditRow]:
    for place, row in records:
        documents = [Document(id=d.id, title=d.title or "", text=d.text) for d in row.documents]
        yield AuditRow(
            place=place,
            query=make_query(place, row.id, row.query, documents),
            response=row.response,
            task_type=row.task_type,
            source_id=row.source_id,
            human_spans=row.human_spans,
        )


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

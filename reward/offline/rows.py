"""Rows to audit, read from files one at a time: a response, what it was asked and what it was given.

A row has `id`, `query`, `response` and `documents`, and may have `unanswerable`, `task_type`, `source_id` and
`human_spans`; other keys are counted and not read, so that an export with scores or model names needs no
rewriting, but one that looks like a misspelt key is an error, and so is a key that is there twice. A document
is `{"id", "title", "text"}`, whose `title` may be left out, or a text, whose id is then its place from 1.
Where nothing was retrieved (`[]`) a blank document stands for it, so that whatever the response states is
refuted.

Every error is one line that names file, line, field and fix. Which file is read how: `inputs.py`.
"""

import json
from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import from_json

from reward.problems import SAID_WHOLE, problems, shown
from reward.provenance import json_sha256
from reward.types import MOST_ID_CHARS, Document, RagQuery, Record, Span

_BOM, _GZIP = b"\xef\xbb\xbf", b"\x1f\x8b"
# Exports hold ids as numbers, too; everything else must be what it says it is.
RowId = Annotated[str, Field(min_length=1, max_length=MOST_ID_CHARS, coerce_numbers_to_str=True)]
_LEAST_SIMILARITY = 0.8  # of a misspelt key and the right one
_LIKE_OTHERS = {"source_id", "task_type"}  # exports have a `source_file` and such of their own
_M = TypeVar("_M", bound=BaseModel)


class AuditRow(Record):
    """One response to audit."""

    place: str = Field(description="Where the row is, FILE:LINE, for messages.")
    query: RagQuery
    response: str
    task_type: str | None = Field(default=None, description="Part of a benchmark that the row belongs to.")
    source_id: str | None = Field(default=None, description="Rows of one source are no independent evidence.")
    human_spans: tuple[Span, ...] | None = Field(
        default=None, description="What people marked as hallucinated; None without human labels."
    )
    excluded: str = Field(default="", description="Why the row takes no part, or nothing.")
    unused_keys: tuple[str, ...] = Field(default=(), description="Keys or columns that are not read.")

    @property
    def cluster(self) -> str:
        """What intervals resample: the row's source if it has one, else a digest of query and documents."""
        if self.source_id is not None:
            return self.source_id
        return json_sha256(self.query.model_dump(mode="json", exclude={"id"}))

    @property
    def query_digest(self) -> str:
        """SHA-256 of what was asked and given: query and documents."""
        return json_sha256(self.query.model_dump(mode="json"))

    @property
    def digest(self) -> str:
        """SHA-256 of what is audited: query, documents and response."""
        return json_sha256([self.query.model_dump(mode="json"), self.response])

    @property
    def labels_digest(self) -> str:
        """SHA-256 of what no verdict depends on, and figures do."""
        spans = self.human_spans and [(one.start, one.end) for one in self.human_spans]
        return json_sha256([spans, self.task_type, self.source_id])


class BadRowError(ValueError):
    """A row is not of its format; the message names its place, the field and the fix."""


class InputRecord(BaseModel):
    """A row of somebody's file: keys that are not asked for are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


@lru_cache(maxsize=64)  # a tenth of a millisecond, and most rows have the keys of the one before
def refuse_misspelt_keys(keys: frozenset[str], known: frozenset[str]) -> None:
    """Raises `ValueError` for a key that looks like a known one that is not among the keys."""
    for key in sorted(keys - known):
        near = get_close_matches(key.casefold(), known - keys - _LIKE_OTHERS, n=1, cutoff=_LEAST_SIMILARITY)
        if near and key != "answer":  # which is another tool's, and no misspelt `answers`
            raise ValueError(f"{key}: is no key of a row, but {near[0]} is")


class OwnRow(InputRecord):
    """A row of a user's own file: other keys can be counted, but a misspelt one is an error."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _has_no_misspelt_key(cls, value: Any) -> Any:
        if isinstance(value, dict):
            known = frozenset(field.alias or name for name, field in cls.model_fields.items())
            refuse_misspelt_keys(frozenset(value), known)
        return value


def refuse_repeated_keys(text: str, model: type[BaseModel]) -> None:
    """Raises `ValueError` where a user's own row has a key twice: a reader takes the last."""
    if issubclass(model, OwnRow):
        # Numbers stay texts: one of a thousand digits is no matter of keys.
        json.loads(text, object_pairs_hook=_with_each_key_once, parse_int=str, parse_float=str)


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        key = next(key for key, number in Counter(key for key, _ in pairs).items() if number > 1)
        raise ValueError(f"{key:.60}: is given twice; keep one of the two")
    return found


class InputDocument(InputRecord):
    """A document as a file holds it."""

    id: RowId
    title: str | None = None
    text: str

    @model_validator(mode="before")
    @classmethod
    def _is_text_or_object(cls, value: Any) -> Any:
        if not isinstance(value, dict | InputDocument):
            raise ValueError("is neither a text nor an object with id and text")
        return value


def parsed(value: Any) -> Any:
    """What a cell of a table holds as JSON; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return from_json(value)
    except ValueError as error:
        raise ValueError(f"not JSON ({error}); write a JSON list") from error


def texts_as_documents(value: Any) -> Any:
    """A list whose texts are documents, each called by its place from 1; anything else as it is."""
    if not isinstance(value, list):
        return value
    return [
        {"id": place, "text": item} if isinstance(item, str) else item
        for place, item in enumerate(value, start=1)
    ]


def none_as_blank(value: Any) -> Any:
    """A blank document where nothing was retrieved: what a response states then is in no document."""
    return [""] if value in ([], ()) else value


class InputRow(OwnRow):
    """A row to audit as a file holds it."""

    id: RowId
    query: str
    documents: Annotated[
        tuple[InputDocument, ...],
        *map(BeforeValidator, (texts_as_documents, none_as_blank, parsed)),  # the last one first
    ]
    response: str
    unanswerable: bool = False
    task_type: str | None = None
    source_id: RowId | None = None
    human_spans: Annotated[tuple[Span, ...] | None, BeforeValidator(parsed)] = None

    def to_audit(self, place: str) -> AuditRow:
        """The row as it is audited; `place` is for messages."""
        documents = [Document(id=d.id, title=d.title or "", text=d.text) for d in self.documents]
        for one in self.human_spans or ():
            if not one.start <= one.end <= len(self.response):
                found = f"{one.start} to {one.end} is no part of {len(self.response)} characters"
                raise BadRowError(f"{place}: row {self.id!r}: human_spans: {found}; fix the row or remove it")
        return AuditRow(
            place=place,
            query=make_query(place, self.id, self.query, documents, unanswerable=self.unanswerable),
            response=self.response,
            task_type=self.task_type,
            source_id=self.source_id,
            human_spans=self.human_spans,
            unused_keys=tuple(self.model_extra or ()),
        )


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
                    found = model.model_validate_json(text)
                    refuse_repeated_keys(text.decode(), model)
                except ValidationError as error:
                    raise ValueError(f"{place}: {_problem(line, number, error)}") from error
                except ValueError as error:
                    raise ValueError(f"{place}: {error}") from error
                yield place, found


def decoded(line: bytes, encoding: str = "utf-8") -> str:
    """The text of a line; raises `ValueError` with the byte and the fix where it is none."""
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        if line.startswith(_GZIP):
            raise ValueError("is gzipped; unpack it with gunzip") from error
        place = f"byte {error.start + 1} of the line ({line[error.start]:#04x})"
        raise ValueError(f"{place} is not UTF-8; save the file as UTF-8") from error


def _problem(line: bytes, number: int, error: ValidationError) -> str:
    try:
        text = decoded(line)
    except ValueError as no_text:
        return str(no_text)
    if number == 1 and text.lstrip("\ufeff \t").startswith("["):
        return "is a JSON list; write one row a line, as jq -c '.[]' does"
    return explain(error)


def require_file(path: Path) -> None:
    """Raises `FileNotFoundError` unless there is such a file, `ValueError` if it is a pipe or a device."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError(f"{path}: is a pipe or a device, and is read twice; give a file")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; fix the path")


def make_query(
    place: str, query_id: str, query: str, documents: list[Document], *, unanswerable: bool = False
) -> RagQuery:
    """Builds a query whose errors name the place that it was read at."""
    try:
        return RagQuery(id=query_id, query=query, documents=tuple(documents), unanswerable=unanswerable)
    except ValidationError as error:
        raise BadRowError(f"{place}: row {query_id!r}: {explain(error)}") from error


def explain(error: ValidationError) -> str:
    """The first problem of a record in one line: field, what is wrong, how to fix it."""
    problem = problems(error)[0]
    field = ".".join(str(part) for part in problem["loc"])
    text = problem["msg"]
    if problem["type"] == "json_invalid":
        return f"not JSON ({text.removeprefix('Invalid JSON: ')}); fix the line or remove it"
    if problem["type"] == "missing":
        return f"{field}: {text}"
    found = f" (found {shown(problem['input'])})" if field and problem["type"] not in SAID_WHOLE else ""
    return " ".join(f"{field}: {text}{found}; fix the row or remove it".removeprefix(": ").split())

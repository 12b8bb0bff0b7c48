"""What the input of an audit is, and its rows.

    JSONL     one object a line (`rows.py`), also under the name .json
    CSV       columns of the same names; `documents` in JSON, or a column a document
    Parquet   the same columns, nested or in JSON
    RAGTruth  its two files as they are published (`ragtruth.py`)

Reading is lazy: a row is checked when it is reached, and no reader holds more than a few rows.

    id,query,response,context,context
    a,How much is it?,5 euros.,It costs 5 euros.,It was 4 euros last year.

The columns of a table are those of a JSONL row. The documents are either in one column, `documents`, or in
one column each: every column called `context`, `context_N` or `document_N`, from left to right; an empty cell
is no document, and its column names the document. `documents` and `human_spans` are JSON in a CSV file, and
JSON or nested in a Parquet file. Other columns are counted and not read, but one that looks like a misspelt
column (`Context`, `context2`) is an error. A CSV file is UTF-8 with a header, separated by
commas, semicolons or tabs, with quotes doubled inside quotes.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pydantic import ValidationError

from reward.offline.ragtruth import RESPONSES, SOURCES, read_ragtruth
from reward.offline.rows import (
    AuditRow,
    InputRow,
    decoded,
    explain,
    read_records,
    refuse_misspelt_keys,
    require_file,
)

_NEEDED = ("id", "query", "response")
_READ = frozenset((*_NEEDED, "documents", "human_spans", "task_type", "source_id", "unanswerable"))
_CONTEXT = re.compile(r"context(?:_\d+)?|document_\d+")
_LIKE_CONTEXT = re.compile(r"(?:context|document)s?[ ._-]?\d*", re.IGNORECASE)
_LARGEST_CELL = 64 * 1024**2  # characters; what an unclosed quote can swallow before it is refused
_BATCH_ROWS = 64


class RowFormat(StrEnum):
    """What the input is."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    RAGTRUTH = "ragtruth"


_SUFFIXES = {
    ".jsonl": RowFormat.JSONL,
    ".ndjson": RowFormat.JSONL,
    ".json": RowFormat.JSONL,
    ".csv": RowFormat.CSV,
    ".tsv": RowFormat.CSV,
    ".parquet": RowFormat.PARQUET,
    ".pq": RowFormat.PARQUET,
}


def format_of(path: Path) -> RowFormat:
    """What an input is, by its suffix; a folder or a `response.jsonl` beside its sources is RAGTruth's.

    Raises:
        ValueError: the name does not say.
    """
    if (path.is_dir() and (path / RESPONSES).exists()) or (
        path.name == RESPONSES and path.with_name(SOURCES).exists()
    ):
        return RowFormat.RAGTRUTH
    if path.is_dir():
        raise ValueError(f"{path}: is a folder without RAGTruth's {RESPONSES}; give a file")
    if path.suffix.lower() == ".gz":
        raise ValueError(f"{path}: is gzipped; unpack it with gunzip")
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
        ValueError: the file is not of this format, lacks a column, or a row is not what it must be; or
            pyarrow is missing.
    """
    if row_format is RowFormat.RAGTRUTH:
        return read_ragtruth(path)
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; give a file, or --format ragtruth for RAGTruth's files")
    if row_format is RowFormat.JSONL:
        return (row.to_audit(place) for place, row in read_records(path, InputRow))
    return _csv_rows(path) if row_format is RowFormat.CSV else _parquet_rows(path)


class TableRow(NamedTuple):
    """One record of a CSV file."""

    place: str  # FILE:LINE of its first line
    cells: Sequence[str]


def _csv_rows(path: Path) -> Iterator[AuditRow]:
    header, records = read_csv(path)
    unused = _check_columns(path, header)
    for record in records:
        yield _row(record.place, list(zip(header, record.cells, strict=True)), unused)


def read_csv(path: Path) -> tuple[Sequence[str], Iterator[TableRow]]:
    """Returns the names of the columns and the records below them; blank lines are passed over.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no UTF-8 or no CSV, or a record has more or fewer cells than the header; in
            part only when the records are read.
    """
    require_file(path)
    records = _csv_records(path)
    header = next(records, None)
    if header is None:
        raise ValueError(f"{path}:1: holds no header; name the columns in the first line")
    return [name.strip() for name in header.cells], records


def _parquet_rows(path: Path) -> Iterator[AuditRow]:
    """The rows of a Parquet file; their place is FILE:ROW, from 1."""
    require_file(path)
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError:
        fix = "pip install '.[parquet]' to read Parquet files"
        raise ValueError(f"{path}: pyarrow is not installed; {fix}") from None
    try:
        with path.open("rb") as source, ParquetFile(source) as file:
            names = [str(name) for name in file.schema_arrow.names]
            unused = _check_columns(path, names)
            wanted = [name for name in names if name not in unused]
            number = count(1)
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=wanted):
                for cells in zip(*batch.columns, strict=True):
                    yield _parquet_row(f"{path}:{next(number)}", batch.schema.names, cells, unused)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:  # it cannot be opened
            raise
        problem = " ".join(str(error).split())
        raise ValueError(f"{path}: not a whole Parquet file ({problem:.120}); write it again") from error


def _csv_records(path: Path) -> Iterator[TableRow]:
    csv.field_size_limit(_LARGEST_CELL)
    num_cells = None
    place = f"{path}:1"
    with path.open("rb") as file:
        reader = csv.reader(_lines(path, file), delimiter=_delimiter(path), strict=True)
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    num_cells = num_cells or len(cells)
                    if len(cells) != num_cells:
                        raise ValueError(
                            f"{place}: {len(cells)} cells, but the header has {num_cells}; quote cells that "
                            "hold a separator, or fix the record"
                        )
                    yield TableRow(place, cells)
                place = f"{path}:{reader.line_num + 1}"
        except csv.Error as error:
            raise ValueError(f"{place}: not CSV ({error}); fix the quotes of the record") from error


def _lines(path: Path, file: BinaryIO) -> Iterator[str]:
    for number, line in enumerate(file, start=1):
        try:
            yield decoded(line, "utf-8-sig" if number == 1 else "utf-8")
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}") from error


def _delimiter(path: Path) -> str:
    """Comma, semicolon (as spreadsheets write where the comma is a decimal mark) or tab, by the header."""
    with path.open("rb") as file:
        return chr(max(b",;\t", key=file.readline(65_536).count))


def _check_columns(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The columns that are not read; raises `ValueError` where one is missing, misspelt or there twice."""
    contexts = [name for name in names if _CONTEXT.fullmatch(name)]
    unused = tuple(name for name in names if name not in _READ and name not in contexts)
    _refuse_misspelt_columns(path, unused, lacked=_READ.difference(names, ["documents"] if contexts else []))
    missing = [name for name in _NEEDED if name not in names]
    missing += [] if contexts or "documents" in names else ["documents"]
    if missing:
        found = ", ".join(names)
        fix = "add it, or a column context for each document" if missing[0] == "documents" else "add it"
        raise ValueError(f"{path}:1: {missing[0]}: no such column; {fix} (found {found:.200})")
    if contexts and "documents" in names:
        raise ValueError(f"{path}:1: documents: given beside {contexts[0]}; keep one way to give documents")
    twice = [name for name, count in Counter(names).items() if count > 1 and name in _READ]
    if twice:
        raise ValueError(f"{path}:1: {twice[0]}: two columns have this name; remove one")
    return unused


def _refuse_misspelt_columns(path: Path, unused: Sequence[str], *, lacked: frozenset[str]) -> None:
    try:
        refuse_misspelt_keys(frozenset(unused), lacked)
    except ValueError as error:
        raise ValueError(f"{path}:1: {error}; rename the column or remove it") from None
    for name in filter(_LIKE_CONTEXT.fullmatch, unused):
        fix = "rename it to context, context_N or document_N, or remove it"
        raise ValueError(f"{path}:1: {name}: is no column of a document, but looks like one; {fix}")


def _parquet_row(place: str, names: Sequence[str], cells: Sequence[Any], unused: tuple[str, ...]) -> AuditRow:
    try:
        values = [cell.as_py() for cell in cells]
    except UnicodeDecodeError as error:
        raise ValueError(f"{place}: holds bytes that are not UTF-8; fix the row or remove it") from error
    return _row(place, list(zip(names, values, strict=True)), unused)


def _row(place: str, cells: Sequence[tuple[str, Any]], unused: tuple[str, ...]) -> AuditRow:
    filled = [(name, value) for name, value in cells if value not in ("", None)]
    tree: dict[str, Any] = {name: value for name, value in cells if name in _NEEDED}
    tree |= {name: value for name, value in filled if name in _READ}
    if "documents" not in tree:
        contexts = [(name, value) for name, value in filled if _CONTEXT.fullmatch(name)]
        tree["documents"] = _documents(contexts)
    try:
        row = InputRow.model_validate(tree).to_audit(place)
    except ValidationError as error:
        raise ValueError(f"{place}: {explain(error)}") from error
    return row.model_copy(update={"unused_keys": unused})


def _documents(contexts: Sequence[tuple[str, Any]]) -> list[dict[str, Any]]:
    seen: Counter[str] = Counter()
    documents = []
    for name, text in contexts:
        seen[name] += 1
        documents.append({"id": name if seen[name] == 1 else f"{name}#{seen[name]}", "text": text})
    return documents

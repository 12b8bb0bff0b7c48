"""What the input of an audit is, and its rows.

    JSONL     one object a line (`rows.py`)
    CSV       columns of the same names; `documents` in JSON, or a column a document (`tables.py`)
    Parquet   the same columns, nested or in JSON (`tables.py`)
    RAGTruth  its two files as they are published (`ragtruth.py`)

Reading is lazy: a row is checked when it is reached, and no reader holds more than a few rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from reward.offline.ragtruth import RESPONSES, SOURCES, read_ragtruth
from reward.offline.rows import AuditRow, InputRow, read_records
from reward.offline.tables import read_csv_rows, read_parquet_rows


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
        return read_ragtruth(path)
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; give a file, or --format ragtruth for RAGTruth's files")
    if row_format is RowFormat.JSONL:
        return (row.to_audit(place) for place, row in read_records(path, InputRow))
    return read_csv_rows(path) if row_format is RowFormat.CSV else read_parquet_rows(path)

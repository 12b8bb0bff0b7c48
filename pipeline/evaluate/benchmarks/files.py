"""The published files of a benchmark: found under their names, and read row by row.

A file is a JSON list, JSON lines, CSV with a header, or Parquet. Every error is one line that names file,
line, field and fix.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from pipeline.data.rows import parse_row
from pipeline.data.values import RawRow, raw_rows
from reward.offline.tables import read_csv

_M = TypeVar("_M", bound=BaseModel)


def published(source: Path, *names: str, url: str, renamed: bool = False) -> list[Path]:
    """The files of a benchmark, in the order of their names.

    Args:
        source: A folder, or one of the files.
        names: As they are published; patterns, as `Path.glob` has them.
        url: Where they are published.
        renamed: Whether a file that is given itself may have any name.

    Raises:
        FileNotFoundError: none of them is there.
    """
    if source.is_file() and (renamed or any(source.match(name) for name in names)):
        return [source]
    found = [file for name in names for file in sorted(source.glob(name))]
    if not found:
        where = f"{source}:" if source.exists() else f"{source}: no such file, and so it"
        raise FileNotFoundError(f"{where} holds none of {', '.join(names)}; they are published at {url}")
    return found


def rows(file: Path, model: type[_M], list_key: str | None = None) -> Iterator[tuple[str, _M]]:
    """Yields the place (FILE:LINE) and the record of each row.

    Args:
        file: Its name's ending tells what it is.
        model: What a row must be.
        list_key: A JSON file may also be an object with the rows under this key.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, or a row is no such record.
    """
    read = {".csv": _csv_rows, ".parquet": _parquet_rows}.get(file.suffix)
    for raw in read(file) if read else raw_rows(file, list_key):
        yield raw.place, parse_row(raw, model)


def _csv_rows(file: Path) -> Iterator[RawRow]:
    header, records = read_csv(file)
    for record in records:
        yield RawRow(record.place, json.dumps(dict(zip(header, record.cells, strict=True))))


def _parquet_rows(file: Path) -> Iterator[RawRow]:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table

    try:
        records = read_table(file).to_pylist()
    except ArrowException as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"{file}: not a Parquet file ({problem:.120}); fetch it again") from error
    for number, record in enumerate(records, start=1):
        yield RawRow(f"{file}:{number}", json.dumps(record, default=str))

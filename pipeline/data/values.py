"""The rows of a benchmark's file as JSON texts, read one at a time.

A file is a list of rows, an object with such a list (BioASQ), one row a line, CSV with a header, or Parquet.
A list is read in windows, so that a file of any size takes the memory of its longest row; official files hold
a whole list in one line, so a row's place also says which row it is.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from reward.offline.inputs import read_csv
from reward.offline.rows import require_file

_READ_CHARS = 1 << 20
_MAX_ROW_CHARS = 1 << 26  # what is longer is no row but a file that is damaged
_SEPARATORS = re.compile(r"[\s,]*")
_END = re.compile(r"(\]?[\s,]*)(.?)")


@dataclass(frozen=True)
class RawRow:
    """One row as the file holds it."""

    place: str  # FILE:LINE, of a list also which row
    text: str  # JSON, not yet checked


def raw_rows(path: Path, list_key: str | None = None) -> Iterator[RawRow]:
    """Yields the rows of a file, in order.

    Args:
        path: CSV or Parquet by its name's ending; else a JSON list, or one JSON object a line: UTF-8, with or
            without a byte order mark.
        list_key: The file may also be an object that begins with this key, whose value is the list.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not UTF-8 or no Parquet, a row of a list is not JSON, or the list has no end.
    """
    require_file(path)
    if path.suffix == ".csv":
        header, records = read_csv(path)
        for one in records:
            yield RawRow(one.place, json.dumps(dict(zip(header, one.cells, strict=True))))
        return
    if path.suffix == ".parquet":
        yield from _parquet_rows(path)
        return
    opening = re.compile(rf'\s*(?:\{{\s*"{list_key}"\s*:\s*)?\[' if list_key else r"\s*\[")
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            if match := opening.match(text := file.read(_READ_CHARS)):
                yield from _list_rows(path, file, text, match.end())
                return
            file.seek(0)
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield RawRow(f"{path}:{number}", line)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not UTF-8 ({error}); give the file as it is published") from error


def _parquet_rows(path: Path) -> Iterator[RawRow]:
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table

    try:
        records = read_table(path).to_pylist()
    except ArrowException as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"{path}: not a Parquet file ({problem:.120}); fetch it again") from error
    for number, record in enumerate(records, start=1):
        yield RawRow(f"{path}:{number}", json.dumps(record, default=str))


def _list_rows(path: Path, file: TextIO, text: str, at: int) -> Iterator[RawRow]:
    """Yields the rows of a list; `text` is what was read of the file, `at` the place behind the opening."""
    decoder = json.JSONDecoder()
    number, line = 1, 1 + text.count("\n", 0, at)  # of the row that comes next
    while True:
        separators = _SEPARATORS.match(text, at)
        assert separators is not None
        line += separators.group().count("\n")
        at = separators.end()
        if text.startswith("]", at):
            break
        place = f"{path}:{line} (row {number})"
        try:
            _, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:  # cut by the window's end, or no JSON
            left = text[at:]
            more = file.read(max(_READ_CHARS, len(left))) if len(left) <= _MAX_ROW_CHARS else ""
            if not more and not left:
                break
            if not more:
                what = getattr(error, "msg", "nested too deep")  # its position is of the window
                raise ValueError(f"{place}: not JSON ({what}); fix the file or fetch it again") from error
            text, at = left + more, 0
            continue
        yield RawRow(place, text[at:end])
        number, line, at = number + 1, line + text.count("\n", at, end), end
    closing = _END.match(text[at:] + file.read(_READ_CHARS))
    assert closing is not None
    if not closing[1].startswith("]") or closing[2] not in ("", "]", "}"):
        place = f"{path}:{line + closing[1].count(chr(10))}"
        raise ValueError(f"{place}: the list does not end there; the file is damaged, fetch it again")

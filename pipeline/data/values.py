"""The rows of a benchmark's file as JSON texts, read one at a time.

A file is a list of rows, an object with such a list (BioASQ), or one row a line. A list is read in windows,
so that a file of any size takes the memory of its longest row; official files hold a whole list in one line,
so a row's place also says which row it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from reward.offline.rows import require_file

_READ_CHARS = 1 << 20
_MAX_ROW_CHARS = 1 << 26  # what is longer is no row but a file that is damaged
_SEPARATORS = re.compile(r"[\s,]*")


@dataclass(frozen=True)
class RawRow:
    """One row as the file holds it."""

    place: str  # FILE:LINE, of a list also which row
    text: str  # JSON, not yet checked


def raw_rows(path: Path, list_key: str | None = None) -> Iterator[RawRow]:
    """Yields the rows of a file, in order.

    Args:
        path: A JSON list, or one JSON object a line; UTF-8, with or without a byte order mark.
        list_key: The file may also be an object that begins with this key, whose value is the list.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not UTF-8, a row of a list is not JSON, or the list has no end.
    """
    require_file(path)
    opening = re.compile(rf'\s*(?:\{{\s*"{list_key}"\s*:\s*)?\[' if list_key else r"\s*\[")
    try:
        with path.open(encoding="utf-8-sig") as file:
            window = _Window(path, file)
            window.more()
            if match := opening.match(window.text):
                window.pass_over(match.end())
                yield from _list_rows(window)
            else:
                yield from _line_rows(path)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not UTF-8 ({error}); give the file as it is published") from error


def _line_rows(path: Path) -> Iterator[RawRow]:
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield RawRow(f"{path}:{number}", line)


def _list_rows(window: _Window) -> Iterator[RawRow]:
    number = 0
    while (first := window.next_char()) not in ("]", ""):
        number += 1
        place = f"{window.place} (row {number})"
        yield RawRow(place, window.take_value(place))
    if first == "]":
        window.take_end()
        first = window.next_char() or "]"
    if first not in ("]", "}"):
        raise ValueError(f"{window.place}: the list does not end there; the file is damaged, fetch it again")


class _Window:
    """The part of a file that is being read."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self.text = ""
        self._path, self._file = path, file
        self._at, self._line = 0, 1  # where the next character stands, in the text and in the file
        self._decoder = json.JSONDecoder()

    @property
    def place(self) -> str:
        """FILE:LINE of the next character."""
        return f"{self._path}:{self._line}"

    def more(self) -> bool:
        """Reads on, at least as much as is not passed over; whether there was anything."""
        left = self.text[self._at :]
        read = self._file.read(max(_READ_CHARS, len(left)))
        self.text, self._at = left + read, 0
        return bool(read)

    def pass_over(self, end: int) -> None:
        """Goes on to a place in the text."""
        self._line += self.text.count("\n", self._at, end)
        self._at = end

    def take_end(self) -> None:
        """Passes over the list's last character."""
        self.pass_over(self._at + 1)

    def next_char(self) -> str:
        """Goes on to the first character that is neither space nor comma, and returns it."""
        while True:
            match = _SEPARATORS.match(self.text, self._at)
            self.pass_over(match.end() if match else self._at)
            if self._at < len(self.text) or not self.more():
                return self.text[self._at : self._at + 1]

    def take_value(self, place: str) -> str:
        """Passes over the JSON value that comes next, and returns its text."""
        while True:
            try:
                _, end = self._decoder.raw_decode(self.text, self._at)
            except (ValueError, RecursionError) as error:
                if len(self.text) - self._at > _MAX_ROW_CHARS or not self.more():
                    what = getattr(error, "msg", "nested too deep")  # its position is of the window
                    raise ValueError(
                        f"{place}: not JSON ({what}); mend the file or fetch it again"
                    ) from error
                continue
            value = self.text[self._at : end]
            self.pass_over(end)
            return value

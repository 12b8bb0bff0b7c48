"""The word lists of `tables.toml` and `common.txt`, read once.

`common.txt` holds English words that mostly are no names: those that stand written small inside sentences of
encyclopedia, news and technical text, two million words. Inflected forms are derived (`words.is_common`).
"""

from __future__ import annotations

import tomllib
from pathlib import Path

_HERE = Path(__file__).parent
TABLES: dict[str, str] = tomllib.loads((_HERE / "tables.toml").read_text(encoding="utf-8"))
COMMON = frozenset((_HERE / "common.txt").read_text(encoding="utf-8").split()) | frozenset(
    TABLES["more_common"].split()
)


def words(table: str) -> frozenset[str]:
    """A table that is a set of words."""
    return frozenset(TABLES[table].split())


def groups(table: str) -> list[list[str]]:
    """A table with one group of words a line."""
    return [line.split() for line in TABLES[table].strip().splitlines()]

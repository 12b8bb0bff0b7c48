"""The words and signs of `vocabulary.toml`, loaded once, and patterns of them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SPACE = r"[ \t\u00a0\u2002-\u200a\u202f]"
TABLES: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("vocabulary.toml").read_text(encoding="utf-8")
)


def either(words: Iterable[str]) -> str:
    """The pattern of any of some words, the longest first; a space in one is any space."""
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    return "(?:" + "|".join(re.escape(word).replace(r"\ ", SPACE) for word in longest_first) + ")"


def by_word(table: Mapping[str, str]) -> dict[str, str]:
    """Of each word of a table the key that it follows."""
    return {word: key for key, words in table.items() for word in words.split("|")}

"""The words and signs of `vocabulary.toml`, loaded once, and patterns of them."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SPACE = r"[ \t\u00a0\u2002-\u200a\u202f]"
BEGIN = r"(?<![^\W_])"  # of a word: no letter and no digit is before it
END = r"(?![^\W_])"  # of a word: none is behind it
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


def keys_of(table: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Of each word of a table the keys, such as languages, that it follows."""
    keys: dict[str, tuple[str, ...]] = {}
    for key, words in table.items():
        for word in words.split():
            keys[word] = (*keys.get(word, ()), key)
    return keys


def count_keys(words: Iterable[str], keys: Mapping[str, tuple[str, ...]]) -> Counter[str]:
    """How many of some words each key has."""
    counts: Counter[str] = Counter()
    for its_keys, count in Counter(map(keys.__getitem__, filter(keys.__contains__, words))).items():
        for key in its_keys:
            counts[key] += count
    return counts

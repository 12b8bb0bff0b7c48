"""The words of a name as a document may write them: their other writings, orders and what is between."""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from reward.claims.names.lexicon import ARTICLES, LIKE, LINKS, OF_HEADS, RULERS, STATES, is_common, stem
from reward.claims.names.model import Name

_LONG_PEOPLE = 8  # letters: "Ligurian" is of Liguria, Julian is not Julia
_LONGEST_GAP = 8  # characters
_BREAK = re.compile(r"[,;:!?()\"\u201c\u201d|]|\n\s*\n|\.\s")
ALWAYS_INSIDE = LINKS - {"and", "for", "the"}
_PLURALS = ("ans", "ists", "ites", "crats", "isms")  # "Republicans" are more than one Republican
_RULERS = frozenset(RULERS.values())
_MAYBE_INSIDE = LINKS | ARTICLES


def small_words(name: Name) -> frozenset[str]:
    """The small words that can stand inside a name."""
    between = ALWAYS_INSIDE.union(_MAYBE_INSIDE.intersection(name.text.lower().split()))
    return between | {"the"} if name.tokens[-1] in _RULERS else between  # "Henry VIII" is "Henry the Eighth"


def holds(places: Sequence[int], place: int) -> bool:
    """Whether a list in order holds a place."""
    at = bisect_left(places, place)
    return at < len(places) and places[at] == place


def joins(gap: str, before: str) -> bool:
    """Whether what is between two words can stand inside a name."""
    if gap in (" ", "", " (", ") "):
        return True
    if gap == ". ":
        return len(before) <= 4  # "J. Smith", "Mrs. Smith"
    return len(gap) < _LONGEST_GAP and not _BREAK.search(gap)


@functools.lru_cache(maxsize=1 << 14)
def alike(word: str) -> Sequence[str]:
    """The writings that count as one word: nicknames, abbreviations, states, plurals of common words."""
    alike = {word, *LIKE.get(word, ())}
    if is_common(word):
        alike |= {stem(word), f"{stem(word)}s"}
    if word.endswith("ian") and len(word) >= _LONG_PEOPLE:
        alike.add(word[:-1])
    elif word.endswith("ia") and len(word) + 1 >= _LONG_PEOPLE:
        alike.add(f"{word}n")
    if word.endswith(_PLURALS):
        alike.add(word[:-1])
    if word in STATES and len(STATES[word]) == 1:
        alike.add(STATES[word][0])
    return sorted(alike)


def orders(name: Name) -> Iterator[tuple[Sequence[str], bool]]:
    """The orders in which a name's words can stand, and whether an "of" or a comma must stand between."""
    words = name.tokens
    yield words, False
    if 2 <= len(words) <= 5:
        if words[0] in RULERS:  # "Second Punic War" is "Punic War II"
            yield (*words[1:], words[0]), False
        elif words[-1] in _RULERS:
            yield (words[-1], *words[:-1]), False
        if words[-1] in OF_HEADS or len(words) == 2:
            yield (words[-1], *words[:-1]), True
        if (words[0] in OF_HEADS and len(words) > 2) or name.inverted:
            yield (*words[1:], words[0]), False

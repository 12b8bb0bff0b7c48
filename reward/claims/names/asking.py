"""What a question gives away of a name, and whether it can be about one that stands in a sentence."""

from __future__ import annotations

import re

from reward.claims.names.find import find_names
from reward.claims.names.index import index_names
from reward.claims.names.match import says
from reward.claims.names.model import Name, tokens_of
from reward.claims.names.words import LINKS, is_common, stem

_OTHER = re.compile(
    r"^\W*(?:when|how (?:many|much|long|old|far|often|tall|large|big)|what (?:year|date|time|percentage))\b",
    re.I,
)
_EMPTY = frozenset(
    [
        "who",
        "whom",
        "whose",
        "where",
        "which",
        "what",
        "when",
        "how",
        "why",
        "was",
        "were",
        "is",
        "are",
        "be",
        "been",
        "did",
        "does",
        "do",
        "has",
        "have",
        "had",
        "in",
        "on",
        "at",
        "to",
        "by",
        "from",
        "with",
        "as",
        "for",
        "of",
        "the",
        "a",
        "an",
        "and",
        "or",
        "that",
        "this",
        "it",
        "its",
        "his",
        "her",
        "their",
        "person",
        "place",
        "thing",
        "name",
        "named",
        "called",
    ]
)


def gives_away(text: str, mention: Name) -> bool:
    """Whether a text holds a name in any writing: whole, or what stands for it (a surname, an acronym)."""
    if index_names(text).find(mention):
        return True
    return any(says(other, mention) or _is_part(other, mention) for other in find_names(text))


def _is_part(other: Name, mention: Name) -> bool:
    """A first name or another telling word of the name alone."""
    return (
        len(other.tokens) == 1 < len(mention.tokens)
        and other.tokens[0] in mention.tokens
        and not is_common(other.tokens[0])
    )


def asks_for(question: str, mention: Name, sentence: str) -> bool:
    """Whether a question can be about a name of a sentence.

    It does not hold the name, asks for no number and no date, and shares a telling word with the rest of the
    sentence, where that has one.
    """
    if _OTHER.match(question) or gives_away(question, mention):
        return False
    rest = _telling(sentence) - set(mention.tokens) - {stem(word) for word in mention.tokens}
    return not rest or bool(rest & _telling(question))


def _telling(text: str) -> set[str]:
    words = {token.word for token in tokens_of(text)}
    return {stem(word) for word in words if word not in _EMPTY and word not in LINKS}


def holds(text: str, start: int, end: int, mention: Name) -> bool:
    """Whether the quotation `text[start:end]` holds a name, as the text itself has it there.

    A surname alone holds a full name if the person whom the text last named in full with it is that one.
    """
    index = index_names(text)
    tokens = index.tokens
    ranges = index.find(mention)
    inside = [r for r in ranges if start <= tokens[r[0]].start and tokens[r[1] - 1].end <= end]
    if inside or not ranges or len(mention.tokens) < 2:
        return bool(inside)
    named: int | None = None  # the place of the last full name with this surname
    for place in index.places.get(mention.tokens[-1], ()):
        if tokens[place].start >= end:
            break
        full = (
            place > 0
            and tokens[place - 1].capital
            and text[tokens[place - 1].end : tokens[place].start] in (" ", ". ")
        )
        if full and find_names(text[tokens[place - 1].start : tokens[place].end]):
            named = place
        elif tokens[place].start >= start and tokens[place].end <= end and named is not None:
            alone = Name(0, 0, mention.tokens[-1].capitalize(), mention.tokens[-1:])
            return says(alone, mention) and any(first <= named < last for first, last in ranges)
    return False

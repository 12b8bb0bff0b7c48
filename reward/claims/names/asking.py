"""What a question gives away of a name, and whether it can be about one that is in a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reward.claims.names.find import find_names
from reward.claims.names.index import Index, Range, index_names
from reward.claims.names.match import is_person, says
from reward.claims.names.model import Name
from reward.claims.names.words import is_common

_OTHER = re.compile(
    r"^\W*(?:when|how (?:many|much|long|old|far|often|tall|large|big)|what (?:year|date|time|percentage))\b",
    re.I,
)


def gives_away(text: str, mention: Name) -> bool:
    """Whether a text holds a name in any writing: whole, or what stands for it (a surname, an acronym)."""
    index = index_names(text)
    if index.find(mention) or (len(mention.tokens) == 1 and mention.tokens[0] in index.places):
        return True  # in small letters, too
    return any(says(other, mention) or _is_part(other, mention) for other in find_names(text))


def _is_part(other: Name, mention: Name) -> bool:
    """A first name or another telling word of the name alone."""
    return (
        len(other.tokens) == 1 < len(mention.tokens)
        and is_person(mention, mention.tokens)
        and other.tokens[0] in mention.tokens
        and not is_common(other.tokens[0])
    )


def asks_for(question: str, mention: Name) -> bool:
    """Whether a question can be about a name: it does not hold the name, and asks for no number or date."""
    return not (_OTHER.match(question) or gives_away(question, mention))


def holds(text: str, start: int, end: int, mention: Name) -> bool:
    """Whether the quotation `text[start:end]` holds a name, as the text itself has it there.

    A surname alone holds a full name if the person whom the text last named in full with it is that one.
    """
    index = index_names(text)
    ranges = index.find(mention)
    for first, last in ranges:
        if start <= index.tokens[first].start and index.tokens[last - 1].end <= end:
            return True
    if not ranges or len(mention.tokens) < 2:
        return False
    return _surname_holds(index, start, end, mention, ranges)


def _surname_holds(index: Index, start: int, end: int, mention: Name, ranges: Sequence[Range]) -> bool:
    """Whether a quotation holds the surname alone of the person whom the text last named in full with it."""
    surname = mention.tokens[-1]
    if not says(Name(0, 0, surname.capitalize(), (surname,)), mention):
        return False
    named: int | None = None  # the place of the last full name
    for place in index.places.get(surname, ()):
        if index.tokens[place].end > end:
            break
        if _is_full(index, place):
            named = place
        elif index.tokens[place].start >= start and named is not None:
            return any(first <= named < last for first, last in ranges)
    return False


def _is_full(index: Index, place: int) -> bool:
    """Whether a first name or an initial comes before a surname."""
    if place == 0:
        return False
    before, token = index.tokens[place - 1], index.tokens[place]
    gap = index.text[before.end : token.start]
    joined = gap == " " or (gap == ". " and len(before.word) == 1)
    return joined and before.capital and not is_common(before.word)

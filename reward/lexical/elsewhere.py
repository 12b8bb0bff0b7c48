"""Numbers and dates that the documents hold, but say of somebody else.

"Edwin Richards was born on 30 May 1917", where the document on Edwin Richards holds no such day and the one
on Alexander Fuks does: a policy's own errors look like this on real text (docs/log.md). Documents are held
against each other and never parts of one, where "he" and "the company" refer to names before them. A mention
is said of another if all of this holds:

1. A document holds a name of the mention's clause.
2. No document that holds the mention does, nor a part of such a name ("Jobs" for "Steve Jobs").
3. Each of them says the mention in a sentence with a name of its own, which fits no name of the response.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from reward.claims.kind import Place, Target
from reward.claims.names import Name, find_names
from reward.claims.names.index import index_names
from reward.claims.names.text import Text
from reward.claims.text import sentence_span
from reward.types import Document

_REACH = 300  # most characters of a sentence on each side of a mention
_MOST_PARTS = 100  # places of a name's words in one text that are looked at
_COORDINATOR = re.compile(r";|,? (?:and|while|whereas|but) ")


class Elsewhere:
    """The documents of a query one by one, for the mentions of a response."""

    def __init__(self, documents: Sequence[Document], response: str, targets: Sequence[Target]) -> None:
        self._documents = documents
        self._response = response
        self._targets = [one for one in targets if one.kind.name != "name"]

    def says_of_another(self, target: Target, place: Place[Any]) -> str:
        """Whom the documents say a mention of; empty if it may be whom the response means.

        Args:
            target: A mention of the response.
            place: Where a document holds it.
        """
        if len(self._documents) < 2 or target.kind.name == "name":
            return ""
        names = self._names_beside(target)
        if not names or _hold(place.document, names):
            return ""
        if not any(_hold(document, names) for document in self._documents):
            return ""
        others = []
        for found in self._places(target):
            if _hold(found.document, names) or _hold_in_part(found.document, names):
                return ""
            others.append(self._other_name(found))
        return others[0] if all(others) else ""

    def _names_beside(self, target: Target) -> list[Name]:
        """The names of a mention's clause."""
        if not self._names:
            return []
        low, high = self._clause(target)
        around = [name for name in self._names if name.start < high and low < name.end]
        return [name for name in around if name.end <= target.start or target.end <= name.start]

    def _clause(self, target: Target) -> tuple[int, int]:
        """The sentence of a mention, or the part of it between words that join two statements."""
        low, high = sentence_span(self._response, target.start, target.end, reach=_REACH)
        inside = [one for one in self._targets if low <= one.start and one.end <= high]
        for match in _COORDINATOR.finditer(self._response, low, high):
            start, end = match.span()
            is_between = any(low <= one.start < start for one in inside) and any(
                end <= one.start for one in inside
            )
            if is_between and end <= target.start:  # else it joins two words, as in "Anna and Peter"
                low = end
            elif is_between and start >= target.end:
                return low, start
        return low, high

    @functools.cached_property
    def _names(self) -> list[Name]:
        return find_names(self._response)

    def _places(self, target: Target) -> Iterator[Place[Any]]:
        """Where each document that holds a mention holds it."""
        for document in self._documents:
            if (place := target.kind.lookup([document]).find(target.mention)) is not None:
                yield place

    def _other_name(self, place: Place[Any]) -> str:
        """A name in the sentence of a place that fits none of the response."""
        start, end = place.mention.start, place.mention.end
        text = place.document.text
        low, high = sentence_span(text, start, end, reach=_REACH)
        for name in find_names(text[low:high]):
            is_apart = name.end <= start - low or end - low <= name.start
            if is_apart and not any(_fit(name, one) for one in self._names):
                return name.text
        return ""


def _hold(document: Document, names: Sequence[Name]) -> bool:
    """Whether a document holds one of some names."""
    return any(index_names(text).find(name) for text in _texts(document) for name in names)


def _hold_in_part(document: Document, names: Sequence[Name]) -> bool:
    """Whether a document has a name that is short for one of some names, or that one is short for."""
    words = {word for name in names for word in name.tokens}
    for text in _texts(document):
        index = index_names(text)
        places = {place for word in words for place in islice(index.places.get(word, ()), _MOST_PARTS)}
        for place in sorted(places)[:_MOST_PARTS]:
            word, start, end, _ = index.tokens[place]
            low, high = sentence_span(text, start, end, reach=_REACH)
            if any(word == name.tokens[-1] for name in names) and _is_alone(index, place):
                return True
            if any(_fit(name, one) for one in find_names(text[low:high]) for name in names):
                return True
    return False


def _is_alone(index: Text, place: int) -> bool:
    """Whether a word has a capital, as a surname alone has, and the word before it none."""
    is_behind_name = index.gap(place, -1) == " " and index.tokens[place - 1].capital
    return index.tokens[place].capital and not is_behind_name


def _texts(document: Document) -> list[str]:
    return [text for text in (document.title, document.text) if text]


def _fit(a: Name, b: Name) -> bool:
    """Whether one of two names can be short for the other; initials fit all."""
    left, right = ({word for word in name.tokens if len(word) > 1} for name in (a, b))
    return left <= right or right <= left

"""Where the documents hold a number that supports one of the response.

Values are indexed for each text once and kept for the next response to the same documents. A number that is
not found by its value is held against all numbers of the documents, for rounding and units.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from reward.claims.numbers import (
    AUTO,
    ENGLISH,
    Conventions,
    Form,
    Kind,
    Number,
    bound_stated,
    close_like,
    conventions_of,
    equal,
    find_numbers,
    supports,
)
from reward.types import Document

_WORD = re.compile(r"\w{3,}")
_REACH = 120  # characters around a place that are held against the context
_BOUNDS = (Form.AT_LEAST, Form.MORE_THAN, Form.AT_MOST, Form.LESS_THAN)


@dataclass(frozen=True)
class Place:
    """A number of a document."""

    number: Number
    document: Document


@dataclass(frozen=True)
class NumberIndex:
    """The numbers of one text, composite ones and their parts, by each of their values."""

    numbers: tuple[Number, ...]
    by_value: dict[Decimal, list[Number]]


@functools.lru_cache(maxsize=256)
def index_numbers(text: str, conventions: Conventions = ENGLISH) -> NumberIndex:
    """Finds and indexes the numbers of a text."""
    found = find_numbers(text, enumerators=True, conventions=conventions)
    numbers = tuple(n for number in found for n in dict.fromkeys((number, *number.atoms)))
    by_value: dict[Decimal, list[Number]] = {}
    for number in numbers:
        for value in {reading[0] for reading in number.readings}:
            by_value.setdefault(value, []).append(number)
    return NumberIndex(numbers, by_value)


class Lookup:
    """The numbers of all documents of a query, each read by what it shows itself, and then by the others."""

    def __init__(
        self, documents: Sequence[Document], *, relative_tolerance: float = 0.0, locale: str = AUTO
    ) -> None:
        self._tolerance = relative_tolerance
        texts = [document.text for document in documents]
        conventions = [conventions_of(text, *texts, locale=locale) for text in texts]
        self._texts = [
            (document, index_numbers(document.text, its))
            for document, its in zip(documents, conventions, strict=True)
        ]

    def find(self, claimed: Number, *, context: str = "") -> Place | None:
        """The place that supports a number: an equal one before one that supports it otherwise.

        Args:
            claimed: The number of a response.
            context: Text around it; of several equal places the one with most of its words is taken.
        """
        same = [place for place in self._of_value(claimed) if self._says(claimed, place.number)]
        exact = [place for place in same if equal(claimed, close_like(place.number, claimed))]
        if same:
            return _nearest(exact or same, context)
        supporting = next((place for place in self._all() if self._says(claimed, place.number)), None)
        if supporting is None and claimed.kind is Kind.DATE and claimed.form is not Form.RANGE:
            return self._find_date(claimed)
        if supporting is None and claimed.parts:
            return self._find_parts(claimed, context)
        return supporting

    def _of_value(self, claimed: Number) -> Iterator[Place]:
        for document, index in self._texts:
            for reading in claimed.readings:
                for number in index.by_value.get(reading[0], ()):
                    yield Place(number, document)

    def _all(self) -> Iterator[Place]:
        for document, index in self._texts:
            for number in index.numbers:
                yield Place(number, document)

    def _find_parts(self, claimed: Number, context: str) -> Place | None:
        """A range or a ratio stands in the documents when each of its numbers does."""
        places = [self.find(part, context=context) for part in claimed.parts]
        return places[0] if all(places) else None

    def _find_date(self, claimed: Number) -> Place | None:
        """A date whose day and month the documents give together, and whose year they give anywhere."""
        year, month, day = claimed.values
        for place in self._all():
            if place.number.kind is not Kind.DATE or place.number.form is Form.RANGE:
                continue
            found_year, found_month, found_day = place.number.values
            if (found_month, found_day) != (month, day) or (year and found_year and year != found_year):
                continue
            if not year or found_year or any(year in index.by_value for _, index in self._texts):
                return place
        return None

    def _says(self, claimed: Number, found: Number) -> bool:
        """Whether a number of a document supports one of a response.

        A time of day is supported by a time of day only, and a bound ("over 270") where the document states
        it or a value near it. An exact number is supported by the value of a bound ("270" by "over 270").
        """
        if (claimed.kind is Kind.TIME) is not (found.kind is Kind.TIME):
            return False
        if claimed.form in _BOUNDS:
            return bound_stated(found, claimed)
        return supports(claimed, _unbound(found), relative_tolerance=self._tolerance)


def _nearest(places: Sequence[Place], context: str) -> Place:
    """The place whose surroundings share most words with the context; the first of equals."""
    if len(places) == 1 or not context:
        return places[0]
    words = set(_WORD.findall(context.lower()))

    def num_shared(place: Place) -> int:
        start, end = max(0, place.number.start - _REACH), place.number.end + _REACH
        return len(words & set(_WORD.findall(place.document.text[start:end].lower())))

    return max(places, key=num_shared)


def _unbound(number: Number) -> Number:
    return replace(number, form=Form.EXACT) if number.form in _BOUNDS else number

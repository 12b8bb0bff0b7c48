"""Where the documents hold a number that supports one of the response.

Values are indexed for each text once and kept for the next response to the same documents. A number that is
not found by its value is held against all numbers of the documents, for rounding and units.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain

from reward.claims.kind import Place
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
from reward.claims.numbers.eras import lone_part
from reward.claims.numbers.shares import other_writings
from reward.claims.numbers.things import things_behind
from reward.types import Document

_WORD = re.compile(r"\w{3,}")
_ROMAN = re.compile("[mdclxvi]+")  # a year as a film shows it: "MCMLXXXIV"
_FIRST_YEAR = 1000
_LONGEST_NUMBER = 400  # characters
_REACH = 120  # characters around a place that are held against the context
_BOUNDS = (Form.AT_LEAST, Form.MORE_THAN, Form.AT_MOST, Form.LESS_THAN)


@dataclass(frozen=True)
class NumberIndex:
    """The numbers of one text, composite ones and their parts, by each of their values."""

    numbers: tuple[Number, ...]
    by_value: dict[Decimal, list[Number]]
    starts: list[int]
    text: str

    def things(self, kind: Kind) -> frozenset[str]:
        """What the numbers of a kind count, by its first letters."""
        return self._things.get(kind, frozenset())

    @functools.cached_property
    def _things(self) -> dict[Kind, frozenset[str]]:
        things: dict[Kind, set[str]] = {}
        for number in self.numbers:
            things.setdefault(number.kind, set()).update(things_behind(self.text, number))
        return {kind: frozenset(words) for kind, words in things.items()}

    def between(self, start: int, end: int) -> Iterator[Number]:
        """The numbers that share a character with `text[start:end]`, from left to right."""
        first = bisect_left(self.starts, start - _LONGEST_NUMBER)
        for number in self.numbers[first:]:
            if number.start >= end:
                return
            if number.end > start:
                yield number


@functools.lru_cache(maxsize=256)
def index_numbers(text: str, conventions: Conventions = ENGLISH) -> NumberIndex:
    """Finds and indexes the numbers of a text."""
    found = find_numbers(text, enumerators=True, conventions=conventions)
    together = (n for number in found for n in dict.fromkeys((number, *number.atoms)))
    numbers = tuple(sorted(together, key=lambda one: one.start))
    by_value: dict[Decimal, list[Number]] = {}
    for number in numbers:
        for value in {reading[0] for reading in number.readings}:
            by_value.setdefault(value, []).append(number)
    return NumberIndex(numbers, by_value, [number.start for number in numbers], text)


class NumberLookup:
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

    def find(self, claimed: Number, *, context: str = "") -> Place[Number] | None:
        """The place that supports a number: an equal one before one that supports it otherwise.

        Args:
            claimed: The number of a response.
            context: Text around it; of several equal places the one with most of its words is taken.
        """
        writings = chain((claimed,), other_writings(claimed))
        places = (self._find(writing, context) for writing in writings)
        return next((place for place in places if place is not None), None)

    def counts_otherwise(self, claimed: Number, things: frozenset[str]) -> bool:
        """Whether a document counts the same things as a number that it does not hold."""
        return any(not things.isdisjoint(index.things(claimed.kind)) for _, index in self._texts)

    def _find(self, claimed: Number, context: str) -> Place[Number] | None:
        same = [place for place in self._of_value(claimed) if self._says(claimed, place.mention)]
        exact = [place for place in same if equal(claimed, close_like(place.mention, claimed))]
        if same:
            return _nearest(exact or same, context)
        supporting = next((place for place in self._all() if self._says(claimed, place.mention)), None)
        if supporting is None and claimed.kind is Kind.DATE and claimed.form is Form.EXACT:
            return self._find_date(claimed)
        if supporting is None and claimed.kind is Kind.PERIOD:
            return self._find_period(claimed)
        if supporting is None and claimed.parts and claimed.form not in _BOUNDS:
            return self._find_parts(claimed, context)
        return supporting

    def _of_value(self, claimed: Number) -> Iterator[Place[Number]]:
        for document, index in self._texts:
            for reading in claimed.readings:
                for number in index.by_value.get(reading[0], ()):
                    yield Place(number, document)

    def _all(self) -> Iterator[Place[Number]]:
        for document, index in self._texts:
            for number in index.numbers:
                yield Place(number, document)

    def _find_parts(self, claimed: Number, context: str) -> Place[Number] | None:
        """A range or a ratio stands in the documents when each of its numbers does."""
        places = [self.find(part, context=context) for part in claimed.parts]
        return places[0] if all(places) else None

    def _find_date(self, claimed: Number) -> Place[Number] | None:
        """A date whose day and month the documents give together, and whose year they give anywhere."""
        year, month, day = claimed.values
        for place in self._all():
            if place.mention.kind is not Kind.DATE or place.mention.form is Form.RANGE:
                continue
            found_year, found_month, found_day = place.mention.values
            if (found_month, found_day) != (month, day) or (year and found_year and year != found_year):
                continue
            if not year or found_year or any(year in index.by_value for _, index in self._texts):
                return place
        return None

    def _find_period(self, claimed: Number) -> Place[Number] | None:
        """A part of a year that the documents name without its year, which they give anywhere."""
        year, part = claimed.values
        if year and not any(year in index.by_value for _, index in self._texts):
            return None
        with_years = [
            place for place in self._all() if place.mention.kind is Kind.PERIOD and place.mention.parts
        ]
        of_a_year = {(p.document.id, atom.start) for p in with_years for atom in p.mention.parts}
        lone = (place for place in self._all() if lone_part(place.mention) == part)
        return next((p for p in lone if (p.document.id, p.mention.start) not in of_a_year), None)

    def _says(self, claimed: Number, found: Number) -> bool:
        """Whether a number of a document supports one of a response.

        A time of day is supported by a time of day only, and a bound ("over 270") where the document states
        it or a value near it. An exact number is supported by the value of a bound ("270" by "over 270").
        """
        if (claimed.kind is Kind.TIME) is not (found.kind is Kind.TIME) or _is_of_another_rate(
            claimed, found
        ):
            return False
        if found.kind is Kind.IDENTIFIER and claimed.kind in (Kind.YEAR, Kind.COUNT):
            return found.value == claimed.value >= _FIRST_YEAR and _ROMAN.fullmatch(found.unit) is not None
        if claimed.form in _BOUNDS and claimed.kind is Kind.DATE:
            is_opposed = found.form in _BOUNDS and found.form is not claimed.form
            return not is_opposed and supports(_unbound(claimed), _unbound(found))
        if claimed.form in _BOUNDS:
            return bound_stated(found, claimed)
        return supports(claimed, _unbound(found), relative_tolerance=self._tolerance)


def _nearest(places: Sequence[Place[Number]], context: str) -> Place[Number]:
    """The place whose surroundings share most words with the context; the first of equals."""
    if len(places) == 1 or not context:
        return places[0]
    words = set(_WORD.findall(context.lower()))

    def num_shared(place: Place[Number]) -> int:
        start, end = max(0, place.mention.start - _REACH), place.mention.end + _REACH
        return len(words & set(_WORD.findall(place.document.text[start:end].lower())))

    return max(places, key=num_shared)


def _is_of_another_rate(claimed: Number, found: Number) -> bool:
    """Whether one is "$40 per month" and the other "$40 per week"."""
    return bool(claimed.rate and found.rate and claimed.rate != found.rate)


def _unbound(number: Number) -> Number:
    return replace(number, form=Form.EXACT) if number.form in _BOUNDS else number

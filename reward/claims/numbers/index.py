"""The numbers of one text, ready for the question which of them can support a claim.

A number that is written a thousand times is kept once, with its first places. The numbers of each unit are
sorted by value, since one that supports a claim lies near it: `equality.reach` says how near. So a claim is
held against a few numbers of a long text and not against all. What is found here only may support the claim;
whether it does, `NumberLookup` asks.
"""

import calendar
import functools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import inf, isfinite

from reward.claims.numbers.bounds import things_behind
from reward.claims.numbers.conventions import ENGLISH, Conventions
from reward.claims.numbers.dates import looks_like_year
from reward.claims.numbers.equality import conversion, reach
from reward.claims.numbers.eras import is_era, lone_part
from reward.claims.numbers.find import find_numbers
from reward.claims.numbers.model import Form, Kind, Number, changed
from reward.claims.numbers.reading import OPEN_DEGREE, is_grouped

_LONGEST_NUMBER = 400  # characters
_MOST_PLACES = 64  # of one number in one text, that are held against the context of a claim
_SLACK = 1e-9  # of a value as a float
_ANY_DATE = (-1, Decimal(0))
_THAT_YEAR = re.compile(
    r"\b(?:(?:later?|early|earlier|end|close|middle) (?:(?:in|of|that|the|same) ){1,3}year|months later"
    rf"|that (?:{'|'.join((*calendar.month_name[1:], *('spring', 'summer', 'autumn', 'fall', 'winter')))})"
    rf"|in (?:{'|'.join(calendar.month_name[1:])})(?! \d))\b",
    re.IGNORECASE,
)
Window = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Entry:
    """One number of a text, however often it is written there."""

    number: Number  # where it first occurs
    places: list[tuple[int, Number]]  # the first ones, each with its order among all numbers of the text


@dataclass(frozen=True)
class NumberIndex:
    """The numbers of one text, composite ones and their parts."""

    text: str
    numbers: tuple[Number, ...]
    entries: list[Entry]  # in the order of the text

    def between(self, start: int, end: int) -> Iterator[Number]:
        """The numbers that share a character with `text[start:end]`, from left to right."""
        for place in range(bisect_left(self._starts, start - _LONGEST_NUMBER), len(self.numbers)):
            number = self.numbers[place]
            if number.start >= end:
                return
            if number.end > start:
                yield number

    def near(self, claimed: Number, *, relative_tolerance: float) -> list[Entry]:
        """The numbers that may support a claim, and some others, each once, in the order of the text."""
        windows = list(_windows(claimed, relative_tolerance))
        found: set[int] = set()
        for unit, (values, places) in self._sorted.items():
            dimension = self.entries[places[0]].number.dimension
            if dimension and claimed.dimension not in ("", dimension):
                continue
            is_converted = dimension and claimed.dimension and unit != claimed.unit
            if is_converted and OPEN_DEGREE not in (unit, claimed.unit):
                factor, offset = map(float, conversion(unit, claimed.unit))
            else:
                factor, offset = 1.0, 0.0
            for low, high in windows:
                first = bisect_left(values, (low - offset) / factor)
                found.update(places[first : bisect_right(values, (high - offset) / factor)])
        return [self.entries[place] for place in sorted(found)]

    def dates(self, month: Decimal = Decimal(0), day: Decimal = Decimal(0)) -> Iterator[Number]:
        """The dates, or those with a month, or else with a day, each once, in the order of the text."""
        part = (1, month) if month else (2, day) if day else _ANY_DATE
        return (self.entries[place].number for place in self._dates.get(part, ()))

    @cached_property
    def by_value(self) -> dict[Decimal, list[Entry]]:
        """The numbers by the first value of each reading."""
        by_value: dict[Decimal, list[Entry]] = {}
        for entry in self.entries:
            for value in {reading[0] for reading in entry.number.readings}:
                by_value.setdefault(value, []).append(entry)
        return by_value

    @cached_property
    def pairs(self) -> dict[int, Number]:
        """The ratios and the ranges of bare numbers, such as scores, by where each of their parts starts."""
        bare_range = (Kind.COUNT, Form.RANGE)
        whole = (one for one in self.numbers if one.kind is Kind.RATIO or (one.kind, one.form) == bare_range)
        pairs = {part.start: one for one in whole for part in one.parts}
        longer = (one for one in pairs.values() if self.text.startswith(":", one.end))
        return pairs | {
            one.end + 1: changed(one) for one in longer
        }  # the 1 of "2:2:1" is in no pair with a 2

    @cached_property
    def years_of_dates(self) -> frozenset[int]:
        """Where the years of dates start."""
        wholes = (one for one in self.numbers if one.kind is Kind.DATE and one.form is Form.EXACT)
        return frozenset(part.start for one in wholes for part in one.parts)

    @cached_property
    def speaks_of_that_year(self) -> bool:
        """Whether something may be late in a year that only a date gives: "and left later that year"."""
        return _THAT_YEAR.search(self.text) is not None

    @cached_property
    def periods_of_years(self) -> dict[int, Number]:
        """The parts of years, such as "autumn 2012", by where their years start."""
        periods = (one for one in self.numbers if one.kind is Kind.PERIOD)
        return {part.start: one for one in periods for part in one.parts}

    @cached_property
    def bare_years(self) -> tuple[Number, ...]:
        """The numbers that may be one year, from left to right, wherever they stand."""
        return tuple(one for one in self.numbers if one.form is Form.EXACT and looks_like_year(one))

    @cached_property
    def lone_parts(self) -> dict[int, Number]:
        """The first number that names a part of a year without its year, by that part."""
        with_years = (one for one in self.numbers if one.kind is Kind.PERIOD and one.parts)
        of_a_year = {atom.start for one in with_years for atom in one.parts}
        parts: dict[int, Number] = {}
        for number in self.numbers:
            if number.start not in of_a_year and (part := lone_part(number)):
                parts.setdefault(part, number)
        return parts

    @cached_property
    def _starts(self) -> list[int]:
        return [number.start for number in self.numbers]

    @cached_property
    def things(self) -> dict[Kind, frozenset[str]]:
        """What the numbers of each kind count, by its first letters."""
        things: dict[Kind, frozenset[str]] = {}
        for number in self.numbers:
            if found := things_behind(self.text, number):
                things[number.kind] = things.get(number.kind, frozenset()) | found
        return things

    @cached_property
    def _sorted(self) -> dict[str, tuple[list[float], list[int]]]:
        """Of each unit, and of all else, the values, sorted, and the places in `entries` of their numbers."""
        members: dict[str, list[tuple[float, int]]] = {}
        for place, entry in enumerate(self.entries):
            number = entry.number
            values = {float(value) for reading in number.readings for value in reading}
            unit = number.unit if number.dimension else ""
            members.setdefault(unit, []).extend((value, place) for value in values)
        pairs = {unit: sorted(of_unit) for unit, of_unit in members.items()}
        return {unit: ([v for v, _ in of_unit], [p for _, p in of_unit]) for unit, of_unit in pairs.items()}

    @cached_property
    def _dates(self) -> dict[tuple[int, Decimal], list[int]]:
        """The places of dates by each year, month and day that they write."""
        dates: dict[tuple[int, Decimal], list[int]] = {}
        for place, entry in enumerate(self.entries):
            if entry.number.kind is Kind.DATE:
                parts = {part for reading in entry.number.readings for part in enumerate(reading[:3])}
                for part in (*parts, _ANY_DATE):
                    dates.setdefault(part, []).append(place)
        return dates


@functools.lru_cache(maxsize=256)
def index_numbers(text: str, conventions: Conventions = ENGLISH) -> NumberIndex:
    """Finds and indexes the numbers of a text."""
    found = find_numbers(text, enumerators=True, articles=True, conventions=conventions)
    together = (one for number in found for one in dict.fromkeys((number, *number.parts)))
    numbers = tuple(sorted(together, key=lambda one: one.start))
    entries: dict[object, Entry] = {}
    for order, number in enumerate(numbers):
        entry = entries.setdefault(identity(number), Entry(number, []))
        if len(entry.places) < _MOST_PLACES:
            entry.places.append((order, number))
    return NumberIndex(text, numbers, list(entries.values()))


def identity(number: Number) -> object:
    """All of a number that decides what it supports, and nothing of where it is."""
    return (
        *(number.readings, number.kind, number.unit, number.form, number.approximate, number.steps),
        *(number.is_plus, number.counts, number.rate, number.trend, bool(number.parts), is_grouped(number)),
    )


def _windows(claimed: Number, relative_tolerance: float) -> Iterator[Window]:
    """Where a value of a number lies that supports a claim, in the claim's unit."""
    if claimed.kind is Kind.DATE:
        yield from (_widened(float(v), float(v)) for reading in claimed.readings for v in reading if v)
        return
    far = _as_float(reach(claimed, relative_tolerance=relative_tolerance))
    is_decade = claimed.form is Form.RANGE and not claimed.parts  # any year in it supports it
    if is_era(claimed):  # and so does a somewhat longer one that lies in it for the greater part
        far += float(claimed.values[1] - claimed.values[0]) + 1
    if claimed.kind is Kind.PERIOD:  # a winter is of two years; a part of a year may have none
        far = 1 if claimed.value else inf
        yield 0, 0
    for reading in claimed.readings:
        first = _as_float(reading[0])
        last = _as_float(reading[-1]) if is_decade else first
        yield _widened(first - far, last + far) if isfinite(first + last + far) else (-inf, inf)


def _as_float(value: Decimal | Fraction) -> float:
    """A value as a float; infinite beyond what a float holds."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _widened(low: float, high: float) -> Window:
    slack = _SLACK * max(abs(low), abs(high))
    return low - slack, high + slack

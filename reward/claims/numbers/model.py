"""What a number is once it is read: its values, what it counts, how exactly it is written, and where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What a number says that it is."""

    COUNT = "count"  # says nothing more: the bare "466", "84 cars"
    QUANTITY = "quantity"  # of a measured unit: "5 km", "40 °F", "3/4 tsp"
    PERCENT = "percent"
    PERCENTAGE_POINT = "percentage_point"
    MONEY = "money"
    DATE = "date"  # a day or a month of the calendar: "3 May 2021", "May 3rd", "June 2016", "2021-05-03"
    YEAR = "year"  # by its context: "in 2021", "2021-22"; a bare "2021" is a COUNT
    TIME = "time"  # of day: "5:30 pm", "17:30", "noon"
    PERIOD = "period"  # a part of a year: "Q3 2018", "first half of 2020", "summer 2019"
    WEEKDAY = "weekday"  # 1 is Monday; only dates as a kind of their own read it
    DURATION = "duration"
    ORDINAL = "ordinal"
    RATIO = "ratio"  # "3:1", "3 to 1", "3.5 out of 5", "2-1"
    IDENTIFIER = "identifier"  # digits of a name or a code: "COVID-19", "1.2.3", a telephone number


class Form(StrEnum):
    """Which values a number allows."""

    EXACT = "exact"
    RANGE = "range"  # "52-59 %", "9 am to 5 pm"
    AT_LEAST = "at_least"  # "at least 5", "5+", "5 or more"
    MORE_THAN = "more_than"  # "over 270"
    AT_MOST = "at_most"  # "up to 5"
    LESS_THAN = "less_than"  # "under 270"


_CALENDAR = frozenset({Kind.DATE, Kind.YEAR, Kind.PERIOD, Kind.TIME})
_BOUNDS = frozenset({Form.AT_LEAST, Form.MORE_THAN, Form.AT_MOST, Form.LESS_THAN})


@dataclass(unsafe_hash=True)  # never altered; to make a frozen one takes seven times as long
class Number:
    """One number as a text writes it.

    Example: in "It cost about $1.50 million." the number is `Number(readings=((Decimal("1.50E+6"),),),
    kind=Kind.MONEY, unit="USD", approximate=True, step=Decimal("1E+4"), start=8, end=27)`.

    A date has the values (year, month, day), where 0 stands for a part that was not written; a time of day
    has one value, minutes since midnight; a ratio or a range has two, and so has a part of a year (see
    `eras`). All scale words, fractions and powers of ten are worked in. Nearly every number is closed: it has
    one reading. Open are a date like "5/3/2021" where nothing says which is the month, a time like "9:30"
    without am or pm, and money in parentheses that may be a loss. Their readings stand in one order, that of
    the conventions (month first and day first, am and pm, no loss and loss), so that two open numbers are the
    same only when each reading is.
    """

    readings: tuple[tuple[Decimal, ...], ...]  # each reading: the values; the likeliest reading first
    kind: Kind = Kind.COUNT
    unit: str = ""  # "%", "pp", an ISO currency code, a unit as pint names it, or the text of an identifier
    dimension: str = ""  # "length", "mass", ...: units of one dimension can be compared
    form: Form = Form.EXACT
    approximate: bool = False  # "about", "nearly", "~"
    is_short: bool = field(default=False, compare=False)  # "nearly": the exact number is not above this one
    is_plus: bool = field(default=False, compare=False)  # "270+": at least 270, or more than that
    counts: bool = field(default=False, compare=False)  # a bare number of things: "45 patients", "12 of them"
    rate: str = field(default="", compare=False)  # "month" of "$40 per month"
    trend: str = field(default="", compare=False)  # "fall" of "fell by 3%", as `moves` tells
    step: Decimal = field(default=Decimal(0), compare=False)  # one in the last written place; 0 is exact
    start: int = field(default=0, compare=False)  # `text[start:end]`, with sign, scale, unit and bound
    end: int = field(default=0, compare=False)
    parts: tuple[Number, ...] = field(default=(), compare=False)  # of a range, a date or a ratio: its numbers

    @property
    def values(self) -> tuple[Decimal, ...]:
        """The values of the likeliest reading."""
        return self.readings[0]

    @property
    def value(self) -> Decimal:
        """The first value of the likeliest reading."""
        return self.readings[0][0]

    @property
    def steps(self) -> tuple[Decimal, ...]:
        """The written precision of each value: of a range each end's own."""
        if self.form is Form.RANGE and len(self.parts) == len(self.values):
            return tuple(part.step for part in self.parts)
        return (self.step,) * len(self.values)

    @property
    def is_bound(self) -> bool:
        """Whether it bounds a value: "over 270"."""
        return self.form in _BOUNDS

    @property
    def is_calendar(self) -> bool:
        """Whether it is a date, a year, a part of a year or a time of day."""
        return self.kind in _CALENDAR

    @property
    def atoms(self) -> tuple[Number, ...]:
        """The numbers that each need a check: the parts of a composite one, or the number itself."""
        return self.parts or (self,)


def changed(number: Number, **fields: Any) -> Number:
    """The number with other fields; as `dataclasses.replace`, and several times as fast."""
    assert fields.keys() <= number.__dict__.keys(), f"no field of a number: {fields}"
    other = object.__new__(Number)
    other.__dict__.update(number.__dict__, **fields)
    return other


def unbound(number: Number) -> Number:
    """The number that a bound is made of; any other as it is."""
    return changed(number, form=Form.EXACT) if number.is_bound else number


def span_of(low: Number, high: Number, start: int, end: int) -> Number:
    """The range between two numbers of one kind and unit, in every reading of both.

    The two are read in one way, but for times: "9:00-5:00" may begin in the morning and end in the evening.
    """
    pairs = [(*a, *b) for a in low.readings for b in high.readings]
    if len(low.readings) == len(high.readings):
        aligned = [(*a, *b) for a, b in zip(low.readings, high.readings, strict=True)]
        pairs = [*aligned, *pairs] if low.kind is Kind.TIME else aligned
    readings, step = tuple(dict.fromkeys(pairs)), max(low.step, high.step)
    return changed(
        low, readings=readings, form=Form.RANGE, step=step, start=start, end=end, parts=(low, high)
    )


def year_of(value: int, start: int, end: int) -> Number:
    """A year; years before Christ are negative."""
    return Number(((Decimal(value),),), Kind.YEAR, step=Decimal(1), start=start, end=end)


def years_of(first: int, last: int, start: int, end: int, *, kind: Kind = Kind.YEAR) -> Number:
    """The years (or the ages) from the first to the last, both included."""
    values = ((Decimal(first), Decimal(last)),)
    return Number(values, kind, form=Form.RANGE, step=Decimal(1), start=start, end=end)


def apart(numbers: Iterable[Number], taken: Sequence[Number]) -> Iterator[Number]:
    """The numbers that share no character with one of those taken; both are in order."""
    place = 0
    for number in numbers:
        while place < len(taken) and taken[place].end <= number.start:
            place += 1
        if place == len(taken) or taken[place].start >= number.end:
            yield number


def moved(number: Number, by: int) -> Number:
    """The number, and its parts, at a later place."""
    if not by:
        return number
    parts = tuple(moved(part, by) for part in number.parts)
    return changed(number, start=number.start + by, end=number.end + by, parts=parts)

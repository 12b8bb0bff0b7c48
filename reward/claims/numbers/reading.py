"""What a bare number is taken for when it is held against one that says what it is."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from reward.claims.numbers.clock import as_time
from reward.claims.numbers.model import Form, Kind, Number

_TAKEN = (Kind.PERCENT, Kind.PERCENTAGE_POINT, Kind.MONEY, Kind.QUANTITY, Kind.DURATION)
_FIRST_LONG_YEAR = 32  # above it a bare number is no day


def read_as(number: Number, like: Number) -> Number:
    """A bare number takes the kind and the unit of the number it is held against; any other stays what it is.

    Answers stand in brackets as pure numbers because their question names the unit, so the bare 12 that
    answers "what percentage" is held against "12%" as a percent. "12%" held against the bare 12 stays a
    percent, and is another number. A bare 5 can be an hour, a day or a year; it is never an identifier, a
    ratio, or a whole date.
    """
    if number.kind is not Kind.COUNT or like.kind is Kind.COUNT:
        return number
    if like.kind in _TAKEN:
        return replace(number, kind=like.kind, unit=like.unit, dimension=like.dimension)
    if len(number.values) > 1 and number.form is not Form.RANGE:
        return number
    if like.kind in (Kind.YEAR, Kind.ORDINAL) and _is_whole(number) and len(number.readings) == 1:
        return replace(number, kind=like.kind)
    if like.kind is Kind.TIME and number.form is not Form.RANGE:
        time = as_time(number)
        return number if time is None else replace(number, readings=time.readings, kind=Kind.TIME)
    return _as_date(number) if like.kind is Kind.DATE else number


def _is_whole(number: Number) -> bool:
    return all(value == value.to_integral_value() for value in number.values)


def _as_date(number: Number) -> Number:
    """A day or a year; a number that can be neither stays a count."""
    value = number.value
    if not _is_whole(number) or len(number.readings) > 1 or len(number.values) > 1 or not 0 < value < 3000:
        return number
    zero = Decimal(0)
    if value < _FIRST_LONG_YEAR:
        return replace(number, readings=((zero, zero, value), (zero, value, zero)), kind=Kind.DATE)
    return replace(number, readings=((value, zero, zero),), kind=Kind.DATE) if value >= 1000 else number

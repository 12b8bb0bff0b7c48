"""How a number is written, in one way: its canonical text."""

import calendar
from decimal import Decimal
from fractions import Fraction

from reward.claims.numbers.clock import MINUTES_A_DAY
from reward.claims.numbers.model import Form, Kind, Number
from reward.claims.numbers.reading import OPEN_CENTS
from reward.claims.numbers.units import money_as, written_as

_BOUNDS = {Form.AT_LEAST: "≥", Form.MORE_THAN: ">", Form.AT_MOST: "≤", Form.LESS_THAN: "<"}
_PARTS = ("Q1", "Q2", "Q3", "Q4", "H1", "H2", "spring", "summer", "autumn", "winter")  # of a year
_TIME_HOURS = 24
_LONGEST_DECIMALS = -40  # what is longer comes from a division
_LARGEST_DENOMINATOR = 99_999
_FRACTION_ERROR = Fraction(1, 10**40)


def canonical(number: Number) -> str:
    """The one text of all equal numbers of one unit, by their likeliest reading.

    "1200" for "1,200.0", "10%", "10pp", "$5", "CHF 7", "5 km", "17:30", "2021-05-03", "--05-03" for a date
    without its year, "≥5", "3:1", "3rd"; a range has an en dash. An approximator is left out. What is in
    two units of one dimension has two texts; `equal` decides about those. A year comes back from
    `parse_number` as a bare number, and a date without its year not at all.
    """
    width = 3 if number.kind is Kind.DATE else 1  # values of one end of a range
    if number.form is Form.RANGE and len(number.values) == 2 * width:
        low, high = (_written(number, end) for end in (number.values[:width], number.values[width:]))
        shared = number.kind in (Kind.PERCENT, Kind.PERCENTAGE_POINT, Kind.QUANTITY, Kind.DURATION)
        return f"{_plain(number.values[0])}\u2013{high}" if shared else f"{low}\u2013{high}"
    return _BOUNDS.get(number.form, "") + _written(number, number.values)


def _written(number: Number, values: tuple[Decimal, ...]) -> str:
    kind, text = number.kind, _plain(values[0])
    if kind is Kind.IDENTIFIER:
        return number.unit
    if kind is Kind.DATE:
        return _date(values)
    if kind is Kind.PERIOD:
        year, part = map(int, values)
        return f"{_PARTS[part - 1]} {year}" if year else _PARTS[part - 1]
    if kind is Kind.WEEKDAY:
        return calendar.day_name[int(values[0]) - 1]
    if kind is Kind.TIME:
        return _time(values[0])
    if kind is Kind.RATIO:
        return _ratio(values)
    if kind is Kind.MONEY:
        if number.unit == OPEN_CENTS:
            return f"{_plain(100 * values[0])} cents"
        return money_as(number.unit, text)
    if kind in (Kind.QUANTITY, Kind.DURATION):
        return f"{text} {written_as(number.unit, singular=values[0] == 1)}"
    if kind is Kind.YEAR and values[0] < 0:
        return f"{text[1:]} BC"
    endings = {Kind.PERCENT: "%", Kind.PERCENTAGE_POINT: "pp", Kind.ORDINAL: _ending(values[0])}
    return text + endings.get(kind, "")


def _plain(value: Decimal) -> str:
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent < _LONGEST_DECIMALS and (fraction := _fraction(value)):
        return fraction
    digits = f"{value:f}"
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return "0" if digits in ("-0", "") else digits


def _fraction(value: Decimal) -> str:
    """The fraction that a long decimal stands for ("2/3", "1 1/7"), or nothing."""
    exact = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    if abs(exact - Fraction(value)) > _FRACTION_ERROR:
        return ""
    whole, rest = divmod(abs(exact), 1)
    sign = "-" if exact < 0 else ""
    return f"{sign}{whole} {rest}" if whole else f"{sign}{rest}"


def _date(values: tuple[Decimal, ...]) -> str:
    year, month, day = (int(value) for value in values)
    if not month and not day:
        return f"{year:04}"
    first = f"{year:04}" if year else "-"
    middle = f"-{month:02}" if month else "-"
    return first + middle + (f"-{day:02}" if day else "")


def _time(minutes: Decimal) -> str:
    whole = int(minutes) % MINUTES_A_DAY
    seconds = round((minutes - int(minutes)) * 60)
    return f"{whole // 60:02}:{whole % 60:02}" + (f":{seconds:02}" if seconds else "")


def _ratio(values: tuple[Decimal, ...]) -> str:
    first, second = map(_plain, values[:2])
    is_clock = len(second) == 2 and second < "60" and first.isdigit() and int(first) <= _TIME_HOURS
    return f"{first} out of {second}" if is_clock else f"{first}:{second}"


def _ending(value: Decimal) -> str:
    last = int(value) % 100
    return "th" if last in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(last % 10, "th")

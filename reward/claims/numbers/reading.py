"""What a number is taken for when it is held against another: what it leaves out, and what it leaves open."""

from decimal import Decimal

from reward.claims.numbers.clock import as_time
from reward.claims.numbers.model import Form, Kind, Number, changed

_TAKEN = (Kind.PERCENT, Kind.PERCENTAGE_POINT, Kind.MONEY, Kind.QUANTITY, Kind.DURATION)
_NEVER_COUNTED = frozenset({*_TAKEN, Kind.ORDINAL, Kind.TIME, Kind.DATE})
OPEN_DEGREE = "degree"  # of no scale
_FIRST_LONG_YEAR = 32  # above it a bare number is no day
_WITH_CENTS = ("USD", "EUR", "AUD", "CAD", "NZD", "SGD", "HKD", "ZAR")
OPEN_CENTS = "CENT"  # nobody says of which currency a cent is
OF_COUNTRIES = {"KR": ("NOK", "SEK", "DKK", "CZK"), "FRANC": ("CHF",), OPEN_CENTS: _WITH_CENTS}


def read_as(number: Number, like: Number) -> Number:
    """What a number leaves out, or leaves open, is taken from the number that it is held against.

    Answers stand in brackets as pure numbers because their question names the unit, so the bare 12 that
    answers "what percentage" is held against "12%" as a percent. "12%" held against the bare 12 stays a
    percent, and is another number. A bare 5 can be an hour, a day or a year; it is never an identifier, a
    ratio, or a whole date. "9:30" held against "9:30 pm" is in the evening, "270+" held against "over 270" is
    over 270, degrees are of the other's scale, and kroner and francs of its country.
    """
    if number.kind is Kind.COUNT and like.kind is not Kind.COUNT:
        # "45 patients" is no 45%, nor "31 players" the 31st title: a number of things leaves no unit out.
        number = number if number.counts and like.kind in _NEVER_COUNTED else _measured_as(number, like)
    elif _is_open_of(number, like):
        number = changed(number, unit=like.unit)
    if number.is_plus and like.form is Form.MORE_THAN:
        number = changed(number, form=Form.MORE_THAN, is_plus=False)
    return close_like(number, like)


def _is_open_of(number: Number, like: Number) -> bool:
    """Whether a unit is one of several, of which the other number's is one: degrees, kroner and francs."""
    is_degree = number.unit == OPEN_DEGREE and like.dimension == number.dimension
    return is_degree or like.unit in OF_COUNTRIES.get(number.unit, ())


def close_like(number: Number, like: Number) -> Number:
    """An open number in the reading of the closed one that it is held against, if it has that reading."""
    if len(number.readings) == 1 or len(like.readings) > 1 or number.kind is not like.kind:
        return number
    fitting = (reading for reading in number.readings if _fits(reading, like))
    reading = next(fitting, None)
    return number if reading is None else changed(number, readings=(reading,))


def closed(number: Number, like: Number) -> Number:
    """A number with one reading: that of the number it is held against if it has it, else the likeliest.

    Votes are counted by `equal` after this. It is an equivalence for open numbers too, but "9:30" would be an
    answer of its own beside "9:30 am" and "9:30 pm".
    """
    number = close_like(number, like)
    return number if len(number.readings) == 1 else changed(number, readings=number.readings[:1])


def _fits(reading: tuple[Decimal, ...], like: Number) -> bool:
    """Whether a reading says the same; of dates, as far as both say it."""
    other = like.values
    if like.kind is not Kind.DATE or len(reading) != len(other):
        return reading == other
    return all(a == b or 0 in (a, b) for a, b in zip(reading, other, strict=True))


def _measured_as(number: Number, like: Number) -> Number:
    """A bare number with the kind and the unit of another; it stays bare where it cannot be of that kind."""
    if like.kind in _TAKEN:
        return changed(number, kind=like.kind, unit=like.unit, dimension=like.dimension)
    if len(number.values) > 1 and number.form is not Form.RANGE:
        return number
    if like.kind in (Kind.YEAR, Kind.ORDINAL) and _is_whole(number) and not is_grouped(number):
        return changed(number, kind=like.kind)
    if like.kind is Kind.TIME and number.form is not Form.RANGE:
        time = as_time(number)
        return number if time is None else changed(number, readings=time.readings, kind=Kind.TIME)
    return _as_date(number) if like.kind is Kind.DATE else number


def _is_whole(number: Number) -> bool:
    return all(value == value.to_integral_value() for value in number.values)


def is_grouped(number: Number) -> bool:
    """Whether four digits have a separator: "2,021" is never a year."""
    return number.end - number.start == len("2,021") and 1000 <= number.value <= 9999


def _as_date(number: Number) -> Number:
    """A day or a year; a number that can be neither stays a count."""
    value = number.value
    if not _is_whole(number) or is_grouped(number) or len(number.values) > 1 or not 0 < value < 3000:
        return number
    zero = Decimal(0)
    if value < _FIRST_LONG_YEAR:
        return changed(number, readings=((zero, zero, value), (zero, value, zero)), kind=Kind.DATE)
    return changed(number, readings=((value, zero, zero),), kind=Kind.DATE) if value >= 1000 else number

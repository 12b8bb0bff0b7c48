"""One number in its other writings, of other kinds: "half" is 50%, "one in two" and "halved".

No two of them are `equal`, so that a lookup asks for each in turn. Most numbers have none.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from reward.claims.numbers.digits import EXACT, fraction
from reward.claims.numbers.model import Form, Kind, Number, changed
from reward.claims.numbers.shares import multiples, shares
from reward.claims.numbers.trends import in_other_sign

_SIXTY, _DAY = Decimal(60), Decimal(24)
_HALF_DAY = 720  # minutes
_FISCAL_YEAR = re.compile(r"fy ?'?(\d{4}|\d\d)")
_TEN = 10
_TWO_PARTS = re.compile(r"\d+\.\d+")
_PARTS_OF_TIME = {
    **{"minute": (_SIXTY, "second"), "hour": (_SIXTY, "minute"), "day": (_DAY, "hour")},
    **{"week": (Decimal(7), "day"), "year": (Decimal(12), "month")},
}
_PARTS = {"other": 2, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "tenth": 10}
_UNITS_OF_TIME = "hour|day|week|month|year"
_EVERY = re.compile(
    rf"\bevery (?P<nth>{'|'.join(_PARTS)}) (?:(?P<unit>{_UNITS_OF_TIME})\b|(?P<day>[A-Z]\w+day)\b"
    r"|(?!time|minute|floor)[a-z]{3,})"
)
_WIN = re.compile(r" (?:win|victory|title|goal)\b")
_BINARY = Decimal(1024)
_BYTES = {  # the unit in which a number of bytes is written otherwise, and whether that one is smaller
    "gigabyte": ("megabyte", True),
    "terabyte": ("gigabyte", True),
    "megabyte": ("gigabyte", False),
}


def other_writings(number: Number) -> Iterator[Number]:
    """The other writings of one number, the likelier first."""
    if signed := in_other_sign(number):
        yield signed
    yield from _times(number)
    yield from _versions(number)
    yield from _units(number)
    yield from _clock(number)
    yield from shares(number)
    yield from multiples(number)


def other_readings(text: str, numbers: Iterable[Number]) -> Iterator[Number]:
    """What a document says in words that are no numbers, or are others.

    A time with seconds ("3:58:41") is also a length of time, "every other Tuesday" is once in two weeks, and
    "every second sample" one in two.
    """
    for one in numbers:
        if one.kind is Kind.TIME and one.value != int(one.value):
            yield _length(one)
        elif fiscal := _FISCAL_YEAR.fullmatch(one.unit):
            yield _year_of(one, fiscal)
        elif one.kind is Kind.ORDINAL and _WIN.match(
            text, one.end
        ):  # who took an eighth title has won 8 times
            yield changed(one, kind=Kind.QUANTITY, unit="times", dimension="multiple")
    for match in _EVERY.finditer(text):
        many, start, end = Decimal(_PARTS[match["nth"]]), *match.span()
        if unit := match["unit"] or (match["day"] and "week"):
            yield Number(((many,),), Kind.DURATION, unit, "time", step=Decimal(1), start=start, end=end)
        else:
            yield Number(((Decimal(1), many),), Kind.RATIO, step=Decimal(1), start=start, end=end)


def _length(time: Number) -> Number:
    """A time with seconds as a length of time."""
    seconds = EXACT.multiply(time.value, _SIXTY).to_integral_value()
    lasts = {"kind": Kind.DURATION, "unit": "second", "dimension": "time"}
    return changed(time, readings=((seconds,),), parts=(), **lasts)


def _times(number: Number) -> Iterator[Number]:
    """ "Three times a day" is "every 8 hours", and who "played 212 times" has 212 appearances."""
    if number.kind is Kind.COUNT and number.value > _SIXTY:  # "streamed 2 billion times"
        yield changed(number, kind=Kind.QUANTITY, unit="times", dimension="multiple")
    if number.unit != "times":
        return
    many, unit = _PARTS_OF_TIME.get(number.rate, (_DAY, ""))
    if unit and number.value and not many % number.value:
        every = ((many / number.value,),)
        yield changed(number, readings=every, kind=Kind.DURATION, unit=unit, dimension="time", rate="")
    if number.form is Form.EXACT and not number.rate and number.value > _TEN:
        yield changed(number, kind=Kind.COUNT, unit="", dimension="", counts=True)


def _versions(number: Number) -> Iterator[Number]:
    """ "Version 3.10", or a later one, is "Python 3.10"; and FY24 is 2024."""
    if number.kind is Kind.IDENTIFIER and _TWO_PARTS.fullmatch(number.unit):
        if number.form is not Form.AT_MOST:
            value = ((Decimal(number.unit),),)
            yield changed(number, readings=value, kind=Kind.COUNT, unit="", form=Form.EXACT)
    elif number.kind is Kind.COUNT and _TWO_PARTS.fullmatch(written := str(number.value)):
        digits = Decimal(written.replace(".", ""))
        yield changed(number, readings=((digits,),), kind=Kind.IDENTIFIER, unit=written)
    if fiscal := _FISCAL_YEAR.fullmatch(number.unit):
        yield _year_of(number, fiscal)


def _year_of(number: Number, fiscal: re.Match[str]) -> Number:
    """FY24 as the year 2024."""
    year = Decimal(fiscal[1]) + (0 if len(fiscal[1]) > 2 else 2000)
    return changed(number, readings=((year,),), kind=Kind.YEAR, unit="")


def _units(number: Number) -> Iterator[Number]:
    """3.4 t/ha, 3 mg/day, pounds of mass or money, and half a gigabyte of 512 MB."""
    if number.rate == "hectare" and number.dimension == "mass":
        yield changed(number, unit=f"{number.unit} / hectare", dimension="mass/area", rate="")
    of_what, _, per = number.dimension.rpartition("/")
    if number.dimension and not of_what and number.rate in _UNITS_OF_TIME.split("|"):
        fields = {"unit": f"{number.unit} / {number.rate}", "dimension": f"{number.dimension}/time"}
        yield changed(number, kind=Kind.QUANTITY, rate="", **fields)
    elif of_what and per == "time":
        unit, _, time = number.unit.rpartition(" / ")
        kind = Kind.DURATION if of_what == "time" else Kind.QUANTITY
        yield changed(number, kind=kind, unit=unit, dimension=of_what, rate=time)
    # "412m kroner, up from 367m", "4.3m litres"; not "4.3 m" or "4.3 metres"
    if number.unit == "meter" and number.end - number.start == len(f"{number.value}m"):
        millions, step = ((EXACT.scaleb(number.value, 6),),), number.step.scaleb(6)
        yield changed(number, readings=millions, kind=Kind.COUNT, unit="", dimension="", step=step)
    if number.unit == "pound":
        yield changed(number, kind=Kind.MONEY, unit="GBP", dimension="", parts=())
    elif number.kind is Kind.MONEY and number.unit == "GBP" and not number.parts:
        yield changed(number, kind=Kind.QUANTITY, unit="pound", dimension="mass")
    if (other := _BYTES.get(number.unit)) and number.form is not Form.RANGE:
        smaller, is_smaller = other
        value = EXACT.multiply(number.value, _BINARY) if is_smaller else EXACT.divide(number.value, _BINARY)
        yield changed(number, readings=((value,),), unit=smaller, parts=())


def _clock(number: Number) -> Iterator[Number]:
    """A length as a clock shows it ("2:04:31"), and the other way; and "7.15" of a British clock."""
    if number.kind is Kind.DURATION and number.unit == "second":
        full, rest = divmod(int(number.value), 60)
        minutes = full + fraction(rest, 60)  # as the clock reads it
        yield changed(number, readings=((minutes,),), kind=Kind.TIME, unit="", dimension="", parts=())
    if number.kind is not Kind.TIME:
        return
    if number.form is Form.EXACT and number.value % 60:
        for minutes in dict.fromkeys((number.value, number.value % _HALF_DAY)):
            with_dot = minutes // 60 + (minutes % 60).scaleb(-2)
            yield changed(number, readings=((with_dot,),), kind=Kind.COUNT, step=Decimal("0.01"), parts=())
    if number.value != int(number.value):
        yield _length(number)

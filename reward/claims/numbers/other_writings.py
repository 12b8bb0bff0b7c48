"""One number in its other writings, of other kinds: "half" is 50%, "one in two" and "halved".

No two of them are `equal`, so that a lookup asks for each in turn. Most numbers have none.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import chain

from reward.claims.numbers.digits import EXACT, fraction
from reward.claims.numbers.model import Form, Kind, Number, changed
from reward.claims.numbers.shares import multiples, shares
from reward.claims.numbers.trends import in_other_sign
from reward.claims.numbers.vocabulary import TABLES
from reward.claims.text import lowered

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
# Ranks without a determiner: "Second edition.", and husbands of whom she "married first" one.
_FIRST_PART = re.compile(
    rf"\b(?P<rank>first|second)(?:,? (?:(?!the|an?|this|its|in|and)[a-z]+ )?|-)"
    rf"(?:{'|'.join(TABLES['parts']['words'].split())})\b",
    re.IGNORECASE,
)
_MARRIED = re.compile(r"\bmarried\b[^.;!?\n]{0,240}", re.IGNORECASE)
_RANKS = {"first": 1, "firstly": 1, "second": 2, "secondly": 2, "thirdly": 3}
_RANK = re.compile(rf"\b(?:{'|'.join(_RANKS)})\b", re.IGNORECASE)
_OFTEN = {"half-hourly": 30, "quarter-hourly": 15}
_HOURLY = re.compile(rf"\b(?:{'|'.join(_OFTEN)})\b", re.IGNORECASE)
_PAGES = re.compile(r"\d ?pp$")
_LENGTH_BEFORE = re.compile(r"\b(?:in|lasts?|lasted|lasting|takes?|took|after|of|r[au]ns?)[ ]$")
_CLOCK_BEFORE = re.compile(
    r"\b(?:at|by|from|until|till|before|since|around|à|vers|dès|de|um|ab|bis|às|a las|las|op|om)[ ]$",
    re.IGNORECASE,
)
_HOURS = re.compile(r"\d{1,2}[hH]\d\d$")
_WIN = re.compile(r" (?:win|victory|title|goal)\b")
_SPREAD = re.compile(
    r"\b(?:(?:plus|minus)(?: a (?:margin|spread|premium) of)?|(?:margin|spread|premium) of) $"
)
_LONGEST_SPREAD = 24
_EITHER = re.compile(r"(\d{2,4})/(\d{2,4})")  # "50/60 Hz" is either
_RATES = {Kind.PERCENTAGE_POINT: (Kind.PERCENT, "%"), Kind.PERCENT: (Kind.PERCENTAGE_POINT, "pp")}
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
    "every second sample" one in two. A spread of 175 basis points is one of 1.75%.
    """
    for one in numbers:
        if _is_spread(text, one):
            kind, unit = _RATES[one.kind]
            yield changed(one, kind=kind, unit=unit)
        if one.kind is Kind.QUANTITY and (either := _EITHER.match(text, one.start)):
            for value in map(Decimal, either.groups()):
                yield changed(one, readings=((value,),), step=Decimal(1))
        if one.kind is Kind.TIME and one.value != int(one.value):
            yield _length(one)
        elif fiscal := _FISCAL_YEAR.fullmatch(one.unit):
            yield _year_of(one, fiscal)
        elif one.kind is Kind.ORDINAL and _WIN.match(
            text, one.end
        ):  # who took an eighth title has won 8 times
            yield changed(one, kind=Kind.QUANTITY, unit="times", dimension="multiple")
        elif one.kind is Kind.TIME and one.form is Form.EXACT and _is_length(text, one):
            yield from lengths(one)
        elif one.kind is Kind.PERCENTAGE_POINT and not one.trend and _PAGES.search(text, one.start, one.end):
            yield changed(one, kind=Kind.COUNT, unit="", counts=True)  # "xxiv + 388 pp."
    yield from _ranks(text)
    for match in _HOURLY.finditer(text):
        yield _lasting(Decimal(_OFTEN[lowered(match[0])]), "minute", *match.span())
    for match in _EVERY.finditer(text):
        many, start, end = Decimal(_PARTS[match["nth"]]), *match.span()
        if unit := match["unit"] or (match["day"] and "week"):
            yield _lasting(many, unit, start, end)
        else:
            yield Number(((Decimal(1), many),), Kind.RATIO, step=Decimal(1), start=start, end=end)


def _is_spread(text: str, number: Number) -> bool:
    """Whether "plus" adds basis points, or a percentage, to a rate of interest."""
    if number.kind not in _RATES or number.trend:
        return False
    is_added = _SPREAD.search(text, max(0, number.start - _LONGEST_SPREAD), number.start) is not None
    return is_added and (number.kind is Kind.PERCENT or "b" in text[number.start : number.end].lower())


def _ranks(text: str) -> Iterator[Number]:
    """The ranks in words that stand without a determiner."""
    parts = ((_RANKS[lowered(one["rank"])], one.span("rank")) for one in _FIRST_PART.finditer(text))
    married = (
        (_RANKS[lowered(rank[0])], rank.span())
        for sentence in _MARRIED.finditer(text)
        for rank in _RANK.finditer(text, *sentence.span())
    )
    for value, (start, end) in chain(parts, married):
        yield Number(((Decimal(value),),), Kind.ORDINAL, step=Decimal(1), start=start, end=end)


def _lasting(many: Decimal, unit: str, start: int, end: int) -> Number:
    return Number(((many,),), Kind.DURATION, unit, "time", step=Decimal(1), start=start, end=end)


def _is_length(text: str, time: Number) -> bool:
    """Whether a document's time without seconds is how long something takes: "2h48", "won in 2:48"."""
    if not _HOURS.search(text, time.start, time.end):
        return _LENGTH_BEFORE.search(text, max(0, time.start - 10), time.start) is not None
    return _CLOCK_BEFORE.search(text, max(0, time.start - 8), time.start) is None


def lengths(time: Number) -> Iterator[Number]:
    """The lengths that "4:15" may be: so many hours and minutes, or minutes and seconds."""
    for unit in ("minute", "second"):
        lasts = {"kind": Kind.DURATION, "unit": unit, "dimension": "time"}
        yield changed(time, readings=((time.value,),), parts=(), **lasts)


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

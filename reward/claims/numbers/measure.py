"""A numeral with what belongs to it: sign, currency, percent, unit, an ordinal's ending, parentheses."""

import re
from decimal import Decimal

from reward.claims.numbers.dates import year_in_context
from reward.claims.numbers.digits import EXACT, Digits, Numeral, numeral_at, scale_after, scale_of_money
from reward.claims.numbers.model import Form, Kind, Number, changed
from reward.claims.numbers.names import identifier, mark_at
from reward.claims.numbers.units import CURRENCY_BEFORE, SIGNS, UNITS, Unit, currency_at, unit_at
from reward.claims.numbers.vocabulary import BEGIN, END, SPACE, TABLES, either

_SIGN = re.compile(
    rf"""
    (?: (?<![\w.)\]%])(?<!\+/)(?P<sign>[-+\u2212\u207b])
      | (?<![^\s(])(?<!\d\s)(?<!%\s)(?P<dash>\u2013)
      | {BEGIN}(?<!plus\ or\ )(?<!plus-or-)(?P<word>minus|negative)(?:{SPACE}{{1,2}}|-) )$
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BELOW_ZERO = re.compile(rf"[ \u00a0](?:(?P<below>below)|above)[ \u00a0]zero{END}")
_BELOW_SEA_LEVEL = re.compile(
    rf"{SPACE}(?:below|beneath|under){SPACE}(?:the{SPACE})?(?:mean{SPACE})?sea{SPACE}level{END}"
)
_PER_PERSON = rf"(?!{SPACE}(?:per|par|por|pro|je|a|each){END}|{SPACE}?/)"
_PEOPLE = re.compile(
    rf"{SPACE}{either(TABLES['things']['same']['people'].split('|'))}{END}{_PER_PERSON}", re.IGNORECASE
)
_ENDS_SIGN = frozenset("-+\u2212\u2013\u207bsSeE")  # signs, and the last letters of "minus" and "negative"
_ORDINAL = re.compile(rf"(?:st|nd|rd|th|ST|ND|RD|TH){END}")
_PERCENT = re.compile(
    rf"""
    (?:{SPACE}|-)? (?: 
        (?P<points>(?:percentage|percent|pct)[ -]points?|%[ -]?(?:age[ ])?points?|pps?|p\.p\.|ppts?)
      | (?P<basis>basis[ -]points?|bps?)
      | (?P<percent>per[ ]?cento?|pct|prozent|procent|pour[ ]cent|por[ ]ci?ento)
      | (?P<per_mille>per[ ]?mille?) ) {END}
  | {SPACE}? (?: (?P<sign>[%]) | (?P<mille>‰) )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BEGINS_PERCENT = frozenset("pPbB%\u2030")
_BEFORE_NO_UNIT = frozenset(",;:)]\n\"'|.([{}<>=/*_?!#&@^~`\\\r0123456789")
_TOKEN = re.compile(r"[\d.,]+(?:[eE][-+]?\d+)?")
_CURRENCY_ENDS = frozenset("$€£¥₹₩₽₺₪₫₱₦฿元.s(-+\u2212")
_POINT_CURRENCIES = ("USD", "GBP", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN")
_THOUSANDTH = Decimal("0.001")
_LARGEST_MEAN = 10  # of people, such as those of a household
_BEHIND_TWO_UNITS = frozenset("'\u2032\u2019fFhm")
_BOUND = re.compile(rf"\+|{SPACE}or{SPACE}(?:more|(?P<most>less|fewer))(?=[ -])")
# What is written in two units, the smaller one, and how many of it make the larger.
_TWO_UNITS = (
    (
        re.compile(
            rf"(\d{{1,2}}){SPACE}?(?:ft|feet|foot)\.?,?{SPACE}(\d{{1,2}}(?:\.\d)?){SPACE}?in\b\.?|"
            r"(\d{1,2})['\u2032\u2019][ ]?(\d{1,2}(?:\.\d)?)(?:[\"\u2033\u201d]|''|\u2019\u2019)"
        ),
        "inch",
        12,
    ),
    (re.compile(rf"(\d{{1,3}})h[ ]?(\d{{1,2}})m(?:ins?)?{END}"), "minute", 60),
    (re.compile(rf"(\d{{1,3}})m[ ]?(\d{{1,2}})s{END}"), "second", 60),
)


def number_at(text: str, at: int, low: int, decimal: str) -> Number | None:
    """The number whose digits begin at `at`; what comes before `low` belongs to another.

    `decimal` is the sign before decimals, where the digits can be read twice.
    """
    if text[at + 1 : at + 5].lstrip("0123456789 ")[:1] in _BEHIND_TWO_UNITS and (two := _two_units(text, at)):
        return two
    if at > low and text[at - 1] == "." and text[at].isascii():
        before = text[max(0, at - 2) : at - 1]
        if not (before.isalnum() or before in ("_", ".")):  # ".5"
            at -= 1
    start, code, negative = _currency_before(text, at, low) or (at, "", False)
    if sign := sign_before(text, start, low):
        start, negative = sign[0], negative or sign[1]
    numeral = numeral_at(text, at, money=bool(code), decimal=decimal)
    if numeral is None:  # too long for a number
        token = _TOKEN.match(text, at)
        assert token is not None, f"no digit at {at}"
        return identifier(text, start, token.end())
    if negative:
        numeral = numeral._replace(digits=numeral.digits.times(Decimal(-1)))
    if code:
        return _money(text, numeral, start, code, decimal)
    return _measured(text, numeral, start, at, low, decimal)


def is_measured(text: str, start: int, end: int) -> bool:
    """Whether what is there follows a currency, or precedes one, a scale, a percent sign or a unit."""
    one = Digits(Decimal(1), Decimal(1))
    behind = scale_after(text, end) is not None or _with_unit(text, end, end, one) is not None
    return behind or _currency_before(text, start, 0) is not None


def with_unit(text: str, start: int, end: int, digits: Digits) -> Number:
    """A number with the percent sign, the unit or the currency that is written behind it, if any.

    A bound may stand between the two: "5+ years", "5 or more years".
    """
    following = text[end : end + 2].lstrip(" \u00a0\u202f-\t")[:1]
    if not following or following in _BEFORE_NO_UNIT:
        return _number(digits, start, end)
    bound = _BOUND.match(text, end) if following in "+oO" else None
    if bound and (number := _with_unit(text, start, bound.end(), digits)):
        form = Form.AT_MOST if bound["most"] else Form.AT_LEAST
        return changed(number, form=form, is_plus=bound[0] == "+")
    number = _with_unit(text, start, end, digits) or _number(digits, start, end)
    if number.dimension == "length":
        return _below_sea_level(text, number)
    return _below_zero(text, number) if following in ("a", "b", "d", "\u00b0", "C", "F", "c", "f") else number


def _below_zero(text: str, number: Number) -> Number:
    """ "8 degrees below zero" is -8 degrees."""
    is_degree = number.kind is Kind.COUNT or number.dimension == "temperature"
    match = _BELOW_ZERO.match(text, number.end) if is_degree else None
    if match is None:
        return number
    sign = -1 if match["below"] else 1
    return changed(number, readings=tuple((sign * value[0],) for value in number.readings), end=match.end())


def _below_sea_level(text: str, number: Number) -> Number:
    """ "28 m below sea level" is an altitude of -28 m; it stays open, as it is a depth of 28 m, too."""
    match = _BELOW_SEA_LEVEL.match(text, number.end)
    if match is None or number.value <= 0:
        return number
    return changed(number, readings=(*number.readings, (-number.value,)), end=match.end())


def _with_unit(text: str, start: int, end: int, digits: Digits) -> Number | None:
    """The number with its unit; None when none is at `end`."""
    behind = text[end : end + 2]
    may_be_share = not _BEGINS_PERCENT.isdisjoint(behind)
    if may_be_share and (match := _PERCENT.match(text, end)):
        return _percentage(match, digits, start)
    if money := currency_at(text, end):
        code, worth, end = money
        return _number(digits.times(worth), start, end, Kind.MONEY, code)
    found = unit_at(text, end)
    return _of_unit(digits, start, found[1], found[0]) if found else None


def _of_unit(digits: Digits, start: int, end: int, unit: Unit) -> Number:
    kind = Kind.DURATION if unit.dimension == "time" else Kind.QUANTITY
    return changed(_number(digits, start, end, kind, unit.name), dimension=unit.dimension)


def _number(digits: Digits, start: int, end: int, kind: Kind = Kind.COUNT, unit: str = "") -> Number:
    return Number(((digits.value,),), kind, unit, step=digits.step, start=start, end=end)


def _measured(text: str, numeral: Numeral, start: int, at: int, low: int, decimal: str) -> Number:
    number = with_unit(text, start, numeral.end, numeral.digits)
    if number.kind is Kind.MONEY:
        return _loss(text, _price(number, numeral, decimal), number.start, numeral.end)
    if number.kind is Kind.COUNT and number.end == numeral.end:
        return _bare(text, _whole_people(text, number, numeral), numeral, at, low)
    return number


def _whole_people(text: str, number: Number, numeral: Numeral) -> Number:
    """People have no three decimals, so "12.480 habitants" are 12,480; a mean of them is small or a rate."""
    is_open = number.step == _THOUSANDTH and _LARGEST_MEAN <= abs(number.value) < 1000
    if not is_open or numeral.has_scale or _PEOPLE.match(text, number.end) is None:
        return number
    return changed(number, readings=((EXACT.scaleb(number.value, 3),),), step=Decimal(1))


def _bare(text: str, number: Number, numeral: Numeral, at: int, low: int) -> Number:
    """A number without a unit: an ordinal, a year by its context, part of a name ("3D"), or a count."""
    end = number.end
    if numeral.is_plain:
        if text[end : end + 1] in "snrtSNRT" and (ordinal := _ORDINAL.match(text, end)):
            return changed(number, kind=Kind.ORDINAL, end=ordinal.end())
        if number.start == at and (year := year_in_context(text, number, low)):
            return year
    if not numeral.has_scale and (mark_end := mark_at(text, end)):
        return identifier(text, number.start, mark_end)
    return number


def _percentage(match: re.Match[str], digits: Digits, start: int) -> Number:
    if match["points"]:
        return _number(digits, start, match.end(), Kind.PERCENTAGE_POINT, "pp")
    if match["basis"]:
        return _number(digits.scaled(-2), start, match.end(), Kind.PERCENTAGE_POINT, "pp")
    if match["mille"] or match["per_mille"]:
        digits = digits.scaled(-1)
    return _number(digits, start, match.end(), Kind.PERCENT, "%")


def _currency_before(text: str, at: int, low: int) -> tuple[int, str, bool] | None:
    """The currency before the digits: where it begins, its code, and whether a minus is in between."""
    last = text[max(low, at - 2) : at].rstrip()[-1:]
    if not (last in _CURRENCY_ENDS or last.isupper()):
        return None
    match = CURRENCY_BEFORE.search(text, max(low, at - 10), at)
    return match and (match.start(), SIGNS[match["currency"]], match["inner"] in ("-", "\u2212"))


def sign_before(text: str, start: int, low: int) -> tuple[int, bool] | None:
    """The sign or the "minus" before a number: where it begins, and whether it is negative."""
    if text[max(low, start - 3) : start].rstrip()[-1:] not in _ENDS_SIGN:
        return None
    match = _SIGN.search(text, max(low, start - 10), start)
    return (match.start(), match["sign"] != "+") if match else None


def _money(text: str, numeral: Numeral, start: int, code: str, decimal: str) -> Number:
    """An amount behind its currency."""
    again = currency_at(text, numeral.end)
    end = again[2] if again and again[:2] == (code, Decimal(1)) else numeral.end
    number = _price(_number(numeral.digits, start, end, Kind.MONEY, code), numeral, decimal)
    return _loss(text, number, start, numeral.end)


def _price(number: Number, numeral: Numeral, decimal: str) -> Number:
    """Prices have no three decimals, so "€1.500" is 1,500 euros in English too.

    An exception is fuel, at home: "$3.459" a gallon where decimals follow a point, "1,459 €" where a comma.
    """
    is_open = number.step == numeral.digits.step == _THOUSANDTH and 1 <= abs(number.value) < 1000
    at_home = (number.unit in _POINT_CURRENCIES) is (decimal == ".")
    if not is_open or numeral.has_scale or at_home:
        return number
    return changed(number, readings=((EXACT.scaleb(number.value, 3),),), step=Decimal(1))


def _loss(text: str, number: Number, start: int, digits_end: int) -> Number:
    """Money in parentheses is a loss; beside a word, where it may be an aside, that stays open."""
    end = number.end
    inside = "(" in text[start:digits_end]
    outside = text[start - 1 : start] == "(" if start else False
    if text[end : end + 1] != ")" or not (inside or outside):
        return number
    if scale := scale_of_money(text, end + 1):  # "$(27) million", "$(27)m"
        scaled = tuple((EXACT.scaleb(value[0], scale[0]),) for value in number.readings)
        number = changed(number, readings=scaled, step=EXACT.scaleb(number.step, scale[0]))
    loss = tuple((-value[0],) for value in number.readings)
    if not scale and outside and start > 2 and text[start - 2] == " " and text[start - 3].isalpha():
        return changed(number, readings=(*number.readings, *loss))
    return changed(number, readings=loss, start=start - outside, end=scale[1] if scale else end + 1)


def _two_units(text: str, at: int) -> Number | None:
    """The sum of a larger and a smaller unit, in the smaller: feet and inches (6'2"), or "1h30m"."""
    for pattern, name, factor in _TWO_UNITS:
        if match := pattern.match(text, at):
            large, small = filter(None, match.groups())
            step = Decimal(1) if small.isdigit() else Decimal("0.1")
            sum_of_both = Digits(Decimal(large) * factor + Decimal(small), step)
            return _of_unit(sum_of_both, at, match.end(), UNITS[name])
    return None

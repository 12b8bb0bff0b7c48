"""When two numbers are the same, and when one found in a document bears a claimed one out.

`equal` is typed and exact: the same kind, form and unit (or dimension: units are converted exactly by
pint, which is loaded when two different ones first meet), and the same readings. It is an equivalence.
`supports` also allows for rounding, as far as the claim's own written precision implies it and never by more
than a share of the number; for what one of the two leaves out or open; and for bounds. `bound_stated` asks
more of a bound: that the document states it, or a value near it.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from reward.claims.numbers.eras import is_era, lies_in_era, lies_in_period
from reward.claims.numbers.model import Form, Kind, Number, changed, unbound
from reward.claims.numbers.reading import OPEN_DEGREE, read_as
from reward.claims.numbers.shares import as_share

if TYPE_CHECKING:
    import pint

_NEVER_ROUNDED = frozenset({Kind.YEAR, Kind.DATE, Kind.TIME, Kind.IDENTIFIER, Kind.ORDINAL, Kind.RATIO})
_SCALARS = frozenset(
    {Kind.PERCENT, Kind.PERCENTAGE_POINT, Kind.MONEY, Kind.QUANTITY, Kind.DURATION, Kind.ORDINAL, Kind.YEAR}
)
LOWER_BOUNDS = (Form.AT_LEAST, Form.MORE_THAN)
_STRICT_BOUNDS = (Form.MORE_THAN, Form.LESS_THAN)
# The largest rounding, as a share of what is rounded, whatever the unit: 5% is the most that rounding to two
# significant digits changes (10.5 to 11), so "3" still stands for 3.14 but "1 g" for no 500 mg. Who says
# "about" rounds to one digit and a half: 466 to 500, 5.3 to 5 million.
MOST_ROUNDING = Fraction(1, 20)
MOST_ROUNDING_ABOUT = Fraction(1, 10)
_HALF_DEGREE = Fraction(1, 2)  # the zero of a temperature is anywhere, and a share of it says nothing
_MOST_CONVERSION = Fraction(1, 100)  # 26.2 miles as 42.2 km, 45 mph as 72 km/h
_OF_DIVISION = Fraction(1, 10**12)  # what a division loses: two thirds of an hour are 40 minutes
# How far beyond a bound a value may lie to be what the bound was made of: "over 270" of 281.
_NEAR = Fraction(1, 10)
_NEAR_ROUND = Fraction(1, 5)  # of round bounds, within a step or half: "over 5" of 6, "over 100" of 112
_NEAR_SHARE = Fraction(1, 6)  # of shares in words: "over half" of 56%, "over half an hour" of 35 minutes
_NEAR_JUST = Fraction(1, 12)  # no "just over 18" of 19.7
_NEAR_JUST_ONE = Fraction(1, 10)  # "just over half" of 55%, "just over a tonne" of 1,085 kg
_HALF, _LARGEST_WITH_HALF = Decimal("0.5"), 1000
_FIRST_OF_TWO_DIGITS = 10
_SHORTLY, _ABOUT, _QUARTER = 20, 10, 15  # minutes
_NEAR_STEPS = 2  # nobody says "over 8,106" of 8,110


def equal(a: Number, b: Number) -> bool:
    """Typed equality, an equivalence; without tolerance, and blind to approximators.

    A bare number and one with a kind are never equal, nor are an open number ("9:30") and a closed one
    ("9:30 am"): see `read_as` and `supports`.
    """
    if a.form is not b.form or not _is_comparable(a, b) or len(a.readings) != len(b.readings):
        return False
    return a.readings == b.readings if a.unit == b.unit else _converted(a, b.unit) == _converted(b, b.unit)


def supports(claimed: Number, found: Number, *, relative_tolerance: float = 0.0) -> bool:
    """Whether a number found in a document supports the claimed one.

    It does when the two are equal, one of them perhaps bare or open; when the found one, which must be the
    more precise, rounds to the claim as written ("1.2 million": 1,234,567; "about 500": 466) and differs from
    it by no more than `MOST_ROUNDING`, or `MOST_ROUNDING_ABOUT` where the claim is approximate; when it lies
    within a claimed bound; when it is a fuller date; or when it lies within the tolerance. Years, dates,
    identifiers, ordinals and ratios are never rounded, and times by ten minutes at most.

    Args:
        claimed: The number of the response.
        found: The number of the document.
        relative_tolerance: Largest difference that is allowed, as a share of the claim; 0 allows none.
    """
    if is_era(claimed) and found.kind is Kind.COUNT:
        return False  # "1743 rooms" are no year
    found = as_share(found, claimed)
    is_one_bare = (claimed.kind is Kind.COUNT) is not (found.kind is Kind.COUNT)
    claimed, found = read_as(claimed, found), read_as(found, claimed)
    if equal(claimed, found):
        return True
    if claimed.kind is Kind.PERIOD:
        return lies_in_period(claimed, found)
    if Kind.DATE in (claimed.kind, found.kind) or (claimed.kind is Kind.YEAR and claimed.form is Form.RANGE):
        return _is_fuller_date(claimed, found)
    if is_one_bare and not claimed.approximate:
        return False  # a bare 3.10 is no "3 GB", and a bare 7 is not below 8 kg
    if not _is_comparable(claimed, found):
        return False
    if claimed.is_bound:
        is_just_under = claimed.form is Form.LESS_THAN and found.form is Form.EXACT and found.is_short
        same = changed(claimed, form=Form.EXACT)  # "just under 5,000" of a document's "nearly 5,000"
        if _lies_within(claimed, found) or (is_just_under and equal(same, found)):
            return True
        # "Up to 45 mph" as "up to 72 km/h".
        is_converted = claimed.form is found.form and claimed.unit != found.unit
        return is_converted and _rounds_to(unbound(claimed), unbound(found), Fraction(0))
    if claimed.kind is Kind.TIME and claimed.form is found.form is Form.EXACT:
        # A clock shows the minute that has begun: 2:14 of "02:14:08".
        is_begun = any(Fraction(a[0]) == int(b[0]) for a, b in _pairs(claimed, found))
        return is_begun or (claimed.approximate and _is_about_then(claimed, found))
    if claimed.form is not found.form or claimed.kind in _NEVER_ROUNDED:
        return False
    return _rounds_to(claimed, found, Fraction(relative_tolerance))


def bound_stated(found: Number, claimed: Number) -> bool:
    """Whether a number of a document states a claimed bound, or is a value that the bound was made of.

    "Over 270" is stated by "more than 270", "270+" and "over 272", and by 281, which lies beyond it and near.
    It is not by 270, nor by 5,000: else "more than 0" would hold of everything. "At least 270" is stated by
    270, too.

    Args:
        found: The document's own number.
        claimed: A number with a bound; any other has none to be stated.
    """
    if not claimed.is_bound:
        return False
    found = as_share(found, claimed)
    found, claimed = read_as(found, claimed), read_as(claimed, found)
    return supports(claimed, found) and _is_near(claimed, found)


def _is_near(claimed: Number, found: Number) -> bool:
    bound = abs(Fraction(claimed.value))
    round_step = _blurred_step(claimed.value, Fraction(claimed.step))
    if claimed.kind is Kind.TIME:
        # "Until 8 pm" is no "until 8:01 pm", but "shortly before 8 pm" is 7:52.
        far = Fraction(_SHORTLY) if claimed.form in _STRICT_BOUNDS else Fraction(0)
    elif not found.is_bound:
        part = round_step if bound < _FIRST_OF_TWO_DIGITS else round_step / 2
        far = max(bound * _NEAR, min(part, bound * _NEAR_ROUND))
        # "fewer than half" has no step
        far = min(far, _NEAR_STEPS * round_step) if round_step else bound * _NEAR_SHARE
        just = _NEAR_JUST_ONE if bound <= 1 or not round_step else _NEAR_JUST
        far = min(far, bound * just) if claimed.is_short else far
    elif found.unit == claimed.unit and _blurred_step(found.value, Fraction(found.step)) >= round_step:
        far = Fraction(0)  # a bound is no value that another one was made of: it may only be rounded
    else:
        far = min(round_step, bound * _NEAR)
    edges = _converted(found, claimed.unit)[0]
    return any(abs(edge - Fraction(claimed.value)) <= far for edge in edges)


def reach(claimed: Number, *, relative_tolerance: float = 0.0) -> Fraction:
    """How far from the values of a claim those of a number may lie, in the claim's unit, that supports it.

    The first and the last value of the two are meant; the years in a decade are a matter of their own.
    """
    largest = max(abs(Fraction(reading[0])) for reading in claimed.readings)
    if claimed.is_bound:
        return largest * max(_NEAR, _NEAR_ROUND)
    written = Fraction(claimed.steps[0]) * (2 if claimed.kind is Kind.TIME else 1)  # and its seconds
    own = _step_about(claimed.value, written) if claimed.approximate else written
    # A share of the other number, which is no larger than the claim and that share of it together.
    share = largest * MOST_ROUNDING_ABOUT / (1 - MOST_ROUNDING_ABOUT)
    return max(min(own / 2, max(share, _HALF_DEGREE)), Fraction(relative_tolerance) * largest)


def without_unit_of(number: Number, asked: Number) -> Number:
    """The number as a bare one when it states the unit that was asked for; any other unit stays.

    A unit of the same dimension is converted: held against "5 km", 5000 m is the bare 5.
    """
    if number.kind is asked.kind is Kind.DATE:
        written, is_asked = ([bool(value) for value in date.values] for date in (number, asked))
        if number.form is not Form.EXACT or written != is_asked or sum(written) != 1:
            return number  # only a day, a month or a year that stands alone is a bare number
        return changed(number, readings=((max(number.values),),), kind=Kind.COUNT)
    if number.kind not in _SCALARS or not _is_comparable(number, asked):
        return number
    readings = number.readings
    if number.unit != asked.unit:
        readings = tuple(
            tuple(Decimal(value.numerator) / Decimal(value.denominator) for value in reading)
            for reading in _converted(number, asked.unit)
        )
    return changed(number, readings=readings, kind=Kind.COUNT, unit="", dimension="")


def _is_comparable(a: Number, b: Number) -> bool:
    return a.kind is b.kind and a.dimension == b.dimension and (a.unit == b.unit or a.dimension != "")


def _converted(number: Number, unit: str) -> list[tuple[Fraction, ...]]:
    """All readings in another unit of the same dimension, exactly."""
    if number.unit == unit:
        return [tuple(map(Fraction, reading)) for reading in number.readings]
    factor, offset = conversion(number.unit, unit)
    return [tuple(Fraction(value) * factor + offset for value in reading) for reading in number.readings]


@cache
def conversion(unit: str, other: str) -> tuple[Fraction, Fraction]:
    """Factor and offset from one unit to another of its dimension."""
    (factor, offset), (other_factor, other_offset) = _to_base(unit), _to_base(other)
    return factor / other_factor, (offset - other_offset) / other_factor


@cache
def _to_base(unit: str) -> tuple[Fraction, Fraction]:
    """Factor and offset to the base units; the bare degree has none and equals only itself."""
    if unit == OPEN_DEGREE:
        return Fraction(1), Fraction(10**9)
    if unit == "times":
        return Fraction(1), Fraction(0)
    registry = _registry()
    factor, _, name = unit.rpartition(" * ") if unit[0].isdigit() else ("1", "", unit)
    parsed = registry.parse_units(name)
    zero = Fraction(registry.Quantity(Fraction(0), parsed).to_base_units().magnitude)
    one = Fraction(registry.Quantity(Fraction(1), parsed).to_base_units().magnitude)
    return (one - zero) * Fraction(factor), zero


@cache
def _registry() -> pint.UnitRegistry[Fraction]:
    import pint

    return pint.UnitRegistry(non_int_type=Fraction)


def in_base_units(value: Decimal, unit: str) -> Fraction:
    """A value in the base units of its dimension, exactly."""
    factor, offset = _to_base(unit)
    return Fraction(value) * factor + offset


def _pairs(claimed: Number, found: Number) -> list[tuple[tuple[Decimal, ...], tuple[Fraction, ...]]]:
    """The readings that may be held against each other: of two open numbers those of one convention."""
    theirs = _converted(found, claimed.unit)
    if len(claimed.readings) == len(theirs):
        return list(zip(claimed.readings, theirs, strict=True))
    return [(a, b) for a in claimed.readings for b in theirs]


def _lies_within(claimed: Number, found: Number) -> bool:
    """Whether all that `found` allows lies within the claimed bound."""
    is_lower = claimed.form in LOWER_BOUNDS
    if found.is_bound and (found.form in LOWER_BOUNDS) is not is_lower:
        return False
    edge_may_touch = claimed.form not in _STRICT_BOUNDS or found.form in _STRICT_BOUNDS
    for mine, theirs in _pairs(claimed, found):
        beyond = min(theirs) - Fraction(mine[0]) if is_lower else Fraction(mine[0]) - max(theirs)
        if beyond > 0 or (beyond == 0 and edge_may_touch):
            return True
    return False


def _rounds_to(claimed: Number, found: Number, tolerance: Fraction) -> bool:
    """Whether each value rounds to the claim's, or lies within the tolerance."""
    is_converted = claimed.unit != found.unit
    factor = conversion(found.unit, claimed.unit)[0] if is_converted else Fraction(1)
    steps = [Fraction(step) * factor for step in found.steps]
    return any(
        all(
            abs(Fraction(a) - b)
            <= max(_margin(claimed, a, own, b, step, is_converted=is_converted), tolerance * abs(Fraction(a)))
            for a, own, b, step in zip(mine, claimed.steps, theirs, steps, strict=False)
        )
        for mine, theirs in _pairs(claimed, found)
    )


def _margin(
    claimed: Number, value: Decimal, written: Decimal, found: Fraction, step: Fraction, *, is_converted: bool
) -> Fraction:
    """How far from a value of the claim a more precise one, whose step is given, may lie to round to it.

    Nothing rounds to zero: "0 million", or "0 light years", would else stand for all that is less.
    """
    if not value or (claimed.is_short and abs(found) > abs(value)):
        return Fraction(0)
    own, share = Fraction(written), MOST_ROUNDING
    if claimed.approximate:
        own, share = _step_about(value, own), MOST_ROUNDING_ABOUT
    margin = Fraction(0)
    if step < own or step == 0:
        least = _HALF_DEGREE if claimed.dimension == "temperature" else Fraction(0)
        margin = min(own / 2, max(abs(found) * share, least))
    # Nobody writes more places than a conversion needs.
    share = _MOST_CONVERSION * (2 if claimed.approximate else 1)
    least = _HALF_DEGREE if claimed.dimension == "temperature" else abs(found) * share
    return max(margin, min(own / 2, least), abs(found) * _OF_DIVISION) if is_converted else margin


def _blurred_step(value: Decimal, step: Fraction) -> Fraction:
    """After "about" the zeros at the end do not count, and a half in words is one of halves."""
    if step == 0 and 1 < abs(value) < _LARGEST_WITH_HALF and value % 1 == _HALF:
        return Fraction(1, 2)
    if step == 0 or not value:
        return step
    _, digits, exponent = value.as_tuple()
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return max(step, Fraction(10) ** (zeros + int(exponent)))


def _step_about(value: Decimal, step: Fraction) -> Fraction:
    """The step of a number behind "about"; that of a fraction is a half of it: "a quarter of a metre"."""
    return _blurred_step(value, step) or Fraction(abs(value)) / 2 * (abs(value) < 1)


def _is_about_then(claimed: Number, found: Number) -> bool:
    """Whether a time of day is within ten minutes of a claimed quarter of an hour: "around 7" of 7:04."""
    return any(
        mine[0] % _QUARTER == 0
        and abs(Fraction(mine[0]) - theirs[0]) <= _ABOUT
        and not (claimed.is_short and theirs[0] > mine[0])
        for mine, theirs in _pairs(claimed, found)
    )


def _is_fuller_date(claimed: Number, found: Number) -> bool:
    """Whether the found date, or year, says all that the claimed one says."""
    if claimed.kind is Kind.YEAR and claimed.form is Form.RANGE:
        return is_era(claimed) and lies_in_era(claimed, found)
    if found.kind not in (Kind.DATE, Kind.YEAR) or not claimed.form is found.form is Form.EXACT:
        return False
    if claimed.kind is Kind.YEAR:
        return claimed.value in {reading[0] for reading in found.readings}
    return claimed.kind is found.kind is Kind.DATE and any(
        all(a in (0, b) for a, b in zip(mine, theirs, strict=True)) for mine, theirs in _pairs(claimed, found)
    )

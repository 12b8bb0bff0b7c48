"""`equal` is an equivalence, `supports` has a largest error, and a bound must be stated."""

from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.claims.numbers import Form, Kind, Number, equal, find_numbers, parse_number, read_as, supports
from reward.claims.numbers.equality import MOST_ROUNDING, MOST_ROUNDING_ABOUT, bound_stated
from reward.claims.numbers.reading import closed
from tests.test_number_properties import ANY

# Numbers of few values in many writings, so that many of them meet.
CLOSE = (
    "1.5", "1,5", "1.500", "1500", "1,500", "1.5k", "fifteen hundred", "1.5 km", "1,500 m", "1500 m",
    "1,500 km", "1.5 thousand km", "150,000 cm", "about 1500", "1.5 kg", "1,500 g", "1.5%", "1.5 pp",
    "150 bps", "$1.5", "$1,500", "1500 dollars", "€1.500", "1500th", "over 1500", "1500+",
    "at least 1500", "under 1500", "9:30", "9.30 am", "9:30 am", "9:30 pm", "21:30", "09:30",
    "half past nine", "9", "21", "5/6/2021", "6/5/2021", "5.6.2021", "6 May 2021", "5 June 2021",
    "June 5th, 2021", "2021-06-05", "June 2021", "2021", "in 2021", "9:30-17:30", "9:30 am to 5:30 pm",
    "9:30-5:30", "15 out of 1500", "3:2", "90 minutes", "1.5 hours", "1/2", "0.5", "half", "30 minutes",
    "32 °F", "0 °C", "0 degrees", "COVID-19", "19", "10-20", "10 to 20", "($5)", "-$5", "$5",
)  # fmt: skip


def read(text: str) -> Number:
    """The one number of a text, alone or in its context."""
    number = parse_number(text)
    return number or find_numbers(text)[0]


NUMBERS = st.one_of(st.sampled_from(CLOSE), ANY).map(find_numbers).filter(bool).map(lambda found: found[0])


def test_equality_is_an_equivalence_on_numbers_that_are_close() -> None:
    numbers = [read(text) for text in CLOSE]
    same = {(i, j) for i, j in product(range(len(numbers)), repeat=2) if equal(numbers[i], numbers[j])}
    assert all((i, i) in same for i in range(len(numbers)))
    assert all((j, i) in same for i, j in same)
    assert all((i, k) in same for (i, j) in same for k in range(len(numbers)) if (j, k) in same)
    assert len(same) > len(numbers) + 40  # the test is about something


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_equality_is_an_equivalence_on_closed_numbers(asked: Number, a: Number, b: Number, c: Number) -> None:
    a, b, c = (closed(read_as(number, asked), asked) for number in (a, b, c))
    assert all(len(number.readings) == 1 for number in (a, b, c))
    assert equal(a, a)
    assert equal(a, b) == equal(b, a)
    assert not (equal(a, b) and equal(b, c)) or equal(a, c)


@pytest.mark.parametrize(
    ("number", "like", "expected"),
    [
        ("9:30", "9:30 pm", "9:30 pm"),
        ("9:30", "9:30 am", "9:30 am"),
        ("9:30", "8 pm", "9:30 am"),
        ("9:30", "9:30", "9:30 am"),
        ("9:30 pm", "9:30 am", "9:30 pm"),
        ("5/6/2021", "5 June 2021", "5 June 2021"),
        ("5/6/2021", "June 2021", "5 June 2021"),
        ("5/6/2021", "in 2021", "6 May 2021"),
        ("5/6/2021", "6/5/2021", "6 May 2021"),
        ("9:00-5:00", "9 am to 5 pm", "9 am to 5 pm"),
        ("9", "9 pm", "9 pm"),
    ],
)
def test_an_open_number_is_closed_by_what_it_is_held_against(number: str, like: str, expected: str) -> None:
    asked = read(like)
    assert equal(closed(read_as(read(number), asked), asked), read(expected))


@pytest.mark.parametrize(
    ("a", "b"),
    [("5/3/2021", "3/5/2021"), ("9:30", "9:31"), ("01/02/2021", "02/01/2021"), ("9:30-5:30", "5:30-9:30")],
)
def test_two_open_numbers_are_held_against_each_other_in_one_convention(a: str, b: str) -> None:
    assert equal(read(a), read(a))
    assert not equal(read(a), read(b))
    assert not supports(read(a), read(b))


SCALARS = (Kind.COUNT, Kind.QUANTITY, Kind.PERCENT, Kind.PERCENTAGE_POINT, Kind.MONEY, Kind.DURATION)
_UNITS = (
    "",
    " km",
    " m",
    " miles",
    " g",
    " mg",
    " kg",
    " hours",
    " minutes",
    " days",
    " weeks",
    " years",
    "%",
)
AMOUNTS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "", "about ", "nearly "]),
    st.one_of(
        st.integers(-3000, 3000).map(str),
        st.decimals(-100, 100, places=2).map("{:f}".format),
        st.integers(1, 1000).map("0.{:03}".format),
    ),
    st.sampled_from(["", "", " million", "k"]),
    st.sampled_from(_UNITS),
)


@given(AMOUNTS, AMOUNTS)
def test_support_has_a_largest_relative_error(claim: str, source: str) -> None:
    for claimed, found in product(find_numbers(claim), find_numbers(source)):
        if claimed.kind not in SCALARS or claimed.form is not Form.EXACT or not supports(claimed, found):
            continue
        taken = read_as(claimed, found)
        most = MOST_ROUNDING_ABOUT if claimed.approximate else MOST_ROUNDING
        exact = in_unit_of(read_as(found, claimed), taken)
        assert abs(Fraction(taken.value) - exact) <= most * abs(exact), (claim, source)


def in_unit_of(number: Number, other: Number) -> Fraction:
    """The value of a number in the unit of another, by pint's floats."""
    import pint

    if number.unit == other.unit:
        return Fraction(number.value)
    registry: pint.UnitRegistry[Fraction] = pint.UnitRegistry(non_int_type=Fraction)
    amount = registry.Quantity(Fraction(number.value), registry.parse_units(number.unit))
    return Fraction(amount.to(registry.parse_units(other.unit)).magnitude)


@pytest.mark.parametrize(
    ("claimed", "found"),
    [
        ("1 g", "500 mg"), ("$1 billion", "$600 million"), ("1 hour", "31 minutes"), ("1 week", "10 days"),
        ("1 year", "17 months"), ("1 km", "1.4 km"), ("2 days", "36 hours"), ("about 1 hour", "31 minutes"),
        ("about 1 week", "10 days"), ("nearly $1 billion", "$600 million"), ("1 decade", "6 years"),
        ("1 million", "1.4 million"), ("1 tonne", "600 kg"), ("1 inch", "2 cm"),
    ],
)  # fmt: skip
def test_a_coarser_unit_is_no_licence(claimed: str, found: str) -> None:
    assert not supports(read(claimed), read(found))


@pytest.mark.parametrize(
    ("claimed", "found", "stated"),
    [
        ("over 270", "over 270", True),
        ("over 270", "more than 270", True),
        ("over 270", "270+", True),
        ("over 270", "281", True),
        ("over 270", "over 275", True),
        ("over 270", "280-290", True),
        ("over 270", "270", False),
        ("over 270", "269", False),
        ("over 270", "about 270", False),
        ("over 270", "at least 270", False),
        ("over 270", "under 270", False),
        ("over 270", "under 281", False),
        ("over 270", "5,000", False),
        ("over 270", "over 5,000", False),
        ("more than 0", "12", False),
        ("more than 0", "1", False),
        ("over 5", "6", True),
        ("over 5", "7", False),
        ("over 1", "2", False),
        ("at least 5", "5", True),
        ("at least 5", "6", True),
        ("at least 5", "4", False),
        ("at least 5", "5+", True),
        ("at least 5", "over 5", True),
        ("5+ years", "over 5 years", True),
        ("over 5 years", "5+ years", True),
        ("up to 48 hours", "48 hours", True),
        ("up to 48 hours", "2 days", True),
        ("up to 48 hours", "less than 48 hours", True),
        ("up to 48 hours", "50 hours", False),
        ("under 100", "99", True),
        ("under 100", "100", False),
        ("under 100", "12", False),
        ("over 5 km", "5,300 m", True),
        ("over 5 km", "5,300 g", False),
        ("over 10%", "10.5", True),
        ("over half", "60/100", False),  # a fifth beyond it: too far
        ("270", "over 270", False),  # claims no bound
        ("270", "270", False),
    ],
)
def test_a_bound_is_stated_by_the_same_bound_or_by_a_value_near_it(
    claimed: str, found: str, stated: bool
) -> None:
    assert bound_stated(read(found), read(claimed)) is stated


@given(st.integers(1, 10**6), st.integers(0, 10**7))
def test_what_states_a_bound_lies_beyond_it_and_near(bound: int, value: int) -> None:
    if bound_stated(read(str(value)), read(f"over {bound}")):
        assert bound < value <= Decimal(bound) * Decimal("1.2")

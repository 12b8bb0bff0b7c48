"""Numbers in text and when two are the same."""

import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.numbers import (
    Kind,
    canonical,
    equal,
    find_number_words,
    find_numbers,
    parse_number,
    read_as,
    without_unit_of,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The July picnic in Kabul raised 466 euros.", ["€466"]),
        ("It was 466.", ["466"]),
        ("1,200 people and 1,234,567.5 more", ["1200", "1234567.5"]),
        ("1\u202f200 and 2\u00a0500", ["1200", "2500"]),
        (
            "10k, 5M, 3bn, 5 million, 5-million, 2 hundred",
            ["10000", "5000000", "3000000000", "5000000", "5000000", "200"],
        ),
        ("$5m and 5m and 5km", ["$5000000", "5", "5"]),
        ("1e9, 1.2e-5 and 3E+2", ["1000000000", "0.000012", "300"]),
        ("-5, (-5), \u22125, +5 and -$5", ["-5", "-5", "-5", "5", "$-5"]),
        ("2019-2020, 10 - 5, 2019-05-03", ["2019", "2020", "10", "5", "2019", "05", "03"]),
        ("3.5 and .5 and 0.50", ["3.5", "0.5", "0.5"]),
        ("10%, 10 %, 10 percent, 10 per cent, 10 percentage points", ["10%", "10%", "10%", "10%", "10"]),
        ("52\u201359% and 10 to 20 percent and $5-10", ["52%", "59%", "10%", "20%", "$5", "$10"]),
        ("$5, US$5, 5 dollars, USD 5, 5 USD, 5 US dollars", ["$5"] * 6),
        ("€466, EUR466, 466€, 466 EUR, £3, CHF 7", ["€466"] * 4 + ["£3", "CHF7"]),
        ("in 2019 $5 went; in 2019 USD 5 went", ["2019", "$5", "2019", "$5"]),
        ("May 3rd, the 21st, 1990s, 3D", ["3", "21", "1990", "3"]),
        ("\u5171\u670950\u4eba and \uff14\uff16\uff16", ["50", "466"]),
        ("**466** _12_ 3/4 10:30", ["466", "12", "3", "4", "10", "30"]),
        ("1,2000 and 12,34,567", ["1", "2000", "12", "34567"]),
        ("", []),
        ("a) one b) two", []),
    ],
)
def test_numbers_of_a_text(text: str, expected: list[str]) -> None:
    assert [canonical(number) for number in find_numbers(text)] == [
        canonical(parsed) if (parsed := parse_number(value)) else value for value in expected
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. The picnic raised 466.\n2. It drew 50.\n 3) More", ["466", "50"]),
        ("Results:\n- 1. a\n**2.** b\n(3) c", []),
        ("1. a\n  1. x\n  2. y\n2. b 7", ["7"]),
        ("466. The picnic raised that.", ["466"]),
        ("1. a\n7. hidden", ["7"]),
        ("1.", ["1"]),
        ("1.5 million came", ["1500000"]),
    ],
)
def test_enumerators_are_not_numbers_and_hide_none(text: str, expected: list[str]) -> None:
    assert [canonical(number) for number in find_numbers(text)] == expected


def test_enumerators_are_numbers_where_they_are_asked_for() -> None:
    assert [canonical(number) for number in find_numbers("1. a\n2. b", enumerators=True)] == ["1", "2"]


@pytest.mark.parametrize(
    "text", ["COVID-19", "Covid-19", "T2", "H2O", "x466", "mid-2019", "v1.2.3", "10.0.0.1"]
)
def test_digits_of_names_are_marked(text: str) -> None:
    assert [number.kind for number in find_numbers(text)] == [Kind.NAME]


def test_a_number_knows_its_place_and_its_written_precision() -> None:
    text = "It cost $1.50 million."
    (number,) = find_numbers(text)
    assert (number.value, number.kind, number.unit) == (Decimal(1_500_000), Kind.CURRENCY, "$")
    assert (text[number.start : number.end], number.decimals) == ("$1.50 million", 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("466", "466"), (" 466. ", "466"), ("-5", "-5"), ("1,200", "1200"), ("10k", "10000"), ("12%", "12%"),
        ("$5", "$5"), ("5 million", "5000000"), ("466 euros", "€466"),
        ("007", "7"), ("0.50", "0.5"), ("-0", "0"),
    ],
)  # fmt: skip
def test_a_bracket_that_is_a_number(text: str, expected: str) -> None:
    number = parse_number(text)
    assert number is not None
    assert canonical(number) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "about 50",
        "52-59",
        "fifty",
        "466 people",
        "Cannot answer",
        "T2",
        "1.2.3",
        "--5",
        "5..",
        "5 5",
        "1/2",
    ],
)
def test_a_bracket_that_is_no_number(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("0.05", "0.1", False),  # under the published code's tolerance of 0.1
        ("10%", "10", False),
        ("5k", "5", False),
        ("5k", "5000", True),
        ("5w", "5", False),
        ("", "", False),
        ("Cannot answer", "Cannot answer", False),
        ("$5", "€5", False),
        ("$5", "5", False),
        ("3.50", "3.5", True),
        ("1,200", "1200", True),
        ("10 percent", "10%", True),
        ("1" * 60, "1" * 59 + "2", False),  # beyond the decimal context's 28 digits
    ],
)
def test_row_04_equality_is_exact_and_typed(a: str, b: str, same: bool) -> None:
    first, second = parse_number(a), parse_number(b)
    assert (first is not None and second is not None and equal(first, second)) is same


def test_a_bare_number_takes_the_kind_it_is_held_against() -> None:
    bare, percent, dollars = (parse_number(text) for text in ("12", "12%", "$12"))
    assert bare and percent and dollars
    assert equal(read_as(bare, percent), percent)
    assert equal(read_as(bare, dollars), dollars)
    assert not equal(read_as(dollars, percent), percent)
    assert not equal(read_as(percent, bare), bare)
    assert equal(without_unit_of(percent, percent), bare)
    assert equal(without_unit_of(dollars, percent), dollars)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("four hundred and sixty-six euros", [466]),
        ("two million three hundred thousand", [2_300_000]),
        ("Twenty-one thousand, and seven", [21_000, 7]),
        ("three four", [3, 4]),
        ("a hundred", [100]),
        ("the one in Kabul", []),
        ("someone, often, eighth", []),
    ],
)
def test_numbers_in_words(text: str, expected: list[int]) -> None:
    assert [number.value for number in find_number_words(text)] == [Decimal(value) for value in expected]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**12), max_value=10**12))
def test_any_decimal_is_read_back(value: Decimal) -> None:
    number = parse_number(f"{value:,f}")
    assert number is not None
    assert number.value == value
    assert Decimal(canonical(number)) == value


@given(
    st.text(alphabet=st.sampled_from("0123456789.,-\u2013%$€ kMe\n()1ab"), max_size=60) | st.text(max_size=60)
)
def test_spans_are_in_order_and_read_back(text: str) -> None:
    end = 0
    for number in find_numbers(text, enumerators=True):
        assert end <= number.start < number.end <= len(text)
        end = number.end
        if number.kind is not Kind.NAME:
            again = parse_number(text[number.start : number.end])
            assert again is not None
            assert abs(again.value) == abs(number.value)


@pytest.mark.parametrize(
    "piece",
    [
        "1",
        "1,",
        "1,111",
        "1.",
        ".5",
        "-",
        "1-",
        "$",
        " ",
        "1 ",
        "EUR ",
        "#\n",
        "9e",
        "1. ",
        "hundred and ",
        "1\u00a0",
    ],
)
def test_time_is_linear(piece: str) -> None:
    def seconds(num_chars: int) -> float:
        text = piece * (num_chars // len(piece))
        start = time.perf_counter()
        find_numbers(text), parse_number(text), find_number_words(text)
        return time.perf_counter() - start

    assert seconds(200_000) < 5.0  # a quadratic pattern takes minutes

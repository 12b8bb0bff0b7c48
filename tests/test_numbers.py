"""Numbers in text: what is found, of which kind, worth what, and where it stands.

When two numbers are the same is the subject of `test_number_pairs.py`; locales and generated numbers that of
`test_number_properties.py`.
"""

import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reward.claims.numbers import Form, Kind, Number, equal, find_numbers, parse_number, read_as, supports
from reward.claims.numbers.equality import without_unit_of
from reward.claims.numbers.plain import _IDEOGRAPHS
from reward.claims.numbers.writing import canonical


def read(text: str) -> Number:
    """The one number of a text, alone or in its context."""
    number = parse_number(text)
    if number is None:
        (number,) = find_numbers(text)
    return number


def written(text: str) -> list[str]:
    """The numbers of a text in their canonical form."""
    return [canonical(number) for number in find_numbers(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The July picnic in Kabul raised 466 euros.", ["€466"]),
        ("It was 466.", ["466"]),
        ("1,200 people and 1,234,567.5 more", ["1200", "1234567.5"]),
        ("1\u202f200 and 2\u00a0500", ["1200", "2500"]),
        ("1 200 000 people, 10 000 more", ["1200000", "10000"]),
        ("1'234.50 and 1\u2019234\u2019567", ["1234.5", "1234567"]),
        ("12,34,567 and 1,00,000", ["1234567", "100000"]),
        ("3,5 and 1.234.567,8 and 0,005", ["3.5", "1234567.8", "0.005"]),
        ("1,2,3 and 4, 5", ["1", "2", "3", "4", "5"]),
        (
            "10k, 5M, 3bn, 5 million, 5-million, 2 hundred",
            ["10000", "5000000", "3000000000", "5000000", "5000000", "200"],
        ),
        ("1.2万, 3亿, 5 lakh, 2.5 crore", ["12000", "300000000", "500000", "25000000"]),
        ("$5m, $5 B and 5m, 5 m and 5km", ["$5000000", "$5000000000", "5 m", "5 m", "5 km"]),
        ("1e9, 1.2e-5 and 3E+2", ["1000000000", "0.000012", "300"]),
        ("10⁶, 10^6, 6 x 10³ and 1.5*10^-3", ["1000000", "1000000", "6000", "0.0015"]),
        ("-5, (-5), \u22125, +5, -$5, $-5 and minus 5", ["-5", "-5", "-5", "5", "$-5", "$-5", "-5"]),
        ("\u20135 °C, but 10 \u20135 and T-5", ["-5 °C", "10", "5", "t-5"]),
        ("(466) and ($1,200) and (1.234,50 €)", ["466", "$1200", "€1234.5"]),
        ("(466), | ($1,200) | (1.234,50 €)", ["466", "$-1200", "€-1234.5"]),
        ("10 - 5, 2019-05-03", ["10", "5", "2019-05-03"]),
        ("3.5 and .5 and 0.50", ["3.5", "0.5", "0.5"]),
        ("3/4, ½, 2½, 1 1/2 and 4/3", ["0.75", "0.5", "2.5", "1.5", "1 1/3"]),
        ("10%, 10 %, 10 percent, 10 per cent, 5‰", ["10%", "10%", "10%", "10%", "0.5%"]),
        ("10 percentage points, 3 pp, 50 basis points", ["10pp", "3pp", "0.5pp"]),
        ("$5, US$5, 5 dollars, USD 5, 5 USD, 5 US dollars", ["$5"] * 6),
        ("€466, EUR466, 466€, 466 EUR, £3, CHF 7, A$5", ["€466"] * 4 + ["£3", "CHF 7", "AUD 5"]),
        ("in 2019 $5 went; in 2019 USD 5 went", ["2019", "$5", "2019", "$5"]),
        ("50 cents, 50¢, two dollars and fifty cents", ["50 cents", "50 cents", "$2.5"]),
        ("the 21st, 3D, 2nd", ["21st", "3d", "2nd"]),
        ("\u5171\u670950\u4eba and \uff14\uff16\uff16, \uff15\uff05", ["50", "466", "5%"]),
        ("**466** _12_ 3*4 and a_1", ["466", "12", "3", "4", "a_1"]),
        ("**999** million, __5__ %, `5` km, $**5**", ["999000000", "5%", "5 km", "$5"]),
        ("**5** **600**", ["5", "600"]),
        ("9x13 inch, 8' x 6', 24hrs", ["9 inches", "13 inches", "8", "6", "24 hours"]),
        ("60 mph, 60 miles per hour, 5 mg/dL, 500 sq. ft.", ["60 mph", "60 mph", "5 mg/dl", "500 ft²"]),
        ("14 W Figueroa St, 100 W bulbs, 250F, 40 °F", ["14", "100 W", "250 °F", "40 °F"]),
        ("a 5-year-old, a 10-minute walk", ["5 years", "10 minutes"]),
        ("6 feet 2 inches, 5'10\"", ["74 inches", "70 inches"]),
        ("1 hour and 30 minutes, 1h30m, 5 or more years", ["90 minutes", "90 minutes", "≥5 years"]),
        ("", []),
        ("a) one b) NaN, infinity, k, $", []),
    ],
)  # fmt: skip
def test_numbers_of_a_text(text: str, expected: list[str]) -> None:
    assert written(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("four hundred and sixty-six euros", ["€466"]),
        ("two million three hundred thousand", ["2300000"]),
        ("Twenty-one thousand, and seven", ["21000", "7"]),
        ("two and a half million, 2 and a half million", ["2500000", "2500000"]),
        ("a million and a half, half a million", ["1500000", "500000"]),
        ("a dozen eggs, two dozen, half a dozen, 3 dozen", ["12", "24", "6", "36"]),
        ("three quarters, two thirds, a third of it", ["0.75", "2/3", "1/3"]),
        ("the third floor, a third party, a third man, twenty-first", ["3rd", "3rd", "21st"]),
        ("the first step, its second try", ["1st", "2nd"]),
        ("at first, the first time, first, a second, second to none", []),
        ("three four", ["3", "4"]),
        ("a hundred, several hundred, hundreds, dozens, a couple", ["100"]),
        ("three point one four, two point five million", ["3.14", "2500000"]),
        ("nineteen eighty-four", ["1984"]),
        ("fifty per cent, half an hour, five pm, minus five", ["50%", "0.5 hours", "17:00", "-5"]),
        ("the one in Kabul, one another, half of them, an hour", ["0.5"]),
        ("one hour, more than one, about half, one in five", ["1 hour", ">1", "0.5", "1:5"]),
        ("a decade, an hour and a half", ["1 decade", "1.5 hours"]),
        ("the third of May 2021, May third", ["2021-05-03", "--05-03"]),
        ("someone, often, tension", []),
    ],
)
def test_numbers_in_words(text: str, expected: list[str]) -> None:
    assert written(text) == expected


def test_words_can_be_left_out() -> None:
    assert [canonical(n) for n in find_numbers("five, 5 million, noon", words=False)] == ["5000000"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("52\u201359% and 10 to 20 percent and $5-10", ["52\u201359%", "10\u201320%", "$5\u2013$10"]),
        ("9am-5pm, 9 am to 5 pm, from 9:00 to 17:00", ["09:00\u201317:00"] * 3),
        ("5-9 pm, 9-5 pm, 11-1 pm", ["17:00\u201321:00", "09:00\u201317:00", "11:00\u201313:00"]),
        ("11:0-21:30, 0:0-0:0", ["11:00\u201321:30", "00:00\u201300:00"]),
        ("2019-2021, 2021-22, from 2004 to 2011", ["2019\u20132021", "2021\u20132022", "2004\u20132011"]),
        ("between 5 and 10, 5 and 10", ["5\u201310", "5", "10"]),
        ("5-10 million, $5 to $10 million", ["5000000\u201310000000", "$5000000\u2013$10000000"]),
        ("May 3-5, 2021", ["2021-05-03\u20132021-05-05"]),
        ("June 2016 to May 2017", ["2016-06\u20132017-05"]),
        ("500 m to 2 km", ["500 m", "2 km"]),
        ("from 10% to 5%", ["10%", "5%"]),
        ("the 1990s, the '90s", ["1990\u20131999", "1990\u20131999"]),
    ],
)
def test_ranges_are_found_whole(text: str, expected: list[str]) -> None:
    assert written(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3:1, 3 to 1, 2-1", ["3:1", "3:1", "2:1"]),
        ("3.5 out of 5, 3.5/5, 4 of 5, 1 in 5", ["3.5:5", "3.5:5", "4:5", "1:5"]),
        ("3.0 stars out of 5.0, 10/10, 24/7", ["3:5", "10 out of 10", "24:7"]),
        ("16:9, 1:100", ["16:9", "1:100"]),
        ("3 in 2021, one of them", ["3", "2021"]),
    ],
)
def test_ratios_are_found_whole(text: str, expected: list[str]) -> None:
    assert written(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("May 3rd, 2021; 3 May 2021; the 3rd of May, 2021", ["2021-05-03"] * 3),
        ("May 3, June 2016, may 5, March 10", ["--05-03", "2016-06", "5", "--03-10"]),
        ("2021-05-03T10:00, 2021/05/03 and 3.5.2021", ["2021-05-03", "10:00", "2021-05-03", "2021-05-03"]),
        ("2021\u5e745\u67083\u65e5", ["2021-05-03"]),
        ("In 2021, since 1999, by 2030, 500 BC, AD 79", ["2021", "1999", "2030", "500 BC", "79"]),
        ("5:30 pm, 5.30 p.m., 17:30, 17h30", ["17:30"] * 4),
        ("5pm, 17:0, half past nine am, quarter to 9 pm", ["17:00", "17:00", "09:30", "20:45"]),
        ("noon, midnight, 12 am, 12 pm, 24:00", ["12:00", "00:00", "00:00", "12:00", "00:00"]),
        ("9 o'clock in the evening, 9:15 at night", ["21:00", "21:15"]),
        ("10:30:15, 25:00", ["10:30:15", "25", "0"]),
    ],
)  # fmt: skip
def test_dates_years_and_times(text: str, expected: list[str]) -> None:
    assert written(text) == expected


@pytest.mark.parametrize(
    ("text", "form", "approximate", "expected"),
    [
        ("over 270", Form.MORE_THAN, False, ">270"),
        ("just over 270", Form.MORE_THAN, False, ">270"),
        ("no fewer than 36", Form.AT_LEAST, False, "≥36"),
        ("at least about 50", Form.AT_LEAST, True, "≥50"),
        ("5+", Form.AT_LEAST, False, "≥5"),
        ("5+ years", Form.AT_LEAST, False, "≥5 years"),
        ("5 years or more", Form.AT_LEAST, False, "≥5 years"),
        ("up to $5", Form.AT_MOST, False, "≤$5"),
        ("<= 5", Form.AT_MOST, False, "≤5"),
        ("under 5%", Form.LESS_THAN, False, "<5%"),
        ("about 500", Form.EXACT, True, "500"),
        ("~ 500", Form.EXACT, True, "500"),
        ("25 min or so", Form.EXACT, True, "25 minutes"),
        ("about 60 to 75 degrees Fahrenheit", Form.RANGE, True, "60\u201375 °F"),
    ],
)
def test_bounds_and_approximators(text: str, form: Form, approximate: bool, expected: str) -> None:
    number = parse_number(text)
    assert number is not None
    assert (number.form, number.approximate, canonical(number)) == (form, approximate, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. The picnic raised 466.\n2. It drew 50.\n 3) More", ["466", "50"]),
        ("Results:\n- 1. a\n**2.** b\n(3) c", []),
        ("1. a\n  1. x\n  2. y\n2. b 7", ["7"]),
        ("466. The picnic raised that.", ["466"]),
        ("1. a\n7. hidden", ["7"]),
        ("1\ufe0f\u20e3 a\n2\ufe0f\u20e3 b 7", ["7"]),  # keys of a telephone, as emoji
        ("1.", ["1"]),
        ("1.5 million came", ["1500000"]),
    ],
)
def test_enumerators_are_not_numbers_and_hide_none(text: str, expected: list[str]) -> None:
    assert written(text) == expected


def test_enumerators_are_numbers_where_they_are_asked_for() -> None:
    assert [canonical(number) for number in find_numbers("1. a\n2. b", enumerators=True)] == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("COVID-19", "covid-19"), ("Covid-19", "covid-19"), ("T2", "t2"), ("H2O", "h2o"), ("x466", "x466"),
        ("v1.2.3", "v1.2.3"), ("10.0.0.1", "10.0.0.1"), ("192.168.0.1", "192.168.0.1"), ("3D", "3d"),
        ("555-123-4567", "5551234567"), ("(555) 123-4567", "5551234567"), ("401k", "401k"),
        ("978-3-16-148410-0", "978-3-16-148410-0"), ("1_000", "1_000"), ("0x1F", "0x1f"), ("1e400", "1e400"),
        ("10^9999", "10^9999"), ("9" * 301, "9" * 301),
    ],
)  # fmt: skip
def test_digits_that_count_nothing_are_identifiers(text: str, name: str) -> None:
    (number,) = find_numbers(text)
    assert (number.kind, number.unit, number.start, number.end) == (Kind.IDENTIFIER, name, 0, len(text))
    assert parse_number(text) is None


@pytest.mark.parametrize("text", ["mid-2019", "pre-1990", "\u5171\u670950", "CHF5", "\\n1. x"])
def test_digits_behind_a_letter_that_are_no_name(text: str) -> None:
    (number,) = find_numbers(text)
    assert number.kind is not Kind.IDENTIFIER


def test_a_number_knows_its_place_and_its_written_precision() -> None:
    text = "It cost about $1.50 million."
    assert find_numbers(text) == [
        Number(((Decimal("1.50E+6"),),), Kind.MONEY, "USD", approximate=True, start=8, end=27)
    ]
    (number,) = find_numbers(text)
    assert (text[number.start : number.end], number.step) == ("about $1.50 million", 10_000)


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("466", "1"), ("1,200", "1"), ("3.50", "0.01"), ("1.2 million", "1e5"), ("5k", "1000"), ("3/4", "0"),
        ("two million", "1e6"), ("half a million", "1e5"), ("two hundred", "1"), ("1.2e-5", "1e-6"),
    ],
)  # fmt: skip
def test_the_step_is_one_in_the_last_written_place(text: str, step: str) -> None:
    assert read(text).step == Decimal(step)


def test_marks_inside_a_number_keep_its_place_in_the_original_text() -> None:
    text = "about **999** million \u200epeople"
    (number,) = find_numbers(text)
    assert text[number.start : number.end] == "about **999** million"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("52-59 %", [("52", "52%"), ("59 %", "59%")]),
        ("9 am to 5 pm", [("9 am", "09:00"), ("5 pm", "17:00")]),
        ("May 3rd, 2021", [("3", "---03"), ("2021", "2021")]),
        ("2021-05-03", [("2021", "2021"), ("05", "--05"), ("03", "---03")]),
        ("3.5 out of 5", [("3.5", "3.5"), ("5", "5")]),
        ("9-pound, 10-ounce", [("9-pound", "9 lb"), ("10-ounce", "10 oz")]),
        ("2021-22", [("2021", "2021"), ("22", "2022")]),
        ("466", []),
    ],
)
def test_parts_of_composite_numbers_keep_their_own_places(text: str, parts: list[tuple[str, str]]) -> None:
    sentence = f"They say {text} now."
    (number,) = find_numbers(sentence)
    assert sentence[number.start : number.end] == text
    assert [(sentence[p.start : p.end], canonical(p)) for p in number.parts] == parts
    assert number.atoms == (number.parts or (number,))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1.234", [["1.234"]]),
        ("1,234", [["1234"]]),
        ("$1,500", [["1500"]]),
        ("5/3/2021", [["2021", "5", "3"], ["2021", "3", "5"]]),
        ("9:30", [["570"], ["1290"]]),
        ("3.5.2021", [["2021", "5", "3"]]),
        ("5/5/2021", [["2021", "5", "5"]]),
        ("09:30", [["570"]]),
        ("9:30-17:30", [["570", "1050"]]),
        ("8:30-5:30 pm", [["510", "1050"]]),
        ("12:30", [["750"]]),
    ],
)
def test_open_numbers_have_all_readings_and_the_likeliest_first(text: str, values: list[list[str]]) -> None:
    number = parse_number(text)
    assert number is not None
    assert [[str(v) for v in reading] for reading in number.readings] == values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("466", "466"), (" 466. ", "466"), ("-5", "-5"), ("1,200", "1200"), ("10k", "10000"), ("12%", "12%"),
        ("$5", "$5"), ("$5 million", "$5000000"), ("466 euros", "€466"), ("5:30 pm", "17:30"),
        ("5 p.m.", "17:00"), ("May 3, 2021", "2021-05-03"), ("52-59", "52\u201359"), ("1/2", "0.5"),
        ("fifty", "50"), ("about 50", "50"), ("one", "1"), ("first", "1st"), ("half", "0.5"),
        ("(466)", "466"), ("007", "7"), ("0.50", "0.5"), ("-0", "0"), ("an hour", "1 hour"),
    ],
)  # fmt: skip
def test_a_bracket_that_is_a_number(text: str, expected: str) -> None:
    number = parse_number(text)
    assert number is not None
    assert canonical(number) == expected
    assert 0 <= number.start < number.end <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", ".", "466 people", "Cannot answer", "T2", "1.2.3", "--5", "5..", "5 5", "In 2021, 5", "NaN",
        "Infinity", "-inf", "1_000", "1e400", "1/0", "5 or 6", "1,2,3", "[5]", "5?", "a couple", "hundred",
        "9" * 3000,
    ],
)  # fmt: skip
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
    bare, percent, dollars = read("12"), read("12%"), read("$12")
    assert equal(read_as(bare, percent), percent)
    assert equal(read_as(bare, dollars), dollars)
    assert not equal(read_as(dollars, percent), percent)
    assert not equal(read_as(percent, bare), bare)
    assert equal(read_as(read("5"), read("5 pm")), read("5 pm"))
    assert equal(read_as(read("2021"), read("in 2021")), read("in 2021"))
    assert equal(read_as(read("3"), read("May 3").parts[0]), read("May 3").parts[0])
    assert read_as(read("19"), read("COVID-19")).kind is Kind.COUNT
    assert read_as(read("2,021"), read("in 2021")).kind is Kind.COUNT


def test_a_number_loses_the_unit_that_was_asked_for() -> None:
    assert equal(without_unit_of(read("12%"), read("10%")), read("12"))
    assert equal(without_unit_of(read("5000 m"), read("3 km")), read("5"))
    assert without_unit_of(read("$12"), read("12%")) == read("$12")
    assert equal(without_unit_of(read("May 3").parts[0], read("June 4").parts[0]), read("3"))


@pytest.mark.parametrize(
    ("claimed", "found", "tolerance", "expected"),
    [
        ("about 500", "466", 0.0, True),
        ("about 1000", "600", 0.0, False),
        ("1.2 million", "1,234,567", 0.0, True),
        ("1,234,567", "1.2 million", 0.0, False),
        ("in the 1990s", "in 1995", 0.0, True),
        ("May 3", "May 3, 2021", 0.0, True),
        ("350 degrees", "350 °F", 0.0, True),
        ("466", "470", 0.01, True),
        ("466", "480", 0.01, False),
        ("in 2021", "in 2020", 0.1, False),
        ("over 270", "281", 0.0, True),
        ("over 270", "at least 271", 0.0, True),
        ("over 270", "at least 270", 0.0, False),
        ("at least 270", "270 to 300", 0.0, True),
        ("281", "over 270", 0.0, False),
        ("10-20 km", "10,000-20,000 m", 0.0, True),
    ],
)
def test_a_claim_is_supported(claimed: str, found: str, tolerance: float, expected: bool) -> None:
    assert supports(read(claimed), read(found), relative_tolerance=tolerance) is expected


def test_units_that_pint_cannot_convert_equal_themselves() -> None:
    for text in ("20 dB", "5 degrees", "5 mg/dL", "5 decades", "3 acres"):
        assert equal(read(text), read(text))
        assert not supports(read(text), read("7 kg"))
    assert not supports(read("20 dB"), read("7 m/s"))


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**12), max_value=10**12))
def test_any_decimal_is_read_back(value: Decimal) -> None:
    number = parse_number(f"{value:,f}")
    assert number is not None
    assert number.value == value
    assert Decimal(canonical(number)) == value


_ROUND_TRIP = {
    Kind.COUNT,
    Kind.PERCENT,
    Kind.PERCENTAGE_POINT,
    Kind.MONEY,
    Kind.TIME,
    Kind.ORDINAL,
    Kind.DURATION,
}


@given(
    st.text(alphabet=st.sampled_from("0123456789.,-\u2013%$€ kMe\n()1ab:/½"), max_size=60)
    | st.lists(
        st.sampled_from(
            [
                "5",
                "12",
                "2021",
                " ",
                "-",
                "May",
                "pm",
                "million",
                "%",
                "to",
                "km",
                "one",
                "half",
                "about",
                "$",
            ]
        )
    ).map(" ".join)
    | st.text(max_size=60)
)
def test_spans_are_in_order_and_read_back(text: str) -> None:
    end = 0
    for number in find_numbers(text, enumerators=True):
        assert end <= number.start < number.end <= len(text)
        end = number.end
        assert equal(number, number)
        assert supports(number, number)
        for part in number.parts:
            assert number.start <= part.start < part.end <= number.end
        again = parse_number(text[number.start : number.end])
        if again is not None and again.kind is number.kind and not number.parts and len(number.readings) == 1:
            assert {abs(r[0]) for r in again.readings} & {abs(r[0]) for r in number.readings}
        canonical_again = parse_number(canonical(number))
        if number.kind in _ROUND_TRIP and len(number.readings) == 1 and not number.parts:
            assert canonical_again is None or equal(canonical_again, number)


@given(
    st.integers(-(10**12), 10**12), st.sampled_from(["{}", "{}%", "${}", "{} km", "{} hours", "≥{}", "{}pp"])
)
def test_a_canonical_text_reads_as_itself(value: int, form: str) -> None:
    number = parse_number(form.format(value))
    assert number is not None
    again = parse_number(canonical(number))
    assert again is not None
    assert equal(again, number)
    assert canonical(again) == canonical(number)


def test_no_script_has_digits_beyond_the_planes_that_are_searched() -> None:
    assert not any(chr(c).isdecimal() for c in range(_IDEOGRAPHS, sys.maxunicode + 1))


@pytest.mark.parametrize(
    ("text", "written", "form"),
    [
        ("It extends over 582 square kilometres.", "582 square kilometres", Form.EXACT),
        ("Sales tripled over 5 years.", "5 years", Form.EXACT),
        ("Sales rose for over 5 years.", "over 5 years", Form.MORE_THAN),
        ("She waited over 5 years.", "over 5 years", Form.MORE_THAN),
        ("Sales rose by over 5%.", "over 5%", Form.MORE_THAN),
        ("A fine not exceeding $5,000.", "not exceeding $5,000", Form.AT_MOST),
    ],
)
def test_over_is_a_bound_where_it_says_neither_where_nor_in_what_time(
    text: str, written: str, form: Form
) -> None:
    (number,) = find_numbers(text)
    assert (text[number.start : number.end], number.form) == (written, form)


def test_the_sides_of_a_sheet_share_their_unit() -> None:
    assert [number.unit for number in find_numbers("30 x 20 x 10 cm")] == ["centimeter"] * 3
    assert [number.unit for number in find_numbers("310 by 220 people")] == ["", ""]


def test_a_price_as_it_is_said() -> None:
    (price,) = find_numbers("12 pounds 50")
    assert (price.kind, price.unit, price.value) == (Kind.MONEY, "GBP", Decimal("12.5"))
    assert len(find_numbers("5 euros 20 years ago")) == 2


def test_second_before_a_superlative_is_a_rank() -> None:
    (rank,) = find_numbers("the second-largest island")
    assert rank.kind is Kind.ORDINAL

"""Numbers, tried with generated ones: equality, rounding, and every locale's style.

The styles come from babel, which carries the Unicode locale data. Where a style cannot be read the table says
why, and the test holds that it is refused or read rightly, never misread.
"""

from decimal import Decimal
from typing import Literal

import pytest
from babel.numbers import format_currency, format_decimal, format_percent
from hypothesis import given, settings
from hypothesis import strategies as st

from reward.claims.numbers import Kind, Number, equal, find_numbers, parse_number, supports
from reward.claims.numbers.conventions import conventions_of
from reward.claims.numbers.equality import MOST_ROUNDING

LOCALES = (
    "en_US", "en_GB", "en_IN", "en_ZA", "de_DE", "de_AT", "de_CH", "fr_FR", "fr_CH", "fr_CA", "es_ES",
    "es_MX", "it_IT", "it_CH", "pt_BR", "pt_PT", "nl_NL", "sv_SE", "nb_NO", "da_DK", "fi_FI", "pl_PL",
    "cs_CZ", "sk_SK", "hu_HU", "ru_RU", "uk_UA", "bg_BG", "ro_RO", "el_GR", "tr_TR", "hi_IN", "bn_BD",
    "ta_IN", "ja_JP", "zh_CN", "ko_KR", "th_TH", "vi_VN", "id_ID", "he_IL", "et_EE", "lv_LV", "lt_LT",
    "hr_HR", "sl_SI", "is_IS", "ca_ES", "eu_ES", "fa_IR", "ar_EG", "sw_KE",
)  # fmt: skip
CURRENCIES = ("USD", "EUR", "GBP", "JPY", "CHF", "INR", "CNY", "KRW", "BRL", "CAD", "AUD")

AMOUNTS = st.decimals(min_value=-(10**12), max_value=10**12, places=3, allow_nan=False)


def read(text: str) -> Number:
    """The one number of a text, which must be there."""
    number = parse_number(text)
    assert number is not None, text
    return number


def read_in(locale: str, text: str) -> Number | None:
    """The number that a text is in a locale."""
    return parse_number(text, conventions=conventions_of(text, locale=locale))


def values(number: Number) -> list[Decimal]:
    """The first value of every reading."""
    return [reading[0] for reading in number.readings]


# Numbers of every kind, as text.

_UNITS_BELOW_20 = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = (
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)  # fmt: skip
_SCALES = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip


def in_words(value: int) -> str:
    """A whole number from 0 in English words, with hyphens and without "and"."""
    if value < 20:
        return _UNITS_BELOW_20[value]
    for scale, word in _SCALES:
        if value >= scale:
            rest = value % scale
            return f"{in_words(value // scale)} {word}" + (f" {in_words(rest)}" if rest else "")
    ten = _TENS[value // 10 - 2]
    return f"{ten}-{_UNITS_BELOW_20[value % 10]}" if value % 10 else ten


def ordinal(value: int) -> str:
    """A whole number from 1 as "1st", "2nd", "11th"."""
    ending = "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value}{ending}"


SMALL = st.integers(2, 999)
CLOCK = st.builds("{}:{:02}".format, st.integers(0, 23), st.integers(0, 59))
CLOCK_12 = st.builds(
    "{}:{:02} {}".format, st.integers(1, 12), st.integers(0, 59), st.sampled_from(["am", "pm"])
)
COUNTS = st.one_of(
    st.integers(-(10**15), 10**15).map(str),
    st.integers(0, 10**15).map("{:,}".format),
    st.decimals(-(10**6), 10**6, places=2).map("{:f}".format),
    st.one_of(st.just(0), st.integers(2, 10**12 - 1)).map(in_words),  # "one" alone is seldom a number
    st.builds(
        "{}{}".format, SMALL, st.sampled_from(["k", "M", "bn", " million", " lakh", " crore", "万", "亿"])
    ),
    st.builds("{}e{}".format, st.integers(1, 9), st.integers(-9, 15)),
    st.builds("{}/{}".format, st.integers(1, 40), st.integers(41, 99)),
)
EXPRESSIONS = {
    "count": COUNTS,
    "percent": st.builds("{}{}".format, SMALL, st.sampled_from(["%", " percent", " per cent"])),
    "percentage point": st.builds("{} percentage points".format, SMALL),
    "money": st.builds("{}{}".format, st.sampled_from(["$", "€", "£", "₹", "US$", "EUR "]), SMALL),
    "quantity": st.builds("{} {}".format, SMALL, st.sampled_from(["km", "miles", "kg", "°C", "GB", "m²"])),
    "duration": st.builds("{} {}".format, SMALL, st.sampled_from(["minutes", "hours", "days", "years"])),
    "year": st.builds("in {}".format, st.integers(1500, 2099)),
    "date": st.builds(
        "{} {}, {}".format, st.sampled_from(_MONTHS), st.integers(1, 28), st.integers(1900, 2099)
    ),
    "time": st.one_of(CLOCK, CLOCK_12),
    "ordinal": st.integers(1, 999).map(ordinal),
    "ratio": st.builds("{} out of {}".format, st.integers(1, 9), st.integers(10, 99)),
    "range": st.builds("{}-{}%".format, st.integers(1, 40), st.integers(41, 99)),
    "hours": st.builds("{} to {}".format, CLOCK_12, CLOCK_12),
    "bound": st.builds("{} {}".format, st.sampled_from(["over", "under", "at least", "up to"]), SMALL),
    "approximate": st.builds("{} {}".format, st.sampled_from(["about", "nearly", "roughly"]), SMALL),
    "identifier": st.builds("COVID-{}".format, SMALL),
}
ANY = st.one_of(*EXPRESSIONS.values())


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_numbers_of_every_kind_are_read_alone_and_in_a_sentence(kind: str) -> None:
    @settings(max_examples=60)
    @given(EXPRESSIONS[kind])
    def holds(text: str) -> None:
        sentence = f"The report says: {text}, as was known."
        (found,) = find_numbers(sentence)
        assert sentence[found.start : found.end] in text
        alone = parse_number(text)
        assert alone is None or equal(alone, found)

    holds()


@given(ANY)
def test_a_number_equals_itself_and_supports_itself(text: str) -> None:
    for number in find_numbers(text):
        assert equal(number, number)
        assert supports(number, number)


@given(ANY, ANY)
def test_equality_is_symmetric_and_keeps_kinds_apart(first: str, second: str) -> None:
    for a in find_numbers(first):
        for b in find_numbers(second):
            assert equal(a, b) == equal(b, a)
            if equal(a, b):
                assert (a.kind, a.dimension) == (b.kind, b.dimension)
                assert supports(a, b)
                assert supports(b, a)


@given(st.text(alphabet="0123456789.,'% $€()-\u2212\u2013+/:ekM½²万 aboutndmilhrs*_", max_size=24), st.data())
def test_equality_is_symmetric_and_reflexive_on_what_chance_writes(text: str, data: st.DataObject) -> None:
    numbers = find_numbers(text) + find_numbers(data.draw(ANY))
    for a in numbers:
        assert equal(a, a)
        assert all(equal(a, b) == equal(b, a) for b in numbers)


@given(st.integers(0, 10**12 - 1))
def test_a_number_in_words_is_its_digits(value: int) -> None:
    assert read(in_words(value)).values == (Decimal(value),)


@given(st.integers(1, 9999))
def test_an_ordinal_equals_only_itself(value: int) -> None:
    assert equal(read(ordinal(value)), read(ordinal(value)))
    assert not supports(read(ordinal(value)), read(ordinal(value + 1)))


@given(st.integers(0, 23), st.integers(0, 59))
def test_both_clocks_tell_the_same_time(hour: int, minute: int) -> None:
    half = "am" if hour < 12 else "pm"
    twelve = f"{hour % 12 or 12}:{minute:02} {half}"
    assert supports(read(twelve), read(f"{hour:02}:{minute:02}"))  # "10:00" leaves the half of the day open
    assert not equal(read(twelve), read(twelve.replace(half, "pm" if half == "am" else "am")))


@given(st.decimals(-(10**6), 10**6, places=6), st.integers(0, 5))
def test_what_is_rounded_is_supported_and_what_is_a_step_off_is_not(value: Decimal, places: int) -> None:
    step = Decimal(1).scaleb(-places)
    rounded = value.quantize(step)
    source = read(f"{value:f}")
    is_near = (
        abs(rounded - value) <= abs(value) * Decimal(MOST_ROUNDING.numerator) / MOST_ROUNDING.denominator
    )
    is_kept = bool(rounded or not value) and is_near  # nothing rounds to zero
    assert supports(read(f"{rounded:f}"), source) is is_kept
    assert not supports(read(f"{rounded + step:f}"), source) or abs(rounded + step - value) * 2 <= step


# Every locale's style.

# The sign of these stands before the number, where a text in English would not have it.
PERCENT_SIGN_FIRST = {"tr_TR", "eu_ES"}


@pytest.mark.parametrize("locale", LOCALES)
def test_decimals_come_back_from_every_locale(locale: str) -> None:
    @settings(max_examples=60)
    @given(AMOUNTS)
    def holds(amount: Decimal) -> None:
        text = format_decimal(amount, locale=locale, decimal_quantization=False)
        number = read_in(locale, text)
        assert number is not None, text
        assert number.readings == ((amount,),), text

    holds()


@pytest.mark.parametrize("locale", LOCALES)
def test_percentages_come_back_from_every_locale(locale: str) -> None:
    @settings(max_examples=30)
    @given(st.decimals(-100, 100, places=4))
    def holds(share: Decimal) -> None:
        text = format_percent(share, locale=locale, decimal_quantization=False)
        number = read_in(locale, text)
        if number is None and locale in PERCENT_SIGN_FIRST:
            return
        assert number is not None, text
        assert (number.kind, number.values) == (Kind.PERCENT, (share * 100,)), text

    holds()


# A sign that several currencies share is read as the one that it means most often in English.
SHARED_SIGNS = {("fr_CA", "CAD"): "USD", ("zh_CN", "CNY"): "JPY"}
# Abbreviations of their own: "щ.д." for US dollars, "BR$" for reals.
UNREAD_MONEY = {("bg_BG", "USD"), ("sv_SE", "BRL")}


@pytest.mark.parametrize("style", ["standard", "accounting"])
@pytest.mark.parametrize("locale", LOCALES)
def test_money_comes_back_from_every_locale(locale: str, style: Literal["standard", "accounting"]) -> None:
    @settings(max_examples=60)
    @given(st.integers(-(10**9), 10**9), st.sampled_from(CURRENCIES))
    def holds(cents: int, currency: str) -> None:
        amount = Decimal(cents) if currency in ("JPY", "KRW") else Decimal(cents) / 100
        text = format_currency(amount, currency, locale=locale, format_type=style)
        number = read_in(locale, text)
        if number is None and (locale, currency) in UNREAD_MONEY:
            return
        assert number is not None, ascii(text)
        assert amount in values(number), ascii(text)
        unit = SHARED_SIGNS.get((locale, currency), currency)
        assert (number.kind, number.unit) == (Kind.MONEY, unit), ascii(text)

    holds()

"""What a text shows of how it writes its numbers, and what else decides where it shows nothing."""

import time

import pytest
from babel import Locale

from reward.claims.numbers import equal, find_numbers, parse_number
from reward.claims.numbers.conventions import (
    ENGLISH,
    Conventions,
    conventions_of,
    conventions_of_response,
)
from reward.claims.numbers.writing import canonical
from reward.locales import DateOrder
from tests.test_number_properties import LOCALES

DAY, MONTH = DateOrder.DAY_FIRST, DateOrder.MONTH_FIRST
GERMAN = "Der Verein hat nach eigenen Angaben viele Mitglieder und ist in der Stadt bekannt."
ENGLISH_TEXT = "The club has many members and is known in the town."


@pytest.mark.parametrize(
    ("text", "decimal", "order"),
    [
        # What can be read once only.
        ("1,234,567.8", ".", None),
        ("1.234.567,8", ",", None),
        ("1,234.5", ".", None),
        ("1.234,5", ",", None),
        ("1,234,567", ".", None),
        ("1.234.567", ",", None),
        ("12,34,567.8", ".", None),
        ("12,5 %", ",", None),
        ("12.5%", ".", None),
        ("0,75", ",", None),
        ("3,5 Mio. Euro", ",", None),
        ("25-3-2021", ".", DAY),
        ("25.3.2021", ".", None),  # dates with points have the day first everywhere
        ("3/25/2021", ".", MONTH),
        ("25-3-2021", ".", DAY),
        ("25.3.2021", ".", None),  # dates with points have the day first everywhere
        ("3-25-2021", ".", MONTH),
        # What can be read twice, or is no decimal number.
        ("5/3/2021", ".", None),
        ("1.500", ".", None),
        ("1,500", ".", None),
        ("192.168.100.200", ".", None),
        ("v1.234.567", ".", None),
        ("May 5,2021", ".", None),
        ("31/31/2021", ".", None),
        # The language.
        (GERMAN, ",", DAY),
        ("La ville compte 1.500 habitants dans les environs et elle est une des plus belles.", ",", DAY),
        ("La ciudad tiene 1.500 habitantes y fue fundada por una familia en su desierto.", ",", DAY),
        ("La città è una delle più belle con 1.500 abitanti che sono nel centro.", ",", DAY),
        ("A cidade não tem mais habitantes e foi uma das maiores pelo seu tamanho.", ",", DAY),
        ("De stad heeft 1.500 inwoners en het is niet ver van een bos.", ",", DAY),
        (ENGLISH_TEXT, ".", None),
        ("Los Angeles, El Paso, Las Vegas and La Jolla: 1.500", ".", None),
        ("Open 9 am EST to 5 pm EST", ".", None),
        # What the text writes counts for more than its language.
        (GERMAN + " Es sind 1,234,567 Mitglieder.", ".", DAY),
        (ENGLISH_TEXT + " It grew by 12,5 % on 25/3/2021.", ",", DAY),
        # The majority; a tie says nothing.
        ("12,5 % and 3,5 % and 1.5 %", ",", None),
        ("12,5 % and 1.5 %", ".", None),
        ("25/3/2021 and 3/25/2021", ".", None),
        ("25/3/2021 and 3/25/2021 and 26/3/2021", ".", DAY),
        # Weak evidence, where nothing else is known.
        ("3,5 und 4,5", ",", None),
        ("12,000 inhabitants", ".", None),
        ("", ".", None),
    ],
)
def test_what_a_text_shows(text: str, decimal: str, order: DateOrder | None) -> None:
    found = conventions_of(text)
    assert (found.decimal, found.date_order) == (decimal, order)


@pytest.mark.parametrize(
    ("text", "others", "decimal", "order"),
    [
        ("1.500", [GERMAN], ",", DAY),
        ("1.500", ["12,5 %"], ",", None),
        ("12,000", [GERMAN], ".", DAY),
        ("1.500", [ENGLISH_TEXT, "1,234.5"], ".", None),
        ("1.500", ["1.234,5", "1,234.5", "2.345,6"], ",", None),
        (ENGLISH_TEXT, [GERMAN + " 12,5 %"], ".", None),  # nor does German, of an English text
        (ENGLISH_TEXT, ["25/3/2021"], ".", DAY),
        (ENGLISH_TEXT, [GERMAN, ENGLISH_TEXT + " It opened on 3/25/2021."], ".", MONTH),
        (GERMAN, [ENGLISH_TEXT + " 1,234.5"], ",", DAY),
        ("5/3/2021", ["25/3/2021"], ".", DAY),
        ("3/25/2021", ["25/3/2021"], ".", MONTH),
    ],
)
def test_other_texts_decide_where_the_text_shows_nothing(
    text: str, others: list[str], decimal: str, order: DateOrder | None
) -> None:
    found = conventions_of(text, *others)
    assert (found.decimal, found.date_order) == (decimal, order)
    assert conventions_of(text, *reversed(others)) == found


@pytest.mark.parametrize(
    ("text", "locale", "decimal", "order"),
    [
        ("1.500", "de-DE", ",", DAY),
        ("5/3/2021", "en-US", ".", MONTH),
        ("5/3/2021", "en-GB", ".", DAY),
        ("5/3/2021", "en", ".", None),
        (GERMAN, "en-US", ".", MONTH),  # a setting counts for more than a guess at the language
        ("12,5 % on 25/3/2021", "en-US", ",", DAY),  # and less than what can be read once only
        ("1.500", "de_CH", ".", DAY),
        ("1.500", "DE", ",", DAY),
    ],
)
def test_a_locale_decides_what_the_text_does_not_contradict(
    text: str, locale: str, decimal: str, order: DateOrder | None
) -> None:
    found = conventions_of(text, locale=locale)
    assert (found.decimal, found.date_order) == (decimal, order)


def test_the_language_comes_with_it() -> None:
    assert conventions_of(GERMAN).language == "de"
    assert conventions_of(GERMAN, locale="en-US").language == "en"
    assert conventions_of("5", GERMAN).language == "de"
    assert conventions_of("5") == ENGLISH == Conventions(".", None, "en")


@pytest.mark.parametrize("locale", ["", "xx", "de-", "german", "de-DEU", "../de"])
def test_an_unknown_locale_is_refused(locale: str) -> None:
    with pytest.raises(ValueError, match=r"locale: .* set \"auto\""):
        conventions_of("5", locale=locale)


@pytest.mark.parametrize("locale", LOCALES)
def test_the_decimal_sign_of_a_locale_is_that_of_the_unicode_locale_data(locale: str) -> None:
    symbols = Locale.parse(locale).number_symbols
    native = symbols.get("latn", symbols)
    expected = {",": ",", ".": ".", "\u066b": "."}[str(native["decimal"])]
    assert conventions_of("", locale=locale).decimal == expected


@pytest.mark.parametrize("locale", LOCALES)
def test_the_order_of_dates_is_never_against_the_unicode_locale_data(locale: str) -> None:
    pattern = str(Locale.parse(locale).date_formats["short"].pattern)
    month_first, year_first = pattern.find("M") < pattern.find("d"), pattern.find("y") < pattern.find("M")
    order = conventions_of("", locale=locale).date_order
    assert order is not (DAY if month_first and not year_first else MONTH)


@pytest.mark.parametrize(
    ("text", "conventions", "expected"),
    [
        ("1.500 km", ENGLISH, "1.5 km"),
        ("1,500 km", ENGLISH, "1500 km"),
        ("1.500 km", Conventions(","), "1500 km"),
        ("1,500 km", Conventions(","), "1.5 km"),
        ("1.500", Conventions(","), "1500"),
        ("12.345", Conventions(","), "12345"),
        ("0.500", Conventions(","), "0.5"),
        ("1234.567", Conventions(","), "1234.567"),
        ("1.5", Conventions(","), "1.5"),
        ("1,234.5", Conventions(","), "1234.5"),
        ("1,500 million", Conventions(","), "1500000"),
        ("5/3/2021", Conventions(date_order=DAY), "2021-03-05"),
        ("5/3/2021", Conventions(date_order=MONTH), "2021-05-03"),
        ("25/3/2021", Conventions(date_order=MONTH), "2021-03-25"),
        ("3.5.2021", ENGLISH, "2021-05-03"),
        ("3.5.2021", Conventions(date_order=MONTH), "2021-03-05"),
        ("12.25.2021", ENGLISH, "2021-12-25"),
        # Prices have no three decimals, but for fuel at home.
        ("€1.500", ENGLISH, "€1500"),
        ("$1,500", Conventions(","), "$1500"),
        ("$3.459", ENGLISH, "$3.459"),
        ("1,459 €", Conventions(","), "€1.459"),
    ],
)
def test_conventions_leave_one_reading(text: str, conventions: Conventions, expected: str) -> None:
    number = parse_number(text, conventions=conventions)
    assert number is not None
    assert len(number.readings) == 1
    assert canonical(number) == expected
    (found,) = find_numbers(f"it was {text} then", conventions=conventions)
    assert equal(found, number)


def test_the_parts_of_a_date_are_those_of_its_reading() -> None:
    (date,) = find_numbers("on 13/05/2021")
    assert [canonical(part) for part in date.parts] == ["---13", "--05", "2021"]
    (date,) = find_numbers("on 05/13/2021")
    assert [canonical(part) for part in date.parts] == ["--05", "---13", "2021"]


@pytest.mark.parametrize("part", ["1.5 ", "1,234,567.8 ", "1.1", "1/", "25/3/2021 ", "die ", "1,", "1-1."])
def test_a_long_text_costs_little(part: str) -> None:
    text = part * (1_000_000 // len(part))
    start = time.perf_counter()
    conventions_of(text)
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize(
    ("answer", "decimal"), [("Brennholt employs 5,900 people.", "."), ("Es sind 3,5 %.", ",")]
)
def test_a_short_answer_may_group_as_its_documents_do_not(answer: str, decimal: str) -> None:
    document = (
        "Die Firma beschäftigt rund 5.900 Mitarbeiter und wurde von der Familie gegründet. Es sind 3,5 %."
    )
    assert conventions_of_response(answer, "?", [document]).decimal == decimal

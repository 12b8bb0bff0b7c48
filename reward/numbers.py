"""Numbers in text: where they stand, what they are worth, of what kind they are, and when two are the same.

One regular expression reads a number with what belongs to it: sign, thousands separators, decimals, a power
of ten ("10k", "5 million", "1.2e-5"), a percent sign and a currency. Values are `Decimal`, so equality is
exact: 0.05 is not 0.1, 10% is not 10, 10k is not 10 (published code: all equal). An ordinal reads as its
cardinal ("May 3rd" is "May 3"), and both ends of "52-59%" are percents.

Not numbers: enumerators of a list at line starts ("1. ", "2) "), and letters. Only a 1, or a number whose
predecessor stood as one before, is an enumerator, so a figure cannot be hidden by writing it before a line.
Digits of a name ("COVID-19", "T2", "1.2.3") are found as `Kind.NAME`; `reward.grounding` decides about them.

Left out on purpose: units other than percent and currency, dates and times (each part is a number of its
own), decimal commas, and tolerance. Numbers in words are read apart, by `find_number_words`, and only where
they can do no harm: in documents and in questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum


class Kind(StrEnum):
    """What a number says that it counts."""

    PLAIN = "plain"  # says nothing: the bare "466"
    PERCENT = "percent"
    CURRENCY = "currency"
    NAME = "name"  # digits that look like part of a name, or of a code with several dots


@dataclass(frozen=True)
class Number:
    """One number as it stands in a text.

    Example: in "It cost $1.50 million." the number is `Number(value=Decimal("1.50E+6"), kind=Kind.CURRENCY,
    unit="$", decimals=2, start=8, end=21)`.
    """

    value: Decimal  # with the power of ten worked in
    kind: Kind = Kind.PLAIN
    unit: str = ""  # "%", the sign of the currency, or nothing
    decimals: int = field(default=0, compare=False)  # digits written after the point
    start: int = field(default=0, compare=False)  # `text[start:end]`, with its sign, scale and unit
    end: int = field(default=0, compare=False)


_CURRENCIES = {
    "$": ("$", "us$", "usd", "dollar", "dollars", "us dollar", "us dollars"),
    "€": ("€", "eur", "euro", "euros"),
    "£": ("£", "gbp"),
    "¥": ("¥", "jpy", "yen"),
    "₹": ("₹", "inr", "rupee", "rupees"),
    "CHF": ("chf",),
    "CNY": ("cny", "rmb", "yuan"),
}
_SIGN_OF_CURRENCY = {word: sign for sign, words in _CURRENCIES.items() for word in words}
_POWERS = {
    "hundred": 2, "k": 3, "thousand": 3, "m": 6, "mn": 6, "million": 6,
    "b": 9, "bn": 9, "billion": 9, "tn": 12, "trillion": 12,
}  # fmt: skip
_CODE = "(?:USD|EUR|GBP|JPY|INR|CHF|CNY|RMB)"
_SP = r"[ \t\u00a0\u2009\u202f]"
_NUMBER = re.compile(
    rf"""
    (?P<sign>(?<![\w.)\]%])[-+\u2212](?=[$€£¥₹.\d]))?
    (?:(?P<before>(?:US)?[$€£¥₹]|(?<![^\W_]){_CODE}){_SP}?)?
    (?P<digits>
        \d{{1,3}}(?P<separator>[,\u00a0\u2009\u202f])\d{{3}}(?:(?P=separator)\d{{3}})*(?!\d)(?:\.\d+)?
      | \d+(?:\.\d+)*
      | (?<![\w.])\.\d+
    )
    (?:[eE](?P<exponent>[-+]?\d{{1,3}})(?!\w) | (?:st|nd|rd|th)(?!\w))?
    (?: (?P<letter>(?(before)[kKmMbB]|[kKMB])|bn|mn|tn)(?!\w)
      | (?:{_SP}|-)(?P<word>(?i:hundred|thousand|million|billion|trillion))(?!\w) )?
    (?: {_SP}?(?P<percent>[%\uff05]) | (?:{_SP}|-)(?P<percent_word>(?i:percent|per\ cent|pct))(?!\w)
      | {_SP}?(?P<after>[$€£¥₹])(?!{_SP}?-?\d)
      | (?:{_SP}|-)(?P<after_word>{_CODE}|(?i:(?:US\ )?dollars?|euros?|yen|yuan|rupees?))(?!\w|{_SP}\d) )?
    """,
    re.VERBOSE,
)
_ENUMERATOR = re.compile(r"^[-*•#>_( \t]{0,16}(\d{1,3})[.)][*_]{0,2}(?=[ \t]+\S)", re.MULTILINE)
_RANGE = re.compile(rf"[-\u2013\u2014]|{_SP}to{_SP}")


def find_numbers(text: str, *, enumerators: bool = False) -> list[Number]:
    """The numbers of a text from left to right, in time linear in its length.

    Args:
        text: Any text.
        enumerators: Whether the enumerators of lists are numbers too.
    """
    skipped = set() if enumerators else set(_enumerators(text))
    matches = (match for match in _NUMBER.finditer(text) if match.start("digits") not in skipped)
    numbers: list[Number] = []
    for match in matches:
        number = _number(match)
        if numbers and _is_range(text, numbers[-1], number):
            numbers[-1], number = read_as(numbers[-1], number), read_as(number, numbers[-1])
        numbers.append(number)
    return numbers


def parse_number(text: str) -> Number | None:
    """The number that a text is, such as the content of an answer's bracket; None when it is anything else.

    Strict: "466", "-5", "1,200", "10k", "12%", "$5" and "466." are numbers; "about 50", "52-59", "fifty" and
    "" are not.
    """
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    match = _NUMBER.fullmatch(text, start, end - text.endswith(".", start, end))
    number = _number(match) if match else None
    return None if number is None or number.kind is Kind.NAME else number


def equal(a: Number, b: Number) -> bool:
    """Typed equality: the same value exactly, the same kind and the same unit."""
    return (a.value, a.kind, a.unit) == (b.value, b.kind, b.unit)


def read_as(number: Number, like: Number) -> Number:
    """A bare number takes the kind of the number it is held against; any other stays what it says it is.

    Answers stand in brackets as pure numbers because their question names the unit, so the bare 12 that
    answers "what percentage" is held against "12%" as a percent. "12%" held against the bare 12 stays a
    percent, and is another number.
    """
    if number.kind is not Kind.PLAIN or like.kind is Kind.PLAIN:
        return number
    return replace(number, kind=like.kind, unit=like.unit)


def without_unit_of(number: Number, asked: Number) -> Number:
    """The number as a bare one when it states the unit that was asked for; any other unit stays."""
    same_unit = (number.kind, number.unit) == (asked.kind, asked.unit)
    return replace(number, kind=Kind.PLAIN, unit="") if same_unit else number


def canonical(number: Number) -> str:
    """The one text of all numbers that are `equal`: "1200" for "1,200.0", "0.05", "10%", "$5"."""
    digits = f"{number.value:f}"
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    digits = "0" if digits == "-0" else digits
    return f"{digits}%" if number.kind is Kind.PERCENT else f"{number.unit}{digits}"


def _enumerators(text: str) -> Iterator[int]:
    """Starts of the digits that number list items: a 1, or the successor of an earlier enumerator."""
    seen = {0}
    for match in _ENUMERATOR.finditer(text):
        place = int(match[1])
        if place - 1 in seen:
            seen.add(place)
            yield match.start(1)


def _number(match: re.Match[str]) -> Number:
    digits = match["digits"].replace(match["separator"] or ",", "")
    if digits.count(".") > 1:
        digits = digits.replace(".", "")
        kind, unit = Kind.NAME, ""
    else:
        kind, unit = _kind(match)
    power = int(match["exponent"] or 0) + _POWERS.get((match["letter"] or match["word"] or "").lower(), 0)
    sign = "-" if match["sign"] in ("-", "\u2212") else ""
    decimals = len(digits.partition(".")[2])
    return Number(Decimal(f"{sign}{digits}E{power}"), kind, unit, decimals, match.start(), match.end())


def _kind(match: re.Match[str]) -> tuple[Kind, str]:
    if _is_in_a_name(match.string, match.start()):
        return Kind.NAME, ""
    if match["percent"] or match["percent_word"]:
        return Kind.PERCENT, "%"
    currency = match["before"] or match["after"] or match["after_word"]
    return (Kind.CURRENCY, _SIGN_OF_CURRENCY[currency.lower()]) if currency else (Kind.PLAIN, "")


def _is_in_a_name(text: str, start: int) -> bool:
    """Whether the digits follow a letter ("T2"), or a letter and a hyphen ("COVID-19").

    Without a hyphen only scripts with capitals count: Chinese writes digits behind a word without a space.
    """
    before = text[max(0, start - 2) : start]
    if before.endswith("-"):
        return before[0].isalpha()
    return before[-1:].isupper() or before[-1:].islower()


def _is_range(text: str, low: Number, high: Number) -> bool:
    named = Kind.NAME in (low.kind, high.kind)
    return not named and _RANGE.fullmatch(text, low.end, high.start) is not None


_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS = {w: i for i, w in enumerate(_SMALL)} | {w: 10 * i for i, w in enumerate(_TENS, start=2)}
_SCALES = {word: 10 ** _POWERS[word] for word in ("hundred", "thousand", "million", "billion", "trillion")}
_WORD = "|".join([*_WORDS, *_SCALES])
_WORD_RUN = re.compile(rf"\b(?:{_WORD})(?:(?:[ -]|[ ]and[ ])(?:{_WORD}))*\b", re.IGNORECASE)


def find_number_words(text: str) -> list[Number]:
    """The numbers in words: "four hundred and sixty-six" is 466, "two million" is 2000000.

    A run of words that is no number ("three four") gives each of its words. A lone "one" is left out: it is a
    pronoun more often than a number.
    """
    numbers = []
    for run in _WORD_RUN.finditer(text):
        words = [word for word in re.split(r"[ -]", run[0].lower()) if word != "and"]
        if words != ["one"]:
            numbers += [Number(value, start=run.start(), end=run.end()) for value in _word_values(words)]
    return numbers


def _word_values(words: list[str]) -> list[Decimal]:
    total = group = 0
    room = 100  # a unit or a ten must be below this to belong to the group
    for word in words:
        if word in _WORDS and _WORDS[word] < room:
            group += _WORDS[word]
            room = 10 if _WORDS[word] >= 20 else 1
        elif word == "hundred" and group < 10:
            group, room = max(group, 1) * 100, 100
        elif word in _SCALES and word != "hundred":
            total, group, room = total + max(group, 1) * _SCALES[word], 0, 100
        else:
            return [Decimal(_WORDS[w]) for w in words if w in _WORDS]
    return [Decimal(total + group)]

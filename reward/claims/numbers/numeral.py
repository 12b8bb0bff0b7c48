"""A number in digits without what surrounds it: separators, powers of ten, fractions, scale words.

`numeral_at` reads "1,200", "6.02 x 10²³", "1e9", "10⁶", "3/4", "1 ½", "2.5 lakh crore", "5k" and "1.2万".
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

from reward.claims.numbers.digits import (
    DIGITS,
    MAX_DIGITS,
    SPACE,
    SUPERSCRIPTS,
    VULGAR,
    Digits,
    end_of_digits,
    fraction,
    read_digits,
)

_POWERS = {
    "hundred": 2, "thousand": 3, "k": 3, "million": 6, "m": 6, "mn": 6, "mln": 6, "mio": 6, "mm": 6,
    "billion": 9, "b": 9, "bn": 9, "bln": 9, "trillion": 12, "t": 12, "tn": 12, "trn": 12, "quadrillion": 15,
    "lakh": 5, "lac": 5, "crore": 7, "cr": 7, "千": 3, "万": 4, "萬": 4, "百万": 6, "千万": 7, "億": 8,
    "亿": 8, "兆": 12, "万亿": 12, "tausend": 3, "duizend": 3, "millionen": 6, "millone": 6, "milhõe": 6,
    "milioni": 6, "miljoen": 6, "milliarde": 9, "milliarden": 9, "milliard": 9, "mrd": 9, "miliardi": 9,
    "miljard": 9, "bilhõe": 9,
}  # fmt: skip
# Of other languages those that English text has in no other sense; "mil" and "Billion" mean two things.
_FOREIGN = (
    "tausend|duizend|millionen|millones|milhões|milioni|miljoen|milliarden?|milliards?|mrd|miliardi|miljard|"
    "bilhões"
)
_WORD = (
    r"(?i:hundred|thousands?|millions?|billions?|trillions?|quadrillion|lakhs?|lacs?|crores?|mln|mio|bln"
    rf"|{_FOREIGN})"
)
_SCALE = re.compile(
    rf"""
    (?: {SPACE}? (?P<short>bn|mn|tn|trn|Bn|Mn|Tn|BN|MN|cr|Cr)
      | (?P<letter>[kKMB]) | (?:{SPACE}|-)? (?P<word>{_WORD}) ) (?![^\W_])
  | {SPACE}? (?P<ideogram>百万|千万|万亿|[千万萬亿億兆])
    """,
    re.VERBOSE,
)
_OF_MONEY = re.compile(rf"{SPACE}?(?P<letter>mm|MM|[mMbBtT])(?![^\W_]|[²³^])")
_AND_PART = re.compile(rf"{SPACE}and{SPACE}(?:a|one){SPACE}(half|third|quarter)(?![^\W_])", re.IGNORECASE)
_PARTS = {"half": 2, "third": 3, "quarter": 4}
_SECOND_SCALE = re.compile(rf"{SPACE}(?P<word>(?i:thousand|million|billion|trillion|crores?))(?![^\W_])")
_DOZEN = re.compile(rf"{SPACE}dozen(?![^\W_])", re.IGNORECASE)
_RAISED = "[⁰¹²³⁴-⁹]"
_NUMERAL = re.compile(
    rf"""
    (?P<digits>{DIGITS})
    (?: [eE](?P<exponent>[-+\u2212]?\d{{1,3}})(?![^\W_]|[.,]\d)
      | {SPACE}?[\u00d7xX*·]{SPACE}?10(?: \^\(?(?P<power>[-+\u2212]?\d{{1,3}})\)?(?!\d)
                                      | (?P<super>[⁻⁺]?{_RAISED}{{1,3}})(?!{_RAISED}) ) )?
    """,
    re.VERBOSE,
)
_TEN = re.compile(r"10(?:\^\(?(?P<power>[-+\u2212]?\d{1,3})\)?(?!\d)|(?P<super>[⁻⁺]?[⁰¹²³⁴-⁹]{1,3}))")
_COUNTED_PARTS = (2, 3, 4, 5, 6, 8, 16)  # "4/3" is a fraction; "24/7" and "10/10" are pairs
_GLYPHS = "".join(VULGAR)
_ONE = Decimal(1)
_SEPARATORS = frozenset(".,'")
_BEHIND_A_SPACE = frozenset((*"\u00d7xX*·", *VULGAR))
_BEHIND_PLAIN = frozenset(("", *'\n%)];:"|!?'))
_BEFORE_NO_SCALE = frozenset(("", *"\n%)(];:\"|!?.,'/+=<>&*_$"))
# The first two letters of all that multiplies a number behind a space.
_SCALES_BEGIN = frozenset((
    "an", "bi", "bl", "bn", "cr", "do", "du", "hu", "la", "mi", "ml", "mm", "mn", "mr", "qu", "ta", "th",
    "tn", "tr",
))  # fmt: skip
_HAS_FRACTION = re.compile(rf"\d{{0,6}}+(?:(?:{SPACE}|-)\d{{1,5}}[/\u2044]|[/\u2044]|{SPACE}?[{_GLYPHS}])")
_FRACTION = re.compile(
    rf"(?:(?P<whole>\d{{1,6}})(?:{SPACE}|-))?(?P<top>\d{{1,5}})[/\u2044](?P<bottom>\d{{1,5}})(?![\d/\u2044]|[.,]\d)"
    rf"|(?P<plain>\d{{1,6}})?(?:(?<=\d){SPACE}?)?(?P<glyph>[{_GLYPHS}])"
)


class Numeral(NamedTuple):
    """A number in digits."""

    digits: Digits
    end: int
    has_scale: bool = False
    is_plain: bool = False  # nothing but digits


def numeral_at(text: str, at: int, *, money: bool, decimal: str) -> Numeral | None:
    """The number that begins at a digit, a vulgar fraction, or a point before a digit.

    Args:
        text: Plain text.
        at: Where it begins.
        money: Whether a currency stands before it: then "m" is a million.
        decimal: The sign before decimals, where the digits can be read twice.

    Returns:
        The number; None when it has more digits, or a larger power of ten, than any number that is meant.
    """
    end = end_of_digits(text, at)
    if end > at and _ends_plainly(text, end):
        if end - at > MAX_DIGITS:
            return None
        return _with_scale(
            Numeral(Digits(Decimal(text[at:end]), _ONE), end, is_plain=True), text, money=money
        )
    if _HAS_FRACTION.match(text, at) and (mixed := _fraction(text, at)):
        return _with_scale(mixed, text, money=money)
    if text.startswith("10", at) and (ten := _TEN.match(text, at)):
        exact = Digits(Decimal(1), Decimal(1)).scaled(_power(ten["power"], ten["super"]))
        return Numeral(exact, ten.end())
    point = text[at] == "."
    match = _NUMERAL.match(text, at + point)
    assert match is not None, f"no digit at {at}"
    if len(match["digits"]) > MAX_DIGITS:
        return None
    digits = read_digits("." + match["digits"] if point else match["digits"], decimal=decimal)
    if match.end() == match.end("digits"):
        return _with_scale(Numeral(digits, match.end(), is_plain=digits.step == 1), text, money=money)
    power = int((match["exponent"] or "0").replace("\u2212", "-")) or _power(match["power"], match["super"])
    if abs(power) > MAX_DIGITS:
        return None
    return _with_scale(Numeral(digits.scaled(power) if power else digits, match.end()), text, money=money)


def _ends_plainly(text: str, end: int) -> bool:
    """Whether what follows a run of digits adds no separator, fraction or power to it, at a quick look."""
    after, second = text[end : end + 1], text[end + 1 : end + 2]
    if after == " ":
        return not (second.isdigit() or second in _BEHIND_A_SPACE)
    if after in _SEPARATORS:
        return not second.isdigit()
    return after in _BEHIND_PLAIN or (after.isalpha() and after not in "eExX")


def scale_after(text: str, at: int) -> tuple[int, int] | None:
    """The power of ten of the scale word at `at`, and where the word ends."""
    match = _SCALE.match(text, at)
    if match is None:
        return None
    word = (match["short"] or match["letter"] or match["word"] or match["ideogram"]).casefold()
    return _power_of(word), match.end()


def _power_of(word: str) -> int:
    return _POWERS[word] if word in _POWERS else _POWERS[word.removesuffix("s")]


def _with_scale(numeral: Numeral, text: str, *, money: bool) -> Numeral:
    if not _may_scale(text, numeral.end, money=money):
        return numeral
    if numeral.is_plain and (part := _AND_PART.match(text, numeral.end)):
        whole = int(numeral.digits.value)
        bottom = _PARTS[part[1].lower()]
        numeral = Numeral(Digits(fraction(whole * bottom + 1, bottom), Decimal(0)), part.end())
    power, end, factor = 0, numeral.end, Decimal(1)
    if found := scale_after(text, end):
        power, end = found
        if second := _SECOND_SCALE.match(text, end):
            power, end = power + _power_of(second["word"].casefold()), second.end()
    elif money and (letter := _OF_MONEY.match(text, end)):
        power, end = _POWERS[letter["letter"].casefold()], letter.end()
    elif dozen := _DOZEN.match(text, end):
        factor, end = Decimal(12), dozen.end()
    if end == numeral.end:
        return numeral
    return Numeral(numeral.digits.scaled(power).times(factor), end, has_scale=True)


def _may_scale(text: str, end: int, *, money: bool) -> bool:
    """A quick look at what follows a number, for the sake of speed."""
    after = text[end : end + 1]
    if after != " ":
        return after not in _BEFORE_NO_SCALE
    two = text[end + 1 : end + 3].lower()
    return two in _SCALES_BEGIN or not two.isascii() or (money and two[:1] in ("m", "b", "t"))


def _fraction(text: str, at: int) -> Numeral | None:
    """ "3/4", "1 1/2", "2½"; "24/7", "5/5" and one over zero are none."""
    match = _FRACTION.match(text, at)
    if match is None:
        return None
    if match["glyph"]:
        top, bottom = VULGAR[match["glyph"]]
        whole = int(match["plain"] or 0)
    else:
        top, bottom, whole = int(match["top"]), int(match["bottom"]), int(match["whole"] or 0)
        improper = top >= bottom and (match["whole"] or bottom not in _COUNTED_PARTS or top % bottom == 0)
        if improper or bottom == 0 or match["top"].startswith("0"):
            return None
    return Numeral(Digits(fraction(whole * bottom + top, bottom), Decimal(0)), match.end())


def _power(written: str | None, raised: str | None) -> int:
    text = written or (raised or "0").translate(SUPERSCRIPTS)
    return int(text.replace("\u2212", "-"))

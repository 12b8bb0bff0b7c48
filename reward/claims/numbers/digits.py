"""A number in digits without what surrounds it: separators, powers of ten, fractions, scale words.

`numeral_at` reads "1,200", "6.02 x 10²³", "1e9", "10⁶", "3/4", "1 ½", "2.5 lakh crore", "5k" and "1.2万". Two
separators tell each other apart: the last is the decimal one. One point or comma before three digits can
group or can start decimals ("1.234"); there the conventions of the text decide (`conventions`).
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Context, Decimal
from typing import NamedTuple

from reward.claims.numbers.vocabulary import END, SPACE, TABLES, by_word, either

EXACT = Context(prec=1400)  # holds a number of `MAX_DIGITS` times one, so that no digit is rounded away
MAX_DIGITS = 300  # in one token, and the largest power of ten
_FRACTION_PREC = Context(prec=50)
_THIN = r"\u00a0\u2007-\u200a\u202f"
_QUOTES = r"'\u2019\u066c"
_DIGITS = rf"""(?:
    (?<!\d[.,{_QUOTES}{_THIN}]) \d{{1,3}} (?P<group>[.,{_QUOTES}{_THIN}]) \d{{3}}
        (?> (?: (?P=group) \d{{3}} )* ) (?: (?!(?P=group)) [.,] \d++ )? (?! \d | [.,{_QUOTES}]\d )
  | (?<!\d[ ]) [1-9]\d{{0,2}} (?: [ ] \d{{3}} ){{1,8}} (?: [.,] \d++ )? (?! \d | [.,:/ -]\d)
  | (?<!\d,) \d{{1,3}} (?> (?: , \d{{2}} (?=,) )+ ) , \d{{3}} (?: \.\d++ )? (?! \d | [.,]\d )
  | (?<!\d[.,]) \d++ [.,] \d++ (?! [.,]\d )
  | \d++
)"""
_RAISED = "[⁰¹²³⁴-⁹]"
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺\u2212", "0123456789-+-")
_POWER = rf"10(?:\^\(?(?P<power>[-+\u2212]?\d{{1,3}})\)?(?!\d)|(?P<super>[⁻⁺]?{_RAISED}{{1,3}})(?!{_RAISED}))"
_NUMERAL = re.compile(
    rf"""
    (?P<digits>{_DIGITS})
    (?: [eE](?P<exponent>[-+\u2212]?\d{{1,3}})(?![^\W_]|[.,]\d) | {SPACE}?[\u00d7xX*·]{SPACE}?{_POWER} )?
    """,
    re.VERBOSE,
)
_TEN = re.compile(_POWER)
_RUN = re.compile(r"[0-9]++")
_SEPARATOR = re.compile(r"\D")
_FRACTION_SLASH = "\u2044"
VULGAR = {
    glyph: tuple(map(int, unicodedata.normalize("NFKC", glyph).split(_FRACTION_SLASH)))
    for glyph in TABLES["scales"]["fractions"]
}
_FRACTION = re.compile(
    rf"(?:(?P<whole>\d{{1,6}})(?:{SPACE}|-))?(?P<top>\d{{1,5}})[/\u2044](?P<bottom>\d{{1,5}})(?![\d/\u2044]|[.,]\d)"
    rf"|(?P<plain>\d{{1,6}})?(?:(?<=\d){SPACE}?)?(?P<glyph>[{''.join(VULGAR)}])"
)
_COUNTED_PARTS = (2, 3, 4, 5, 6, 8, 16)  # "4/3" is a fraction; "24/7" and "10/10" are pairs
_LARGEST_TOP = 99  # of an improper fraction: "301/6" is a score
_AND_PART = re.compile(rf"{SPACE}and{SPACE}(?:a|one){SPACE}(half|third|quarter){END}", re.IGNORECASE)
_PARTS = {"half": 2, "third": 3, "quarter": 4}
_DOZEN = re.compile(rf"{SPACE}dozen{END}", re.IGNORECASE)
_WORD_BEHIND = re.compile(rf"(?P<gap>{SPACE}|-)?(?P<word>[^\W\d_]{{1,12}}){END}")
_WORDS, _SHORT, _LETTERS, _POWERS_OF_MONEY, _IDEOGRAMS = (
    {word: int(power) for word, power in by_word(TABLES["scales"][name]).items()}
    for name in ("words", "short", "letters", "of_money", "ideograms")
)
_OF_MONEY = re.compile(rf"{SPACE}?({either(_POWERS_OF_MONEY)})(?![^\W_]|\^)", re.IGNORECASE)
# "3m visitors": a letter that counts, as it does behind a currency.
_OF_THINGS = re.compile(
    rf"([mb]){SPACE}(?:(?:annual|yearly|monthly|weekly|daily|active|new|more|foreign|registered|unique){SPACE})?"
    rf"{either(TABLES['things']['behind_letters'].split())}{END}"
)
_POINT = re.compile(
    r"(?<=(?i:[ \u00a0](?:mio|mrd|mln|bln)))\.(?=[ \u00a0](?:[a-z€$£]|Euro|EUR|CHF|GBP|US|Dollar|Franken))"
)  # of an abbreviation
_IDEOGRAM = re.compile(rf"{SPACE}?({either(_IDEOGRAMS)})")
_SECOND_SCALES = ("thousand", "million", "billion", "trillion", "crore", "crores", "millones", "milhões")
_THOUSAND = 3
_MIL = re.compile(
    r"mil (?=(?:millones|milhões|dólares|reais)\b|[^\W\d_]{2,}[oa]s\b|habitantes\b)", re.IGNORECASE
)
_BEFORE_NO_SCALE = frozenset(("", *"\n%)(];:\"|!?.,'/+=<>&*_$"))


class Digits(NamedTuple):
    """What a token of digits is worth."""

    value: Decimal
    step: Decimal  # one in the last written place

    def scaled(self, power: int) -> Digits:
        """The same with a power of ten worked in."""
        return Digits(EXACT.scaleb(self.value, power), EXACT.scaleb(self.step, power))

    def times(self, factor: Decimal) -> Digits:
        """The same times a factor; the sign does not touch the step."""
        return Digits(EXACT.multiply(self.value, factor), EXACT.multiply(self.step, abs(factor)))


class Numeral(NamedTuple):
    """A number in digits."""

    digits: Digits
    end: int
    has_scale: bool = False
    is_plain: bool = False  # nothing but digits


def end_of_digits(text: str, at: int) -> int:
    """Where the run of digits ends that begins at a place; that place where none begins."""
    match = _RUN.match(text, at)
    return match.end() if match else at


def fraction(numerator: int, denominator: int) -> Decimal:
    """A fraction as a decimal, rounded far behind anything that a text writes."""
    return _FRACTION_PREC.divide(Decimal(numerator), Decimal(denominator))


def numeral_at(text: str, at: int, *, money: bool, decimal: str) -> Numeral | None:
    """The number that begins at a digit, a vulgar fraction, or a point before a digit.

    Args:
        text: Plain text.
        at: Where it begins.
        money: Whether a currency comes before it: then "m" is a million.
        decimal: The sign before decimals, where the digits can be read twice.

    Returns:
        The number; None when it has more digits, or a larger power of ten, than any number that is meant.
    """
    if mixed := _fraction(text, at):
        return _with_scale(mixed, text, money=money)
    if ten := _TEN.match(text, at):
        return Numeral(Digits(Decimal(1), Decimal(1)).scaled(_power(ten)), ten.end())
    point = text[at] == "."
    match = _NUMERAL.match(text, at + point)
    assert match is not None, f"no digit at {at}"
    if len(match["digits"]) > MAX_DIGITS:
        return None
    digits = _read_digits("." * point + match["digits"], decimal=decimal)
    if match.end() == match.end("digits"):
        return _with_scale(Numeral(digits, match.end(), is_plain=digits.step == 1), text, money=money)
    power = int(match["exponent"].replace("\u2212", "-")) if match["exponent"] else _power(match)
    if abs(power) > MAX_DIGITS:
        return None
    return _with_scale(Numeral(digits.scaled(power), match.end()), text, money=money)


def scale_after(text: str, at: int) -> tuple[int, int] | None:
    """The power of ten of the scale word at `at`, and where the word ends."""
    behind = _WORD_BEHIND.match(text, at)
    if behind and behind["word"].isascii():
        gap, word = behind["gap"], behind["word"]
        power = _WORDS.get(word.lower(), 0) or (gap != "-" and _SHORT.get(word, 0))
        power = power or (gap is None and _LETTERS.get(word, 0))
        if not power and _MIL.match(text, behind.start("word")):  # "350 mil habitantes", but "2 mil film"
            power = _THOUSAND
        is_short = power and _POINT.match(text, behind.end())
        return (power, behind.end() + bool(is_short)) if power else None
    if behind and (power := _WORDS.get(behind["word"].casefold(), 0)):  # "milhões"
        return power, behind.end()
    ideogram = _IDEOGRAM.match(text, at)
    return (_IDEOGRAMS[ideogram[1]], ideogram.end()) if ideogram else None


def scale_of_money(text: str, at: int) -> tuple[int, int] | None:
    """As `scale_after`, behind an amount of money: "m" is a million there."""
    letter = _OF_MONEY.match(text, at)
    return (_POWERS_OF_MONEY[letter[1].lower()], letter.end(1)) if letter else scale_after(text, at)


def _read_digits(token: str, *, decimal: str) -> Digits:
    """Reads a token of digits, which may begin with a point.

    The sign before decimals, a point or a comma, decides where the token can be read twice.
    """
    marks = _SEPARATOR.findall(token)
    whole, decimals = token, ""
    if marks and marks[-1] in ".," and marks.count(marks[-1]) == 1:
        whole, _, decimals = token.rpartition(marks[-1])
    is_open = len(marks) == 1 and len(decimals) == 3 and 1 <= len(whole) <= 3 and not whole.startswith("0")
    if is_open and marks[0] != decimal:
        whole, decimals = whole + decimals, ""
    digits = _SEPARATOR.sub("", whole) or "0"
    return Digits(Decimal(f"{digits}.{decimals}" if decimals else digits), Decimal((0, (1,), -len(decimals))))


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
        is_even = match["whole"] or bottom not in _COUNTED_PARTS or top % bottom == 0 or top > _LARGEST_TOP
        improper = top >= bottom and is_even
        if improper or bottom == 0 or match["top"].startswith("0"):
            return None
    return Numeral(Digits(fraction(whole * bottom + top, bottom), Decimal(0)), match.end())


def _power(ten: re.Match[str]) -> int:
    """The exponent of a power of ten."""
    return int((ten["power"] or ten["super"]).translate(_SUPERSCRIPTS))


def _with_scale(numeral: Numeral, text: str, *, money: bool) -> Numeral:
    """The number times the scale word behind it, if there is one, or the dozen; "5 and a half million"."""
    if text[numeral.end : numeral.end + 1] in _BEFORE_NO_SCALE:
        return numeral
    first = text[numeral.end + 1 : numeral.end + 2]  # of a word behind a space
    if numeral.is_plain and first in "aA" and (part := _AND_PART.match(text, numeral.end)):
        bottom = _PARTS[part[1].lower()]
        mixed = fraction(int(numeral.digits.value) * bottom + 1, bottom)
        numeral = Numeral(Digits(mixed, Decimal(0)), part.end())
    power, end, factor = 0, numeral.end, Decimal(1)
    if found := scale_after(text, end):
        power, end = found
        second = _WORD_BEHIND.match(text, end)
        if second and second["gap"] not in (None, "-") and second["word"].lower() in _SECOND_SCALES:
            power, end = power + _WORDS[second["word"].lower()], second.end()
    elif letter := (_OF_MONEY if money else _OF_THINGS).match(text, end):
        power, end = _POWERS_OF_MONEY[letter[1].lower()], letter.end(1)
    if end == numeral.end and text[end + 1 : end + 2] in "dD" and (dozen := _DOZEN.match(text, end)):
        factor, end = Decimal(12), dozen.end()
    if end == numeral.end:
        return numeral
    return Numeral(numeral.digits.scaled(power).times(factor), end, has_scale=True)

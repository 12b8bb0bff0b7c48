"""One token of digits and what it is worth: separators and decimals.

Two separators tell each other apart: the last is the decimal one. One point or comma before three digits can
group or can start decimals ("1.234"); there the conventions of the text decide (`conventions`).
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from functools import lru_cache
from typing import NamedTuple

EXACT = Context(prec=1400)  # holds a number of `MAX_DIGITS` times one, so that no digit is rounded away
MAX_DIGITS = 300  # in one token, and the largest power of ten
SPACE = r"[ \t\u00a0\u2002-\u200a\u202f]"
THIN = r"\u00a0\u2007-\u200a\u202f"
_QUOTES = r"'\u2019\u066c"
_FRACTION_PREC = Context(prec=50)

DIGITS = rf"""(?:
    (?<!\d[.,{_QUOTES}{THIN}]) \d{{1,3}} (?P<group>[.,{_QUOTES}{THIN}]) \d{{3}} (?: (?P=group) \d{{3}} )*+
        (?: (?!(?P=group)) [.,] \d++ )? (?! \d | [.,{_QUOTES}]\d )
  | (?<!\d[ ]) [1-9]\d{{0,2}} (?: [ ] \d{{3}} ){{1,8}} (?: [.,] \d++ )? (?! \d | [.,:/ -]\d)
  | (?<!\d,) \d{{1,3}} (?: , \d{{2}} (?=,) )++ , \d{{3}} (?: \.\d++ )? (?! \d | [.,]\d )
  | (?<!\d[.,]) \d++ [.,] \d++ (?! [.,]\d )
  | \d++
)"""
_TOKEN = re.compile(DIGITS, re.VERBOSE)
_RUN = re.compile(r"[0-9]++")
_SEPARATOR = re.compile(r"\D")

VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5),
    "⅘": (4, 5), "⅙": (1, 6), "⅚": (5, 6), "⅐": (1, 7), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8),
    "⅑": (1, 9), "⅒": (1, 10),
}  # fmt: skip
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")


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


def read_digits(token: str, *, decimal: str) -> Digits:
    """Reads a token that matches `DIGITS`, or one with a leading point (".5").

    Args:
        token: The token.
        decimal: The sign before decimals, a point or a comma; it decides where the token can be read twice.
    """
    marks = _SEPARATOR.findall(token)
    if not marks:
        return _digits(token)
    whole, decimals = _split(token, marks)
    if decimals is None:
        return _digits(_only_digits(token))
    as_decimal = f"{_only_digits(whole) or '0'}.{decimals}"
    is_open = len(marks) == 1 and len(decimals) == 3 and 1 <= len(whole) <= 3 and not whole.startswith("0")
    return _digits(whole + decimals if is_open and marks[0] != decimal else as_decimal)


def fraction(numerator: int, denominator: int) -> Decimal:
    """A fraction as a decimal, rounded far behind anything that a text writes."""
    return _FRACTION_PREC.divide(Decimal(numerator), Decimal(denominator))


def end_of_digits(text: str, at: int) -> int:
    """Where the run of digits ends that begins at a place; that place where none begins."""
    match = _RUN.match(text, at)
    return match.end() if match else at


def token_at(text: str, at: int) -> str:
    """The longest token of digits that begins at a digit."""
    match = _TOKEN.match(text, at)
    assert match is not None, f"no digit at {at}"
    return match[0]


def _split(token: str, marks: list[str]) -> tuple[str, str | None]:
    """The token before and after its decimal separator; None after it when all separators group."""
    last = marks[-1]
    if last not in ".," or marks.count(last) > 1:
        return token, None
    whole, _, decimals = token.rpartition(last)
    return whole, decimals


def _digits(written: str) -> Digits:
    return Digits(Decimal(written), _step(len(written.partition(".")[2])))


@lru_cache(maxsize=64)
def _step(places: int) -> Decimal:
    """One in the last of some decimal places."""
    return Decimal((0, (1,), -places))


def _only_digits(token: str) -> str:
    return _SEPARATOR.sub("", token)

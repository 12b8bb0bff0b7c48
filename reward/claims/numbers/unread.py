"""Numerals that no reader reads as a number: circled, raised or lowered digits, ideographs, other scripts;
and amounts in words that have no definite value (`vague`).

They are found as identifiers, so that nothing is hidden by its looks: who writes "④⑥⑥ euros" or "九百 euros"
has written a number, and it must be checked. A value is worked out where there is one, so that a claim can
be about it and no question shows it. Left out is what is part of a word: a raised digit behind a letter
("km²"), and a single ideograph among others ("一个"), as "one" alone is seldom a number.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cache

from reward.claims.numbers.amounts import vague_amounts
from reward.claims.numbers.conventions import ENGLISH, Conventions
from reward.claims.numbers.digits import MAX_DIGITS, VULGAR
from reward.claims.numbers.find import find_numbers, successive
from reward.claims.numbers.model import Number, apart
from reward.claims.numbers.names import UNWRITTEN, identifier

_LAST = 0x20000  # no plane from here on has digits
_ROMAN = range(0x2160, 0x2189)  # read by nobody in ASCII either
_IDEOGRAPH = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff65]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_NEAR = 3  # characters
_COUNTING = re.compile(
    r"[一二两兩三四五六七八九壹贰叁肆伍陆柒捌玖][十百千萬万億亿拾佰仟]|十[一二三四五六七八九]|.{3}"
)
_ENUMERATOR = re.compile(r"^[-*\u2022#>_( \t]{0,16}(\S)[*_.)]{0,3}[ \t]", re.MULTILINE)


def all_numbers(
    text: str, *, enumerators: bool = True, words: bool = True, conventions: Conventions = ENGLISH
) -> list[Number]:
    """All numbers of a text, those that no reader reads too, from left to right.

    The arguments are those of `find_numbers`.
    """
    found = find_numbers(text, enumerators=enumerators, words=words, conventions=conventions)
    unread = unread_numerals(text, found, enumerators=enumerators, words=words)
    return sorted([*found, *unread], key=lambda number: number.start) if unread else found


def unread_numerals(
    text: str, found: Sequence[Number], *, enumerators: bool = False, words: bool = True
) -> list[Number]:
    """The numerals of a text that stand in none of the numbers found in it, from left to right.

    Args:
        text: Any text.
        found: What `find_numbers` found in it.
        enumerators: Whether circled digits that enumerate lists are numerals too.
        words: Whether numbers in ideographs, and amounts in words without a value, are numerals too.
    """
    vague = list(apart(vague_amounts(text), found)) if words else []
    if text.isascii() or _numeral_characters().isdisjoint(_BEYOND_ASCII.findall(text)):
        return vague
    skipped = frozenset() if enumerators else frozenset(_enumerators(text))
    numerals, place = [], 0
    for run in _numerals().finditer(text):
        while place < len(found) and found[place].end <= run.start():
            place += 1
        inside = place < len(found) and found[place].start <= run.start()
        start = max(run.start(), found[place].end) if inside else run.start()
        is_numeral = start < run.end() and start not in skipped
        if is_numeral and not _is_in_a_word(text, start, run.end(), words=words):
            numerals.append(identifier(text, start, run.end(), value=_value(text[start : run.end()])))
    return sorted([*numerals, *vague], key=lambda number: number.start)


@cache
def _numeral_characters() -> frozenset[str]:
    """Characters with a numeric value of which no digit of a number is made."""
    known = {*map(chr, _ROMAN), *VULGAR}
    numeric = {chr(c) for c in range(128, _LAST) if chr(c).isnumeric() and not chr(c).isdecimal()}
    return frozenset(numeric - known)


@cache
def _numerals() -> re.Pattern[str]:
    return re.compile(f"[{''.join(sorted(_numeral_characters()))}]+")


def _is_in_a_word(text: str, start: int, end: int, *, words: bool) -> bool:
    run = text[start:end]
    if _IDEOGRAPH.match(run):
        near = text[max(0, start - _NEAR) : start] + text[end : end + _NEAR]
        return not words or (_IDEOGRAPH.search(near) is not None and not _COUNTING.search(run))
    before = text[max(0, start - 2) : start].removesuffix("⁻")[-1:]
    return end - start == 1 and unicodedata.decomposition(run).startswith("<super>") and before.isalpha()


def _value(run: str) -> Decimal:
    """Digits one after the other, or multiplied by the tens, hundreds and more that follow them.

    Example: "④⑥⑥" is 466, "九百二十" 920, "三万" 30,000.
    """
    if len(run) > MAX_DIGITS:
        return UNWRITTEN
    total = section = digit = 0
    for char in run:
        value = unicodedata.numeric(char)
        if value != int(value):
            return UNWRITTEN
        number = int(value)
        if number < 10:
            digit = digit * 10 + number
        elif number < 10_000:
            section, digit = section + (digit or 1) * number, 0
        else:
            total, section, digit = total + (section + digit or 1) * number, 0, 0
    return Decimal(total + section + digit)


def _enumerators(text: str) -> Iterator[int]:
    """Starts of numerals that number the items of a list: a one, or the successor of an earlier one."""
    lines = (line for line in _ENUMERATOR.finditer(text) if _numerals().fullmatch(line[1]))
    return successive((line.start(1), _value(line[1])) for line in lines)

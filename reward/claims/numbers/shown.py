"""What a text shows of numbers, by meaning: whether a question gives its own answer away.

A question about "the 5000 m road" shows the answer 5 (km), "0.12" shows 12%, and "'84" shows 1984.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from decimal import Decimal
from functools import lru_cache

from reward.claims.numbers.equality import in_base_units
from reward.claims.numbers.find import find_numbers
from reward.claims.numbers.model import Kind, Number
from reward.claims.numbers.unread import unread_numerals

_HUNDRED, _UNWRITTEN = Decimal(100), Decimal(0)
_SHORT_YEAR = re.compile(r"['\u2018\u2019](\d{2})(?!\d)")
_YEARS = range(1000, 2100)


def gives_away(text: str, number: Number) -> bool:
    """Whether a text holds the value of a number, or of a part of it, in any writing."""
    return not shown_in(text).isdisjoint(shown_by([number]) | _short_years(number))


def all_numbers(text: str) -> list[Number]:
    """All numbers of a text, those that no reader reads too, from left to right."""
    found = find_numbers(text, enumerators=True)
    return sorted([*found, *unread_numerals(text, found, enumerators=True)], key=lambda one: one.start)


@lru_cache(maxsize=1024)
def shown_in(text: str) -> frozenset[Hashable]:
    """All that the numbers of a text show."""
    years = {("year", Decimal(match[1])) for match in _SHORT_YEAR.finditer(text)}
    return frozenset(shown_by(all_numbers(text)) | years)


def shown_by(numbers: Iterable[Number]) -> set[Hashable]:
    """The values of numbers and of their parts: as written, in base units, as shares."""
    shown: set[Hashable] = set()
    for atom in (atom for number in numbers for atom in number.atoms):
        for reading in atom.readings:
            for value in reading:
                if atom.kind not in (Kind.DATE, Kind.PERIOD) or value != _UNWRITTEN:
                    shown |= _ways(atom, value)
    return shown


def _ways(atom: Number, value: Decimal) -> set[Hashable]:
    ways: set[Hashable] = {value}
    if atom.dimension:
        ways.add((atom.dimension, in_base_units(value, atom.unit)))
    if atom.kind is Kind.PERCENT:
        ways.add(("share", value / _HUNDRED))
    elif not atom.unit and 0 < abs(value) < 1:
        ways.add(("share", value))
    return ways


def _short_years(number: Number) -> set[Hashable]:
    """What the last two digits of a year show, which only an apostrophe tells from another number."""
    values = {value for atom in number.atoms for reading in atom.readings for value in reading}
    return {("year", value % _HUNDRED) for value in values if value in _YEARS}

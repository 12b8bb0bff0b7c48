"""What a question says of a number: whether it can be about it, and whether it gives it away.

"How many people came?" is not about the 12% of "12 people came, 12% of the members", whatever its bracket
says. Only what a question says plainly counts against it: "What did it reach?" can be about anything. A
question about "the 5000 m road" gives the answer 5 (km) away, "0.12" 12%, and "'84" 1984.
"""

import re
from collections.abc import Hashable, Iterable
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from reward.claims.numbers.equality import in_base_units
from reward.claims.numbers.find import parse_number
from reward.claims.numbers.model import Kind, Number
from reward.claims.numbers.shares import multiples, share_of
from reward.claims.numbers.unread import all_numbers

_WORD = re.compile(r"[^\W\d_]+|[%$\u20ac\u00a3\u00a5]")
_HOW_MANY = re.compile(r"\bhow many\b|\b(?:what|which) number of\b", re.IGNORECASE)
_SHARE = re.compile(
    r"%|\bper ?cent|\bpercentage|\b(?:share|proportion|fraction|ratio|rate|part)\b", re.IGNORECASE
)
_WHAT_SHARE = re.compile(r"\b(?:what|which|how many) (?:percent|percentage|per cent|share|proportion)", re.I)
_WHAT_YEAR = re.compile(
    r"\b(?:what|which) (?:year|decade|century|season|month|date|day)\b|^when\b", re.IGNORECASE
)
_WHAT_TIME = re.compile(r"\b(?:what|which) (?:time|hour)\b", re.IGNORECASE)
_MONEY = re.compile(
    r"\b(?:money|amount|costs?|price[ds]?|pa(?:id|y|ys)|fees?|revenue|budget|worth|salary|currency|cents?|pence)\b",
    re.IGNORECASE,
)
_MEASURED = frozenset({Kind.QUANTITY, Kind.DURATION})
_LAST_YEAR, _LAST_HOUR = 3000, 24
_HUNDRED = Decimal(100)
_SHORT_YEAR = re.compile(r"['\u2018\u2019](\d{2})(?!\d)")
_YEARS = range(1000, 2100)


def asks_for(question: str, number: Number) -> bool:
    """Whether a question can be about a number of the response."""
    kind = number.kind
    if kind in (Kind.PERCENT, Kind.PERCENTAGE_POINT):
        others = (_HOW_MANY, _WHAT_YEAR, _WHAT_TIME)
        asks_otherwise = any(other.search(question) for other in others) or bool(_units(question))
        return _SHARE.search(question) is not None or not asks_otherwise
    if _WHAT_SHARE.search(question):
        return kind in (Kind.RATIO, Kind.IDENTIFIER)
    how_many = _HOW_MANY.search(question) is not None
    if number.is_calendar:
        return not how_many or any(unit.is_calendar for unit in _units(question))
    if _WHAT_YEAR.search(question):
        return kind not in _MEASURED and kind is not Kind.MONEY and abs(number.value) < _LAST_YEAR
    if _WHAT_TIME.search(question):
        return kind is Kind.COUNT and abs(number.value) <= _LAST_HOUR
    if how_many and kind is Kind.MONEY:
        return bool(_MONEY.search(question)) or any(unit.kind is Kind.MONEY for unit in _units(question))
    if how_many and kind in _MEASURED:
        return any(unit.dimension == number.dimension for unit in _units(question))
    return True


@lru_cache(maxsize=512)
def _units(question: str) -> tuple[Number, ...]:
    """The units and currencies that a question names, each as the two of it ("2 euros")."""
    words = _WORD.findall(question)
    found = map(_two_of, [*words, *(f"{a} {b}" for a, b in pairwise(words))])
    return tuple(number for number in found if number is not None)


@lru_cache(maxsize=4096)
def _two_of(word: str) -> Number | None:
    number = parse_number(f"{word}2" if word in "$\u20ac\u00a3\u00a5" else f"2 {word}")
    return None if number is None or number.kind is Kind.COUNT else number


def gives_away(text: str, number: Number) -> bool:
    """Whether a text holds the value of a number, or of a part of it, in any writing."""
    values = {value for atom in number.atoms for reading in atom.readings for value in reading}
    # The last two digits of a year, which only an apostrophe tells from another number.
    short_years = {("year", value % _HUNDRED) for value in values if value in _YEARS}
    return not shown_in(text).isdisjoint(shown_by([number]) | short_years)


@lru_cache(maxsize=1024)
def shown_in(text: str) -> frozenset[Hashable]:
    """All that the numbers of a text show."""
    years = {("year", Decimal(match[1])) for match in _SHORT_YEAR.finditer(text)}
    return frozenset(shown_by(all_numbers(text)) | years)


def shown_by(numbers: Iterable[Number]) -> set[Hashable]:
    """The values of numbers and of their parts: as written, in base units, as shares."""
    numbers = tuple(numbers)
    shown: set[Hashable] = {writing.value for number in numbers for writing in multiples(number)}
    shares = (share_of(number) for number in numbers if number.kind is Kind.RATIO)
    shown.update(("share", share) for share in shares if share is not None)  # "three in four"
    for atom in (atom for number in numbers for atom in number.atoms):
        for value in (value for reading in atom.readings for value in reading):
            if not value and atom.kind in (Kind.DATE, Kind.PERIOD):
                continue  # what is not written
            shown.add(value)
            if atom.dimension:
                shown.add((atom.dimension, in_base_units(value, atom.unit)))
            if atom.kind is Kind.PERCENT:
                shown.add(("share", value / _HUNDRED))
            elif not atom.unit and 0 < abs(value) < 1:
                shown.add(("share", value))
    return shown

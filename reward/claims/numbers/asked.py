"""Whether a question can be about a number: it may not ask for another kind or another unit.

"How many people came?" is not about the 12% of "12 people came, 12% of the members", whatever its bracket
says. Only what a question says plainly counts against it: "What did it reach?" can be about anything.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from reward.claims.numbers.find import parse_number
from reward.claims.numbers.model import Kind, Number

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
_SHARES = frozenset({Kind.PERCENT, Kind.PERCENTAGE_POINT})
_CALENDAR = frozenset({Kind.DATE, Kind.YEAR, Kind.PERIOD})
_MEASURED = frozenset({Kind.QUANTITY, Kind.DURATION})
_FIRST_YEAR, _LAST_HOUR = 1000, 24


def asks_for(question: str, number: Number) -> bool:
    """Whether a question can be about a number of the response."""
    if number.kind in _SHARES:
        return _SHARE.search(question) is not None or not _asks_otherwise(question)
    if _WHAT_SHARE.search(question):
        return number.kind in (Kind.RATIO, Kind.IDENTIFIER)
    if number.kind in _CALENDAR or number.kind is Kind.TIME:
        return not (_HOW_MANY.search(question) and _names_no_unit(question))
    if _WHAT_YEAR.search(question):
        return number.kind not in _MEASURED | {Kind.MONEY} and abs(number.value) < 3 * _FIRST_YEAR
    if _WHAT_TIME.search(question):
        return number.kind is Kind.COUNT and abs(number.value) <= _LAST_HOUR
    if not _HOW_MANY.search(question):
        return True
    if number.kind is Kind.MONEY:
        return bool(_MONEY.search(question)) or any(u.kind is Kind.MONEY for u in _units(question))
    if number.kind in _MEASURED:
        return any(u.dimension == number.dimension for u in _units(question))
    return True


def _asks_otherwise(question: str) -> bool:
    """Whether a question that names no share asks for something else by its words."""
    return any(p.search(question) for p in (_HOW_MANY, _WHAT_YEAR, _WHAT_TIME)) or bool(_units(question))


def _names_no_unit(question: str) -> bool:
    return not any(unit.kind in _CALENDAR or unit.kind is Kind.TIME for unit in _units(question))


@lru_cache(maxsize=512)
def _units(question: str) -> tuple[Number, ...]:
    """The units and currencies that a question names, each as the two of it ("2 euros")."""
    words = _WORD.findall(question)
    pairs = [f"{a} {b}" for a, b in pairwise(words)]
    found = (_two_of(word) for word in [*words, *pairs])
    return tuple(number for number in found if number is not None)


@lru_cache(maxsize=4096)
def _two_of(word: str) -> Number | None:
    number = parse_number(f"{word}2" if word in "$\u20ac\u00a3\u00a5" else f"2 {word}")
    return None if number is None or number.kind is Kind.COUNT else number

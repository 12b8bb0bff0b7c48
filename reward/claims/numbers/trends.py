"""Whether a number is a rise or a fall, a profit or a loss, by the words right beside it.

"Fell by 3%", "a fall in sales of 3%", "a 3% fall", "fell to 45", "3% down on"; "a net loss of $27 million". A
rise says nothing of a fall of the same size, and a fall of 3% is a change of -3%. Comparisons ("3% more than") are no trends: of two things that
are compared either may be the subject, so that "A is 5 cm taller" and "B is 5 cm shorter" can both be true.
What was gained or lost is one for money only, as a seat that one party lost another one gained.
"""

from __future__ import annotations

import re

from reward.claims.numbers.model import Kind, Number, changed
from reward.claims.numbers.vocabulary import TABLES, by_word

_WORDS = TABLES["trends"]
_MOVES = by_word(_WORDS["moves"])
_CHANGES = by_word(_WORDS["changes"])
_BALANCES = by_word(_WORDS["balances"])
_SIDES = by_word(_WORDS["sides"])
_BEFORE_AMOUNTS = frozenset(_WORDS["before_amounts"].split())
_JOINING = frozenset(_WORDS["joining"].split())
_ADJECTIVES = frozenset(_WORDS["adjectives"].split())
_OPPOSITE = {"rise": "fall", "fall": "rise", "profit": "loss", "loss": "profit"}
_DOWN = ("fall", "loss")
MINUS = "minus"  # the trend of a negative number that is written without its sign
_SIGNED = frozenset({Kind.PERCENT, Kind.PERCENTAGE_POINT, Kind.MONEY})
_KINDS = frozenset({Kind.COUNT, Kind.QUANTITY, Kind.PERCENT, Kind.PERCENTAGE_POINT, Kind.MONEY, Kind.ORDINAL})
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_CLAUSE_END = re.compile(r"[.,;:!?()\n\d]")
_BEHIND_SIDES = (" on ", " from ", " year")
_REACH = 64  # characters
_MOST_BETWEEN = 5  # words from a change to its "of"


def trend_of(text: str, number: Number) -> str:
    """ "rise", "fall", "profit" or "loss"; empty where the words beside a number say none."""
    if number.kind not in _KINDS:
        return ""
    before = _CLAUSE_END.split(text[max(0, number.start - _REACH) : number.start])[-1]
    return _said_before(_words(before), number.kind) or _said_behind(text, number)


def are_opposed(claimed: Number, found: Number) -> bool:
    """Whether one is a rise and the other a fall, or one a profit and the other a loss."""
    if claimed.trend == MINUS:
        return found.trend not in _DOWN
    return bool(claimed.trend) and _OPPOSITE[claimed.trend] == found.trend


def in_other_sign(number: Number) -> Number | None:
    """A change of -3% as a fall of 3%, which `MINUS` asks for, and a fall of 3% as a change of -3%."""
    if number.kind not in _SIGNED or number.parts or len(number.readings) > 1:
        return None
    if number.value < 0 or number.trend in _DOWN:
        return changed(number, readings=((-number.value,),), trend=MINUS if number.value < 0 else "")
    return None


def _said_before(words: list[str], kind: Kind) -> str:
    """From the last word on: "fell", "fell sharply by", "a fall in sales of", "loss for the year was"."""
    while words and (words[-1] in _BEFORE_AMOUNTS or words[-1].endswith("ly")):
        words.pop()
    if not words:
        return ""
    if (move := _MOVES.get(words[-1])) or (move := _SIDES.get(words[-1])):
        return move
    if words[-1] not in _JOINING:
        return ""
    for word in reversed(words[-_MOST_BETWEEN - 2 : -1]):
        if words[-1] == "of" and (change := _CHANGES.get(word)):
            return change
        if kind is Kind.MONEY and (balance := _BALANCES.get(word)):
            return balance
    return ""


def _said_behind(text: str, number: Number) -> str:
    """From the first word on: "3% fall", "$27 million net loss", "3% down on"."""
    for match in _WORD.finditer(text, number.end, number.end + _REACH):
        between = text[number.end if match.start() == number.end + 1 else match.start() - 1 : match.start()]
        word = match[0].lower()
        if between not in (" ", "-", "\u00a0"):
            return ""
        if word in _SIDES and text.startswith(_BEHIND_SIDES, match.end()):
            return _SIDES[word]
        if word not in _ADJECTIVES:
            balance = _BALANCES.get(word, "") if number.kind is Kind.MONEY else ""
            return _CHANGES.get(word, "") or balance
    return ""


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]

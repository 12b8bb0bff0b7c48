"""What a response says of a number that it worked out: "4,500 more than", "rose by 4,500", "twice as many".

A relation has a sign: the number that is spoken of, or the later one, is the greater (1) or the smaller (-1)
of the two; 0 says only that they are so far apart. Who is ahead by a time has the smaller one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from reward.claims.numbers.model import Kind, Number
from reward.claims.numbers.vocabulary import TABLES

_TABLE = {name: words.split() for name, words in TABLES["relations"].items()}
_UP, _DOWN = 1, -1
_NOT_EXACT = (
    r"(?:about |around |some |nearly |almost |over |more than |roughly |rund |fast |casi |près de )?$"
)


def _any_of(*names: str) -> str:
    return "|".join(word.replace("_", " ") for name in names for word in _TABLE[name])


_BEHIND = re.compile(
    rf" (?:[^\W\d_]+ ){{0,3}}?(?:(?P<up>{_any_of('greater')})|(?P<down>{_any_of('smaller')})"
    rf"|(?P<late>{_any_of('later')})|(?P<early>{_any_of('earlier')})|(?P<apart>apart|difference|gap))\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    rf"\b(?:(?:(?P<up>{_any_of('rose')})|(?P<down>{_any_of('fell')}))(?: [^\W\d_]+){{0,4}}"
    rf"|(?:(?P<ahead>{_any_of('led')}|{_any_of('greater')})|(?P<under>undercuts?|{_any_of('smaller')}))"
    rf"(?: [^\W\d_]+){{0,5}} (?:by|of|um|de|en)"
    rf"|(?P<apart>{_any_of('apart')})(?: [^\W\d_]+){{0,10}})(?: by| of| um| de| en)? {_NOT_EXACT}",
    re.IGNORECASE,
)
_LASTED = re.compile(rf"\b(?:{_any_of('lasted')}) {_NOT_EXACT}", re.IGNORECASE)
_TOGETHER = re.compile(rf"\b(?:{_any_of('together')})\b", re.IGNORECASE)
_MULTIPLIED = re.compile(r"(?:ing|l?ed|fold)$", re.IGNORECASE)  # "doubled", "tripling", "threefold"


class Relation(NamedTuple):
    """What a number is said to be of two others; with neither a sign nor a sum it is said to be nothing."""

    sign: int | None
    is_ratio: bool
    is_sum: bool
    is_move: bool = False  # from an earlier number to a later one
    of_times: int = 1  # the sign is turned round by -1 where times are compared

    @property
    def is_none(self) -> bool:
        """Whether the response relates the number to no others."""
        return self.sign is None and not self.is_sum


def is_ratio(number: Number) -> bool:
    """Whether a number says how many times as much something is: "twice", "half"."""
    return number.unit == "times" or (number.kind is Kind.COUNT and 0 < number.value < 1 and not number.parts)


def relation_of(number: Number, response: str, low: int, high: int) -> Relation:
    """What the sentence `response[low:high]` says of a number that is in it."""
    together = _TOGETHER.search(response, low, high) is not None
    behind = _BEHIND.match(response, number.end, high)
    before = _BEFORE.search(response, low, number.start)
    if is_ratio(number):
        is_move = bool(number.trend) or _MULTIPLIED.search(response, number.start, number.end) is not None
        is_less = number.value < 1 or (behind is not None and bool(behind["down"] or behind["early"]))
        return Relation(_DOWN if is_less else _UP, True, False, is_move)
    if number.kind is Kind.DURATION and _LASTED.search(response, low, number.start):
        return Relation(0, False, together)
    if behind is not None and not behind["apart"]:
        sign = _UP if behind["up"] or behind["late"] else _DOWN
        return Relation(sign, False, together)
    if before is not None and not before["apart"]:
        is_ahead = before["ahead"] is not None or before["under"] is not None
        sign = _DOWN if before["down"] or before["under"] else _UP
        return Relation(sign, False, together, not is_ahead, _DOWN if is_ahead else _UP)
    return Relation(None if before is None and behind is None else 0, False, together)

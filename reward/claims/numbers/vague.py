"""Amounts in words without a definite value: "a couple of thousand euros", "several hundred", "tens of
thousands".

A couple of thousand is about two thousand, some hundred about a hundred, and "hundred people" a hundred
without its article: these are numbers (`about_at`). The others are identifiers (`vague_amounts`): nobody
can say which number they are, so they agree with the same words only, and must not be passed over where an
answer states an amount. "Dozens of restaurants" and "hundreds of people" are left alone: no document
decides them, and answers say them of what documents list. They count where a unit or a currency makes an
amount of them ("millions of dollars"), or another scale ("tens of thousands").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from reward.claims.numbers.words import SCALES
from reward.claims.numbers.digits import Digits
from reward.claims.numbers.measure import with_unit
from reward.claims.numbers.model import Kind, Number, changed
from reward.claims.numbers.names import UNWRITTEN, identifier
from reward.claims.numbers.vocabulary import SPACE

_LARGE = "thousand|million|billion|trillion"
_SCALE = rf"hundred|{_LARGE}|dozen|lakh|crore"
_GROUPS = "tens|dozens|scores|hundreds|thousands|millions|billions|trillions"
# The start pattern of the search has this one, which is read in lower case.
ABOUT = (
    rf"(?:(?:(?:an?{SPACE})?couple{SPACE}(?:of{SPACE})?|some{SPACE})(?:hundred{SPACE}(?={_LARGE}))?(?:{_SCALE})"
    rf"|(?:hundred|thousand|dozen)(?={SPACE}(?:[a-z]{{3,}}s|people|men|women|children)(?![^\W_])))(?![^\W_])"
)
_VAGUE = re.compile(
    rf"""
    (?<![^\W_])(?:
        (?:an?{SPACE}(?:good{SPACE}|mere{SPACE})?)?(?:few|several|many){SPACE}(?:of{SPACE})?
            (?:hundred{SPACE}(?={_LARGE}))?(?:{_SCALE})s?
      | (?P<groups>{_GROUPS}){SPACE}(?:of|upon)(?:{SPACE}(?P<second>{_GROUPS}))?
    )(?![^\W_])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HINTS = (
    "hundred",
    "thousand",
    "million",
    "billion",
    "trillion",
    "dozen",
    "tens of",
    "scores of",
    "lakh",
    "crore",
)
_PER = re.compile(rf"(?<![^\W_])(?:per|each|every|few|several|many){SPACE}$", re.IGNORECASE)
_REACH = 10
_ONE = Digits(Decimal(1), Decimal(1))


def about_at(text: str, start: int, end: int) -> Number | None:
    """The number of `text[start:end]`, which matches `ABOUT`, with its unit."""
    words = text[start:end].lower().split()
    if len(words) == 1 and _PER.search(text, max(0, start - _REACH), start):
        return None
    scale = Decimal(1)
    for word in words:
        scale *= Decimal(12) if word == "dozen" else Decimal(10) ** SCALES.get(word, 0)
    digits = Digits(scale * 2 if "couple" in words else scale, Decimal(1) if len(words) == 1 else scale)
    number = with_unit(text, start, end, digits)
    return changed(number, approximate=len(words) > 1)


def vague_amounts(text: str) -> Iterator[Number]:
    """The amounts of a text that no value can be given, from left to right."""
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):
        return
    for match in _VAGUE.finditer(text):
        start, end = match.start(), match.end()
        if match["groups"] is None or match["second"]:
            yield identifier(text, start, end, value=UNWRITTEN)
        elif (
            amount := with_unit(text, start, end, _ONE)
        ).kind is not Kind.COUNT:  # the unit stands behind "of"
            yield identifier(text, start, amount.end, value=UNWRITTEN)

"""What a bare number counts: the words right behind it.

"45 patients", "12 of the 40 samples" and "two nurses" count things; "45 in all" and "rose 12 to 15" do not
say what. A number of things is never taken for a percentage, an amount of money or a rank.
"""

from __future__ import annotations

import re

from reward.claims.numbers.model import Kind, Number

_OF = r"(?:of (?:the |its |his |her |their |our |all |these |those |\d+ )*)?"
_BEHIND = re.compile(rf"[ \u00a0-]{_OF}([a-z]{{3,}})(?: ([a-z]{{3,}}))?")
_NO_THINGS = frozenset(
    re.findall(
        r"\w+",
        "and but for from with than the was were are has have had which who that when while where "
        "after before since until till into onto about over under per percent more less extra "
        "additional further full whole entire consecutive straight long short business working "
        "calendar solid other million billion thousand hundred through between during among "
        "against because percentage pct francs crowns pesos dinars rupees kroner kronor",
    )
)
_COUNTED = (Kind.COUNT, Kind.ORDINAL)
_RATED = (Kind.MONEY, Kind.COUNT, Kind.QUANTITY)
_RATE = re.compile(
    r"(?: of \w+)?[ \u00a0]?(?:per|a|an|each|every|/)[ \u00a0]?"
    r"(second|minute|hour|day|night|week|month|quarter|year|person|head|unit)s?(?![^\W_])",
    re.IGNORECASE,
)
_STEM = 4  # characters that words of one family share


def rate_behind(text: str, number: Number) -> str:
    """What an amount is for: "month" of "$40 per month"; empty without it."""
    if number.kind not in _RATED:
        return ""
    behind = _RATE.match(text, number.end)
    return behind[1].lower().removesuffix("s") if behind else ""


def things_behind(text: str, number: Number) -> frozenset[str]:
    """The first letters of the one or two words that say what a number counts; empty when none do."""
    behind = _BEHIND.match(text, number.end) if number.kind in _COUNTED else None
    if behind is None or behind[1] in _NO_THINGS:
        return frozenset()
    return frozenset(word[:_STEM] for word in behind.groups() if word and word not in _NO_THINGS)

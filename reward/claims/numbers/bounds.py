"""The words around a number that bound it, blur it, or say what it counts.

"Over 270", "5 or more", "5+"; "about 500", "or so"; "$40 per month"; "45 patients", "12 of the 40 samples",
"two nurses". "45 in all" and "rose 12 to 15" do not say what they count. A number of things is never taken
for a percentage, an amount of money or a rank.
"""

from __future__ import annotations

import re

from reward.claims.numbers.model import Form, Kind, Number, changed
from reward.claims.numbers.vocabulary import SPACE, TABLES

_THAN_MORE = "more|greater|higher|larger|longer|older|bigger|heavier|taller|better|further|farther|later"
_THAN_LESS = "less|fewer|lower|smaller|shorter|younger|lighter|earlier"
_JUST = rf"(?:(?:just|well|slightly){SPACE})?"
_BEFORE = re.compile(
    rf"""
    (?: (?<![^\W_]) (?:
        (?P<least> at{SPACE}least | (?:no|not){SPACE}(?:{_THAN_LESS}){SPACE}than
          | (?:a{SPACE})?minimum{SPACE}of | min\.? )
      | (?P<most> at{SPACE}most | up{SPACE}to | (?:no|not){SPACE}(?:{_THAN_MORE}){SPACE}than
          | (?:a{SPACE})?maximum{SPACE}of | max\.? | as{SPACE}(?:many|much){SPACE}as )
      | (?P<more> {_JUST}(?:(?:{_THAN_MORE}){SPACE}than|over|above) | exceeding | in{SPACE}excess{SPACE}of
          | upwards{SPACE}of )
      | (?P<less> {_JUST}(?:(?:{_THAN_LESS}){SPACE}than|under|below) )
      | (?P<about> about | around | approximately | approx\.? | roughly | nearly | almost | some | circa
          | ca?\. | close{SPACE}to | near | (?:an{SPACE})?estimated )
      ) {SPACE}
    | (?P<sign_least>≥|>=) {SPACE}? | (?P<sign_most>≤|<=) {SPACE}? | (?P<sign_more>(?<![-=<>])>) {SPACE}?
    | (?P<sign_less>(?<![-=<>])<) {SPACE}? | (?P<sign_about>[~≈\u223c]) {SPACE}?
    )$
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LAST_WORDS = frozenset((
    "least", "than", "of", "min", "most", "to", "max", "as", "over", "above", "exceeding", "under", "below",
    "about", "around", "approximately", "approx", "roughly", "nearly", "almost", "some", "circa", "c", "ca",
    "near", "estimated",
))  # fmt: skip
_SIGNS = frozenset(">≥<≤=~≈\u223c")
_AFTER = re.compile(
    rf"""
    (?P<plus>\+(?![\d=]|{SPACE}\d)) | -plus\b
  | {SPACE}(?:or|and){SPACE}
      (?: more|above|over|older|higher|greater|longer|up|upwards?|beyond|better|later
        | (?P<most>less|fewer|under|below|lower|younger|shorter|earlier) )
      (?![^\W_]) (?!{SPACE}(?:than|to)\b)
  | {SPACE}or{SPACE}(?P<so>so)(?![^\W_])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FORMS = {"least": Form.AT_LEAST, "most": Form.AT_MOST, "more": Form.MORE_THAN, "less": Form.LESS_THAN}
_SHORT = ("nearly", "almost")
_LONGEST_BEFORE = 28
_RATED = (Kind.MONEY, Kind.COUNT, Kind.QUANTITY)
_RATE = re.compile(
    r"(?: of \w+)?[ \u00a0]?(?:per|a|an|each|every|/)[ \u00a0]?"
    r"(second|minute|hour|day|night|week|month|quarter|year|person|head|unit)s?(?![^\W_])",
    re.IGNORECASE,
)
_COUNTED = (Kind.COUNT, Kind.ORDINAL)
_OF = r"(?:of (?:the |its |his |her |their |our |all |these |those |\d+ )*)?"
_THINGS = re.compile(rf"[ \u00a0-]{_OF}([a-z]{{3,}})(?: ([a-z]{{3,}}))?")
_NO_THINGS = frozenset(TABLES["things"]["none"].split())
_STEM = 4  # characters that words of one family share


def bounded(text: str, number: Number, low: int) -> Number:
    """The number with its bound or approximator; the words for it begin at `low` or later."""
    if number.kind is Kind.IDENTIFIER:
        return number
    number = _after(text, number)
    for _ in range(2):  # "at least about 50"
        if not _may_stand_before(text, number.start, low):
            break
        match = _BEFORE.search(text, max(low, number.start - _LONGEST_BEFORE), number.start)
        if match is None or _is_pair(text, match, low):
            break
        number = _before(number, match)
    return number


def _is_pair(text: str, match: re.Match[str], low: int) -> bool:
    """Whether "over" stands between two numbers, as in a blood pressure of "120 over 80"."""
    word = match[0].strip().casefold()
    return word == "over" and 0 < low == match.start() - 1 and text[low - 1].isdigit()


def _may_stand_before(text: str, start: int, low: int) -> bool:
    """A quick look at the last word, for the sake of speed."""
    if start <= low:
        return False
    if not _SIGNS.isdisjoint(text[max(low, start - 2) : start]):
        return True
    words = text[max(low, start - 16) : start].rsplit(None, 1)
    return bool(words) and words[-1].casefold().rstrip(".") in _LAST_WORDS


def _before(number: Number, match: re.Match[str]) -> Number:
    name = (match.lastgroup or "").removeprefix("sign_")
    if name == "about":
        is_short = number.is_short or match[0].split()[0].lower() in _SHORT
        return changed(number, approximate=True, is_short=is_short, start=match.start())
    if number.form is not Form.EXACT:
        return number
    return changed(number, form=_FORMS[name], start=match.start())


def _after(text: str, number: Number) -> Number:
    after = text[number.end : number.end + 1]
    if after not in ("+", "-", " ", "\u00a0") or (
        after == " " and text[number.end + 1 : number.end + 2] not in ("o", "O", "a", "A")
    ):
        return number
    match = _AFTER.match(text, number.end)
    if match is None or number.form is not Form.EXACT or number.kind is Kind.RATIO:
        return number
    if match["so"]:
        return changed(number, approximate=True, end=match.end())
    form = Form.AT_MOST if match["most"] else Form.AT_LEAST
    return changed(number, form=form, end=match.end(), is_plus=match["plus"] is not None)


def rate_behind(text: str, number: Number) -> str:
    """What an amount is for: "month" of "$40 per month"; empty without it."""
    behind = _RATE.match(text, number.end) if number.kind in _RATED else None
    return behind[1].lower().removesuffix("s") if behind else ""


def things_behind(text: str, number: Number) -> frozenset[str]:
    """The first letters of the one or two words that say what a number counts; empty when none do."""
    behind = _THINGS.match(text, number.end) if number.kind in _COUNTED else None
    if behind is None or behind[1] in _NO_THINGS:
        return frozenset()
    return frozenset(word[:_STEM] for word in behind.groups() if word and word not in _NO_THINGS)

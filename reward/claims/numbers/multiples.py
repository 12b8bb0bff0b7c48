"""Multiples in one word, and decades in words: "twice", "tripled", "tenfold", "the nineties", "eighteen
hundreds".

A multiple has the unit "times", so "twice" equals "two times" and "2x", and is no bare 2. Words that are
often something else need their context: "double" a verb's or a determiner's ("to double", "double the
price", not "a double room"), "halved" a subject's ("prices halved to", not "halved tomatoes"). "Once" is no
multiple, nor "once or twice".
"""

from __future__ import annotations

import re
from decimal import Decimal

from reward.claims.numbers.words import CARDINALS, SCALES
from reward.claims.numbers.model import Kind, Number, years_of

_VERBS = {"doubl": 2, "tripl": 3, "trebl": 3, "quadrupl": 4, "quintupl": 5, "halv": 0}
_FOLD = {w: n for w, n in CARDINALS.items() if n > 1} | {"hundred": 100, "thousand": 1000}
MULTIPLES = (
    rf"(?:twice|thrice|(?:{'|'.join(_VERBS)})(?:e[ds]?|ing)"
    rf"|(?:{'|'.join(sorted(_FOLD, key=len, reverse=True))})fold)"
    r"(?![^\W_])"
)
_TENS = {w[:-1] + "ies": n for w, n in CARDINALS.items() if n >= 20}
_CENTURIES = ("sixteen", "seventeen", "eighteen", "nineteen", "twenty")
DECADES = rf"(?:(?:{'|'.join(_CENTURIES)})[ -](?:{'|'.join(_TENS)}|hundreds)|{'|'.join(_TENS)})(?![^\W_])"
_SMALL = sorted((w for w, n in CARDINALS.items() if 0 < n < 10), key=len, reverse=True)
_LARGE = [w for w, n in CARDINALS.items() if n >= 20]
JOINED = (
    rf"(?:(?:{'|'.join(_LARGE)})(?:{'|'.join(_SMALL)})"
    rf"|(?:{'|'.join(sorted((w for w, n in CARDINALS.items() if n), key=len, reverse=True))})"
    r"(?:hundred|thousand))"
    r"(?![^\W_])"
)
# The first words of what the three patterns match.
MULTIPLE_WORDS = frozenset({
    "twice", "thrice", *(w + "fold" for w in _FOLD),
    *(stem + ending for stem in _VERBS for ending in ("e", "ed", "es", "ing")),
})  # fmt: skip
DECADE_WORDS = frozenset({*_CENTURIES, *_TENS})
JOINED_WORDS = frozenset({
    *(large + small for large in _LARGE for small in _SMALL),
    *(word + scale for word, n in CARDINALS.items() if n for scale in ("hundred", "thousand")),
})  # fmt: skip
_JOINT = re.compile(rf"({'|'.join(sorted(CARDINALS, key=len, reverse=True))})(.+)", re.IGNORECASE)
_NO_AMOUNT = re.compile(r"(?<![^\W_])(?:once or|think|thinks|thought|thinking) $", re.IGNORECASE)
_OBJECT = r"(?:the|its|their|his|her|our|your|my|that|those|these|this|what|as (?:many|much|fast|large|big))"
_BEHIND = re.compile(rf" (?:{_OBJECT}|of)(?![^\W_])", re.IGNORECASE)
_BEHIND_A_VERB = re.compile(r" ?(?:[.,;:)!?]|$)| (?:in|by|from|to|within|since|between|during|every|over)\b")
_BEFORE_A_VERB = re.compile(
    r"(?<![^\W_])(?:to|will|would|could|may|might|can|should|than|nearly|almost|about|roughly|not|even) $",
    re.IGNORECASE,
)
_HAS_SUBJECT = re.compile(
    r"(?<![^\W_])(?:was|were|been|has|have|had|than|nearly|almost|about) $", re.IGNORECASE
)
_HALVED = re.compile(r" (?:the|its|their|his|her|our|from|to|in|by|since|between)(?![^\W_])", re.IGNORECASE)
_OTHER_VERB = re.compile(r" (?:over|up|down|back|as|off)(?![^\W_])", re.IGNORECASE)
_IS = re.compile(r"(?<![^\W_])(?:is|are|was|were) $", re.IGNORECASE)
_REACH = 12
_THE = re.compile(
    r"(?<![^\W_])(?:the|mid|early|late)[ -](?:(?:early|mid|late)[ -])?['\u2018\u2019]?$", re.IGNORECASE
)
_OWN = re.compile(
    r"(?<![^\W_])(?:his|her|their|my|your|our|its)[ ](?:(?:early|mid|late)[ -])?$", re.IGNORECASE
)


def multiple_at(text: str, start: int, end: int) -> Number | None:
    """The multiple that the word `text[start:end]`, one of `MULTIPLES`, says; None when it says none."""
    word = text[start:end].lower()
    if word.endswith("fold"):
        plain = _IS.search(text, max(0, start - _REACH), start) and not text.startswith(" increase", end)
        return None if plain else _times(_FOLD[word.removesuffix("fold")], start, end)
    if word in ("twice", "thrice"):
        idiom = _NO_AMOUNT.search(text, max(0, start - _REACH), start)
        return None if idiom else _times(2 if word == "twice" else 3, start, end)
    stem = next(stem for stem in _VERBS if word.startswith(stem))
    return _times(_VERBS[stem], start, end) if _multiplies(text, word, start, end) else None


def _multiplies(text: str, word: str, start: int, end: int) -> bool:
    """Whether a verb's form stands where it multiplies something."""
    before = max(0, start - _REACH)
    if word == "halved":
        return bool(_HALVED.match(text, end) or _HAS_SUBJECT.search(text, before, start))
    if word.endswith("ed"):
        return text[end : end + 1] != "-" and not _OTHER_VERB.match(text, end)
    if _BEHIND.match(text, end):
        return True
    is_verb = word.endswith("e") and _BEFORE_A_VERB.search(text, before, start) is not None
    return is_verb and _BEHIND_A_VERB.match(text, end) is not None


def _times(value: int, start: int, end: int) -> Number:
    exact = Decimal(value) if value else Decimal("0.5")
    step = Decimal(1) if value else Decimal(0)
    return Number(((exact,),), Kind.QUANTITY, "times", "multiple", step=step, start=start, end=end)


def decade_at(text: str, start: int, end: int) -> Number | None:
    """The years of a decade or a century in words, or the ages in "his sixties"; None for neither."""
    century, _, last = text[start:end].lower().replace("-", " ").rpartition(" ")
    if century:
        first = 100 * CARDINALS[century]
        years = (first, first + 99) if last == "hundreds" else (first + _TENS[last], first + _TENS[last] + 9)
        return years_of(*years, start, end)
    first = _TENS[last]
    if _OWN.search(text, max(0, start - _REACH), start):
        return years_of(first, first + 9, start, end, kind=Kind.COUNT)
    if _THE.search(text, max(0, start - _REACH), start):
        return years_of(1900 + first, 1909 + first, start, end)
    return None


def joined_value(word: str) -> Decimal:
    """What two number words without a gap say: "twentyfive", "fourhundred"."""
    match = _JOINT.fullmatch(word)
    assert match is not None, f"no two number words: {word!r}"
    first, second = CARDINALS[match[1].lower()], match[2].lower()
    return Decimal(first * 10 ** SCALES[second] if second in SCALES else first + CARDINALS[second])

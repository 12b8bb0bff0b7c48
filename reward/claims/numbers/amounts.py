"""Words that are amounts and no cardinals: "twice", "tripled", "tenfold", "the nineties", "twentyfive", "a
couple of thousand euros", "tens of thousands".

A multiple has the unit "times", so "twice" equals "two times" and "2x", and is no bare 2. Words that are
often something else need their context: "double" a verb's or a determiner's ("to double", "double the
price", not "a double room"), "halved" a subject's ("prices halved to", not "halved tomatoes"). "Once" is no
multiple, nor "once or twice".

A couple of thousand is about two thousand, some hundred about a hundred, and "hundred people" a hundred
without its article (`about_at`). Others have no definite value (`vague_amounts`). They are identifiers,
agree with the same words only, and must not be passed over where an answer states an amount. "Dozens of
restaurants" and "hundreds of people" are left alone: no document decides them, and answers say them of what
documents list. They count where a unit or a currency makes an amount of them ("millions of dollars"), or
another scale ("tens of thousands").
"""

import re
from collections.abc import Iterator
from decimal import Decimal

from reward.claims.numbers.cardinal import CARDINALS, SCALES
from reward.claims.numbers.digits import Digits
from reward.claims.numbers.measure import with_unit
from reward.claims.numbers.model import Kind, Number, changed, years_of
from reward.claims.numbers.names import UNWRITTEN, identifier
from reward.claims.numbers.vocabulary import BEGIN, END, SPACE, either

_VERBS = {"doubl": 2, "tripl": 3, "trebl": 3, "quadrupl": 4, "quintupl": 5, "halv": 0}
_VERB_FORMS = {stem + end: n for stem, n in _VERBS.items() for end in ("e", "ed", "es", "ing")}
_FOLD = {w + "fold": n for w, n in CARDINALS.items() if n > 1} | {"hundredfold": 100, "thousandfold": 1000}
MULTIPLES = {"twice": 2, "thrice": 3} | _VERB_FORMS | _FOLD
JOINED = {
    large + small: m + n
    for large, m in CARDINALS.items()
    for small, n in CARDINALS.items()
    if m >= 20 and 0 < n < 10
} | {
    word + scale: n * 10 ** SCALES[scale]
    for word, n in CARDINALS.items()
    for scale in ("hundred", "thousand")
    if n
}
_TENS = {w[:-1] + "ies": n for w, n in CARDINALS.items() if n >= 20}
_CENTURIES = ("sixteen", "seventeen", "eighteen", "nineteen", "twenty")
DECADE_WORDS = (*_CENTURIES, *_TENS)
DECADES = rf"(?:{either(_CENTURIES)}[ -]{either((*_TENS, 'hundreds'))}|{either(_TENS)}){END}"
_LARGE = "thousand|million|billion|trillion"
_SCALE = rf"hundred|{_LARGE}|dozen|lakh|crore"
ABOUT = (
    rf"(?:(?:(?:an?{SPACE})?couple{SPACE}(?:of{SPACE})?|some{SPACE})(?:hundred{SPACE}(?={_LARGE}))?(?:{_SCALE})"
    rf"|(?:hundred|thousand|dozen)(?={SPACE}(?:[a-z]{{3,}}s|people|men|women|children){END})){END}"
)
_REACH = 12  # characters
_NO_AMOUNT = re.compile(rf"{BEGIN}(?:once or|think|thinks|thought|thinking) $", re.IGNORECASE)
_OBJECT = re.compile(
    r" (?:the|its|their|his|her|our|your|my|that|those|these|this|what|of|as (?:many|much|fast|large|big))"
    rf"{END}",
    re.IGNORECASE,
)
_BEHIND_A_VERB = re.compile(r" ?(?:[.,;:)!?]|$)| (?:in|by|from|to|within|since|between|during|every|over)\b")
_BEFORE_A_VERB = re.compile(
    rf"{BEGIN}(?:to|will|would|could|may|might|can|should|than|nearly|almost|about|roughly|not|even) $",
    re.IGNORECASE,
)
_HAS_SUBJECT = re.compile(rf"{BEGIN}(?:was|were|been|has|have|had|than|nearly|almost|about) $", re.IGNORECASE)
_HALVED = re.compile(
    rf" (?:the|its|their|his|her|our|from|to|in|by|since|between|over|within|during){END}", re.IGNORECASE
)
_LAST = re.compile(r"[.;!?]|$")
_SUBJECT_BEFORE = re.compile(r"(?:^|[.!?] )(?:[A-Z][\w-]*(?: [\w-]+){0,5}) $")  # "1 lemon, halved" has none
_OTHER_VERB = re.compile(rf"-| (?:over|up|down|back|as|off){END}", re.IGNORECASE)
_IS = re.compile(rf"{BEGIN}(?:is|are|was|were) $", re.IGNORECASE)
_THE = re.compile(
    rf"{BEGIN}(?:the|mid|early|late)[ -](?:(?:early|mid|late)[ -])?['\u2018\u2019]?$", re.IGNORECASE
)
_OWN = re.compile(rf"{BEGIN}(?:his|her|their|my|your|our|its)[ ](?:(?:early|mid|late)[ -])?$", re.IGNORECASE)
_PER = re.compile(rf"{BEGIN}(?:per|each|every|few|several|many){SPACE}$", re.IGNORECASE)
_GROUPS = "tens|dozens|scores|hundreds|thousands|millions|billions|trillions"
_VAGUE = re.compile(
    rf"""
    {BEGIN}(?:
        (?:an?{SPACE}(?:good{SPACE}|mere{SPACE})?)?(?:few|several|many){SPACE}(?:of{SPACE})?
            (?:hundred{SPACE}(?={_LARGE}))?(?:{_SCALE})s?
      | (?P<groups>{_GROUPS}){SPACE}(?:of|upon)(?:{SPACE}(?P<second>{_GROUPS}))?
    ){END}
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HINTS = (*_SCALE.split("|"), "tens of", "scores of")  # one of them is in any vague amount
_ONE = Decimal(1)


def multiple_at(text: str, start: int, end: int) -> Number | None:
    """The multiple that the word `text[start:end]`, one of `MULTIPLES`, says; None when it says none."""
    word = text[start:end].lower()
    before = max(0, start - _REACH)
    if word in _FOLD:
        is_none = bool(_IS.search(text, before, start)) and not text.startswith(" increase", end)
    elif word in _VERB_FORMS:
        is_none = not _multiplies(text, word, start, end)
    else:
        is_none = _NO_AMOUNT.search(text, before, start) is not None
    if is_none:
        return None
    value, step = (Decimal(MULTIPLES[word]), _ONE) if MULTIPLES[word] else (Decimal("0.5"), Decimal(0))
    multiple = Number(((value,),), Kind.QUANTITY, "times", "multiple", step=step, start=start, end=end)
    return multiple if word in ("twice", "thrice") else changed(multiple, trend="multiplied")


def _multiplies(text: str, word: str, start: int, end: int) -> bool:
    """Whether a verb's form is where it multiplies something."""
    before = max(0, start - _REACH)
    if word == "halved":
        is_last = _LAST.match(text, end) and _SUBJECT_BEFORE.search(text, before, start)  # "Profits halved."
        return bool(is_last or _HALVED.match(text, end) or _HAS_SUBJECT.search(text, before, start))
    if word.endswith("ed"):
        return not _OTHER_VERB.match(text, end)
    if _OBJECT.match(text, end):
        return True
    is_verb = word.endswith("e") and _BEFORE_A_VERB.search(text, before, start) is not None
    return is_verb and _BEHIND_A_VERB.match(text, end) is not None


def decade_at(text: str, start: int, end: int) -> Number | None:
    """The years of a decade or a century in words, or the ages in "his sixties"; None for neither."""
    century, _, last = text[start:end].lower().replace("-", " ").rpartition(" ")
    if century:
        first = 100 * CARDINALS[century] + _TENS.get(last, 0)
        return years_of(first, first + (9 if last in _TENS else 99), start, end)
    if _OWN.search(text, max(0, start - _REACH), start):
        return years_of(_TENS[last], _TENS[last] + 9, start, end, kind=Kind.COUNT)
    if _THE.search(text, max(0, start - _REACH), start):
        return years_of(1900 + _TENS[last], 1909 + _TENS[last], start, end)
    return None


def joined_at(text: str, start: int, end: int) -> Number:
    """Two number words without a gap, with their unit: "twentyfive", "fourhundred"."""
    return with_unit(text, start, end, Digits(Decimal(JOINED[text[start:end].lower()]), _ONE))


def about_at(text: str, start: int, end: int) -> Number | None:
    """The number of `text[start:end]`, which matches `ABOUT`, with its unit."""
    words = text[start:end].lower().split()
    if len(words) == 1 and _PER.search(text, max(0, start - _REACH), start):
        return None
    scale = _ONE
    for word in words:
        scale *= Decimal(12) if word == "dozen" else Decimal(10) ** SCALES.get(word, 0)
    digits = Digits(scale * 2 if "couple" in words else scale, _ONE if len(words) == 1 else scale)
    return changed(with_unit(text, start, end, digits), approximate=len(words) > 1)


def vague_amounts(text: str) -> Iterator[Number]:
    """The amounts of a text that no value can be given, from left to right."""
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):
        return
    for match in _VAGUE.finditer(text):
        start, end = match.span()
        if match["groups"] and not match["second"]:
            amount = with_unit(text, start, end, Digits(_ONE, _ONE))  # the unit follows "of"
            if amount.kind is Kind.COUNT:
                continue
            end = amount.end
        yield identifier(text, start, end, value=UNWRITTEN)

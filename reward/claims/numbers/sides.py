"""Whether a date is a birth or a death, before or after, early or late, by the words beside it.

"Born on 4 July", "Vera Miletić (1920 - 1944)", "until at least 2012", "before the end of May", "late 2015",
"before 2 pm". A denial may turn a side: "not after" is neither, and says only what "not before" does not.
"""

import re

from reward.claims.numbers.model import Form, Kind, Number, changed
from reward.claims.numbers.trends import Trend
from reward.claims.numbers.vocabulary import TABLES, by_word

SENTENCE_END = re.compile(r"[.!?;]\s|\n")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_REACH = 64  # characters
_CLAUSE = 120
_SIDE_OF_TIME = re.compile(
    r"\b(?:(?P<before>before|prior to|vor|avant|antes de(?: las?)?|prima del(?:le|l['\u2019])?|voor)"
    r"|after|nach|après|después de(?: las?)?|depois das?|dopo(?: le)?|na) $",
    re.IGNORECASE,
)
_LONGEST_SIDE = 20
_NOT_BEFORE = re.compile(r"(?:\b(?:not|never|cannot)|n['\u2019]t)(?: \w+){0,3} before $", re.IGNORECASE)
_AT_LEAST_UNTIL = re.compile(
    r"\b(?:(?:until|till|to) at least|at least (?:until|till|to))"
    r"(?: the (?:start|beginning|middle|end|close) of)? $",
    re.IGNORECASE,
)
_BEFORE_DATES = re.compile(
    r"\b(?:(?P<before>before|by|prior to|until|till|through)|(?P<until>until )?after|from|since|starting)"
    r"(?: the (?:start|beginning|middle|end|close) of)? $",
    re.IGNORECASE,
)
_DENIES = re.compile(
    r"\b(?:not|no(?!-)|none|never|cannot|nor|without|unless|until|refus\w*|reject\w*|clos\w*|expir\w*|late)\b"
    r"|n['\u2019]t\b",
    re.IGNORECASE,
)
_DENIES_TWICE = re.compile(r"\b(?:unless|until|without|except|only|but)\b", re.IGNORECASE)
_LAST_BEFORE_DATES = frozenset((
    *("before", "by", "to", "after", "least", "of", "early", "late", "mid", "mid-", "in"),
    *("until", "till", "through", "from", "since", "starting"),
))  # fmt: skip
_SIDE_BEHIND = re.compile(r",? at the (?:very )?(?P<side>latest|earliest)\b")
_PART = re.compile(
    r"\b(?:(early|mid|late)[- ](?:in )?|(?:the )?(start|beginning|middle|end|close) of )$", re.IGNORECASE
)
_PART_NAMES = by_word({"early": "early|start|beginning", "mid": "mid|middle", "late": "late|end|close"})
_LIFE_EVENTS = {
    word: event for event in ("birth", "death") for word in TABLES["things"]["events"][event].split("|")
}
_LIFE_END = re.compile(r"[;:!?()\n\d]|\.\s")
_DASH = "[-\u2010-\u2015\u2212]"
_OPENED = re.compile(r"[A-Z][^\W\d_]*[.,]? ?\(([^()]*)$")  # a parenthesis behind a name
_BEHIND_NAME = re.compile(r"[A-Z][^\W\d_]*[.,]? ?\((?:[^()\d;]*[;,] )?$")
_UNTIL = re.compile(rf"(?: in [^()\d;]{{2,60}}?)? ?{_DASH} ?(?=[^()\d]{{0,20}}\d)")
_SINCE = re.compile(rf"\d[^();]{{0,80}}? ?{_DASH} ?$")


def trend_of_date(text: str, number: Number) -> Trend:
    """What the words beside a date, a year or a time make of it."""
    if number.kind is Kind.TIME:
        side = _SIDE_OF_TIME.search(text, max(0, number.start - _LONGEST_SIDE), number.start)
        return Trend.NONE if side is None else Trend.BEFORE if side["before"] else Trend.AFTER
    return _life_event(text, number) or _side_of_date(text, number)


def lifespan(text: str, number: Number) -> Number:
    """ "(8 March 1920 - 7 September 1944)" behind a name, with a birth and a death as its parts."""
    is_span = number.kind in (Kind.DATE, Kind.YEAR) and number.form is Form.RANGE and len(number.parts) == 2
    if not is_span or _BEHIND_NAME.search(text[max(0, number.start - _REACH) : number.start]) is None:
        return number
    first, last = number.parts
    return changed(number, parts=(changed(first, trend=Trend.BIRTH), changed(last, trend=Trend.DEATH)))


def _life_event(text: str, number: Number) -> Trend:
    """Whether somebody was born or died on a day: "born on 4 July", "Vera Miletić (1920 - 1944)"."""
    if number.form is not Form.EXACT:
        return Trend.NONE
    before = text[max(0, number.start - _CLAUSE) : number.start]
    words = map(str.lower, _WORD.findall(_LIFE_END.split(before)[-1]))
    said = {_LIFE_EVENTS[word] for word in words if word in _LIFE_EVENTS}
    if said:
        return Trend(said.pop()) if len(said) == 1 else Trend.NONE
    opened = _OPENED.search(before)
    if opened is None:
        return Trend.NONE
    if not opened[1]:
        return Trend.BIRTH if _UNTIL.match(text, number.end) else Trend.NONE
    return Trend.DEATH if _SINCE.search(opened[1]) else Trend.NONE


def _side_of_date(text: str, number: Number) -> Trend:
    """Whether something is before or after a day, or early or late in a year.

    Neither before nor after where a denial may turn it ("not after"), or "by" a year.
    """
    if number.is_bound:  # "no earlier than 22 April"
        return Trend.AFTER if number.form in (Form.AT_LEAST, Form.MORE_THAN) else Trend.BEFORE
    if behind := _SIDE_BEHIND.match(text, number.end):
        return Trend.AT_LATEST if behind["side"] == "latest" else Trend.AFTER
    before = text[max(0, number.start - _REACH) : number.start]
    if before[-1:] not in (" ", "-") or last_word(before) not in _LAST_BEFORE_DATES:
        return Trend.NONE
    if _NOT_BEFORE.search(before):
        return Trend.AFTER
    if _AT_LEAST_UNTIL.search(before):
        return Trend.AT_LEAST_UNTIL
    side = _BEFORE_DATES.search(before)
    if side and not (number.kind is Kind.YEAR and side[0].lower().startswith("by")):
        sentence = SENTENCE_END.split(text[max(0, number.start - _CLAUSE) : number.start - len(side[0])])[-1]
        sentence += SENTENCE_END.split(text[number.end : number.end + _CLAUSE])[0]
        if _DENIES.search(sentence) and not side["until"]:  # "not until after" is after
            if _DENIES_TWICE.search(sentence):
                return Trend.NONE
            return Trend.NOT_BEFORE if side["before"] else Trend.NOT_AFTER
        return Trend.BEFORE if side["before"] else Trend.AFTER
    part = _PART.search(before) if number.form is Form.EXACT else None
    return Trend(_PART_NAMES[(part[1] or part[2]).lower()]) if part else Trend.NONE


def last_word(before: str) -> str:
    """The word before a number; most of these words show that it has no trend."""
    words = before.rsplit(maxsplit=1)
    return words[-1].lower().lstrip("([") if words and before[-1] in " \u00a0-" else ""

"""Whether a number is a rise or a fall, a profit or a loss, a height or a depth, by the words beside it.

"Fell by 3%", "a fall in sales of 3%", "a 3% fall", "closed 3% lower"; "fell to 45", "cut its rate to 5%"; "a
net loss of $27 million"; "84 m below sea level". A rise by so much says nothing of a fall by so much, nor of
a rise to so much, and a fall of 3% is a change of -3%. Comparisons ("3% more than") are no trends: of two
things that are compared either may be the subject, so that "A is 5 cm taller" and "B is 5 cm shorter" can
both be true. Profit and loss are of money only, as a seat that one party lost another one gained.
"""

import calendar
import re
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from itertools import permutations

from reward.claims.numbers.model import Form, Kind, Number, changed
from reward.claims.numbers.vocabulary import TABLES, by_word


class Trend(StrEnum):
    """What the words beside a number make of it."""

    RISE_BY = "rise by"
    RISE_TO = "rise to"
    RISE_FROM = "rise from"
    FALL_BY = "fall by"
    FALL_TO = "fall to"
    FALL_FROM = "fall from"
    UP = "up"  # "5%, up from 4%"
    DOWN = "down"
    STEADY = "steady"  # "unchanged at 8%"
    EARLIER = "earlier"  # "against 8% a year earlier"
    PROFIT = "profit"
    LOSS = "loss"
    ABOVE = "above"  # sea level, the average
    BELOW = "below"
    BEFORE = "before"  # a day, or ahead of a schedule
    AFTER = "after"
    NOT_BEFORE = "not before"  # "does not cover what was signed before 1996"
    NOT_AFTER = "not after"
    BIRTH = "birth"  # of somebody
    DEATH = "death"
    EARLY = "early"  # in a year or month
    MID = "mid"
    LATE = "late"
    AT_LEAST_UNTIL = "at least until"  # a day
    AT_LATEST = "at the latest"
    MORE_THAN = "more than"  # another thing
    LESS_THAN = "less than"
    MULTIPLIED = "multiplied"  # "tripled", and no "three times"
    AS_MULTIPLE = "as multiple"  # a rise by 200% as what is tripled
    PLUS = "plus"  # "+5%"
    EXACTLY = "exactly"  # so many, and neither about nor at least so many
    MINUS = "minus"  # a negative number that is written without its sign
    NONE = ""


_ONE_OF = (  # of each row no number can be two
    (Trend.RISE_BY, Trend.RISE_TO, Trend.RISE_FROM, Trend.FALL_BY, Trend.FALL_TO, Trend.FALL_FROM),
    *((Trend.PROFIT, Trend.LOSS), (Trend.ABOVE, Trend.BELOW), (Trend.BEFORE, Trend.AFTER)),
    *((Trend.NOT_BEFORE, Trend.NOT_AFTER), (Trend.AT_LATEST, Trend.AFTER)),
    (Trend.AT_LATEST, Trend.AT_LEAST_UNTIL),
    *((Trend.BIRTH, Trend.DEATH), (Trend.EARLY, Trend.MID, Trend.LATE)),
)
_LESS_OR_MORE = (
    *((Trend.ABOVE, Trend.FALL_BY), (Trend.BELOW, Trend.RISE_BY)),  # "3% above" and "3% less than"
    *((Trend.MORE_THAN, Trend.LESS_THAN), (Trend.MORE_THAN, Trend.FALL_BY), (Trend.LESS_THAN, Trend.RISE_BY)),
)
_SIGNS = ((Trend.PLUS, Trend.FALL_BY), (Trend.PLUS, Trend.LOSS))
_MOVED = (
    *((Trend.UP, Trend.DOWN), (Trend.UP, Trend.FALL_TO), (Trend.DOWN, Trend.RISE_TO)),
    *((Trend.UP, Trend.FALL_BY), (Trend.DOWN, Trend.RISE_BY)),
)
_DIRECTIONS = {
    **dict.fromkeys((Trend.RISE_BY, Trend.RISE_TO), Trend.UP),
    **dict.fromkeys((Trend.FALL_BY, Trend.FALL_TO), Trend.DOWN),
}
_UNMOVED = tuple((Trend.STEADY, one) for one in (Trend.UP, Trend.DOWN, Trend.RISE_TO, Trend.FALL_TO))
_STARTED = ((Trend.EARLIER, Trend.RISE_TO), (Trend.EARLIER, Trend.FALL_TO))
_OPPOSED = frozenset(
    pair
    for row in (*_ONE_OF, *_LESS_OR_MORE, *_SIGNS, *_MOVED, *_UNMOVED, *_STARTED)
    for pair in permutations(row, 2)
)
_EXACTLY = ("exactly", "precisely")
# The months of a year, and the days of a month, that can be called early, mid and late.
PARTS_OF_TIME = {
    Trend.EARLY: ((1, 6), (1, 15)),
    Trend.MID: ((3, 10), (7, 24)),
    Trend.LATE: ((7, 12), (16, 31)),
}
_DOWN = (Trend.FALL_BY, Trend.LOSS)
_SIGNED = frozenset({Kind.PERCENT, Kind.PERCENTAGE_POINT, Kind.MONEY})
_SHARES = (Kind.PERCENT, Kind.PERCENTAGE_POINT)
_SIGNED_DIMENSIONS = ("mass", "length", "pressure")  # a fall of 5 °C is no -5 °C

_WORDS = TABLES["trends"]
_INTRANSITIVE, _MOVING, _CHANGES, _SIDES, _BALANCES = (
    by_word(_WORDS[name]) for name in ("moves", "moving", "changes", "sides", "balances")
)
_BEFORE_AMOUNTS = frozenset(_WORDS["before_amounts"].split())
_BEFORE_SIDES = frozenset(_WORDS["before_sides"].split())
_JOINING = frozenset(_WORDS["joining"].split())
_ADJECTIVES = frozenset(_WORDS["adjectives"].split())
_KINDS = frozenset({Kind.COUNT, Kind.QUANTITY, Kind.PERCENT, Kind.PERCENTAGE_POINT, Kind.MONEY, Kind.ORDINAL})
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_MONEY = re.compile(r" (?:crowns|francs|pesos|dinars|rupees|kroner|kronor)\b")  # of which country nobody says
_CLAUSE_END = re.compile(r"[.,;:!?()\n\d]")
_SEA_LEVEL = re.compile(r"\b(above|below)\s(?:the\s)?(?:mean\s)?sea\slevel")
_SCHEDULE = re.compile(r" (?:(?P<early>early|ahead of (?:schedule|time))|late|behind (?:schedule|time))\b")
_PLAN = r"(?:budgeted|expected|planned|forecast|projected|estimated|anticipated|predicted|budget)\b"
_THAN_BEFORE = re.compile(
    r"(?: [a-z]+)? than (?:before|last|previously|today|now|at present|currently|in \d"
    rf"|in (?:{'|'.join(calendar.month_name[1:])})\b"
    r"|in an? (?:average|normal|typical)\b"
    r"|(?:\w+ ){1,3}(?:earlier|before|ago)\b"
    r"|(?:the|an?) (?:previous |prior )?(?:year|month|quarter|week)\b"
    r"|(?:its|the) predecessor\b|the \w+ (?:it|that it) replace[sd]"
    rf"|(?:had been |was |were |originally |first )*{_PLAN})"
)
_TO_PLAN = re.compile(
    r" (?:(?P<above>above|over)|below|under) (?:(?:the|its|their|his|her) )?(?:original )?"
    r"(?:budget|target|forecast|estimate|expectation|plan)s?\b"
)
_TO_LEVEL = re.compile(
    r" (?:(?P<above>above|over)|below|under) (?:(?:the|its|their|his|her|an?) )?(?:asking|guide|reserve|list"
    r"|market|average|normal|usual|mean|national|legal|maximum|minimum|previous|long-term)\b"
)
_NO_SIDE = (" than", " of", " the", " a ")  # behind "lower": of two that are compared, or the lower part
_PLANNED = re.compile(
    r" (?:(?P<early>earlier|sooner)|later) than (?:usual|normal|average|planned|scheduled|expected|last year"
    r"|in (?:\d{4}\b|(?:an? )?(?:average|normal|typical|previous|most) )|an? (?:average|normal|typical) )"
)
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
_SENTENCE_END = re.compile(r"[.!?;]\s|\n")
_LAST_BEFORE_DATES = frozenset((
    *("before", "by", "to", "after", "least", "of", "early", "late", "mid", "mid-", "in"),
    *("until", "till", "through", "from", "since", "starting"),
))  # fmt: skip
_SIDE_BEHIND = re.compile(r",? at the (?:very )?(?P<side>latest|earliest)\b")
_PART = re.compile(
    r"\b(?:(early|mid|late)[- ](?:in )?|(?:the )?(start|beginning|middle|end|close) of )$", re.IGNORECASE
)
_PART_NAMES = by_word({"early": "early|start|beginning", "mid": "mid|middle", "late": "late|end|close"})
_NO_MOVES = ("make", "makes", "made", "making", "take", "takes", "took", "taken", "taking")  # "made up 3%"
_FROM_TO = re.compile(r"\b((?:\w+ ){1,4})(?:from|by) [^;:!?\n]{1,40} to $")
_AMOUNT_TO = re.compile(
    r"\b((?:\w+ ){1,4})[$€£]?\d[\d.,]{0,12}(?:%| per ?cent| [a-z]+)? to $"
)  # "rose 12% to"
_TO = ("to", "auf", "à", "al", "naar", "para")
_LAST_WORDS = frozenset({"from", *_BEFORE_AMOUNTS, *_JOINING, *_INTRANSITIVE, *_SIDES})
_FIRST_WORDS = frozenset({*_ADJECTIVES, *_CHANGES, *_BALANCES, *_SIDES, "above", "below"})
_LIFE_EVENTS = {
    word: event for event in ("birth", "death") for word in TABLES["things"]["events"][event].split("|")
}
_LIFE_END = re.compile(r"[;:!?()\n\d]|\.\s")
_DASH = "[-\u2010-\u2015\u2212]"
_OPENED = re.compile(r"[A-Z][^\W\d_]*[.,]? ?\(([^()]*)$")  # a parenthesis behind a name
_BEHIND_NAME = re.compile(r"[A-Z][^\W\d_]*[.,]? ?\((?:[^()\d;]*[;,] )?$")
_UNTIL = re.compile(rf"(?: in [^()\d;]{{2,60}}?)? ?{_DASH} ?(?=[^()\d]{{0,20}}\d)")
_SINCE = re.compile(rf"\d[^();]{{0,80}}? ?{_DASH} ?$")
_LEVELS = ("above", "below")
_OF_LEVEL = re.compile(r"(?:just |well |slightly )?(?:above|below)\b", re.IGNORECASE)  # "fell below 5%"
_UNDER_LEVEL = re.compile(r"under\b")  # "dropped under 2.5 m", but no "rise of under 2.5 m"
_LEVEL_OF = {Trend.RISE_BY: Trend.RISE_TO, Trend.FALL_BY: Trend.FALL_TO}
_GAINS = by_word({"rise by": "gain|gains|gained|gaining|added", "fall by": "lose|loses|lost|losing|shed"})
# What one gains no other one loses, but for seats and votes.
_GAINED = re.compile(
    r" (?:[a-z]+ ){0,3}(?:point|subscriber|user|customer|member|job|follower|employee"
    r"|worker|resident|inhabitant|viewer|reader)s?\b"
)
_BEFORE_SIDE = re.compile(r" (?:a|per) (?:hour|day|week|month|year)(?= (?:more|less)\b)")
_UP_FROM = re.compile(r"[^.;:!?\d]{0,40}?[ (](?:(?P<up>up)|down)(?: [a-z]+)? from\b")
_AGAINST = r"(?:compared (?:with|to)|against|versus)"
_TIME_BEFORE = (
    r" (?:an? (?:year|month|quarter|decade) (?:earlier|before|ago)|the year before|last year"
    r"|(?:in )?the previous (?:year|month|quarter))\b"
)
_EARLIER = re.compile(
    rf"[^.;:!?\d]{{0,60}}?, {_AGAINST} [$€£]?(\d{{1,3}}(?:,\d{{3}})*(?:\.\d+)?)(?:%| per cent| percent)?"
    rf"{_TIME_BEFORE}"
)  # "18.4%, compared with 22.9% a year earlier"
_BEFORE_EARLIER = re.compile(rf"\b{_AGAINST} $")
_IS_EARLIER = re.compile(_TIME_BEFORE)
_REACHING = re.compile(
    r"(?:,? (?:reaching|to reach|to stand at)|, (?:to|at)"
    r"|\band (?:now )?(?:stands|stood|is|reached)(?: at)?) $"
)
_UNCHANGED = re.compile(
    r"\b(?:unchanged|steady|flat|stable|stays?|stayed|remains?|remained)(?: (?:at|on))? $"
)
_LAST_OF_UNCHANGED = frozenset((
    *("unchanged", "steady", "flat", "stable", "stay", "stays", "stayed"),
    *("remain", "remains", "remained", "at", "on"),
))  # fmt: skip
_LAST_OF_AGAINST = ("with", "to", "against", "versus")
_LAST_OF_REACHING = re.compile(r"reach(?:ing|ed)?|at|to|is|st(?:ands|ood)")
_MOVED_TO = re.compile(r"\b(?:to|by) (?:just |about |only )?$")  # a length of time
_THAN = re.compile(r"\b(?:more|less|fewer|higher|lower) than ")
_COMMA_BY = re.compile(r", (?=(?:by|to) $)")  # "also rose, by 6%"
_SIDE_OF = re.compile(
    r"\b(?:(?P<above>above|over)|below|under) (?:(?:the|its|their|his|her|an?) )?(?:[\w-]+ ){0,2}"
    r"(?:average|mean|median|norm|level|forecast|expectation|target|estimate|peak|threshold|limit|budget)s?"
    r" of $"
)  # "below the average of 62 mm"
_AVERAGE = re.compile(r"\b(?:an? (?:average|total|mean|median|estimated) of|on average,?) $")
_WHEN = re.compile(
    r" (?:since|in|during|over|im|en|em|nel)(?: Jahre?)?(?: [A-Z][^\W\d_]+)?"
    r"(?: [12]\d{3}(?:[-/\u2013]\d{2,4})?)?"
    r"(?= (?:by|to|um|auf|de|del|a|à|di|met|naar) $)"
)  # "have risen since 1880 by"
_RANK = re.compile(r"\b\d+(?:st|nd|rd|th)\b")
_ELIDED = re.compile(r"\b([dan]e?l)l['\u2019]$")  # "è diminuito dell'8,9 per cento"
_REACH = 72  # characters
_CLAUSE = 120
_MOST_BETWEEN = 5  # words from a change to its "of"
_MOST_MOVED = 8  # words from "cut" to its "to"
_MOVED_BY = ("to", "by", "um", "auf")


def trend_of(text: str, number: Number) -> Trend:
    """What the words beside a number make of it."""
    if number.trend:
        return Trend(number.trend)
    if number.kind in (Kind.DATE, Kind.YEAR):
        return _life_event(text, number) or _side_of_date(text, number)
    if number.kind is Kind.TIME:
        side = _SIDE_OF_TIME.search(text, max(0, number.start - _LONGEST_SIDE), number.start)
        return Trend.NONE if side is None else Trend.BEFORE if side["before"] else Trend.AFTER
    if number.kind is Kind.DURATION:
        schedule = _SCHEDULE.match(text, number.end) or _PLANNED.match(text, number.end)
        if schedule is not None:
            return Trend.BEFORE if schedule["early"] else Trend.AFTER
        if not _MOVED_TO.search(text, max(0, number.start - 8), number.start):
            return Trend.NONE
    elif number.kind not in _KINDS:
        return Trend.NONE
    if number.dimension == "length" and (level := _SEA_LEVEL.search(text, number.start, number.end + 24)):
        return Trend(level[1])
    before = _said_plainly(text[max(0, number.start - _REACH) : number.start])
    last = _last_word(before)
    if last == "of" and (level := _SIDE_OF.search(before)):
        return Trend.ABOVE if level["above"] else Trend.BELOW
    change = _GAINS.get(last, "")
    is_gained = number.dimension == "mass" or number.kind in _SHARES or _GAINED.match(text, number.end)
    if change and is_gained:
        return Trend(change)
    if change and (number.kind is Kind.MONEY or _MONEY.match(text, number.end)):
        return Trend.PROFIT if change == Trend.RISE_BY else Trend.LOSS
    if last in _LAST_OF_UNCHANGED and _UNCHANGED.search(before):
        return Trend.STEADY
    if (
        _LAST_OF_REACHING.fullmatch(last)
        and (reaching := _REACHING.search(before))
        and (move := _last_move(_words_of_sentence(_THAN.sub(" ", before[: reaching.start()]))))
    ):
        return _trend(move, "to")
    if before.endswith("to ") and (span := _FROM_TO.search(before)):
        return _trend(_last_move(span[1].lower().split()), "to")
    span = _AMOUNT_TO.search(before) if before.endswith("to ") else None
    if span and (move := _last_move(span[1].lower().split())):
        return _trend(move, "to")
    if _last_word(before) in _LAST_WORDS or before.endswith("ly "):
        is_money = number.kind is Kind.MONEY or _MONEY.match(text, number.end) is not None
        if trend := _said_before(_words_of_clause(before), number.kind, is_money=is_money):
            is_level = trend in _LEVEL_OF and _OF_LEVEL.match(text, number.start)
            if trend is Trend.FALL_BY and _last_word(before) not in ("by", "of"):
                is_level = is_level or _UNDER_LEVEL.match(text, number.start)
            return _LEVEL_OF[trend] if is_level else trend
    if level := _TO_LEVEL.match(text, number.end):
        return Trend.ABOVE if level["above"] else Trend.BELOW
    if plan := _TO_PLAN.match(text, number.end):
        return Trend.RISE_BY if plan["above"] else Trend.FALL_BY
    if from_other := _UP_FROM.match(text, number.end):
        return Trend.UP if from_other["up"] else Trend.DOWN
    if (earlier := _EARLIER.match(text, number.end)) and len(number.values) == 1:
        value = Decimal(earlier[1].replace(",", ""))
        return Trend.UP if number.value > value else Trend.DOWN if number.value < value else Trend.STEADY
    if last in _LAST_OF_AGAINST and _BEFORE_EARLIER.search(before) and _IS_EARLIER.match(text, number.end):
        return Trend.EARLIER
    if trend := _said_behind(text, number):
        return trend
    if number.kind in _SHARES and text.startswith("+", number.start):
        return Trend.PLUS
    return Trend.EXACTLY if last in _EXACTLY and number.form is Form.EXACT else Trend.NONE


def are_opposed(claimed: Number, found: Number) -> bool:
    """Whether one number is of another trend than the other, as a rise and a fall are."""
    if claimed.trend == Trend.MINUS:
        return found.trend not in _DOWN
    if claimed.trend == Trend.EXACTLY:
        return found.is_bound or found.approximate
    if claimed.trend == Trend.AS_MULTIPLE:
        return found.trend != Trend.MULTIPLIED
    is_day = claimed.kind is Kind.DATE and claimed.values[2] != 0  # "late on 7 May" is a time of that day
    is_dated = claimed.trend in PARTS_OF_TIME and found.kind is Kind.DATE and found.form is Form.EXACT
    # "Late March 2017" is early in the year: its month says so, and not its word.
    is_of_year = claimed.kind is Kind.YEAR and is_dated and found.trend in PARTS_OF_TIME
    is_opposed = not is_of_year and (claimed.trend, found.trend) in _OPPOSED
    return is_opposed or (is_dated and not is_day and _is_of_other_part(claimed, found))


def _is_of_other_part(claimed: Number, found: Number) -> bool:
    """Whether a date lies in another part of the claimed year or month: November for "early 2017"."""
    is_of_month = claimed.kind is Kind.DATE and claimed.values[1] != 0
    place = 2 if is_of_month else 1  # a day or a month among the values of a date
    first, last = PARTS_OF_TIME[Trend(claimed.trend)][place - 1]
    return bool(found.values[place]) and not first <= found.values[place] <= last


def in_other_sign(number: Number) -> Number | None:
    """A change of -3% as a fall of 3%, which `MINUS` asks for, and a fall of 3% as a change of -3%."""
    is_signed = number.kind in _SIGNED or number.dimension in _SIGNED_DIMENSIONS
    if not is_signed or number.parts or len(number.readings) > 1:
        return None
    if number.value < 0 or number.trend in _DOWN:
        trend = Trend.MINUS if number.value < 0 else Trend.NONE
        return changed(number, readings=((-number.value,),), trend=trend)
    return None


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


def lifespan(text: str, number: Number) -> Number:
    """ "(8 March 1920 - 7 September 1944)" behind a name, with a birth and a death as its parts."""
    is_span = number.kind in (Kind.DATE, Kind.YEAR) and number.form is Form.RANGE and len(number.parts) == 2
    if not is_span or _BEHIND_NAME.search(text[max(0, number.start - _REACH) : number.start]) is None:
        return number
    first, last = number.parts
    return changed(number, parts=(changed(first, trend=Trend.BIRTH), changed(last, trend=Trend.DEATH)))


def from_to(text: str, number: Number) -> Number:
    """ "Rose from 5% to 7%" with a rise from and a rise to as its parts."""
    may_move = number.kind in _KINDS or number.kind is Kind.DURATION
    is_span = number.form is Form.RANGE and may_move and len(number.parts) == 2
    if not is_span or not text.startswith(("from ", "From "), number.start):
        return number
    words = _words_of_clause(text[max(0, number.start - _REACH) : number.start])
    move = _last_move(words[-2:])
    first, last = number.parts
    parts = (changed(first, trend=_trend(move, "from")), changed(last, trend=_trend(move, "to")))
    return changed(number, parts=parts) if move else number


def with_trend(number: Number, trend: Trend) -> Number:
    """A number of a trend; the ends of a range ("rose by 8% to 12%") only have its direction."""
    if number.form is not Form.RANGE:
        return changed(number, trend=trend)
    parts = (changed(one, trend=one.trend or _DIRECTIONS.get(trend, "")) for one in number.parts)
    return changed(number, trend=trend, parts=tuple(parts))


def _side_of_date(text: str, number: Number) -> Trend:
    """Whether something is before or after a day, or early or late in a year.

    Neither before nor after where a denial may turn it ("not after"), or "by" a year.
    """
    if number.is_bound:  # "no earlier than 22 April"
        return Trend.AFTER if number.form in (Form.AT_LEAST, Form.MORE_THAN) else Trend.BEFORE
    if behind := _SIDE_BEHIND.match(text, number.end):
        return Trend.AT_LATEST if behind["side"] == "latest" else Trend.AFTER
    before = text[max(0, number.start - _REACH) : number.start]
    if before[-1:] not in (" ", "-") or _last_word(before) not in _LAST_BEFORE_DATES:
        return Trend.NONE
    if _NOT_BEFORE.search(before):
        return Trend.AFTER
    if _AT_LEAST_UNTIL.search(before):
        return Trend.AT_LEAST_UNTIL
    side = _BEFORE_DATES.search(before)
    if side and not (number.kind is Kind.YEAR and side[0].lower().startswith("by")):
        sentence = _SENTENCE_END.split(text[max(0, number.start - _CLAUSE) : number.start - len(side[0])])[-1]
        sentence += _SENTENCE_END.split(text[number.end : number.end + _CLAUSE])[0]
        if _DENIES.search(sentence) and not side["until"]:  # "not until after" is after
            if _DENIES_TWICE.search(sentence):
                return Trend.NONE
            return Trend.NOT_BEFORE if side["before"] else Trend.NOT_AFTER
        return Trend.BEFORE if side["before"] else Trend.AFTER
    part = _PART.search(before) if number.form is Form.EXACT else None
    return Trend(_PART_NAMES[(part[1] or part[2]).lower()]) if part else Trend.NONE


def _said_plainly(before: str) -> str:
    """The words before a number without a time or "an average of" between a verb and its amount."""
    before = _ELIDED.sub(r"\1 ", _AVERAGE.sub("", before))
    return _RANK.sub("nth", _WHEN.sub("", _COMMA_BY.sub(" ", before)))


def _last_word(before: str) -> str:
    """The word before a number; most of these words show that it has no trend."""
    words = before.rsplit(maxsplit=1)
    return words[-1].lower() if words and before[-1] in " \u00a0-" else ""


def _said_before(words: list[str], kind: Kind, *, is_money: bool) -> Trend:
    """From the last word on: "fell", "fell sharply by", "a fall in sales of", "loss for the year was"."""
    is_moved = False
    is_share = kind in _SHARES
    is_to = words[-1:] == ["a"]  # "subió a 5 euros", while in English another word follows
    while words and (words[-1] in _BEFORE_AMOUNTS or words[-1].endswith("ly")):
        is_to = is_to or words[-1] in _TO
        is_moved = is_moved or words[-1] in _MOVED_BY
        words.pop()
    if not words:
        return Trend.NONE
    if words[-1] == "from":
        return _trend(_last_move(words[-3:-1]), "from")
    is_side = words[-1] in _SIDES and (is_moved or len(words) == 1 or words[-2] in _BEFORE_SIDES or is_share)
    is_side = is_side and (len(words) == 1 or words[-2] not in _NO_MOVES)
    move = _INTRANSITIVE.get(words[-1]) or (_SIDES[words[-1]] if is_side else "")
    if not move and is_moved:
        near = words[-_MOST_MOVED:]
        verbs = (word for word in reversed(near) if not word.endswith("ing"))  # no "growing number"
        move = next(filter(None, (*map(_MOVING.get, near), *map(_INTRANSITIVE.get, verbs))), "")
    if move:
        return _trend(move, "to" if is_to else "by")
    if is_money and words[-1] in _BALANCES:
        return Trend(_BALANCES[words[-1]])
    if words[-1] not in _JOINING:
        return Trend.NONE
    for word in reversed(words[-_MOST_BETWEEN - 2 : -1]):
        if words[-1] == "of" and (change := _CHANGES.get(word)):
            return Trend(f"{change} by")
        if is_money and (balance := _BALANCES.get(word)):
            return Trend(balance)
    return Trend.NONE


def _words_of_clause(before: str) -> list[str]:
    """The words, in small letters, of the clause that ends there."""
    return [word.lower() for word in _WORD.findall(_CLAUSE_END.split(before)[-1])]


def _words_of_sentence(before: str) -> list[str]:
    """The words, in small letters, of the sentence that ends there."""
    return [word.lower() for word in _WORD.findall(_SENTENCE_END.split(before)[-1])]


def _last_move(words: Sequence[str]) -> str:
    """ "rise" or "fall", as the last of some words that is such a verb or side says it; empty for neither."""
    moves = (_INTRANSITIVE.get(word) or _MOVING.get(word) or _SIDES.get(word) for word in reversed(words))
    return next(filter(None, moves), "")


def _trend(move: str, amount: str) -> Trend:
    """A rise or a fall "by", "to" or "from" an amount."""
    return Trend(f"{move} {amount}") if move else Trend.NONE


def _said_behind(text: str, number: Number) -> Trend:
    """From the first word on: "3% fall", "$27 million net loss", "3% down on"."""
    rate = _BEFORE_SIDE.match(text, number.end)
    end = rate.end() if rate else number.end
    first = _WORD.match(text, end + 1, end + _REACH)  # bounded, as "½½½½" is one word
    if first is None or first[0].lower() not in _FIRST_WORDS:
        return Trend.NONE
    for match in _WORD.finditer(text, end, end + _REACH):
        word = match[0].lower()
        if text[end : match.start()] not in (" ", "-", "\u00a0"):
            break
        end = match.end()
        if word in _LEVELS:
            return Trend(word)
        if word in _SIDES:
            is_change = _THAN_BEFORE.match(text, end) or not text.startswith(_NO_SIDE, end)
            if not is_change and number.kind is Kind.PERCENT and text.startswith(" than", end):
                # Of a share the one side says what the other one cannot: 20% more is no 20% less.
                return Trend.MORE_THAN if _SIDES[word] == "rise" else Trend.LESS_THAN
            return _trend(_SIDES[word] if is_change else "", "by")
        if word not in _ADJECTIVES:
            balance = _BALANCES.get(word, "") if number.kind is Kind.MONEY else ""
            return _trend(_CHANGES.get(word, ""), "by") or Trend(balance)
    return Trend.NONE

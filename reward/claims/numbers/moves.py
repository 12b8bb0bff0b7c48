"""Whether an amount is a rise or a fall, a profit or a loss, a height or a depth, by the words beside it.

"Fell by 3%", "a fall in sales of 3%", "a 3% fall", "closed 3% lower"; "fell to 45", "cut its rate to 5%"; "a
net loss of $27 million"; "84 m below sea level". Comparisons ("3% more than") are no trends: of two things
that are compared either may be the subject, so that "A is 5 cm taller" and "B is 5 cm shorter" can both be
true. Profit and loss are of money only, as a seat that one party lost another one gained.
"""

import calendar
import re
from collections.abc import Sequence
from decimal import Decimal

from reward.claims.numbers.model import Form, Kind, Number, changed
from reward.claims.numbers.sides import SENTENCE_END, last_word, trend_of_date
from reward.claims.numbers.trends import Trend
from reward.claims.numbers.vocabulary import TABLES, by_word

_WORDS = TABLES["trends"]
_INTRANSITIVE, _MOVING, _CHANGES, _SIDES, _SPEEDS, _BALANCES = (
    by_word(_WORDS[name]) for name in ("moves", "moving", "changes", "sides", "speeds", "balances")
)
_BEFORE_AMOUNTS = frozenset(_WORDS["before_amounts"].split())
_BEFORE_SIDES = frozenset(_WORDS["before_sides"].split())
_JOINING = frozenset(_WORDS["joining"].split())
_ADJECTIVES = frozenset(_WORDS["adjectives"].split())
_KINDS = frozenset({Kind.COUNT, Kind.QUANTITY, Kind.PERCENT, Kind.PERCENTAGE_POINT, Kind.MONEY, Kind.ORDINAL})
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_SHARES = (Kind.PERCENT, Kind.PERCENTAGE_POINT)
_EXACTLY = ("exactly", "precisely")
_MONEY = re.compile(
    r" (?:crowns|francs|pesos|dinars|rupees|kroner|kronor"  # of which country nobody says
    r"|(?:de |di |d['\u2019])(?:euros?|dólares|dólars|dollars|dollari|francs|pesos|reais|libras))\b"
)
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
_NO_MOVES = ("make", "makes", "made", "making", "take", "takes", "took", "taken", "taking")  # "made up 3%"
_FROM_TO = re.compile(r"\b((?:\w+ ){1,4})(?:from|by) [^;:!?\n]{1,40} to $")
_AMOUNT_TO = re.compile(
    r"\b((?:\w+ ){1,4})[$€£]?\d[\d.,]{0,12}(?:%| per ?cent| [a-z]+)? to $"
)  # "rose 12% to"
_TAKES = ("take", "takes", "took", "taking")
_TO = ("to", "auf", "à", "al", "naar", "para")
_FROM = ("von", "de", "van", "da")
_TO_ANOTHER = re.compile(
    r"\.?(?: [^\W\d_]{1,12}\.?)?(?: d['\u2019](?:euros|habitants))? (?:auf|à|a|naar|para) \d"
)
_LAST_WORDS = frozenset({"from", *_BEFORE_AMOUNTS, *_JOINING, *_INTRANSITIVE, *_SIDES})
_FIRST_WORDS = frozenset({*_ADJECTIVES, *_CHANGES, *_BALANCES, *_SIDES, *_SPEEDS, "above", "below"})
_LEVELS = ("above", "below")
_OF_LEVEL = re.compile(r"(?:just |well |slightly )?(?:above|below)\b", re.IGNORECASE)  # "fell below 5%"
_UNDER_LEVEL = re.compile(r"under\b")  # "dropped under 2.5 m", but no "rise of under 2.5 m"
_LEVEL_OF = {Trend.RISE_BY: Trend.RISE_TO, Trend.FALL_BY: Trend.FALL_TO}
_OF_A_CHANGE = ("a", "an", "the", "its", "their")
_CHANGE_OF = re.compile(  # "a 2.5 percent property tax increase"
    rf" (?:[a-z]{{1,16}} ){{1,2}}({'|'.join(sorted(_CHANGES))}|cut)"
    r"(?=[.,;:)]| (?:in|for|on|from|to|of|and|by)\b|$)"
)
_GAINS = by_word(
    {
        "rise by": "gain|gains|gained|gaining|added|ganó|ganaron|gagné|guadagnato|ganhou",
        "fall by": "lose|loses|lost|losing|shed|perdió|perdieron|perdu|perso|perdeu",
    }
)
# What one gains no other one loses, but for seats and votes.
_GAINED = re.compile(
    r" (?:[a-z]+ ){0,3}(?:point|subscriber|user|customer|member|job|follower|employee"
    r"|worker|resident|inhabitant|viewer|reader)s?\b"
)
_SIDE_ABROAD = re.compile(
    r" (?:in |de |en )?(?:(?P<more>más|mehr|più|meer|mais|(?<=de |en )plus)|menos|moins|weniger|meno|minder)"
    r"\b(?= (?:que|qu['\u2019]|als|dan|de|del|della|do|di|respecto|rispetto|par)\b|[.,;:)]|$)"
)  # "un 4,3 % menos que", and no "más barato"
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
    r"\b(?:(?:unchanged|steady|flat|stable|stays?|stayed|remains?|remained)(?: (?:at|on))?"
    r"|(?:held|kept|left|maintained) (?:\w+ ){0,4}at) $"
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
_DATED = (Kind.DATE, Kind.YEAR, Kind.TIME)


def trend_of(text: str, number: Number) -> Trend:
    """What the words beside a number make of it."""
    if number.trend:
        return Trend(number.trend)
    if number.kind in _DATED:
        return trend_of_date(text, number)
    if number.kind is Kind.DURATION:
        schedule = _SCHEDULE.match(text, number.end) or _PLANNED.match(text, number.end)
        if schedule is not None:
            return Trend.BEFORE if schedule["early"] else Trend.AFTER
        if not _MOVED_TO.search(text, max(0, number.start - 8), number.start):
            return Trend.NONE
    elif number.kind not in _KINDS:
        return Trend.NONE
    before = _said_plainly(text[max(0, number.start - _REACH) : number.start])
    last = last_word(before)
    readers = (_of_level, _gained, _moved_to, _moved, _compared, _said_behind, _marked)
    return next(filter(None, (read(text, number, before, last) for read in readers)), Trend.NONE)


def _of_level(text: str, number: Number, before: str, last: str) -> Trend:
    """ "84 m below sea level", "below the average of 62 mm"."""
    if number.dimension == "length" and (level := _SEA_LEVEL.search(text, number.start, number.end + 24)):
        return Trend(level[1])
    side = _SIDE_OF.search(before) if last == "of" else None
    return Trend.NONE if side is None else Trend.ABOVE if side["above"] else Trend.BELOW


def _gained(text: str, number: Number, before: str, last: str) -> Trend:
    """ "Lost 5 kg", "gained 300 members", "lost $5 million"."""
    change = _GAINS.get(last)
    if change is None:
        return Trend.NONE
    if number.dimension == "mass" or number.kind in _SHARES or _GAINED.match(text, number.end):
        return Trend(change)
    if number.kind is Kind.MONEY or _MONEY.match(text, number.end):
        return Trend.PROFIT if change == Trend.RISE_BY else Trend.LOSS
    return Trend.NONE


def _moved_to(text: str, number: Number, before: str, last: str) -> Trend:
    """ "Unchanged at 8%", "rose for a year, reaching 8%", "fell from 9% to 8%", "rose 12% to"."""
    if last in _LAST_OF_UNCHANGED and _UNCHANGED.search(before):
        return Trend.STEADY
    if _LAST_OF_REACHING.fullmatch(last) and (reaching := _REACHING.search(before)):
        said = _THAN.sub(" ", before[: reaching.start()])
        words = [word.lower() for word in _WORD.findall(SENTENCE_END.split(said)[-1])]
        if move := _last_move(words):
            return _trend(move, "to")
    span = (_FROM_TO.search(before) or _AMOUNT_TO.search(before)) if before.endswith("to ") else None
    return _trend(_last_move(span[1].lower().split()), "to") if span else Trend.NONE


def _moved(text: str, number: Number, before: str, last: str) -> Trend:
    """ "Fell by 3%", "a fall in sales of 3%", "fell below 5%"."""
    if last not in _LAST_WORDS and not before.endswith("ly "):
        return Trend.NONE
    is_money = number.kind is Kind.MONEY or _MONEY.match(text, number.end) is not None
    words = _words_of_clause(before)
    if last in _FROM and _TO_ANOTHER.match(text, number.end):
        return _trend(_last_move(words[-_MOST_BETWEEN:]), "from")
    trend = _said_before(words, number.kind, is_money=is_money)
    is_level = trend in _LEVEL_OF and _OF_LEVEL.match(text, number.start)
    if trend is Trend.FALL_BY and last not in ("by", "of"):
        is_level = is_level or _UNDER_LEVEL.match(text, number.start)
    return _LEVEL_OF[trend] if is_level else trend


def _compared(text: str, number: Number, before: str, last: str) -> Trend:
    """ "8% above the average", "5%, up from 4%", "18%, against 23% a year earlier", and those 23%."""
    if number.kind is Kind.PERCENT and (abroad := _SIDE_ABROAD.match(text, number.end)):
        return Trend.MORE_THAN if abroad["more"] else Trend.LESS_THAN
    if level := _TO_LEVEL.match(text, number.end):
        return Trend.ABOVE if level["above"] else Trend.BELOW
    if plan := _TO_PLAN.match(text, number.end):
        return Trend.RISE_BY if plan["above"] else Trend.FALL_BY
    if from_other := _UP_FROM.match(text, number.end):
        return Trend.UP if from_other["up"] else Trend.DOWN
    if (earlier := _EARLIER.match(text, number.end)) and len(number.values) == 1:
        value = Decimal(earlier[1].replace(",", ""))
        return Trend.UP if number.value > value else Trend.DOWN if number.value < value else Trend.STEADY
    is_against = last in _LAST_OF_AGAINST and _BEFORE_EARLIER.search(before)
    return Trend.EARLIER if is_against and _IS_EARLIER.match(text, number.end) else Trend.NONE


def _marked(text: str, number: Number, before: str, last: str) -> Trend:
    """ "+5%", "+5 points", "exactly 5"."""
    if number.kind in (*_SHARES, Kind.COUNT) and text.startswith("+", number.start):
        return Trend.PLUS
    return Trend.EXACTLY if last in _EXACTLY and number.form is Form.EXACT else Trend.NONE


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


def _said_plainly(before: str) -> str:
    """The words before a number without a time or "an average of" between a verb and its amount."""
    before = _ELIDED.sub(r"\1 ", _AVERAGE.sub("", before))
    return _RANK.sub("nth", _WHEN.sub("", _COMMA_BY.sub(" ", before)))


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


def _last_move(words: Sequence[str]) -> str:
    """ "rise" or "fall", as the last of some words that is such a verb or side says it; empty for neither."""
    moves = (_INTRANSITIVE.get(word) or _MOVING.get(word) or _SIDES.get(word) for word in reversed(words))
    return next(filter(None, moves), "")


def _trend(move: str, amount: str) -> Trend:
    """A rise or a fall "by", "to" or "from" an amount."""
    return Trend(f"{move} {amount}") if move else Trend.NONE


def _said_behind(text: str, number: Number, before: str, last: str) -> Trend:
    """From the first word on: "3% fall", "$27 million net loss", "3% down on"."""
    rate = _BEFORE_SIDE.match(text, number.end)
    end = rate.end() if rate else number.end
    if number.kind is Kind.PERCENT and last in _OF_A_CHANGE and (of := _CHANGE_OF.match(text, end)):
        return _trend(_CHANGES.get(of[1], "fall"), "by")
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
        if number.kind is Kind.PERCENT and (word in _SPEEDS or (word == "longer" and last in _TAKES)):
            return Trend(_SPEEDS.get(word, Trend.SLOWER))
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

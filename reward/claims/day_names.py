"""Days and months by their names: "Monday", "Thurs.", "lundi", "in May", "weekdays", "Christmas Day".

A short name is a weekday only where the context says so: "Sun" is also a star and "Sat" a verb. "Weekdays"
are a range from Monday to Friday. Holidays of one date are that date without a year; those that move
(Easter) or differ by country (Independence Day) are none.
"""

import calendar
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from reward.claims.numbers import Form, Kind, Number
from reward.claims.numbers.dates import FOREIGN_MONTHS, MONTH, date_of
from reward.claims.numbers.model import changed
from reward.claims.numbers.moves import trend_of
from reward.claims.numbers.vocabulary import BEGIN, END, TABLES, by_word
from reward.claims.text import Words, lowered, words_in

_WORDS = TABLES["days"]
_WEEKDAYS = {day.casefold(): place for place, day in enumerate(calendar.day_name, start=1)}
_SHORT = {day: int(place) for day, place in by_word(_WORDS["short"]).items()}
_FOREIGN = {day: int(place) for day, place in by_word(_WORDS["foreign"]).items()}
_LOWER_DAYS = "|".join(sorted((day for day in _FOREIGN if day[0].islower()), key=len, reverse=True))
_CAPITAL_DAYS = "|".join(day for day in _FOREIGN if day[0].isupper())
_ALL_SHORT = "|".join(sorted((f"{day.title()}|{day.upper()}" for day in _SHORT), key=len, reverse=True))
_DASH = r"[-\u2010-\u2015/&]"
_TO_A_DAY = rf"\.?[ ]?{_DASH}[ ]?(?:{_ALL_SHORT}|{'|'.join(calendar.day_name)}){END}"
_WEEKDAY = re.compile(
    rf"""
    \b(?P<day>{"|".join(calendar.day_name)})s?\b
  | (?<![\w-])(?P<sure>Tues|Thurs|Thur|Weds){END}
  | (?<![\w-])(?P<short>{_ALL_SHORT})(?=\.?,?[ ](?:\d|{MONTH})|\.[ ]at[ ]\d|:[ ]?\d|{_TO_A_DAY})
  | (?:(?<={_DASH})|(?<={_DASH}[ ])|(?<=to[ ])|(?<=through[ ]))(?P<last>{_ALL_SHORT}){END}
  | {BEGIN}(?P<small>{_LOWER_DAYS}){END}
    # Montag and Freitag are surnames, too
  | (?:(?<=[Aa]m[ ])|(?<=[Vv]om[ ])|(?<=bis[ ])|(?<=jeden[ ])|(?<=und[ ]))
      (?P<german>{_CAPITAL_DAYS}){END}
  | {BEGIN}(?P<dated>{_CAPITAL_DAYS})(?=,?[ ](?:den[ ])?\d|[ ](?:bis|und)[ ](?:{_CAPITAL_DAYS}))
    """,
    re.VERBOSE,
)
_DAYS = re.compile(
    r"\b(?:(?P<working>[Ww]eekdays|WEEKDAYS)|(?P<free>[Ww]eekends|WEEKENDS"
    r"|(?:(?<=\b[Tt]he )|(?<=\b[Tt]his )|(?<=\b[Ll]ast )|(?<=\b[Nn]ext ))weekend(?![ -][a-z]{4})))\b"
)
_EVERY_DAY = re.compile(
    r"\b(?:[Oo]pen(?:s|ed)? daily|[Dd]aily (?:from|at)"
    r"|(?:[Ee]very day|(?:[Ss]even|7) days) (?:of the|a|per) week)\b"
)
_ONE_WEEKDAY = re.compile(r"\b[Ww]eekday\b")  # "the first weekday train"
_NO_DASH = r"[ ]?[-\u2010-\u2015][ ]?|[ ](?:to|through|until|thru|bis|à|a|al|tot)[ ]"
_FROM_TO = re.compile(rf"\.?,?(?:{_NO_DASH})")
# "May" and "March" are other words, too, unless a word of time comes before them.
_PLAIN_MONTHS = "|".join(month for month in calendar.month_name[1:] if month not in ("May", "March"))
_MONTH = re.compile(
    rf"\b(?:{_PLAIN_MONTHS}"
    r"|(?:(?<=\b(?:week|half|days|part) of )|(?<=\b(?:start|month) of )|(?<=\bend of )"
    r"|(?<=\bbeginning of )|(?<=\bmiddle of )|(?<=\b[Mm]id-)"
    r"|(?<=\b[Ii]n )|(?<=\b[Bb]etween )"
    r"|(?<=\b(?:[Ll]ast|[Nn]ext|[Ll]ate) )|(?<=\b(?:[Ss]ince|[Uu]ntil|[Ee]arly) ))"
    r"(?:May|March)"
    r"|(?<=\b[Ff]rom )(?:May|March)(?= (?:to|till|until|through|on|onwards?)\b)"
    rf"|(?:(?<=\b[EeIi][nm] )|(?<=\bde ))(?:{'|'.join(FOREIGN_MONTHS)}))\b"
)
_MONTHS = [month.casefold() for month in calendar.month_name]
_PLACES = {name.casefold(): place for name, place in FOREIGN_MONTHS.items()} | {
    name: place for place, name in enumerate(_MONTHS) if name
}
_HOLIDAY = re.compile(
    r"\b(?:(?P<christmas>Christmas Day)|(?P<christmas_eve>Christmas Eve)"
    r"|(?P<new_year>New Year['\u2019]?s Day)"
    r"|(?P<new_years_eve>New Year['\u2019]?s Eve)|(?P<boxing>Boxing Day)|(?P<halloween>Hallowe['\u2019]?en)"
    r"|(?P<valentine>(?:(?:St\.?|Saint) )?Valentine['\u2019]?s Day)"
    r"|(?P<patrick>(?:St\.?|Saint) Patrick['\u2019]?s Day))\b"
)
_WHICH = re.compile(r"\b(first|second|third|fourth|fifth|last) $", re.IGNORECASE)  # of a month
_REACH = 8  # characters
_CHRISTMAS = re.compile(r"\bChristmas\b(?! Eve)")
_DATES = {name: (int(month), int(day)) for name, (month, day) in _WORDS["holidays"].items()}
_WORKING, _FREE, _ALL = (1, 5), (6, 7), (1, 7)


_FIRST_OF_DAYS = frozenset((
    *_WEEKDAYS, *(f"{day}s" for day in _WEEKDAYS), *_SHORT,
    *(day.lower().partition("-")[0] for day in _FOREIGN),
))  # fmt: skip
# The words that a match of each pattern can begin with, in lower case.
_FIRST = {
    _WEEKDAY: _FIRST_OF_DAYS,
    _DAYS: frozenset(("weekdays", "weekends", "weekend")),
    _MONTH: frozenset(_PLACES),
    _HOLIDAY: frozenset(_WORDS["first_of_holidays"].split()),
}
FIRST_WORDS = frozenset().union(*_FIRST.values())  # of all that is found here


@lru_cache(maxsize=256)
def names_of_days(text: str) -> tuple[Number, ...]:
    """The weekdays, lone months and holidays of a text, in no order.

    The patterns are tried only where there is a word that one of them can begin with: most texts have none.
    """
    words = words_in(lowered(text))
    if FIRST_WORDS.isdisjoint(words.all):
        return ()
    weekdays, spans, months, holidays = (_matches(pattern, text, words) for pattern in _FIRST)
    days = [_weekday(m) for m in weekdays]
    days += [_span(_WORKING if m["working"] else _FREE, *m.span()) for m in spans]
    lone = [date_of(((0, _PLACES[m[0].casefold()], 0),), *m.span()) for m in months]
    days += [changed(month, trend=trend_of(text, month)) for month in lone]
    days += [date_of(((0, *_DATES[str(m.lastgroup)]),), *m.span()) for m in holidays]
    return tuple(days)


def _matches(pattern: re.Pattern[str], text: str, words: Words) -> Iterator[re.Match[str]]:
    """The matches in a text that has these words, from left to right."""
    end = 0
    for place in words.places(_FIRST[pattern]):
        if place >= end and (match := pattern.match(text, place)):
            end = match.end()
            yield match


@lru_cache(maxsize=256)
def days_of_document(text: str) -> tuple[Number, ...]:
    """The same, with the ranges that a document states: "Monday to Friday", "seven days a week"."""
    days = names_of_days(text)
    spans = [_span(_ALL, *match.span()) for match in _EVERY_DAY.finditer(text)]
    spans += [_span(_WORKING, *match.span()) for match in _ONE_WEEKDAY.finditer(text)]
    christmas = [date_of(((0, 12, 25),), *match.span()) for match in _CHRISTMAS.finditer(text)]
    return (*days, *_ranges(text, days), *spans, *christmas)


def named_day(word: str) -> Number | None:
    """The weekday, month or holiday that a text is; None for anything else."""
    low = word.strip().rstrip(".").casefold()
    place = _WEEKDAYS.get(low) or _SHORT.get(low) or _FOREIGN.get(low) or _FOREIGN.get(low.title())
    if place:
        return weekday(place, 0, len(word))
    if low in _MONTHS[1:]:
        return date_of(((0, _MONTHS.index(low), 0),), 0, len(word))
    days = names_of_days(word.strip())
    whole = (day for day in days if day.end - day.start == len(word.strip()))
    return next(whole, None)


def weekday(place: int, start: int, end: int) -> Number:
    """A day of the week; 1 is Monday."""
    return Number(((Decimal(place),),), Kind.WEEKDAY, step=Decimal(1), start=start, end=end)


def _weekday(match: re.Match[str]) -> Number:
    written = match[str(match.lastgroup)]
    low = written.casefold()
    place = _WEEKDAYS.get(low) or _SHORT.get(low) or _FOREIGN[written]
    which = _WHICH.search(match.string, max(0, match.start() - _REACH), match.start())
    return changed(weekday(place, *match.span()), rate=which[1].lower() if which else "")


def _span(days: tuple[int, int], start: int, end: int) -> Number:
    values = (tuple(map(Decimal, days)),)
    return Number(values, Kind.WEEKDAY, form=Form.RANGE, step=Decimal(1), start=start, end=end)


def _ranges(text: str, days: tuple[Number, ...]) -> Iterator[Number]:
    exact = [day for day in days if day.kind is Kind.WEEKDAY and day.form is Form.EXACT]
    for first, last in pairwise(sorted(exact, key=lambda day: day.start)):
        if first.value < last.value and _FROM_TO.fullmatch(text, first.end, last.start):
            yield _span((int(first.value), int(last.value)), first.start, last.end)

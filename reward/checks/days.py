"""Days of the week in text: single days, spans, lists, and words such as "weekdays" and "daily".

A set of days is a frozenset of ints, Monday being 0. Abbreviations count only with a capital ("Sat.",
"Mon-Fri"), because "sat" and "sun" are words.
"""

import calendar
import re
from dataclasses import dataclass

ALL_DAYS = frozenset(range(7))
FULL = "|".join(calendar.day_name)
_SHORT = "Mon|Tues?|Weds?|Thu(?:rs?)?|Fri|Sat|Sun"
_DAY = rf"(?:(?i:{FULL})s?|(?:{_SHORT})\b\.?)"
_GROUP = re.compile(
    rf"""
    (?P<all>(?i:\b(?:daily|every\ ?day|each\ day|(?:seven|7)\ days(?:\ (?:a|per)\ week)?|all\ week
        |throughout\ the\ week|all\ days)\b))
    | \b(?P<set>(?i:weekday|weeknight|weekend))s?\b
    | \b(?P<first>{_DAY})(?:\ ?(?:-|\u2013|\u2014|\bto\b|\bthrough\b|\bthru\b|\buntil\b)\ ?(?P<last>{_DAY}))?
    """,
    re.VERBOSE,
)
_BETWEEN = re.compile(r"\s?(?:,|/|&|(?:,\s)?\band\b|(?:,\s)?\bor\b)\s?")
_EXCEPT = re.compile(r"\b(?:except|excluding|but not)(?: for| on)?\s?$", re.IGNORECASE)
_CLOSED = re.compile(r"\bclosed(?: on| every)?\s?$", re.IGNORECASE)
_LOOK_BACK = 24  # characters before a set that may hold "except" or "closed"


@dataclass(frozen=True)
class DaySet:
    """Days named by one expression, `text[start:end]`."""

    days: frozenset[int]
    start: int
    end: int
    closed: bool = False  # "closed on Mondays"


def find_day_sets(text: str) -> list[DaySet]:
    """The sets of days that a text names, from left to right: lists are one set, exceptions are taken off."""
    found: list[DaySet] = []
    for named in _lists(text):
        before = text[max(0, named.start - _LOOK_BACK) : named.start]
        if _EXCEPT.search(before):
            whole = found.pop() if found else DaySet(ALL_DAYS, named.start, named.end)
            found.append(DaySet(whole.days - named.days, whole.start, whole.end))
        else:
            found.append(DaySet(named.days, named.start, named.end, closed=bool(_CLOSED.search(before))))
    return found


def day_number(name: str) -> int:
    """0 for "Monday", "mondays" or "Mon" to 6 for "Sunday"."""
    return [day[:3] for day in calendar.day_name].index(name[:3].title())


def _lists(text: str) -> list[DaySet]:
    """Days and spans of days, those that a list puts together as one."""
    lists: list[DaySet] = []
    for match in _GROUP.finditer(text):
        days, start = _days(match), match.start()
        if lists and _BETWEEN.fullmatch(text, lists[-1].end, start):
            last = lists.pop()
            days, start = last.days | days, last.start
        lists.append(DaySet(days, start, match.end()))
    return lists


def _days(match: re.Match[str]) -> frozenset[int]:
    if match["all"]:
        return ALL_DAYS
    if match["set"]:
        return frozenset({5, 6} if match["set"].lower() == "weekend" else range(5))
    first = day_number(match["first"])
    last = day_number(match["last"] or match["first"])
    return frozenset((first + step) % 7 for step in range((last - first) % 7 + 1))

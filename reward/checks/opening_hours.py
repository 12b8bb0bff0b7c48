"""Opening hours: which days a time is stated for, and whether the documents give the same hours for those
days.

The right hours on the wrong day are the commonest wrong numbers in answers that are written from business
data (RAGTruth's Data2txt), and every one of them is somewhere in the document. So times are tied to days:

    "open Monday to Friday from 6 am to 5:30 pm and Saturday from 7 am"  ->  {Mon..Fri}: 6:00-17:30, {Sat}:
    7:00-

and are held against the documents' table of weekdays (`"Monday": "6:0-17:30"`). A day that such a table
leaves out, or gives as 0:0-0:0, is a closed day. Tables whose hours never exceed 12 may be in twelve-hour
style; then both readings of a time count.
"""

import calendar
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from reward.checks.check import Check, Found
from reward.checks.days import ALL_DAYS, FULL, DaySet, day_number, find_day_sets
from reward.claims.numbers import Form, Kind, Number
from reward.types import ClaimState, Document

_DAY_MINUTES = 24 * 60
_ENTRY = re.compile(
    rf"""["'](?P<day>(?i:{FULL}))["']\s*:\s*["'](?P<h1>\d\d?):(?P<m1>\d\d?)-(?P<h2>\d\d?):(?P<m2>\d\d?)["']"""
)
_SENTENCE_END = re.compile(r"\n|;|(?<![AaPp]\.[Mm])[.!?](?=\s+[A-Z*\-\u2022])")
_FORWARD = re.compile(r"\W{0,3}(?:(?:on|every|each|from|during|for)\W{1,2})?(?:the\W)?", re.IGNORECASE)
_OPENING = re.compile(r"\b(?:opens?|opened|hours?|operat\w+|clos(?:e[sd]?|ing))\b", re.IGNORECASE)
_OTHERWISE = re.compile(
    r"\b(?:extended|different|longer|shorter|later|earlier|reduced|limited|var(?:y|ies|ying))\b"
)
_CLOSES = re.compile(r"\b(?:until|till?|to|clos(?:es|ing)(?: at| time)?)\s?$", re.IGNORECASE)
_OPENS = re.compile(r"\b(?:opens?|opening|starting|from)(?: at| as early as)?\s?$", re.IGNORECASE)


@dataclass(frozen=True)
class Hours:
    """One stretch of opening hours, `document.text[start:end]`: all readings, in minutes since midnight."""

    opens: frozenset[int]
    closes: frozenset[int]
    start: int
    end: int


@dataclass(frozen=True)
class Timetable:
    """The hours of each day in one document; a day that is not in it is closed."""

    document: Document
    days: Mapping[int, Sequence[Hours]]


@dataclass(frozen=True)
class Opening:
    """A statement of a response: it is open on these days from, or until, these times."""

    number: Number  # the time or the range of times
    days: frozenset[int] | None  # None when the sentence names none
    opens: frozenset[int] | None  # None when only the closing time is stated
    closes: frozenset[int] | None
    stated: bool  # whether the sentence speaks of opening hours or of days


class OpeningHoursCheck(Check):
    """Do the documents give these hours for these days?"""

    @cached_property
    def _tables(self) -> list[Timetable]:
        return find_timetables(self.query.documents)

    @cached_property
    def _openings(self) -> list[Opening]:
        return find_openings(self.response, self.numbers)

    def find(self, number: Number) -> Found | None:
        if not self._tables:
            return None
        opening = next((opening for opening in self._openings if opening.number is number), None)
        if opening is None:
            return self._every_day(number)
        for table in self._tables:
            if (hours := agrees(opening, table, self._openings)) is not None:
                return Found(ClaimState.SUPPORTED, table.document, hours.start, hours.end)
        if not opening.stated or (opening.days is None and self.in_documents(number)):
            return None
        table = self._tables[0]
        first = next((hours for day in table.days.values() for hours in day), None)
        at = (first.start, first.end) if first else (0, 0)
        return Found(ClaimState.CONTRADICTED, table.document, *at, instead=describe(table, opening))

    def _every_day(self, number: Number) -> Found | None:
        """Whether "7 days a week" can be said: a table leaves no day closed."""
        day_sets = find_day_sets(self.response[number.start : number.end + len(" per week")])
        if not day_sets or day_sets[0].start != 0:
            return None
        table = next((table for table in self._tables if len(table.days) == len(ALL_DAYS)), None)
        if table is None:
            return Found(ClaimState.NOT_IN_DOCUMENTS)
        hours = table.days[0][0]
        return Found(ClaimState.SUPPORTED, table.document, hours.start, hours.end)


def find_timetables(documents: Sequence[Document]) -> list[Timetable]:
    """The tables of weekdays and hours in the documents' text, as JSON or as Python writes them."""
    tables = []
    for document in documents:
        entries = list(_ENTRY.finditer(document.text))
        twelve = all(int(entry[name]) <= 12 for entry in entries for name in ("h1", "h2"))
        days: dict[int, list[Hours]] = {}
        for entry in entries:
            if hours := _hours(entry, both_halves=twelve):
                days.setdefault(day_number(entry["day"]), []).append(hours)
        tables += [Timetable(document, days)] if entries else []
    return tables


def find_openings(response: str, numbers: Iterable[Number]) -> list[Opening]:
    """The times among a response's numbers, with the days that they are stated for."""
    times = [number for number in numbers if number.kind is Kind.TIME]
    if not times:
        return []
    day_sets = find_day_sets(response)
    openings: list[Opening] = []
    ends = [boundary.end() for boundary in _SENTENCE_END.finditer(response)]
    for start, end in pairwise([0, *ends, len(response)]):
        inside = [time for time in times if start <= time.start < end]
        days = [found for found in day_sets if start <= found.start < end]
        speaks_of_hours = _OPENING.search(response, start, end) is not None
        # Of some days it says only that their hours are others: "with extended hours on Fridays".
        special = (one.days for one in days if _OTHERWISE.search(response, max(0, one.start - 32), one.start))
        otherwise = frozenset[int]().union(*special)
        for time in inside:
            bound = _bound_days(response, time, days, inside[0])
            if bound is None:
                openings.append(Opening(time, None, *_ends(response, time), stated=speaks_of_hours))
            elif not bound.closed:
                named = bound.days - otherwise or bound.days
                openings.append(Opening(time, named, *_ends(response, time), stated=True))
    return openings


def agrees(opening: Opening, table: Timetable, others: Sequence[Opening]) -> Hours | None:
    """The hours of the table that a statement agrees with, or None.

    A day of which a narrower one of the `others` speaks ("..., on Fridays until 10 pm") is left to that one.
    """
    if opening.days is None:
        return next((h for day in table.days.values() for h in day if _fits(opening, h)), None)
    special = (o.days for o in others if o.days is not None and o.days < opening.days)
    days = opening.days - frozenset().union(*special) or opening.days
    fitting = [next((h for h in table.days.get(day, ()) if _fits(opening, h)), None) for day in sorted(days)]
    return fitting[0] if all(fitting) else None


def describe(table: Timetable, opening: Opening) -> str:
    """The hours that the table gives for the days of a statement, for people."""
    days = sorted(opening.days if opening.days is not None else ALL_DAYS)
    text = table.document.text
    written = {day: " and ".join(text[h.start : h.end] for h in table.days.get(day, ())) for day in days}
    return ", ".join(f"{calendar.day_name[day][:3]} {written[day] or 'closed'}" for day in days)


def _hours(entry: re.Match[str], *, both_halves: bool) -> Hours | None:
    opens, closes = (int(entry[h]) * 60 + int(entry[m]) for h, m in (("h1", "m1"), ("h2", "m2")))
    if opens == closes == 0:
        return None
    readings = (0, _DAY_MINUTES // 2) if both_halves else (0,)
    opened, closed = (
        frozenset((minutes + shift) % _DAY_MINUTES for shift in readings) for minutes in (opens, closes)
    )
    return Hours(opened, closed, entry.start("h1"), entry.end("m2"))


def _bound_days(text: str, time: Number, day_sets: Sequence[DaySet], first: Number) -> DaySet | None:
    """The days that a time belongs to: those after it if the sentence begins with a time, else those
    before."""
    after = next((found for found in day_sets if found.start >= time.end), None)
    before = next((found for found in reversed(day_sets) if found.end <= time.start), None)
    time_first = bool(day_sets) and first.start < day_sets[0].start
    gap = _FORWARD.fullmatch(text, time.end, after.start) if after else None
    linked = gap is not None and (time_first or bool(gap[0].strip(" ,;:*-")))
    if after is not None and (linked or before is None or (time_first and before.end <= first.start)):
        return after
    return before


def _ends(text: str, time: Number) -> tuple[frozenset[int] | None, frozenset[int] | None]:
    if time.form is Form.RANGE and len(time.parts) == 2:
        return _minutes(time.parts[0]), _minutes(time.parts[1])
    before = text[max(0, time.start - 24) : time.start]
    is_until = text[time.start : time.end].lower().startswith("until")
    minutes = _minutes(time)
    if is_until or _CLOSES.search(before) or time.form in (Form.AT_MOST, Form.LESS_THAN):
        return None, minutes
    if _OPENS.search(before) or time.form in (Form.AT_LEAST, Form.MORE_THAN):
        return minutes, None
    return minutes, minutes


def _minutes(time: Number) -> frozenset[int]:
    return frozenset(int(reading[0]) % _DAY_MINUTES for reading in time.readings)


def _fits(opening: Opening, hours: Hours) -> bool:
    opens, closes = opening.opens, opening.closes
    if opens is not None and opens is closes:  # one time that says neither
        return bool(opens & (hours.opens | hours.closes))
    return (opens is None or bool(opens & hours.opens)) and (closes is None or bool(closes & hours.closes))

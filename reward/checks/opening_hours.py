"""Opening hours: which days a time is stated for, and whether the documents give the same hours for those
days.

The right hours on the wrong day are the commonest wrong numbers in answers that are written from business
data (RAGTruth's Data2txt), and every one of them stands somewhere in the document. So times are tied to days:

    "open Monday to Friday from 6 am to 5:30 pm and Saturday from 7 am"  ->  {Mon..Fri}: 6:00-17:30, {Sat}:
    7:00-

and are held against the documents' table of weekdays (`"Monday": "6:0-17:30"`). A day that such a table
leaves out, or gives as 0:0-0:0, is a closed day. Tables whose hours never exceed 12 may be in twelve-hour
style; then both readings of a time count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reward.checks.check import Check, Found
from reward.checks.days import ALL_DAYS, DaySet, day_number, find_day_sets
from reward.claims.numbers import Form, Kind, Number
from reward.types import ClaimState, Document, RagQuery

_DAY_MINUTES = 24 * 60
_ENTRY = re.compile(
    r"""["'](?P<day>\w{3,9}day)["']\s*:\s*["'](?P<h1>\d{1,2}):(?P<m1>\d{1,2})-(?P<h2>\d{1,2}):(?P<m2>\d{1,2})["']"""
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
    """One stretch of opening hours, `document.text[start:end]`; minutes since midnight, all their
    readings."""

    opens: frozenset[int]
    closes: frozenset[int]
    start: int
    end: int


@dataclass(frozen=True)
class Timetable:
    """The hours of each day in one document; a day that is not in it is closed."""

    document: Document
    days: Mapping[int, tuple[Hours, ...]]


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

    def __init__(
        self,
        query: RagQuery,
        response: str,
        numbers: Sequence[Number],
        *,
        in_documents: Callable[[Number], bool],
    ) -> None:
        super().__init__(query, response, numbers, in_documents=in_documents)
        self._response, self._in_documents = response, in_documents
        self._timetables = find_timetables(query.documents)
        self._openings = find_openings(response, numbers) if self._timetables else []

    def find(self, number: Number) -> Found | None:
        """As `reward.checks.Check`."""
        if not self._timetables:
            return None
        opening = next((opening for opening in self._openings if opening.number is number), None)
        if opening is None:
            return self._every_day(number)
        for table in self._timetables:
            if (hours := agrees(opening, table, self._openings)) is not None:
                return Found(ClaimState.SUPPORTED, table.document, hours.start, hours.end)
        if not opening.stated or (opening.days is None and self._in_documents(number)):
            return None
        table = self._timetables[0]
        first = next((hours for day in table.days.values() for hours in day), None)
        at = (first.start, first.end) if first else (0, 0)
        return Found(ClaimState.CONTRADICTED, table.document, *at, instead=describe(table, opening))

    def _every_day(self, number: Number) -> Found | None:
        """Whether "7 days a week" can be said: a table leaves no day closed."""
        day_sets = find_day_sets(self._response[number.start : number.end + len(" per week")])
        if not day_sets or day_sets[0].start != 0:
            return None
        table = next((t for t in self._timetables if sum(map(bool, t.days.values())) == 7), None)
        if table is None:
            return Found(ClaimState.NOT_IN_DOCUMENTS)
        hours = table.days[0][0]
        return Found(ClaimState.SUPPORTED, table.document, hours.start, hours.end)


def find_timetables(documents: Sequence[Document]) -> list[Timetable]:
    """The tables of weekdays and hours in the documents' text, as JSON or as Python writes them."""
    tables = []
    for document in documents:
        entries = [(day_number(entry["day"]), entry) for entry in _ENTRY.finditer(document.text)]
        known = [(day, entry) for day, entry in entries if day is not None]
        if known:
            twelve = all(int(entry[name]) <= 12 for _, entry in known for name in ("h1", "h2"))
            days: dict[int, tuple[Hours, ...]] = {}
            for day, entry in known:
                hours = _hours(entry, both_halves=twelve)
                days[day] = (*days.get(day, ()), hours) if hours else days.get(day, ())
            tables.append(Timetable(document, days))
    return tables


def find_openings(response: str, numbers: Iterable[Number]) -> list[Opening]:
    """The times of a response with the days that they are stated for.

    Args:
        response: The response.
        numbers: Its numbers, from left to right.
    """
    times = [number for number in numbers if number.kind is Kind.TIME]
    if not times:
        return []
    openings: list[Opening] = []
    day_sets = find_day_sets(response)
    for start, end in _sentences(response):
        inside = [time for time in times if start <= time.start < end]
        if inside:
            days = [found for found in day_sets if start <= found.start < end]
            openings += _openings(response, (start, end), inside, days)
    return openings


def agrees(opening: Opening, table: Timetable, others: Sequence[Opening]) -> Hours | None:
    """The hours of the table that a statement agrees with, or None.

    A day that a narrower statement speaks of ("..., on Fridays until 10 pm") is left to that statement.

    Args:
        opening: The statement.
        table: The hours.
        others: All statements of the same response.
    """
    if opening.days is None:
        return next((h for day in table.days.values() for h in day if _fits(opening, h)), None)
    special = (o.days for o in others if o.days is not None and o.days < opening.days)
    days = opening.days - frozenset().union(*special) or opening.days
    fitting = [next((h for h in table.days.get(day, ()) if _fits(opening, h)), None) for day in sorted(days)]
    return fitting[0] if all(fitting) else None


def describe(table: Timetable, opening: Opening) -> str:
    """The hours that the table gives for the days of a statement, for people."""
    names = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    days = sorted(opening.days if opening.days is not None else ALL_DAYS)
    text = table.document.text
    written = {day: " and ".join(text[h.start : h.end] for h in table.days.get(day, ())) for day in days}
    return ", ".join(f"{names[day]} {written[day] or 'closed'}" for day in days)


def _hours(entry: re.Match[str], *, both_halves: bool) -> Hours | None:
    opens, closes = (int(entry[h]) * 60 + int(entry[m]) for h, m in (("h1", "m1"), ("h2", "m2")))
    if opens == closes == 0:
        return None
    readings = (0, _DAY_MINUTES // 2) if both_halves else (0,)
    opened, closed = (
        frozenset((minutes + shift) % _DAY_MINUTES for shift in readings) for minutes in (opens, closes)
    )
    return Hours(opened, closed, entry.start("h1"), entry.end("m2"))


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for boundary in _SENTENCE_END.finditer(text):
        yield start, boundary.end()
        start = boundary.end()
    yield start, len(text)


def _openings(
    text: str, sentence: tuple[int, int], times: Sequence[Number], day_sets: Sequence[DaySet]
) -> Iterator[Opening]:
    opening_words = _OPENING.search(text, *sentence) is not None
    otherwise = _days_without_hours(text, day_sets)
    for time in times:
        bound = _bound_days(text, time, day_sets, times[0])
        opens, closes = _ends(text, time)
        days = bound.days - otherwise or bound.days if bound is not None else None
        if bound is None or not bound.closed:
            yield Opening(time, days, opens, closes, stated=opening_words or days is not None)


def _days_without_hours(text: str, day_sets: Sequence[DaySet]) -> frozenset[int]:
    """Days of which a sentence says only that their hours are others: "with extended hours on Fridays"."""
    special = (d.days for d in day_sets if _OTHERWISE.search(text, max(0, d.start - 32), d.start))
    return frozenset().union(*special)


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
    written = text[time.start : time.end]
    minutes = _minutes(time)
    if (
        _CLOSES.search(before)
        or time.form in (Form.AT_MOST, Form.LESS_THAN)
        or written[:5].lower() == "until"
    ):
        return None, minutes
    if _OPENS.search(before) or time.form in (Form.AT_LEAST, Form.MORE_THAN):
        return minutes, None
    return minutes, minutes


def _minutes(time: Number) -> frozenset[int]:
    return frozenset(int(reading[0]) % _DAY_MINUTES for reading in time.readings)


def _fits(opening: Opening, hours: Hours) -> bool:
    opens = opening.opens is None or bool(opening.opens & hours.opens)
    closes = opening.closes is None or bool(opening.closes & hours.closes)
    if opening.opens is opening.closes:  # one time that says neither
        return bool((opening.opens or frozenset()) & (hours.opens | hours.closes))
    return opens and closes

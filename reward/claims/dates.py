"""Dates and times as a kind of claim: centuries, years and their parts, days, weekdays, and times of day.

The readers are those of numbers, which read all of them but what has no number: weekdays, holidays, and a
month that stands alone ("in May"); those are in `day_names`. Where this kind is chosen, the kind of numbers
leaves dates to it; where it is not, dates are numbers, as in the paper. A weekday is supported by the same
weekday, by a range that it lies in ("Monday to Friday"), or by a full date that fell on it.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import islice

from reward.claims.day_names import days_of_document, named_day, names_of_days, weekday
from reward.claims.kind import ClaimKind, Context, Place
from reward.claims.numbers import Form, Kind, Number
from reward.claims.numbers.dates import as_year
from reward.claims.numbers.equality import equal
from reward.claims.numbers.eras import is_era, lies_in_era, lone_period, lone_seasons, part_of_months
from reward.claims.numbers.find import find_numbers
from reward.claims.numbers.index import NumberIndex, index_numbers
from reward.claims.numbers.kind import Numbers
from reward.claims.numbers.lookup import NumberLookup
from reward.claims.numbers.model import changed, unbound
from reward.claims.numbers.questions import gives_away
from reward.claims.numbers.sentences import is_of_sentence, sentence_of
from reward.claims.numbers.trends import Trend, are_opposed
from reward.claims.numbers.vocabulary import END
from reward.claims.text import Spans, content_words, sentence_span
from reward.types import Document

_BEFORE_DATE = re.compile(r",? (?:the )?")
_NAMES_OF_MONTHS = list(calendar.month_name)
_MONTHS = re.compile(
    rf"\b(?:[Bb]etween|[Ff]rom) (?P<first>{'|'.join(_NAMES_OF_MONTHS[1:])}) (?:and|to|through|until|till) "
    rf"(?P<last>{'|'.join(_NAMES_OF_MONTHS[1:])})(?:,? (?:of )?(?P<year>[12]\d{{3}}))?"
)
# What is one year, or one day, from a date that is named before it.
_BESIDE = re.compile(
    r"\b(?:(?P<before>(?P<year_before>(?:a|the) year (?:before|earlier)|the (?:previous|preceding) year)"
    r"|the (?:day|evening|night) before|the previous (?:day|evening|night))"
    r"|(?P<year_after>(?:a|the) year later|the (?:next|following) year)"
    r"|the (?:next|following) (?:day|morning|evening|afternoon|night)|(?:a|the) day later)\b",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"\b(?:end|expir|due\b|until\b|by\b|run(?:s|ning)? (?:to|out)|last|endet|läuft|bis\b|fällig"
    r"|vence|termina|hasta\b|expire|jusqu|échéance|prend fin|scade|entro\b|loopt)",
    re.IGNORECASE,
)
_LENGTHS = {"day": 1, "week": 7, "month": 0, "year": 0}  # in days; 0: as long as the calendar says
_SIDES = (Trend.BEFORE, Trend.AFTER)
_MOST_YEARS, _MOST_MONTHS = 20, 2  # between a date and a bound that is said of it
_DAYS_AND_YEARS = (Kind.DATE, Kind.YEAR)
_BESIDE_REACH = 200  # characters
_ENDS_OF_YEARS = ((Decimal(12), Decimal(0)), (Decimal(12), Decimal(31)))
_END_OF_DECEMBER = re.compile(r"\bend of December\b", re.IGNORECASE)
_END_OF = re.compile(r"\bend of (?:the year )?$", re.IGNORECASE)
_MOST_DAYS = 64  # that are looked at
_MORE_WORDS = 1  # of a sentence, so that chance decides nothing
_END_OF_REACH = 20  # characters
_LEAP_YEAR = 2000  # of a date without its year
_WEEKS = _WORKING, _FREE, _ALL = [tuple(map(Decimal, days)) for days in ((1, 5), (6, 7), (1, 7))]
_NOT = re.compile(r"\b(?:not?|never|except|excluding|excludes?)\b|n['\u2019]t\b", re.IGNORECASE)
_COUNTED = re.compile(rf"[ \u00a0](?!was\b|is\b|has\b|as\b|its\b|this\b)[a-z]+s{END}")  # "1743 rooms"


@dataclass(frozen=True)
class Dates(Numbers):
    """The dates and times of one audit."""

    name: str = "date"

    def find(self, response: str) -> Sequence[Number]:
        """The dates, times, lone months, weekdays and holidays of a response."""
        dates = [number for number in self.all_of(response) if number.is_calendar]
        return sorted([*dates, *_names_of_days(response, dates)], key=lambda one: one.start)

    def read(self, answer: str, *, of_documents: bool = False, asked: Number | None = None) -> Number | None:
        """The date, time, weekday or month of a bracket; a bare number may be a year, a day or an hour."""
        if named := named_day(answer) or lone_period(answer):
            return named
        number = Numbers.read(self, answer, of_documents=of_documents)
        return number if number is not None and (number.is_calendar or number.kind is Kind.COUNT) else None

    def bears_out(self, consensus: Number, claimed: Number, *, relative_tolerance: float = 0.0) -> bool:
        if claimed.kind is Kind.WEEKDAY and claimed.form is Form.EXACT:
            return _weekday_of(consensus) == claimed.value
        return Numbers.bears_out(self, consensus, claimed)

    def gives_away(self, text: str, mention: Number) -> bool:
        """Whether a text holds the date or a part of it: "in May" gives a part of 3 May 2021 away."""
        names = {(one.kind, one.values[one.kind is Kind.DATE]) for one in _names_of_days(text, ())}
        months = {(Kind.DATE, reading[1]) for reading in mention.readings if mention.kind is Kind.DATE}
        own = months if mention.kind is Kind.DATE else {(mention.kind, mention.value)}
        return not names.isdisjoint(own) or (mention.kind is not Kind.WEEKDAY and gives_away(text, mention))

    def stated(self, text: str, start: int, end: int, answer: Number) -> Number | None:
        """The date of a document in `text[start:end]` that says what an answer says."""
        if answer.kind is Kind.WEEKDAY or _is_lone_month(answer):
            days = (one for one in names_of_days(text) if one.start < end and one.end > start)
            return next((one for one in days if self.equal(one, answer)), None) or _dated(
                index_numbers(text).between(start, end), answer
            )
        return Numbers.stated(self, text, start, end, answer)

    def lookup(self, documents: Sequence[Document]) -> DateLookup:
        return _lookup_in(tuple(documents), locale=self.config.locale)

    is_looked_up = ClaimKind.is_looked_up  # every date is, must stand in the documents, and follows from none
    must_stand = ClaimKind.must_stand
    follows = ClaimKind.follows


class DateLookup(NumberLookup):
    """The dates of all documents of a query, with the names of their days."""

    def __init__(self, documents: Sequence[Document], *, locale: str) -> None:
        super().__init__(documents, locale=locale)
        self._documents = documents

    def find(self, claimed: Number, *, context: Context | None = None) -> Place[Number] | None:
        """The place that supports a date, a part of a year, a weekday or a month."""
        if claimed.kind is Kind.WEEKDAY and claimed.form is Form.EXACT and context is not None:
            return self._find_weekday(claimed, context())
        if claimed.kind is Kind.WEEKDAY or _is_lone_month(claimed):
            found = self._find_day(claimed) or self._find_months(claimed, context)
            return found or self._find_other_days(claimed, context)
        if place := super().find(claimed, context=context):
            return place
        if is_era(claimed):
            return self._find_bare_year(claimed)
        if (
            claimed.trend in _SIDES
            and context is not None
            and (place := self._find_on_side(claimed, context()))
        ):
            return place
        if claimed.form is not Form.EXACT:
            return None
        found = self._find_named(claimed) or self._find_months(claimed, context)
        found = found or self._find_beside(claimed) or self._find_end_of_year(claimed, context)
        return found or self._find_later(claimed, context)

    def _find_weekday(self, claimed: Number, said: str) -> Place[Number] | None:
        """One weekday, as its sentence speaks of it."""
        if self._dated_days and self._says_otherwise(claimed, said):
            return None
        in_range = _ends_range(claimed, said)
        is_end = self._has_ranges and in_range
        place = self._find_day(claimed, is_end=is_end, is_one=not (in_range or _recurs(claimed, said)))
        if place is not None and is_end and _is_week(place.mention):
            # The range is not Monday to Friday, which `_ends_range` leaves out.
            return None if place.mention.values == _WORKING else place
        return None if place is None or self._is_of_other_day(place, said) else place

    def _find_day(
        self, claimed: Number, *, is_end: bool = False, is_one: bool = True
    ) -> Place[Number] | None:
        """A weekday, "weekdays", or a month without a day and year.

        An end of a range (`is_end`) is not supported by a range that holds it, as "Monday to Friday" holds
        Tuesday. Only one day (`is_one`), and not "on Saturdays", is supported by a full date.
        """
        has_rate = claimed.rate and any(day.rate for days in self._days for day in days)
        for document, days in zip(self._documents, self._ends if is_end else self._days, strict=True):
            if has_rate:
                days = tuple(day for day in days if day.rate)
            if day := next((day for day in days if _names_day(day, claimed)), None):
                return Place(day, document)
            dated = None if has_rate or not is_one else _dated(index_numbers(document.text).dates(), claimed)
            if dated is not None:
                return Place(dated, document)
        return self._find_each(claimed) if claimed.form is Form.RANGE else None

    def _find_other_days(self, claimed: Number, context: Context | None) -> Place[Number] | None:
        """ "Not at weekends" of what is on weekdays."""
        is_denied = claimed.values == _FREE and context is not None and _NOT.search(context())
        return self._find_day(changed(claimed, readings=(_WORKING,))) if is_denied else None

    def _is_of_other_day(self, place: Place[Number], said: str) -> bool:
        """Whether a day is only in a range of days, while another day is by itself where more of the
        sentence's words are: "on Tuesdays", where "sees children on Wednesdays" is beside "Monday to Friday".
        """
        if place.mention.form is not Form.RANGE:
            return False
        words = content_words(said)
        others = (
            Place(day, document)
            for document, days in zip(self._documents, self._days, strict=True)
            for day in days
            if day.kind is Kind.WEEKDAY and day.form is Form.EXACT and not _is_inside(day, days)
        )
        shared = len(words & _words_of_sentence(place))
        near = islice(others, _MOST_DAYS)
        return any(len(words & _words_of_sentence(other)) > shared + _MORE_WORDS for other in near)

    def _says_otherwise(self, claimed: Number, said: str) -> bool:
        """Whether a sentence names a weekday beside a date that the documents give to another weekday."""
        dates = {date.values[1:] for day, date in _days_and_dates(said) if day.value == claimed.value}
        return any(claimed.value not in self._dated_days.get(date, {claimed.value}) for date in dates)

    @cached_property
    def _dated_days(self) -> dict[tuple[Decimal, ...], set[Decimal]]:
        """The weekdays that the documents name beside each month and day."""
        given: dict[tuple[Decimal, ...], set[Decimal]] = {}
        for document in self._documents:
            for day, date in _days_and_dates(document.text):
                given.setdefault(date.values[1:], set()).add(day.value)
        return given

    @cached_property
    def _days(self) -> list[tuple[Number, ...]]:
        """The weekdays and lone months of each document."""
        return [days_of_document(document.text) for document in self._documents]

    @cached_property
    def _ends(self) -> list[tuple[Number, ...]]:
        """The same without ranges of weekdays, whose ends are there by themselves."""
        return [tuple(one for one in days if one.form is Form.EXACT or _is_week(one)) for days in self._days]

    @cached_property
    def _has_ranges(self) -> bool:
        """Whether a document says from which weekday to which."""
        return any(day.form is Form.RANGE for days in self._days for day in days)

    def _find_each(self, claimed: Number) -> Place[Number] | None:
        """The days of "weekdays" or "weekends", where the documents list each of them."""
        low, high = map(int, claimed.values)
        is_one = _is_one_weekend(claimed)
        places = [self._find_day(weekday(day, 0, 0), is_one=is_one) for day in range(low, high + 1)]
        is_enough = any(places) if is_one else all(places)
        return next(filter(None, places)) if is_enough else None

    def _find_bare_year(self, claimed: Number) -> Place[Number] | None:
        """A year of a century or a decade that no word before it shows to be one: "built 1743"."""
        for document, index in self.texts:
            for number in index.bare_years:
                is_amount = number.kind is Kind.COUNT and _COUNTED.match(document.text, number.end)
                if not is_amount and lies_in_era(claimed, as_year(number)):
                    return Place(number, document)
        return None

    def _find_months(self, claimed: Number, context: Context | None) -> Place[Number] | None:
        """The quarter or half of a year of whose months a sentence names the first and the last."""
        if context is None or claimed.kind is not Kind.DATE or claimed.values[2]:
            return None
        for months in _MONTHS.finditer(context()):
            first, last = (_NAMES_OF_MONTHS.index(months[end]) for end in ("first", "last"))
            part = part_of_months(first, last)
            if not part or claimed.values[1] not in (first, last):
                continue
            year = Decimal(months["year"] or 0)
            places = [
                Place(one, document)
                for document, index in self.texts
                for one in index.numbers
                if one.kind is Kind.PERIOD and one.values[1] == part
            ]
            with_year = [place for place in places if place.mention.value]
            of_year = [place for place in with_year if place.mention.value == year or not year]
            if fitting := of_year or ([] if with_year else places):
                return fitting[0]
        return None

    def _find_beside(self, claimed: Number) -> Place[Number] | None:
        """A year or a day that a document names by the one beside it: "2023, and the year before"."""
        year, *rest = claimed.values if claimed.kind is Kind.DATE else (claimed.value, 0, 0)
        if claimed.kind not in _DAYS_AND_YEARS or any(rest) is not all(rest):
            return None
        for its_year, place in self._beside.get((year, 0, 0) if not any(rest) else (0, *rest), {}).items():
            if not (its_year and year) or its_year == year:
                return place
        return None

    def _find_end_of_year(self, claimed: Number, context: Context | None) -> Place[Number] | None:
        """The year at whose end something is: "31 December 2025", or the end of that month."""
        if claimed.kind is not Kind.DATE or claimed.values[1:] not in _ENDS_OF_YEARS:
            return None
        is_day = claimed.values[2] != 0
        if not is_day and (context is None or not _END_OF_DECEMBER.search(context())):
            return None
        for document, index in self.texts:
            for entry in index.by_value.get(claimed.value, ()):
                for _, year in entry.places:
                    if _END_OF.search(document.text, max(0, year.start - _END_OF_REACH), year.start):
                        return Place(year, document)
        return None

    def _find_later(self, claimed: Number, context: Context | None) -> Place[Number] | None:
        """A date of a document to which a length of time is added: a term of six months from 1 April ends on
        30 September. The sentence must state both, and that something ends.
        """
        if context is None or claimed.kind is not Kind.DATE or not all(claimed.values):
            return None
        if not _ENDS.search(context()):
            return None
        said = [unbound(one) for one in find_numbers(context())]
        for document, index in self.texts:
            dates = [one for one in index.dates() if _is_full(one) and one.value and one.form is Form.EXACT]
            numbers = index.numbers if dates else ()
            lengths = [one for one in numbers if one.unit in _LENGTHS and one.step == 1][:_MOST_DAYS]
            said_lengths = [length for length in lengths if any(equal(one, unbound(length)) for one in said)]
            for date in dates[:_MOST_DAYS]:
                is_said = any(one.values[1:] == date.values[1:] for one in said)
                for length in said_lengths if is_said else ():
                    if claimed.values in _ends_after(date, length):
                        return Place(date, document)
        return None

    @cached_property
    def _beside(self) -> dict[tuple[int | Decimal, ...], dict[int, Place[Number]]]:
        """By year, and by month and day: the dates that are one from an earlier named date, by their year."""
        found: dict[tuple[int | Decimal, ...], dict[int, Place[Number]]] = {}
        for document, index in self.texts:
            for match in _BESIDE.finditer(document.text):
                of_year = bool(match["year_before"] or match["year_after"])
                near = index.between(max(0, match.start() - _BESIDE_REACH), match.start())
                dates = [one for one in near if one.kind in _DAYS_AND_YEARS and one.end <= match.start()]
                named = [one for one in dates if (one.value if of_year else _is_full(one))]
                if named and (beside := _beside_of(named[-1], -1 if match["before"] else 1, of_year=of_year)):
                    year, *rest = beside
                    key = (0, *rest) if any(rest) else beside
                    found.setdefault(key, {}).setdefault(year, Place(named[-1], document))
        return found

    def _find_on_side(self, claimed: Number, said: str) -> Place[Number] | None:
        """A date shortly before, or after, the claimed one, of which a sentence with the same words speaks.

        "Before 1900" of what was completed in 1887, where the documents name no other bound.
        """
        word, side = ("before", 1) if claimed.trend == Trend.BEFORE else ("after", -1)
        entries = (one for _, index in self.texts for one in index.by_value.get(claimed.value, ()))
        is_known = any(one.number.readings == claimed.readings for one in entries)
        if is_known or not re.search(rf"\b{word} (?:\w+ ){{0,2}}{claimed.value}\b", said):
            return None  # "until 2026", or a bound that the documents have
        for document, index in self.texts:
            for number in islice(index.numbers, _MOST_DAYS):
                is_date = number.kind in _DAYS_AND_YEARS and number.form is Form.EXACT and not number.trend
                if not is_date or not _is_shortly_before(number, claimed, side):
                    continue
                place = Place(number, document)
                if is_of_sentence(said, place) and _is_alone(index, place):
                    return place
        return None

    def _find_named(self, claimed: Number) -> Place[Number] | None:
        """A holiday of the claimed date, or a season without its year, which is elsewhere."""
        year = claimed.value
        if year and not any(year in index.by_value for _, index in self.texts):
            return None
        for document in self._documents:
            days = [day for day in days_of_document(document.text) if not _is_lone_month(day)]
            for one in (*days, *lone_seasons(document.text)):
                if one.kind is claimed.kind and one.values[1:] == claimed.values[1:]:
                    return Place(one, document)
        return None


_lookup_in = lru_cache(maxsize=64)(DateLookup)


def _names_of_days(text: str, taken: Sequence[Number]) -> list[Number]:
    """The weekdays, lone months and holidays of a text that stand in none of the numbers taken."""
    days = names_of_days(text)
    if not days:
        return []
    spans = Spans((number.start, number.end) for number in taken)
    return [day for day in days if not spans.hold(day.start, day.start + 1)]


def _names_day(day: Number, claimed: Number) -> bool:
    """Whether a document's weekday or weekdays are the claimed ones, or its month the claimed one."""
    if Kind.WEEKDAY is day.kind is claimed.kind and day.form is Form.RANGE:
        if claimed.form is Form.EXACT and (claimed.rate or _is_one_weekend(day)):
            return False  # the first Friday of a month; of one weekend it may be either day
        return day.values[0] <= claimed.values[0] and claimed.values[-1] <= day.values[-1]
    if are_opposed(claimed, day) or (day.rate and claimed.rate and day.rate != claimed.rate):
        return False  # the first Sunday of a month, and the last one
    return (day.kind, day.values) == (claimed.kind, claimed.values)


def _is_full(date: Number) -> bool:
    """Whether a date has a day and a month."""
    return date.kind is Kind.DATE and all(date.values[1:])


def _beside_of(anchor: Number, step: int, *, of_year: bool) -> tuple[int, int, int] | None:
    """The year, or the day, before (-1) or after (1) another; the year of a day is 0 where it has none."""
    if anchor.form is not Form.EXACT:
        return None
    if of_year:
        return int(anchor.value) + step, 0, 0
    try:
        day = datetime.date(int(anchor.value) or _LEAP_YEAR, *map(int, anchor.values[1:]))
        day += datetime.timedelta(days=step)
    except (ValueError, OverflowError):
        return None
    return day.year if anchor.value else 0, day.month, day.day


def _ends_after(date: Number, length: Number) -> set[tuple[Decimal, ...]]:
    """The days on which a length of time from a date ends; months and years may end the day before, too."""
    year, month, day = map(int, date.values)
    unit, count = length.unit, int(length.value)
    try:
        begin = datetime.date(year, month, day)
        if days := _LENGTHS[unit]:
            ends = [begin + datetime.timedelta(days=days * count)]
        else:
            months = year * 12 + month - 1 + count * (12 if unit == "year" else 1)
            last = calendar.monthrange(months // 12, months % 12 + 1)[1]
            end = datetime.date(months // 12, months % 12 + 1, min(day, last))
            ends = [end, end - datetime.timedelta(days=1)]
    except (ValueError, OverflowError):
        return set()
    return {tuple(map(Decimal, (end.year, end.month, end.day))) for end in ends}


def _days_and_dates(text: str) -> list[tuple[Number, Number]]:
    """The weekdays that stand before a date, each with it: "Friday, 25 April"."""
    days = [day for day in names_of_days(text) if day.kind is Kind.WEEKDAY and day.form is Form.EXACT]
    if not days:
        return []
    dates = {date.start: date for date in index_numbers(text).dates() if date.values[2]}
    starts = ((day, match.end()) for day in days if (match := _BEFORE_DATE.match(text, day.end)))
    return [(day, dates[start]) for day, start in starts if start in dates]


def _words_of_sentence(place: Place[Number]) -> frozenset[str]:
    return content_words(sentence_of(place))


def _is_inside(day: Number, days: Sequence[Number]) -> bool:
    """Whether a day is an end of a range."""
    return any(one.form is Form.RANGE and one.start <= day.start < one.end for one in days)


def _ends_range(claimed: Number, said: str) -> bool:
    """Whether a weekday begins or ends a range of a sentence: "from Tuesday to Sunday"."""
    ranges = [day for day in days_of_document(said) if day.form is Form.RANGE and not _is_week(day)]
    return any(claimed.value in day.values for day in ranges)


def _recurs(claimed: Number, said: str) -> bool:
    """Whether a weekday is one of many: "on Saturdays", "every Saturday", but not "on Saturdays 8 and 15"."""
    day = calendar.day_name[int(claimed.value) - 1]
    return re.search(rf"\b(?:every|each) {day}\b|\b{day}s\b(?!,? \d)", said) is not None


def _is_week(days: Number) -> bool:
    """Whether a range may be said in one word: "weekdays", "weekends", "daily"."""
    return days.values in _WEEKS


def _is_one_weekend(days: Number) -> bool:
    """Whether "weekend" is in the singular, and not "weekends"."""
    return days.value == 6 and days.end - days.start == len("weekend")


def _is_lone_month(number: Number) -> bool:
    return number.kind is Kind.DATE and number.form is Form.EXACT and not any(number.values[::2])


def _is_alone(index: NumberIndex, place: Place[Number]) -> bool:
    """Whether a sentence has no other date, so that it speaks of one event, and denies nothing."""
    text = place.document.text
    low, high = sentence_span(text, place.mention.start, place.mention.end)
    dates = [one for one in index.between(low, high) if one.kind in _DAYS_AND_YEARS]
    within = all(place.mention.start <= one.start and one.end <= place.mention.end for one in dates)
    return within and _NOT.search(text, low, high) is None


def _is_shortly_before(number: Number, bound: Number, side: int) -> bool:
    """Whether a date is before another one (side 1) or after it (-1), by no more than a reader minds."""
    year, month, day = (*map(int, number.values), 0, 0)[:3]
    its_year, its_month, its_day = (*map(int, bound.values), 0, 0)[:3]
    if not (year and its_year) or (its_month and not month):
        return False
    if not its_month:
        return 0 < side * (its_year - year) <= _MOST_YEARS
    months = side * (12 * (its_year - year) + its_month - month)
    is_earlier_day = months == 0 and bool(day and its_day) and side * (its_day - day) > 0
    return 0 < months <= _MOST_MONTHS or is_earlier_day


def _weekday_of(number: Number) -> Decimal | None:
    """The weekday that a number states, or on which a full date fell."""
    if number.kind is Kind.WEEKDAY:
        return number.value
    if number.kind is not Kind.DATE or number.form is not Form.EXACT or not all(number.values):
        return None
    try:
        return Decimal(datetime.date(*map(int, number.values)).isoweekday())
    except ValueError:
        return None


def _dated(numbers: Iterable[Number], claimed: Number) -> Number | None:
    """The first date that fell on the claimed weekday, or lies in the claimed month."""
    for number in numbers:
        if number.kind is not Kind.DATE or number.form is not Form.EXACT or are_opposed(claimed, number):
            continue
        if claimed.kind is Kind.WEEKDAY and _weekday_of(number) == claimed.value:
            return number
        if claimed.kind is Kind.DATE and number.values[1] == claimed.values[1]:
            return number
    return None

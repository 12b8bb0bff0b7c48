"""Dates and times as a kind of claim: days, months, years, times of day, and weekdays.

The readers are those of numbers, which read all of them but a weekday and a month that stands alone ("in
May"). Where this kind is chosen, the kind of numbers leaves dates to it; where it is not, dates are numbers,
as in the paper. A weekday is supported by the same weekday, or by a full date that fell on it.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from reward.claims.kind import Place
from reward.claims.numbers import Form, Kind, Number
from reward.claims.numbers.index import index_numbers
from reward.claims.numbers.kind import Numbers, is_calendar
from reward.claims.numbers.lookup import NumberLookup
from reward.claims.numbers.model import changed
from reward.claims.numbers.shown import gives_away
from reward.types import Document

_WEEKDAYS = [day.casefold() for day in calendar.day_name]
_MONTHS = [month.casefold() for month in calendar.month_name]
_SHORT_DAYS = {
    "mon": 0,
    "tue": 1,
    "tues": 1,
    "wed": 2,
    "thu": 3,
    "thur": 3,
    "thurs": 3,
    "fri": 4,
    "sat": 5,
    "sun": 6,
}
# A pattern that begins with letters, not with a border, is searched for many times as fast.
_DAY_OR_MONTH = re.compile(
    rf"(?:{'|'.join(f'{day}s?' for day in calendar.day_name)}|{'|'.join(calendar.month_name[1:])})\b"
)
_LATEST = 9  # letters in the longest word of time before a month, with a space
# "May" and "March" are other words, too, unless a word of time stands before them.
_OTHER_WORDS = frozenset(("May", "March"))
_WORD_OF_TIME = re.compile(r"\b(?:[Ii]n|[Ll]ast|[Nn]ext|[Ss]ince|[Uu]ntil|[Ee]arly|[Ll]ate) \Z")
_ZERO = Decimal(0)


def _is_date(number: Number) -> bool:
    return is_calendar(number) or number.kind is Kind.WEEKDAY


@dataclass(frozen=True)
class Dates(Numbers):
    """The dates and times of one audit."""

    name: str = "date"

    def find(self, response: str) -> Sequence[Number]:
        """The dates, times, lone months and weekdays of a response."""
        dates = [number for number in Numbers.find(self, response) if is_calendar(number)]
        return sorted([*dates, *_names_of_days(response, dates)], key=lambda one: one.start)

    def find_all(self, text: str) -> Sequence[Number]:
        """All numbers, weekdays and months of a text: a date may be given away by any of them."""
        numbers = Numbers.find_all(self, text)
        return sorted([*numbers, *_names_of_days(text, numbers)], key=lambda one: one.start)

    def read(self, answer: str, *, of_documents: bool = False) -> Number | None:
        """The date, time, weekday or month of a bracket; a bare number may be a year, a day or an hour."""
        word = answer.strip().rstrip(".").casefold()
        if word in _WEEKDAYS or word in _SHORT_DAYS:
            return _weekday(
                _SHORT_DAYS.get(word, 0) if word in _SHORT_DAYS else _WEEKDAYS.index(word), 0, len(answer)
            )
        if word in _MONTHS[1:]:
            return _month(_MONTHS.index(word), 0, len(answer))
        number = Numbers.read(self, answer, of_documents=of_documents)
        return number if number is not None and (is_calendar(number) or number.kind is Kind.COUNT) else None

    def bears_out(self, consensus: Number, claimed: Number, *, relative_tolerance: float = 0.0) -> bool:
        """Whether the consensus says all that the claimed date says."""
        if claimed.kind is Kind.WEEKDAY:
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
            days = (changed(one, start=one.start + start) for one in _names_of_days(text[start:end], ()))
            return next((one for one in days if self.equal(one, answer)), None) or _dated(
                index_numbers(text).between(start, end), answer
            )
        return Numbers.stated(self, text, start, end, answer)

    def question(self, mention: Number) -> str:
        """What is asked for."""
        return "Which day of the week" if mention.kind is Kind.WEEKDAY else Numbers.question(self, mention)

    def lookup(self, documents: Sequence[Document]) -> DateLookup:
        """The dates of the documents."""
        return DateLookup(documents, locale=self.locale)

    def is_looked_up(self, response: str, mention: Number) -> bool:
        """Every date can be looked up."""
        return True

    def follows(self, mention: Number, response: str, before: Sequence[Number]) -> str:
        """No date follows from another one."""
        return ""


class DateLookup(NumberLookup):
    """The dates of all documents of a query, with their weekdays."""

    def __init__(self, documents: Sequence[Document], *, locale: str) -> None:
        super().__init__(documents, locale=locale)
        self._documents = documents

    def find(self, claimed: Number, *, context: str = "") -> Place[Number] | None:
        """The place that supports a date, a weekday or a month."""
        if claimed.kind is not Kind.WEEKDAY and not _is_lone_month(claimed):
            return super().find(claimed, context=context)
        for document in self._documents:
            for number in _days_of(document.text):
                if (number.kind, number.values) == (claimed.kind, claimed.values):
                    return Place(number, document)
            if dated := _dated(index_numbers(document.text).dates(), claimed):
                return Place(dated, document)
        return None


def _names_of_days(text: str, taken: Sequence[Number]) -> list[Number]:
    """The weekdays and lone months of a text that stand in none of the numbers taken."""
    days = [_day_or_month(match) for match in _DAY_OR_MONTH.finditer(text) if _is_name_of_day(text, match)]
    days.sort(key=lambda day: day.kind is Kind.DATE)  # a weekday before a month
    spans = [(number.start, number.end) for number in taken] if days else []
    return [day for day in days if not any(start <= day.start < end for start, end in spans)]


@lru_cache(maxsize=256)
def _days_of(document: str) -> tuple[Number, ...]:
    """All weekdays and lone months of a document, each at its first place."""
    days: dict[Number, Number] = {}
    for day in _names_of_days(document, ()):
        days.setdefault(day, day)
    return tuple(days.values())


def _is_name_of_day(text: str, match: re.Match[str]) -> bool:
    """Whether a match begins with a word, and means a month where it could mean another word."""
    start = match.start()
    if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        return False
    return match[0] not in _OTHER_WORDS or bool(_WORD_OF_TIME.search(text, max(0, start - _LATEST), start))


def _day_or_month(match: re.Match[str]) -> Number:
    word = match[0].casefold()
    if word in _MONTHS:
        return _month(_MONTHS.index(word), *match.span())
    return _weekday(_WEEKDAYS.index(word.removesuffix("s")), *match.span())


def _weekday(index: int, start: int, end: int) -> Number:
    return Number(((Decimal(index + 1),),), Kind.WEEKDAY, step=Decimal(1), start=start, end=end)


def _month(index: int, start: int, end: int) -> Number:
    return Number(((_ZERO, Decimal(index), _ZERO),), Kind.DATE, step=Decimal(1), start=start, end=end)


def _is_lone_month(number: Number) -> bool:
    return number.kind is Kind.DATE and number.form is Form.EXACT and number.values[::2] == (_ZERO, _ZERO)


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
        if number.kind is not Kind.DATE or number.form is not Form.EXACT:
            continue
        if claimed.kind is Kind.WEEKDAY and _weekday_of(number) == claimed.value:
            return number
        if claimed.kind is Kind.DATE and number.values[1] == claimed.values[1]:
            return number
    return None

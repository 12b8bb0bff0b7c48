"""Dates and years: "May 3rd, 2021", "3 May", "June 2016", "2021-05-03", "2021-22", "1990s", "500 BC".

A date has the values (year, month, day), 0 for what is not written. Where the conventions of the text do not
say which comes first, "5/3/2021" has two readings, the month first and then the day; "5.3.2021" has the day
first everywhere. A month's name needs its capital where the word means something else as well ("may",
"march").
"""

from __future__ import annotations

import re
from decimal import Decimal

from reward.claims.numbers.conventions import DateOrder
from reward.claims.numbers.digits import SPACE
from reward.claims.numbers.foreign_months import (
    FOREIGN_DAY_MONTH,
    FOREIGN_MONTH_BEFORE,
    may_begin_foreign_month,
    may_end_foreign_month,
    month_of,
)
from reward.claims.numbers.model import Form, Kind, Number, span_of

_SHORT = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_NAMES = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_CAPITAL = [*_NAMES, *(n.upper() for n in _NAMES), *(s.title() for s in _SHORT), *(s.upper() for s in _SHORT)]
_LOWER = [n.lower() for n in _NAMES if n not in ("May", "March", "August")]
MONTH = "(?:" + "|".join(sorted([*_CAPITAL, *_LOWER, "Sept", "SEPT"], key=len, reverse=True)) + r")(?![^\W_])"
_TH = r"(?:st|nd|rd|th|ST|ND|RD|TH)"
_YEAR = r"[12]\d{3}(?![\d%]|[.,:/]\d|-\d)"
_TAIL = rf"(?:(?:\.?,{SPACE}?|\.?{SPACE}(?:of{SPACE})?)(?P<year>{_YEAR}))?"

_SPACES = "\t\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f"
_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015"
_BEHIND_MONTHS = f" {_SPACES}-.,"
_ENDS_OF_MONTHS = frozenset({*(name[-3:].lower() for name in _NAMES), *_SHORT, "ept", "the"})
_BEHIND_DAYS = frozenset("jfmasondtJFMASOND" + _DASHES)  # of a month, "of", "to", "through" and "and"
_RIGHT_BEHIND_DAYS = frozenset("snrtSNRT" + _DASHES + _SPACES)
_BEHIND_NUMERIC = frozenset("-/.\u5e74")
_NUMERIC = re.compile(
    r"""
    (?P<ymd>(?P<y>[12]\d{3})(?P<mark>[-/])(?P<m>\d{1,2})(?P=mark)(?P<d>\d{1,2}))(?![\d/-])
  | (?P<ym>(?P<y2>(?:19|20)\d{2})-(?P<m2>0[1-9]|1[0-2]))(?![\d-])
  | (?P<dmy>(?P<a>\d{1,2})(?P<sep>[/.-])(?P<b>\d{1,2})(?P=sep)(?P<y3>[12]\d{3}|(?<=/)\d{2}))(?![\d/-]|\.\d)
  | (?P<cjk>(?P<y4>[12]\d{3})年(?:(?P<m4>\d{1,2})月(?:(?P<d4>\d{1,2})[日号])?)?)
    """,
    re.VERBOSE,
)
_LONE_YEAR = re.compile(rf"(?P<lone>{_YEAR})(?P<day>)")
_DAY_MONTH = re.compile(rf"(?P<day>\d{{1,2}}){_TH}?(?:{SPACE}of)?(?:{SPACE}|-)(?P<month>{MONTH}){_TAIL}")
_MONTH_BEFORE = re.compile(
    rf"(?<![^\W_])(?P<month>{MONTH})(?:\.?,?{SPACE}{{1,2}}(?:the{SPACE}|of{SPACE})?|-)$"
)
_AFTER_MONTH = re.compile(rf"(?P<lone>{_YEAR})|(?P<day>\d{{1,2}}){_TH}?(?![\d%]|[.,:/]\d|[^\W\d_]){_TAIL}")
_DASH = rf"(?:{SPACE}?[-\u2010-\u2015]{SPACE}?|{SPACE}(?:to|through|and){SPACE})"
_DAYS = rf"(?P<first>\d{{1,2}}){_TH}?{_DASH}(?P<day>\d{{1,2}}){_TH}?"
_AFTER_MONTH_DAYS = re.compile(rf"{_DAYS}(?![\d%]|[.,:/]\d|{SPACE}?[-/]\d|[^\W\d_]){_TAIL}")
_DAYS_MONTH = re.compile(rf"{_DAYS}(?:{SPACE}of)?{SPACE}(?P<month>{MONTH}){_TAIL}")
_OF_MONTH = re.compile(rf"{SPACE}of{SPACE}(?P<month>{MONTH}){_TAIL}")
_DECADE = re.compile(r"(?:(?P<long>[12]\d\d0)|(?P<short>[1-9]0))['\u2019]?s(?![^\W_])")
_SEASON = re.compile(r"([12]\d)(\d{2})([-\u2013/])(\d{2})(?![\d:/-]|[.,]\d)")
_ERA = re.compile(rf"{SPACE}?(?P<era>B\.?C\.?(?:E\b\.?)?|C\.?E\b\.?|A\.?D\b\.?)(?![^\W_])")
_ERA_BEFORE = re.compile(rf"(?<![^\W_])A\.?D\.?{SPACE}?$")
_ERA_BEGINS = frozenset("ABC")
_THE_BEFORE = re.compile(rf"(?:\bthe{SPACE}['\u2018\u2019]?|['\u2018\u2019])$", re.IGNORECASE)
_CUES = frozenset({*_SHORT, *(name.lower() for name in _NAMES)}) | {
    "in", "since", "by", "until", "till", "during", "year", "years", "from", "circa", "early", "late", "mid",
    "before", "after", "through", "summer", "spring", "fall", "autumn", "winter", "copyright", "©", "around",
    "between", "and",
}  # fmt: skip
_YEARS_OF_CUES = range(1000, 2101)
_YEARS_OF_SPANS = range(1000, 2101)


def date_at(text: str, at: int, low: int, order: DateOrder | None, *, end: int) -> Number | None:
    """The date whose digits begin at `at`, with a month's name before them that begins at `low` or later.

    `order` says which of "5/3/2021" is the month; None leaves that open. `end` is where the digits end.
    """
    before = _MONTH_BEFORE.search(text, max(low, at - 16), at) if _may_end_month(text, at, low) else None
    if before:
        if (days := _AFTER_MONTH_DAYS.match(text, at)) and (
            span := _days(days, before["month"], before.start())
        ):
            return span
        if (after := _AFTER_MONTH.match(text, at)) and (
            date := _named(after, before["month"], before.start())
        ):
            return date
    if end - at <= 2:
        if _may_begin_month(text, end):
            if (days := _DAYS_MONTH.match(text, at)) and (span := _days(days, days["month"], at)):
                return span
            if match := _DAY_MONTH.match(text, at):
                return _named(match, match["month"], at)
        if may_begin_foreign_month(text, end) and (match := FOREIGN_DAY_MONTH.match(text, at)):
            return _named(match, match["month"], at)
    if end - at == 4 and (foreign := _year_of_foreign_month(text, at, low)):
        return foreign
    match = _NUMERIC.match(text, at) if text[end : end + 1] in _BEHIND_NUMERIC else None
    return _numeric(match, order) if match else None


def with_month(text: str, day: Number, low: int) -> Number | None:
    """An ordinal in words as a date: "the third of May 2021", "May third"."""
    if not 1 <= day.value <= 31:
        return None
    if after := _OF_MONTH.match(text, day.end):
        month, year, start, end = after["month"], int(after["year"] or 0), day.start, after.end()
    elif before := _MONTH_BEFORE.search(text, max(low, day.start - 16), day.start):
        month, year, start, end = before["month"], 0, before.start(), day.end
    else:
        return None
    return _date(((year, _month(month), int(day.value)),), start, end, [])


def years_at(text: str, at: int, low: int) -> Number | None:
    """A decade ("1990s", "the '90s"), or two years of which the second is short ("2021-22")."""
    if decade := _DECADE.match(text, at):
        return _decade(text, decade, low)
    season = _SEASON.match(text, at)
    if season is None:
        return None
    first, last = int(season[1] + season[2]), int(season[1] + season[4])
    is_month = season[3] == "-" and int(season[4]) <= 12  # "2004-12"
    if last <= first or ((is_month or season[3] == "/") and last != first + 1):
        return None
    parts = year_of(first, at, season.end(2)), year_of(last, season.start(4), season.end())
    return span_of(*parts, at, season.end())


def year_in_context(text: str, number: Number, low: int) -> Number | None:
    """A bare whole number as a year, where an era or a word before it says so; None otherwise."""
    start, end = number.start, number.end
    if (text[end : end + 2].lstrip()[:1] in _ERA_BEGINS) and (era := _ERA.match(text, end)):
        sign = -1 if era["era"].startswith("B") else 1
        return year_of(sign * int(number.value), start, era.end())
    if text[max(low, start - 2) : start].rstrip()[-1:] in ("D", ".") and (
        before := _ERA_BEFORE.search(text, max(low, start - 6), start)
    ):
        return year_of(int(number.value), before.start(), end)
    if end - start != 4 or (value := int(number.value)) not in _YEARS_OF_CUES:
        return None
    window = text[max(low, start - 14) : start].replace("-", " ").split()
    return year_of(value, start, end) if window and window[-1].casefold().strip(".,(") in _CUES else None


def looks_like_year(number: Number) -> bool:
    """Whether a number could be a year within a range of years."""
    plain = number.kind is Kind.COUNT and number.end - number.start == 4 and len(number.readings) == 1
    return number.kind is Kind.YEAR or (plain and number.step == 1 and number.value in _YEARS_OF_SPANS)


def as_year(number: Number) -> Number:
    """A bare number as the year that it is."""
    return year_of(int(number.value), number.start, number.end)


def year_of(value: int, start: int, end: int) -> Number:
    """A year; years before Christ are negative."""
    return Number(((Decimal(value),),), Kind.YEAR, step=Decimal(1), start=start, end=end)


def _may_end_month(text: str, at: int, low: int) -> bool:
    """Whether the last letters before digits are those of a month, or of "the" or "of"."""
    if not (at > 3 and text[at - 1] in " \u00a0\u202f-" and (text[at - 2].isalpha() or text[at - 2] in ".,")):
        return False
    before = text[max(low, at - 16) : at].rstrip(_BEHIND_MONTHS)
    return before[-3:].casefold() in _ENDS_OF_MONTHS or before.endswith("of")


def _may_begin_month(text: str, end: int) -> bool:
    """Whether a month, or another day of it, can stand behind digits; a quick look."""
    after = text[end : end + 1]
    return text[end + 1 : end + 2] in _BEHIND_DAYS if after == " " else after in _RIGHT_BEHIND_DAYS


def _month(name: str) -> int:
    """The number of a month from its English name or abbreviation, or its name in another language."""
    english = name[:3].casefold()
    return month_of(name) or _SHORT.index(english) + 1


def _year_of_foreign_month(text: str, at: int, low: int) -> Number | None:
    """A month of another language without a day: the 2019 of "diciembre de 2019"."""
    year = _LONE_YEAR.match(text, at) if may_end_foreign_month(text, at) else None
    before = FOREIGN_MONTH_BEFORE.search(text, max(low, at - 20), at) if year else None
    return _named(year, before["month"], before.start()) if year and before else None


def _named(match: re.Match[str], month: str, start: int) -> Number | None:
    """A date with its month in letters; its parts are the day and the year."""
    groups = match.groupdict()
    year_group = "lone" if groups.get("lone") else "year"
    year, day = int(groups.get(year_group) or 0), int(match["day"] or 0)
    if day > 31 or (day == 0 and year == 0):
        return None
    parts = [_part((0, 0, day), match.start("day"), match.end("day"))] if day else []
    if year:
        parts.append(year_of(year, match.start(year_group), match.end(year_group)))
    return _date(((year, _month(month), day),), start, match.end(), parts)


def _days(match: re.Match[str], month: str, start: int) -> Number | None:
    """Two days of one month: "May 3-5, 2021", "3 to 5 May"."""
    first, last = int(match["first"]), int(match["day"])
    if not 1 <= first < last <= 31:
        return None
    year = int(match["year"] or 0)
    low = _date(((year, _month(month), first),), match.start("first"), match.end("first"), [])
    high = _date(((year, _month(month), last),), match.start("day"), match.end(), [])
    return span_of(low, high, start, match.end())


def _numeric(match: re.Match[str], order: DateOrder | None) -> Number | None:
    """A date in digits; its parts are all that it writes."""
    if match["ymd"]:
        return _digits_date(match, [("y", "m", "d")])
    if match["ym"]:
        return _digits_date(match, [("y2", "m2", "")])
    if match["cjk"]:
        return _digits_date(match, [("y4", "m4", "d4")])
    month_first, day_first = ("y3", "a", "b"), ("y3", "b", "a")
    if order is None and match["sep"] != ".":
        return _digits_date(match, [month_first, day_first], all_readings=True)
    is_month_first = order is DateOrder.MONTH_FIRST
    return _digits_date(match, [month_first, day_first] if is_month_first else [day_first, month_first])


def _digits_date(
    match: re.Match[str], orders: list[tuple[str, str, str]], *, all_readings: bool = False
) -> Number | None:
    """The date in the first order that the calendar allows, or in each of them."""
    read: dict[tuple[int, int, int], tuple[str, str, str]] = {}
    for names in orders:
        year, month, day = (int(match[name]) if name and match[name] else 0 for name in names)
        year += 0 if year > 99 else 2000 if year < 69 else 1900
        if month <= 12 and day <= 31 and (month or not day):
            read.setdefault((year, month, day), names)
    readings = tuple(read)[: None if all_readings else 1]
    if not readings or (readings[0][1:] == (0, 0) and match["cjk"] is None):
        return None
    if readings[0][1] == 0:
        return year_of(readings[0][0], match.start(), match.end())
    written = [name for name in read[readings[0]] if name and match[name]]
    parts = [_digits_part(readings[0], i, match, name) for i, name in enumerate(written)]
    return _date(readings, match.start(), match.end(), sorted(parts, key=lambda p: p.start))


def _digits_part(values: tuple[int, int, int], place: int, match: re.Match[str], name: str) -> Number:
    """The year, month or day of a date that is written in digits."""
    if place == 0:
        return year_of(values[0], match.start(name), match.end(name))
    month, day = (values[1], 0) if place == 1 else (0, values[2])
    return _part((0, month, day), match.start(name), match.end(name))


def _part(values: tuple[int, int, int], start: int, end: int) -> Number:
    return _date((values,), start, end, [])


def _date(readings: tuple[tuple[int, ...], ...], start: int, end: int, parts: list[Number]) -> Number:
    values = tuple(tuple(map(Decimal, reading)) for reading in readings)
    return Number(values, Kind.DATE, step=Decimal(1), start=start, end=end, parts=tuple(parts))


def _decade(text: str, match: re.Match[str], low: int) -> Number:
    """Ten years, or a hundred ("the 1800s").

    "The 90s" and "'90s" are those of the last century, "90s" alone is a range of counts.
    """
    start, kind, first = match.start(), Kind.YEAR, int(match["long"] or match["short"])
    before = _THE_BEFORE.search(text, max(low, start - 5), start)
    if match["short"] and before:
        first += 1900 if first >= 20 else 2000
        start = start - 1 if text[start - 1] in "'\u2018\u2019" else start
    elif match["short"]:
        kind = Kind.COUNT
    readings: tuple[tuple[Decimal, ...], ...] = ((Decimal(first), Decimal(first + 9)),)
    if match["long"] and match["long"].endswith("00") and first < 2000:  # "the 1800s" are a century
        readings = ((Decimal(first), Decimal(first + 99)),)
    return Number(readings, kind, form=Form.RANGE, step=Decimal(1), start=start, end=match.end())

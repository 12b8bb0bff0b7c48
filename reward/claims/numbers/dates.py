"""Dates and years: "May 3rd, 2021", "3 May", "June 2016", "2021-05-03", "2021-22", "1990s", "500 BC".

A date has the values (year, month, day), 0 for what is not written. Where the conventions of the text do not
say which comes first, "5/3/2021" has two readings, the month first and then the day; "5.3.2021" has the day
first everywhere. A month's name needs its capital where the word means something else as well ("may",
"march").

The months of German, French, Spanish, Italian, Portuguese and Dutch are read, too ("21. Dezember 2019", "le
1er août 1937", "21 de diciembre de 2019"). German ones need their capital, and a point behind the day where
their name is an English one. The others are written small ("3 mars", not "3 Mars bars"), and Spanish and
Portuguese ones need their "de".
"""

import re
from decimal import Decimal

from reward.claims.numbers.model import Kind, Number, span_of, year_of, years_of
from reward.claims.numbers.vocabulary import BEGIN, END, SPACE, TABLES, either
from reward.locales import DateOrder

_BY_LANGUAGE = {
    language: {name: place for place, name in enumerate(names.split(), start=1)}
    for language, names in TABLES["months"].items()
}
_NAMES = _BY_LANGUAGE["english"] | {"Sept": 9} | {name[:3]: n for name, n in _BY_LANGUAGE["english"].items()}
_ENGLISH = (
    _NAMES
    | {name.upper(): n for name, n in _NAMES.items()}
    | {name.lower(): n for name, n in _NAMES.items() if len(name) > 4 and name not in ("March", "August")}
)
_GERMAN = _BY_LANGUAGE["german"] | {"Jänner": 1}
_SMALL = _BY_LANGUAGE["french"] | _BY_LANGUAGE["italian"] | _BY_LANGUAGE["dutch"]
_WITH_DE = _BY_LANGUAGE["spanish"] | _BY_LANGUAGE["portuguese"] | {"setiembre": 9}
FOREIGN_MONTHS = _SMALL | _WITH_DE | _GERMAN
MONTH = either(_ENGLISH) + END
_TH = r"(?:st|nd|rd|th|ST|ND|RD|TH)"
_YEAR = r"[12]\d{3}(?![\d%]|[.,:/]\d|-\d)"
_TAIL = rf"(?:(?:\.?,{SPACE}?|\.?{SPACE}(?:of{SPACE}(?:the{SPACE}year{SPACE})?)?)(?P<year>{_YEAR}))?"
_DASH = rf"(?:{SPACE}?[-\u2010-\u2015]{SPACE}?|{SPACE}(?:to|through|and){SPACE})"
_DAYS = rf"(?P<first>\d{{1,2}}){_TH}?{_DASH}(?P<day>\d{{1,2}}){_TH}?"
_MONTH_BEFORE = re.compile(
    rf"{BEGIN}(?P<month>[^\W\d_]{{3,10}})(?:\.?,?{SPACE}{{1,2}}(?:(?:the|of|del?){SPACE})?|-)$"
)
_LONGEST_BEFORE = 20
_BEFORE_DAYS = frozenset(" \u00a0\u202f-")
_BEHIND_MONTH = (
    re.compile(rf"{_DAYS}(?![\d%]|[.,:/]\d|{SPACE}?[-/]\d|[^\W\d_]){_TAIL}"),
    re.compile(rf"(?P<day>\d{{1,2}}){_TH}?(?![\d%]|[.,:/]\d|[^\W\d_]){_TAIL}"),
)
_OF_SOMETHING = re.compile(
    rf"{SPACE}(?!to{END}|and{END}|through{END}|at{END}|in{END}|the{END}|was{END})[a-z]{{2,}}"
)
_LONE_YEAR = re.compile(rf"(?P<year>{_YEAR})")
_DAY_BEFORE = (
    re.compile(rf"{_DAYS}(?:{SPACE}of)?{SPACE}(?P<month>{MONTH}){_TAIL}"),
    re.compile(
        rf"(?P<day>\d{{1,2}}){_TH}?(?:(?:{SPACE}day)?{SPACE}of)?(?:{SPACE}|-)(?P<month>{MONTH}){_TAIL}"
    ),
    re.compile(
        rf"""(?P<day>\d{{1,2}})
        (?: \.{SPACE}?(?={either(_GERMAN)}{END})
          | (?:er|[\u00ba\u00b0])?{SPACE}(?={either({*_SMALL, *_GERMAN} - {*_ENGLISH, "Mai"})}{END})
          | [\u00ba\u00b0]?{SPACE}de{SPACE}(?={either(_WITH_DE)}{END}) )
        (?P<month>{either(FOREIGN_MONTHS)}) (?:{SPACE}(?:del?{SPACE})?(?P<year>{_YEAR}))?""",
        re.VERBOSE,
    ),
)
_NO_DAY = re.compile(rf"{SPACE}(?:fiscal |financial )?(?:half|month|quarter|time|week|year){END}")
_OF_MONTH = re.compile(rf"(?:{SPACE}day)?{SPACE}of{SPACE}(?P<month>{MONTH}){_TAIL}")
_YEAR_FIRST = (
    re.compile(r"(?P<year>[12]\d{3})(?P<mark>[-/])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})(?![\d/-])"),
    re.compile(r"(?P<year>(?:19|20)\d{2})-(?P<month>0[1-9]|1[0-2])(?P<day>)(?![\d-])"),
    re.compile(r"(?P<month>0[1-9]|1[0-2])/(?P<year>(?:19|20)\d{2})(?P<day>)(?![\d/-]|\.\d)"),
    re.compile(r"(?P<year>[12]\d{3})年(?:(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})[日号])?)?"),
)
_YEAR_LAST = re.compile(
    r"(?P<a>\d{1,2})(?P<mark>[/.-])(?P<b>\d{1,2})(?P=mark)(?P<year>[12]\d{3}|(?<=/)\d{2})(?![\d/-]|\.\d)"
)
_ROMAN_MONTHS = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"]
_ROMAN_MONTH = re.compile(
    rf"(?P<day>\d{{1,2}})\.{SPACE}?(?P<month>{either(_ROMAN_MONTHS)})\.{SPACE}?(?P<year>[12]\d{{3}})(?!\d|[.,]\d)"
)
_DECADE = re.compile(rf"(?:(?P<long>[12]\d\d0)|(?P<short>[1-9]0))['\u2019]?s{END}")
_SEASON = re.compile(r"([12]\d)(\d{2})([-\u2013/])(\d{2})(?![\d:/-]|[.,]\d)")
_ERA = re.compile(rf"{SPACE}?(?P<era>B\.?C\.?(?:E\b\.?)?|C\.?E\b\.?|A\.?D\b\.?){END}")
_ERA_BEFORE = re.compile(rf"{BEGIN}A\.?D\.?{SPACE}?$")
_THE_BEFORE = re.compile(rf"(?:\bthe{SPACE}['\u2018\u2019]?|['\u2018\u2019])$", re.IGNORECASE)
_SECONDS_BEFORE = re.compile(
    rf"(?:[=:(]{SPACE}?|{BEGIN}(?:after|within|every|for|timeout|of|is|was|than|takes?|took|lasts?){SPACE})$",
    re.IGNORECASE,
)  # "timeout: 30s"
_CUES = frozenset((*TABLES["dates"]["cues"].split(), *(name.lower() for name in _NAMES))) - {"sept"}
_ARTICLE = re.compile(r"\b(?:an?|the|its|his)\s$", re.IGNORECASE)
_PARTS_OF_YEAR = ("start", "beginning", "middle", "end", "close")
_YEARS_OF_CONTEXT = range(1000, 2101)
_APOSTROPHES = ("'", "\u2018", "\u2019")
_FIRST_SHORT_YEAR = 69  # "'69" is 1969, and "'68" would be 2068


def date_at(text: str, at: int, low: int, order: DateOrder | None, *, end: int) -> Number | None:
    """The date whose digits begin at `at`, with a month's name before them that begins at `low` or later.

    `order` says which of "5/3/2021" is the month; None leaves that open. `end` is where the digits end.
    """
    if before := _month_before(text, at, low):
        may_be_day = before["month"] in _ENGLISH and end - at <= 2
        if "," in before[0] and _OF_SOMETHING.match(text, end):
            may_be_day = False  # "in June, 4 cents less"
        for pattern in _BEHIND_MONTH if may_be_day else (_LONE_YEAR,):
            match = pattern.match(text, at)
            if match and (date := _named(match, before["month"], before.start())):
                return date
    if end - at <= 2:
        for pattern in _DAY_BEFORE:
            if (match := pattern.match(text, at)) and (date := _named(match, match["month"], at)):
                return date
    return _numeric(text, at, order)


def with_month(text: str, day: Number, low: int) -> Number | None:
    """An ordinal in words as a date: "the third of May 2021", "May third"."""
    if not 1 <= day.value <= 31:
        return None
    if after := _OF_MONTH.match(text, day.end):
        reading = (int(after["year"] or 0), _ENGLISH[after["month"]], int(day.value))
        return date_of((reading,), day.start, after.end())
    before = _month_before(text, day.start, low)
    if before is None or before["month"] not in _ENGLISH or _NO_DAY.match(text, day.end):
        return None  # or "June, the second quarter"
    return date_of(((0, _ENGLISH[before["month"]], int(day.value)),), before.start(), day.end)


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
    if text[end : end + 2].lstrip()[:1] in ("A", "B", "C") and (era := _ERA.match(text, end)):
        sign = -1 if era["era"].startswith("B") else 1
        return year_of(sign * int(number.value), start, era.end())
    if text[max(low, start - 2) : start].rstrip()[-1:] in ("D", ".") and (
        before := _ERA_BEFORE.search(text, max(low, start - 6), start)
    ):
        return year_of(int(number.value), before.start(), end)
    if (
        end - start == 2
        and text[max(low, start - 1) : start] in _APOSTROPHES
        and text[start - 2 : start - 1] == " "
    ):
        word = text[max(low, start - 14) : start - 1].split()[-1:]  # "in '95"
        value = int(number.value)
        is_year = bool(word) and word[0].casefold().strip(".,(") in _CUES
        return (
            year_of(value + (1900 if value >= _FIRST_SHORT_YEAR else 2000), start - 1, end)
            if is_year
            else None
        )
    if end - start != 4 or (value := int(number.value)) not in _YEARS_OF_CONTEXT:
        return None
    window = text[max(low, start - 14) : start].replace("-", " ").split()
    if window[-1:] == ["of"] and window[-2:-1] and window[-2] in _PARTS_OF_YEAR:
        return year_of(value, start, end)
    return year_of(value, start, end) if window and window[-1].casefold().strip(".,(") in _CUES else None


def looks_like_year(number: Number) -> bool:
    """Whether a number could be a year within a range of years."""
    plain = number.kind is Kind.COUNT and number.end - number.start == 4 and len(number.readings) == 1
    return number.kind is Kind.YEAR or (plain and number.step == 1 and int(number.value) in _YEARS_OF_CONTEXT)


def is_bare_year(text: str, number: Number) -> bool:
    """Whether bare digits say a year: "(2003)", "the 2003 cup", "a 2003 film", but not "2003 people"."""
    if number.kind is Kind.YEAR or not looks_like_year(number):
        return False
    return not number.counts or bool(_ARTICLE.search(text, max(0, number.start - 5), number.start))


def as_year(number: Number) -> Number:
    """A bare number as the year that it is."""
    return year_of(int(number.value), number.start, number.end)


def _month_before(text: str, at: int, low: int) -> re.Match[str] | None:
    """The month, in any of the languages, right before a day or a year."""
    if at < 4 or text[at - 1] not in _BEFORE_DAYS or text[at - 2].isdigit():
        return None
    match = _MONTH_BEFORE.search(text, max(low, at - _LONGEST_BEFORE), at)
    return match if match and (match["month"] in _ENGLISH or match["month"] in FOREIGN_MONTHS) else None


def _named(match: re.Match[str], month: str, start: int) -> Number | None:
    """A date with its month in letters; its parts are the day and the year. Or two days of one month."""
    groups = match.groupdict()
    place = _ENGLISH.get(month) or FOREIGN_MONTHS[month]
    year, day, first = (int(groups.get(name) or 0) for name in ("year", "day", "first"))
    if first:
        if not first < day <= 31:
            return None
        low = date_of(((year, place, first),), *match.span("first"))
        high = date_of(((year, place, day),), match.start("day"), match.end())
        return span_of(low, high, start, match.end())
    if day > 31 or (day == 0 and year == 0):
        return None
    parts = [date_of(((0, 0, day),), *match.span("day"))] if day else []
    if year:
        parts.append(year_of(year, *match.span("year")))
    return date_of(((year, place, day),), start, match.end(), parts)


def _numeric(text: str, at: int, order: DateOrder | None) -> Number | None:
    """A date in digits, or with a Roman month ("15.X.1582"); its parts are all that it writes."""
    if (roman := _ROMAN_MONTH.match(text, at)) and int(roman["day"]) <= 31:
        year, day = int(roman["year"]), int(roman["day"])
        parts = [date_of(((0, 0, day),), *roman.span("day")), year_of(year, *roman.span("year"))]
        return date_of(((year, 1 + _ROMAN_MONTHS.index(roman["month"]), day),), at, roman.end(), parts)
    for pattern in _YEAR_FIRST:
        if match := pattern.match(text, at):
            return _in_digits(match, [("year", "month", "day")])
    match = _YEAR_LAST.match(text, at)
    if match is None:
        return None
    orders = [("year", "a", "b"), ("year", "b", "a")]
    if order is None and match["mark"] != ".":
        return _in_digits(match, orders, all_readings=True)
    return _in_digits(match, orders if order is DateOrder.MONTH_FIRST else orders[::-1])


def _in_digits(
    match: re.Match[str], orders: list[tuple[str, str, str]], *, all_readings: bool = False
) -> Number | None:
    """The date in the first order that the calendar allows, or in each of them."""
    read: dict[tuple[int, int, int], tuple[str, str, str]] = {}
    for names in orders:
        year, month, day = (int(match[name] or 0) for name in names)
        year += 0 if year > 99 else 2000 if year < 69 else 1900
        if month <= 12 and day <= 31 and (month or not day):
            read.setdefault((year, month, day), names)
    readings = tuple(read)[: None if all_readings else 1]
    if not readings:
        return None
    year, month, day = readings[0]
    year_name, month_name, day_name = read[readings[0]]
    if not month:
        is_cjk = match[0].endswith("年")
        return year_of(year, match.start(), match.end()) if is_cjk else None
    parts = [year_of(year, *match.span(year_name)), date_of(((0, month, 0),), *match.span(month_name))]
    if day:
        parts.append(date_of(((0, 0, day),), *match.span(day_name)))
    return date_of(readings, match.start(), match.end(), sorted(parts, key=lambda part: part.start))


def date_of(
    readings: tuple[tuple[int, ...], ...], start: int, end: int, parts: list[Number] | None = None
) -> Number:
    """A date by its readings, each of year, month and day; 0 is what is not written."""
    values = tuple(tuple(map(Decimal, reading)) for reading in readings)
    return Number(values, Kind.DATE, step=Decimal(1), start=start, end=end, parts=tuple(parts or ()))


def _decade(text: str, match: re.Match[str], low: int) -> Number:
    """Ten years, or a hundred ("the 1800s").

    "The 90s" and "'90s" are those of the last century, "for 90s" a length of time, and "90s" alone is a range
    of counts.
    """
    start, first = match.start(), int(match["long"] or match["short"])
    if match["long"]:
        is_century = first % 100 == 0 and first < 2000
        return years_of(first, first + (99 if is_century else 9), start, match.end())
    if _SECONDS_BEFORE.search(text, max(low, start - 9), start):
        value, end = ((Decimal(first),),), match.end()
        return Number(value, Kind.DURATION, "second", "time", step=Decimal(1), start=start, end=end)
    if not _THE_BEFORE.search(text, max(low, start - 5), start):
        return years_of(first, first + 9, start, match.end(), kind=Kind.COUNT)
    first += 1900 if first >= 20 else 2000
    return years_of(first, first + 9, start - (text[start - 1] in "'\u2018\u2019"), match.end())

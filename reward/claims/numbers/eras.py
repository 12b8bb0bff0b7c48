"""Centuries and parts of decades and years: "late 19th century", "mid-1990s", "Q3 2018", "summer 2019".

Each begins with a number that another reader has read (the rank "19th", the years "1990s", the name "Q3", the
year 2019), and `era_of` takes in the words around it. A century is the range of its years, 1800 to 1899 for
the nineteenth, so that it equals "the 1800s"; before Christ the years are negative. A part of a year has the
values (year, part), the year 0 where it is not written: parts 1 to 4 are quarters, 5 and 6 halves, and 7 to
10 the seasons from spring to winter.
"""

import re
from decimal import Decimal

from reward.claims.numbers.model import Form, Kind, Number, changed, year_of, years_of
from reward.claims.numbers.vocabulary import BEGIN, END, SPACE, TABLES, by_word

_MOST_CENTURIES = 30
_BEFORE_CHRIST = rf"before{SPACE}(?:Christ|the{SPACE}(?:Common|Christian){SPACE}Era)"
_BC_OR_AD = (
    rf"(?:(?P<bc>{SPACE}?(?:B\.?C\.?(?:E\b\.?)?{END}|{_BEFORE_CHRIST}))"
    rf"|{SPACE}?(?:C\.?E\b\.?|A\.?D\b\.?){END})?"
)
_WORD = (
    rf"(?:(?:th)?[ \u00a0-]{{1,2}}(?:[Cc]entur(?:y|ies)|CENTURY){END}(?![ ](?:Fox|Studios|Pictures)\b)"
    rf"|(?:\.|de|e)?[ ](?:Jahrhunderts?|si[èe]cles?|secol[oi]|eeuw){END})"
)
_RANK = r"(?:\d{1,2}(?:st|nd|rd|th)|(?:[a-z]{1,12}-)?[a-z]{1,12}(?:th|st|nd|rd))"
_LIST = rf"-?(?:,{SPACE}?|{SPACE}(?:and|or|to|through){SPACE}|[-\u2013])(?:(?:the|early|mid|late)[ -]){{0,2}}"
CENTURY = re.compile(_WORD + _BC_OR_AD)
_ONE_OF_CENTURIES = re.compile(_LIST + _RANK + _WORD + _BC_OR_AD)  # "17th and 18th centuries"
_SIGLO = re.compile(rf"{BEGIN}(?:siglos?|séculos?)[ ]$", re.IGNORECASE)
_SIGLO_BC = re.compile(r"[ ]a\.[ ]?C\.")
_PART = re.compile(
    rf"""{BEGIN}(?:
      (?:(?P<first>early|mid)-?{SPACE}?(?:to|and|or|/|-)(?:{SPACE}|-)?)? (?P<part>early|mid(?:dle)?|late)
        (?:-|{SPACE}(?:(?:in|of){SPACE})?(?:the{SPACE})?)
    | (?P<share>beginning|start|turn|end|close | (?:first|second|latter|1st|2nd)[ ]half
        | (?:first|second|third|last|fourth)[ ]quarter) {SPACE}of{SPACE}the{SPACE}
    )['\u2018\u2019]?$""",
    re.VERBOSE | re.IGNORECASE,
)
_PART_REACH = 32
_SHARES = {
    name: tuple(share) for names, share in TABLES["eras"]["shares"].items() for name in names.split("|")
}
_MOST_OF_IT = Decimal("0.75")  # the share of a document's years that lie in the claimed ones

_YEAR = r"(?:[12]\d{3}|['\u2018\u2019]\d{2})(?![\d%]|[.,:/]\d|[-\u2013]\d)"
_FISCAL = rf"(?:fiscal|financial|calendar){SPACE}"
_OF_YEAR = rf"(?:(?:of|in|for){SPACE})?(?:(?:the{SPACE})?{_FISCAL})?(?:year{SPACE}|FY{SPACE}?)?"
_NO_QUARTER = (
    r"(?![- ](?:centur|moon|hour|mile|inch|note|pound"
    rf"|of[ ](?!(?:(?:the|this|last|next|its|each|every)[ ])?(?:{_FISCAL})?year|fiscal)))"
)
_QUARTER = re.compile(
    rf"(?P<unit>[ -](?:(?P<half>half)|(?:{_FISCAL})?quarter|trimestre|Quartal|kwartaal)){END}"
    rf"(?:,?{SPACE}{_OF_YEAR}(?P<year>{_YEAR})|{_NO_QUARTER})"
)
_FIRST_MONTHS = re.compile(
    rf"(?P<unit>{SPACE}(?:(?P<half>six|6)|three|3){SPACE}months){SPACE}{_OF_YEAR}(?P<year>{_YEAR})"
)
_CODE = re.compile(
    rf"(?P<unit>[QH][1-4]|[1-4][QH])(?:,?{SPACE}?{_OF_YEAR}(?P<year>{_YEAR}|(?<=[QH])\d\d(?![\d:]))|{END})"
)
_LONE_CODE = re.compile(r"Q[1-4]|[1-4]Q|H[12]|[12]H", re.IGNORECASE)
_YEAR_BEFORE = re.compile(rf"(?P<year>[12]\d{{3}})(?:['\u2019]s)?(?:{SPACE}|-)$")
_SEASONS = {word: int(part) for word, part in by_word(TABLES["eras"]["seasons"]).items()}
_A_SEASON = rf"{BEGIN}(?P<season>{'|'.join(_SEASONS)})"
_SEASON = re.compile(rf"{_A_SEASON}(?:{SPACE}(?:of|van|des|de|del|di|do|da)|,)?{SPACE}$", re.IGNORECASE)
_LONE_SEASON = re.compile(rf"{_A_SEASON}{END}(?!(?:{SPACE}of|,)?{SPACE}[12]\d{{3}})", re.IGNORECASE)
_NO_SEASON = re.compile(rf"{SPACE}(?:Winter|Summer|Olympic|Games|Paralympic)|[-\u2013/]\d")
_HALF_YEAR = 4  # the parts 5 and 6
LAST_HALF = _HALF_YEAR + 2
_WINTER = 10
_MONTHS = [
    *(range(0), range(1, 4), range(4, 7), range(7, 10), range(10, 13), range(1, 7), range(7, 13)),
    *(range(3, 7), range(6, 10), range(9, 13), (12, 1, 2, 3)),
]  # of each part of a year
_PARTS_OF_MONTHS = {
    (months[0], months[-1]): part for part, months in enumerate(_MONTHS[1 : LAST_HALF + 1], 1)
}


def era_of(text: str, number: Number) -> Number:
    """The century or the part of a year that a number is the beginning of; itself where it is of none."""
    if number.kind is Kind.ORDINAL:
        return _century(text, number) or _quarter(text, number) or number
    if number.kind in (Kind.IDENTIFIER, Kind.TIME):
        return _code(text, number) or number
    if is_era(number):
        return _narrowed(text, number)
    if number.kind not in (Kind.YEAR, Kind.COUNT) or number.form is not Form.EXACT:
        return number
    if number.end - number.start == len("2019"):
        return _season(text, number) or number
    return (_century(text, number) or number) if 0 < number.value <= _MOST_CENTURIES else number


def is_era(number: Number) -> bool:
    """Whether a number is a century or a decade, or a part of one, not two years with a dash between them."""
    return number.kind is Kind.YEAR and number.form is Form.RANGE and not number.parts


def lies_in_era(claimed: Number, found: Number) -> bool:
    """Whether a year, a date, a decade or a century of a document lies in the claimed years, or most of it.

    The year after a century counts as its last one, too: 1900 is of the nineteenth by the calendar, and of
    the twentieth as people speak.
    """
    low, high = claimed.values
    if found.form is Form.EXACT and found.kind in (Kind.YEAR, Kind.DATE):
        year = found.value
        is_written = found.kind is Kind.YEAR or year != 0
        is_last = year == high + 1 and year > 0 and year % 100 == 0 and year - low > 10
        return is_written and (low <= year <= high or is_last)
    if not is_era(found):
        return False
    first, last = found.values
    shared = min(high, last) - max(low, first) + 1
    return shared >= _MOST_OF_IT * (last - first + 1)


def _century(text: str, rank: Number) -> Number | None:
    """A century from its number, "19th"."""
    match = CENTURY.match(text, rank.end) or (
        _ONE_OF_CENTURIES.match(text, rank.end) if rank.kind is Kind.ORDINAL else None
    )
    siglo = None if match else _SIGLO.search(text, max(0, rank.start - 9), rank.start)
    value = int(rank.value)
    if not (match or siglo) or not 1 <= value <= _MOST_CENTURIES:
        return None
    is_bc = bool(match["bc"]) if match else bool(_SIGLO_BC.match(text, rank.end))
    first = -100 * value if is_bc else 100 * (value - 1)
    is_list = match is not None and match.re is _ONE_OF_CENTURIES
    end = match.end() if match and not is_list else rank.end
    start = siglo.start() if siglo else rank.start
    return _narrowed(text, years_of(first, first + 99, start, end))


def _narrowed(text: str, years: Number) -> Number:
    """A century or a decade with the word before it that names a part of it: "late", "first half of the"."""
    match = _PART.search(text, max(0, years.start - _PART_REACH), years.start)
    if match is None:
        return years
    low, high = map(int, years.values)
    width = high - low + 1
    name = (match["part"] or match["share"]).lower()
    begin, end = _SHARES[name]
    if match["first"]:
        begin = _SHARES[match["first"].lower()][0]
    elif width == 10 and (begin, end) == _SHARES["late"]:
        begin = 50  # "the late 1990s" begin in 1995
    if width == 10 and end == _SHARES["early"][1]:
        end = 50
    last = low + width * end // 100 - 1
    is_early_half = name.endswith("half") and end == 50  # "1850" is of both halves
    return years_of(low + width * begin // 100, last + is_early_half, match.start(), years.end)


def _quarter(text: str, rank: Number) -> Number | None:
    """A quarter, or with its year a half, from its number: "third quarter of 2018"."""
    if rank.value == 1 and (months := _FIRST_MONTHS.match(text, rank.end)):
        return _with_year(text, _HALF_YEAR + 1 if months["half"] else 1, rank.start, months)
    match, place = _QUARTER.match(text, rank.end), int(rank.value)
    if match is None or not 1 <= place <= 4 or (match["half"] and (place > 2 or not match["year"])):
        return None
    return _with_year(text, place + _HALF_YEAR * bool(match["half"]), rank.start, match)


def _code(text: str, name: Number) -> Number | None:
    """A quarter or a half by its short name ("Q3 2018", "3Q18"); without a year only "Q3" is no name."""
    match = _CODE.match(text, name.start)
    part = _part_of_code(match["unit"]) if match else 0
    if match is None or not part:
        return None
    period = _with_year(text, part, name.start, match)
    return period if period.parts or match["unit"][0] == "Q" else None


def _part_of_code(code: str) -> int:
    """The part of a year that "Q3", "3q" or "H1" names; 0 for none."""
    letter, digit = sorted(code.upper(), reverse=True)
    place = int(digit)
    return place if letter == "Q" else place + _HALF_YEAR if place <= 2 else 0


def _season(text: str, year: Number) -> Number | None:
    match = _SEASON.search(text, max(0, year.start - 16), year.start)
    if match is None or not 1000 <= year.value <= 2100 or _NO_SEASON.match(text, year.end):
        return None
    season = _period(0, _SEASONS[match["season"].lower()], match.start(), match.end("season"))
    return _whole(season, year_of(int(year.value), year.start, year.end))


def _with_year(text: str, part: int, start: int, match: re.Match[str]) -> Number:
    """A part of a year with the year behind it, or else before it."""
    alone = _period(0, part, start, match.end("unit"))
    if match["year"]:
        return _whole(alone, _year(match["year"], *match.span("year")))
    before = _YEAR_BEFORE.search(text, max(0, start - 8), start)
    return _whole(alone, _year(before["year"], *before.span("year"))) if before else alone


def _year(written: str, start: int, end: int) -> Number:
    digits = written.lstrip("'\u2018\u2019")
    year = int(digits) if len(digits) == 4 else 2000 + int(digits) - 100 * (int(digits) > 68)
    return year_of(year, start, end)


def _whole(part: Number, year: Number) -> Number:
    start, end = min(part.start, year.start), max(part.end, year.end)
    parts = tuple(sorted((part, year), key=lambda one: one.start))
    return changed(_period(int(year.value), int(part.values[1]), start, end), parts=parts)


def _period(year: int, part: int, start: int, end: int) -> Number:
    """A part of a year; the year is 0 where it is not written."""
    return Number(((Decimal(year), Decimal(part)),), Kind.PERIOD, step=Decimal(1), start=start, end=end)


def part_of_months(first: int, last: int) -> int:
    """The quarter or half of a year that begins and ends with these months; 0 for none."""
    return _PARTS_OF_MONTHS.get((first, last), 0)


def lone_part(number: Number) -> int:
    """The part of a year that a number names without its year ("third quarter", "Q3"); 0 for none."""
    if number.kind is Kind.PERIOD:
        return 0 if number.value else int(number.values[1])
    is_code = number.kind is Kind.IDENTIFIER and _LONE_CODE.fullmatch(number.unit)
    return _part_of_code(number.unit) if is_code else 0


def lone_period(text: str) -> Number | None:
    """The part of a year that a bracket holds ("Q3", "summer"); None when it holds anything else."""
    word = text.strip()
    season = _SEASONS.get(word.casefold(), 0)
    part = _part_of_code(word) if _LONE_CODE.fullmatch(word) else season
    return _period(0, part, 0, len(text)) if part else None


def lone_seasons(text: str) -> list[Number]:
    """The seasons of a text that stand without a year behind them."""
    return [_period(0, _SEASONS[m[0].lower()], *m.span()) for m in _LONE_SEASON.finditer(text)]


def lies_in_period(claimed: Number, found: Number) -> bool:
    """Whether a document's part of a year, month or day says or lies in the claimed part of a year."""
    year, part = map(int, claimed.values)
    if found.form is not Form.EXACT:
        return False
    if found.kind is Kind.PERIOD:
        in_year = year in (0, int(found.value))
        its = int(found.values[1])
        is_within = part <= LAST_HALF and its <= _HALF_YEAR and set(_MONTHS[its]) <= set(_MONTHS[part])
        return in_year and (its == part or (is_within and year != 0))
    if found.kind is not Kind.DATE or not year:
        return False
    return any(_is_in(year, part, int(reading[0]), int(reading[1])) for reading in found.readings)


def has_month_of(period: Number, first: int, last: int) -> bool:
    """Whether a part of a year has one of these months: autumn has none of the early ones."""
    return any(first <= month <= last for month in _MONTHS[int(period.values[1])])


def _is_in(year: int, part: int, found_year: int, month: int) -> bool:
    """Whether a month lies in a part of a year; a winter goes on in the next year, or began in the last."""
    if month not in _MONTHS[part]:
        return False
    others = (0,) if part != _WINTER else (-1, 0) if month == 12 else (0, 1)
    return found_year - year in others

"""The search: all numbers of a text from left to right, and the one number that a text is.

One pattern finds where a number can begin: a digit, a vulgar fraction, or a number word. There the
readers are asked in turn (names, dates, times, codes, plain numbers), each looking at a bounded stretch
of text, so that time is linear. Neighbours are then composed (`compose`) and bounded (`bounds`).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Set
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter

from reward.claims.numbers.amounts import about_at, decade_at, joined_at, multiple_at
from reward.claims.numbers.bounds import bounded, rate_behind, things_behind
from reward.claims.numbers.clock import half_day_at, named_time, time_at, time_past
from reward.claims.numbers.compose import compose
from reward.claims.numbers.conventions import ENGLISH, Conventions
from reward.claims.numbers.dates import date_at, with_month, years_at
from reward.claims.numbers.digits import Digits, end_of_digits
from reward.claims.numbers.eras import era_of
from reward.claims.numbers.foreign import foreign_numbers
from reward.claims.numbers.measure import number_at, sign_before, with_unit
from reward.claims.numbers.model import Form, Kind, Number, apart, changed, moved
from reward.claims.numbers.moves import from_to, trend_of
from reward.claims.numbers.names import code_at, is_in_name, name_at
from reward.claims.numbers.plain import plain_text
from reward.claims.numbers.roman import alone, roman_at, war_at, with_ruler
from reward.claims.numbers.sides import lifespan
from reward.claims.numbers.starts import DIGITS, Starts
from reward.claims.numbers.trends import Trend, with_trend
from reward.claims.numbers.vocabulary import BEGIN, END
from reward.claims.numbers.words import words_at
from reward.claims.text import lowered

_OF_WHICH = re.compile(r" of (?:which|whom)\b")
_ENUMERATOR = re.compile(r"^[-*\u2022#>_( \t]{0,16}(\d{1,3})[.)\u20e3][*_]{0,2}(?=[ \t]+\S)", re.MULTILINE)
_FIRST_ON_A_LINE = re.compile(r"(?:^|(?<=[.!?:;]))[ \t]{0,3}1[.)][ \t]+[*_\"'(]{0,3}[A-Z]", re.MULTILINE)
_NEXT_ON_A_LINE = re.compile(r"[.!?;][)\"'*_]{0,3}[ \t]+(\d{1,3})[.)](?=[ \t]+[*_\"'(]{0,3}[A-Z])")
_PARENTHESES = re.compile(r"^\(([^()$]{1,40})\)\.?$")
_AND_A_HALF = re.compile(rf"[ ]and[ ](?:a[ ](half|quarter)|three[ -]quarters){END}", re.IGNORECASE)
_ONE_AND = {"half": Decimal("1.5"), "quarter": Decimal("1.25"), "": Decimal("1.75")}
_HOW_OFTEN = re.compile(rf"{BEGIN}(?:once|twice|times?|per|what|such|quite|many)[ ]$", re.IGNORECASE)
_OF_A = re.compile(r" of an?(?= )")
_REPEATED = re.compile(r" \((\d{1,9})\)")
_EMPHASIS = re.compile(rf"{BEGIN}(?:only|exactly|just|precisely) $", re.IGNORECASE)
_ONE_THING = re.compile(r" (?!(?:of|who|that|which|to|in|day|way|thing|more|possible|example)\b)[a-z]{3,}")
# "A decade" is ten years; "a year" may be any.
_ALWAYS_UNITS = ("10 * year", "century", "fortnight", "tablespoon", "teaspoon")
_IN_ERAS = frozenset({Kind.ORDINAL, Kind.YEAR, Kind.COUNT, Kind.IDENTIFIER, Kind.TIME})
_LONGEST_EMPHASIS = 12  # characters, with those around it
_LONGEST_ANSWER = 2000  # characters of a text that is one number


def find_numbers(
    text: str,
    *,
    enumerators: bool = False,
    words: bool = True,
    articles: bool = False,
    conventions: Conventions = ENGLISH,
) -> list[Number]:
    """The numbers of a text from left to right, in time linear in its length.

    Args:
        text: Any text.
        enumerators: Whether the enumerators of lists ("1.", "2)" at line starts) are numbers too. Only a 1,
            or a number whose predecessor was one before, is an enumerator, so that a figure cannot be
            hidden by writing it before a line.
        words: Whether numbers in words ("four hundred", "a dozen", "third") are numbers too.
        articles: Whether "an hour" is a number: in a document, that a response can call 60 minutes.
        conventions: How the text writes "1.500" and "5/3/2021", as `conventions_of` tells.
    """
    plain = plain_text(text)
    skipped: set[int] = set()
    if not enumerators:
        lines = ((line.start(1), int(line[1])) for line in _ENUMERATOR.finditer(plain.text))
        skipped = {*successive(lines), *_enumerators_on_a_line(plain.text)}
    found = _search(plain.text, conventions, skipped=skipped, words=words, articles=articles, keep_weak=False)
    return [plain.original(number) for number in found]


def parse_number(text: str, *, conventions: Conventions = ENGLISH) -> Number | None:
    """The number that a text is, such as the content of an answer's bracket; None when it is anything else.

    Strict: the whole text, but for spaces, parentheses and one final point, is one number: "466", "12%",
    "$5 million", "5:30 pm", "52-59", "fifty", "about 50". "466 people", "T2", "5 5" and "" are not.
    """
    return _parsed(text, conventions) if len(text) <= _LONGEST_ANSWER else None


@lru_cache(maxsize=2048)  # voters give the same few answers, and each is read at several places
def _parsed(text: str, conventions: Conventions) -> Number | None:
    content = text.strip()
    if roman := alone(content):
        return moved(roman, text.index(content))
    for candidate in (content, content.removesuffix("."), *_PARENTHESES.findall(content)):
        plain = plain_text(candidate)
        found = _search(plain.text, conventions, skipped=set(), words=True, articles=False, keep_weak=True)
        if len(found) == 1 and (found[0].start, found[0].end) == (0, len(plain.text)):
            number = plain.original(found[0])
            is_either = number.form is Form.RANGE and " or " in candidate.lower()  # "5 or 6" is two answers
            is_none = number.kind is Kind.IDENTIFIER or is_either
            return None if is_none else moved(number, text.index(candidate))
    return None


def _search(
    text: str, conventions: Conventions, *, skipped: Set[int], words: bool, articles: bool, keep_weak: bool
) -> list[Number]:
    """All numbers of a plain text; `skipped` are the starts of digits that are none."""
    atoms: list[Number] = []
    weak: set[int] = set()
    place = low = 0
    low_text = lowered(text) if words else text
    starts = Starts(low_text, words=words)
    while start := starts.after(place):
        at = start.start()
        place = start.end()
        if at in skipped:
            place = low = end_of_digits(text, at)
            continue
        if low_text[at] in DIGITS:
            number, is_weak = _in_digits(text, at, low, conventions), False
        else:
            number, is_weak = _in_words(text, start, low)
            if articles and start["article"]:  # a rate says nothing alone: "twice a day", "$40 a month"
                is_weak = is_weak and (at <= low + 1 or bool(_HOW_OFTEN.search(text, max(0, at - 16), at)))
        if number is not None and number.kind in _IN_ERAS and (era := era_of(text, number)) is not number:
            number, is_weak = era, False
            while atoms and atoms[-1].end > number.start:  # "2018" of "2018 Q3"
                atoms.pop()
        if number is not None:
            atoms.append(number)
            weak |= {number.start} if is_weak else set()
            place = low = max(number.end, at + 1)
    if words:
        foreign = [
            era_of(text, one) for one in foreign_numbers(text, low_text)
        ]  # of "soixante-six" they stay, and the 6 goes
        atoms = sorted([*apart(atoms, foreign), *foreign], key=attrgetter("start")) if foreign else atoms
        weak.difference_update(one.start for one in foreign)  # "half tien" is no weak "half"
    return _finished(text, atoms, frozenset() if keep_weak else frozenset(weak))


def _finished(text: str, atoms: list[Number], weak: frozenset[int]) -> list[Number]:
    """Composes and bounds; drops a weak number that nothing else has made one."""
    finished: list[Number] = []
    low = 0
    for number in compose(text, atoms, weak):
        whole = bounded(text, number, low)
        if number.start in weak and (
            _is_alone(whole) or (finished and _is_rate_of(finished[-1], text, number))
        ):
            continue
        whole = from_to(text, lifespan(text, whole))
        rate, trend = rate_behind(text, whole), trend_of(text, whole)
        if not trend and finished and whole.dimension and text[low : whole.start] == " (":
            is_same = finished[-1].dimension == whole.dimension  # "5 kg (11 lb)"
            trend = Trend(finished[-1].trend) if is_same else trend
        if rate or trend:
            parts = whole.parts
            if rate and whole.form is Form.RANGE:  # each end of "3,100 to 4,200 euros per month"
                parts = tuple(changed(one, rate=rate) for one in parts)
            whole = with_trend(changed(whole, rate=rate, parts=parts), trend)
        is_part = whole.kind is Kind.COUNT and _OF_WHICH.match(text, whole.end)
        counts = things_behind(text, whole) or is_in_name(text, whole) or is_part
        finished.append(changed(whole, counts=True) if counts else whole)
        low = whole.end
    return finished


def _is_rate_of(before: Number, text: str, weak: Number) -> bool:
    """Whether a weak number is only what the one before it is for: "two days a week or more"."""
    return before.rate != "" and text[before.end : weak.start] == " "


def _is_alone(weak: Number) -> bool:
    """Whether nothing around a weak number makes it one; "about" does so for "half", not for "one"."""
    if weak.parts or weak.form is not Form.EXACT:
        return False
    return not weak.approximate or weak.kind is Kind.ORDINAL or (weak.kind is Kind.COUNT and weak.value == 1)


def _in_digits(text: str, at: int, low: int, conventions: Conventions) -> Number | None:
    """The number, date, time or name at a digit; digits are never passed over."""
    end = end_of_digits(text, at)
    return (
        name_at(text, at, low)
        or date_at(text, at, low, conventions.date_order, end=end)
        or years_at(text, at, low)
        or time_at(text, at)
        or code_at(text, at, low)
        or number_at(text, at, low, conventions.decimal)
    )


def _in_words(text: str, start: re.Match[str], low: int) -> tuple[Number | None, bool]:
    """The number in words at a match, and whether it is weak."""
    if start["time"]:
        return named_time(start["time"], start.start(), start.end()), False
    if start["past"] and (time := time_past(text, start.start())):
        return time, False
    if start["article"]:
        return _one_unit(text, start)
    if start["roman"]:
        return roman_at(text, *start.span(), low), False
    if start.lastgroup in _READERS:
        return _READERS[start.lastgroup](text, *start.span()), False
    read = words_at(text, start.start())
    if read is None:
        return None, False
    number = Number(((read.value,),), step=read.step, start=start.start(), end=read.end)
    if read.is_ordinal:
        number = changed(number, kind=Kind.ORDINAL)
        whole = with_month(text, number, low) or with_ruler(text, number, low)
        return whole or number, read.weak and whole is None
    sign = sign_before(text, number.start, low)
    value, first = (-read.value, sign[0]) if sign and sign[1] else (read.value, number.start)
    measured = half_day_at(text, with_unit(text, first, read.end, Digits(value, read.step)))
    if measured.kind is Kind.COUNT and not read.step and (of := _OF_A.match(text, read.end)):
        part = with_unit(text, first, of.end(), Digits(value, read.step))  # "three quarters of an hour"
        measured = measured if part.kind is Kind.COUNT else part
    repeated = _REPEATED.match(text, read.end) if text.startswith(" (", read.end) else None
    if measured.kind is Kind.COUNT and repeated and int(repeated[1]) == value:
        measured = with_unit(text, first, repeated.end(), Digits(value, read.step))  # "fourteen (14) days"
    if (read.needs_unit and measured.kind is Kind.COUNT) or (measured.unit == "times" and read.value == 1):
        return None, False
    return measured, read.weak and measured.kind is Kind.COUNT and not _is_stressed(text, measured)


def _is_stressed(text: str, one: Number) -> bool:
    """Whether a "one" says how many: "only one ship sank"."""
    stressed = _EMPHASIS.search(text, max(0, one.start - _LONGEST_EMPHASIS), one.start)
    return stressed is not None and _ONE_THING.match(text, one.end) is not None


_READERS: dict[str | None, Callable[[str, int, int], Number | None]] = {
    "war": war_at,
    "about": about_at,
    "multiple": multiple_at,
    "decade": decade_at,
    "joined": joined_at,
}


def _one_unit(text: str, article: re.Match[str]) -> tuple[Number, bool]:
    """One of a unit ("a decade", "an hour and a half"), and whether it is weak, as "an hour" alone is."""
    one = with_unit(text, article.start(), article.end(), Digits(Decimal(1), Decimal(1)))
    half = _AND_A_HALF.match(text, one.end)
    if half is None:
        return one, one.unit not in _ALWAYS_UNITS
    value = _ONE_AND[half[1].lower() if half[1] else ""]
    return changed(one, readings=((value,),), step=Decimal(0), end=half.end()), False


def successive(places: Iterable[tuple[int, int | Decimal]]) -> Iterator[int]:
    """Where those places begin that are a one, or the successor of an earlier one."""
    seen: set[int | Decimal] = {0}
    for start, place in places:
        if place - 1 in seen:
            seen.add(place)
            yield start


def _enumerators_on_a_line(text: str) -> Iterator[int]:
    """Those of a list on one line: "1. Unplug it. 2. Wait." A 1 that no 2 follows is an amount."""
    place, first = 0, -1
    steps = [(m.start(1), int(m[1])) for m in _NEXT_ON_A_LINE.finditer(text)] if "2" in text else []
    ones = [text.index("1", m.start()) for m in _FIRST_ON_A_LINE.finditer(text)] if steps else []
    for start, value in sorted({*((one, 1) for one in ones), *steps}):
        if value == 1:
            place, first = 1, start
        elif place and value == place + 1:
            if value == 2:
                yield first
            place = value
            yield start

"""Numbers that are made of two: ranges, ratios, and lengths or durations in two units.

"52-59%", "9 am to 5 pm", "between 5 and 10" and "5-10 million" are ranges; what one end leaves out (unit,
scale, month, am or pm) is taken from the other. Going down, "2-1", "3 to 1" and "3.5 out of 5" are
ratios. "1 hour 30 minutes" is one duration. Of a composite number the parts keep their own places.
"""

import re
from collections.abc import Sequence
from decimal import Decimal

from reward.claims.numbers.clock import MINUTES_A_DAY
from reward.claims.numbers.dates import as_year, looks_like_year
from reward.claims.numbers.digits import EXACT, scale_after
from reward.claims.numbers.model import Form, Kind, Number, changed, span_of
from reward.claims.numbers.reading import OPEN_CENTS, read_as
from reward.claims.numbers.vocabulary import BEGIN, END, SPACE, TABLES

_DASH = "[-\u2010-\u2015\u2212~\uff5e]"
_LONGEST_GAP = 24
_GAP = re.compile(
    rf"""
    (?P<tight>{_DASH})
  | (?P<spaced>{SPACE}?{_DASH}{SPACE}?)
  | (?P<to>(?:{SPACE}(?:votes?|sets?|goals?|games?|matches))?{SPACE}(?:up[ ])?to{SPACE}|-to-)
  | (?P<through>{SPACE}(?:through|thru|until|till|til){SPACE})
  | (?P<and>{SPACE}and{SPACE})
  | (?P<out_of>{SPACE}(?:(?:stars?|points?){SPACE})?out{SPACE}of{SPACE}(?:a{SPACE})?(?:possible{SPACE})?
      |{SPACE}of{SPACE}|-out-of-)
  | (?P<chance>(?:{SPACE}(?P<of_what>[a-z]+))?{SPACE}in{SPACE}(?P<every>every{SPACE})?|-in-)
  | (?P<wickets>{SPACE}for{SPACE})
  | (?P<or>{SPACE}or{SPACE})
  | (?P<over>/) | (?P<colon>:)
  | (?P<join>,?{SPACE}?)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BY = re.compile(rf"{SPACE}?[x\u00d7]{SPACE}?|{SPACE}by{SPACE}", re.IGNORECASE)
_BETWEEN = re.compile(rf"{BEGIN}between{SPACE}$", re.IGNORECASE)
_TO = re.compile(rf"{SPACE}(?:to|auf|naar|à|a){SPACE}(?:just{SPACE}|only{SPACE})?", re.IGNORECASE)
_FROM = re.compile(rf"{BEGIN}(?:from|von|van|de|da){SPACE}$", re.IGNORECASE)
_UP_TO = re.compile(rf"{SPACE}to{SPACE}")  # of a range, which is read as a whole
# How many of the second unit make one of the first, of pairs that are written together.
_JOINED = {tuple(pair.split("|")): many for pair, many in TABLES["joined_units"].items()}
_CHAINED = re.compile(rf"{SPACE}{_DASH}{SPACE}\d")  # a row of a table, or a sum
_THE = re.compile(rf"{SPACE}(?:the|a)\b")
_NUMBER_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)?")
_READ_ON = re.compile(rf"{SPACE}(?:and|hundred|thousand|million|billion|trillion){SPACE}?", re.IGNORECASE)
_CENTS = 2  # digits
_FIRST_OF_CENTS, _CENTS_OF_ONE = 10, 100  # "three pounds eighty"
_SECONDS = re.compile(r"s(?![\w-])")  # of "1min 04s"; elsewhere "12s" is no measure
_WICKETS, _MOST_RUNS = 10, 1000
_BEHIND_SCORE = re.compile(rf"[.,;)]|$|{SPACE}(?:\(|decl|and{END}|in{END}|off{END}|at{END})")
_FEW = 12
_MOST_FALL = 1000  # times the last one
_MOST_PERCENT = 1000  # of a range whose end has no sign
_WITH_UNITS = (Kind.QUANTITY, Kind.DURATION, Kind.PERCENT, Kind.MONEY)
_NEVER_IN_RANGES = (Kind.IDENTIFIER, Kind.RATIO)


def compose(text: str, numbers: Sequence[Number], weak: frozenset[int]) -> list[Number]:
    """Puts neighbours together, from left to right.

    Args:
        text: Plain text.
        numbers: Its numbers in order, which do not overlap.
        weak: Starts of those that are numbers only beside another one ("one in five").
    """
    composed: list[Number] = []
    for number in numbers:
        low = composed[-2].end if len(composed) > 1 else 0
        _measure_sides(text, composed, number)
        number = _measure_ends(text, composed, number, low)
        alone = not composed or (number.start in weak and composed[-1].start in weak)
        whole = None if alone else _together(text, composed[-1], number, low)
        if whole is not None:
            composed[-1] = whole
        else:
            composed.append(number)
    return composed


def _measure_sides(text: str, composed: list[Number], last: Number) -> None:
    """The sides before the last of "31 x 22 cm" take its unit."""
    if last.dimension != "length":
        return
    for place in reversed(range(len(composed))):
        side = composed[place]
        if not _is_bare(side) or _BY.fullmatch(text, side.end, last.start) is None:
            return
        composed[place] = last = changed(read_as(side, last), end=side.end)


def _measure_ends(text: str, composed: list[Number], last: Number, low: int) -> Number:
    """Each end of "from 115 to 50 minutes" takes the unit of the other; the last one is returned.

    The first one takes the scale of the last one, too: "from 74.2 to 51.9 million".
    """
    if not composed or _TO.fullmatch(text, composed[-1].end, last.start) is None:
        return last
    first = composed[-1]
    if _FROM.search(text, max(low, first.start - 6), first.start) is None:
        return last
    if looks_like_year(first) or looks_like_year(last):
        return last
    if _is_bare(first):
        first = _scaled_like(text, first, last, is_falling=True)
    if first.value < last.value and _UP_TO.match(text, first.end):
        return last
    composed[-1] = read_as(first, last) if _is_bare(first) and last.kind in _WITH_UNITS else first
    return read_as(last, first) if _is_bare(last) and first.kind in _WITH_UNITS else last


def _together(text: str, first: Number, second: Number, low: int) -> Number | None:
    if second.start - first.end > _LONGEST_GAP or not first.form is second.form is Form.EXACT:
        return None
    if first.kind in _NEVER_IN_RANGES or second.kind in _NEVER_IN_RANGES:
        return None
    gap = _GAP.fullmatch(text, first.end, second.start)
    if gap is None:
        return None
    name = str(gap.lastgroup)
    if name == "join" and first.unit == "minute" and _is_bare(second) and _SECONDS.match(text, second.end):
        second = changed(second, kind=Kind.DURATION, unit="second", dimension="time", end=second.end + 1)
    is_apart = gap[0].startswith(",") and text[first.start : first.start + 2] in ("a ", "A ")
    if name in ("join", "and") and not is_apart and (joined := _joined(first, second)):  # no "a day, 6 hours"
        return joined
    if name == "join" and text[first.end - 1].isalpha() and (price := _price(first, second)):
        return price
    if gap["of_what"] and first.value != 1 and not gap["every"]:
        return None  # "one household in five"
    are_bare = _is_bare(first) and _is_bare(second)
    if name == "or" and not (are_bare and second.value == first.value + 1 <= _FEW):
        return None  # "one or two tablets"
    if name == "wickets":
        return _score(text, first, second)
    if name in ("out_of", "chance", "over", "colon"):
        return _ratio_in_words(text, first, second, name)
    between = _BETWEEN.search(text, max(low, first.start - 9), first.start)
    if name == "join" or (name == "and" and not between):
        return None
    return _range(text, first, second, name, low) or _ratio(text, first, second, name, low)


def _range(text: str, first: Number, second: Number, gap: str, low: int) -> Number | None:
    ends = _ends(text, first, second)
    if ends is None or (first.parts and first.kind is not Kind.DATE):
        return None
    if gap == "to" and text[max(low, first.start - 3) : first.start].lower() == "by ":
        return None  # "rises by 2 to 25"
    if first.kind is Kind.PERCENT and ends[1].value > _MOST_PERCENT and text[second.end - 1] != "%":
        return None  # "29% up to 95,000"
    if first.unit == OPEN_CENTS != second.unit:
        return None  # "lost 4 cents to $5.19"
    whole = span_of(*ends, first.start, second.end)
    is_row = gap == "spaced" and _CHAINED.match(text, second.end)
    is_ascending = any(a < b for a in ends[0].readings for b in ends[1].readings)
    if whole.kind is not Kind.TIME and (is_row or not is_ascending):
        return None
    opening = _BETWEEN if gap == "and" else _FROM
    start = opening.search(text, max(low, first.start - 9), first.start)
    return changed(whole, start=start.start()) if start else whole


def _ends(text: str, first: Number, second: Number) -> tuple[Number, Number] | None:
    """Both ends in one kind and unit; None when they have nothing in common."""
    if looks_like_year(first) and looks_like_year(second):
        return as_year(first), as_year(second)
    if first.kind in (Kind.COUNT, Kind.MONEY) and second.kind is not Kind.DATE:
        first = _scaled_like(text, first, second)
    if first.kind is Kind.TIME and second.kind is Kind.TIME:
        return _times(text, first, second)
    if second.kind is Kind.TIME and first.kind is Kind.COUNT:
        return _hour_before(first, second)
    if first.kind is Kind.DATE and second.kind is Kind.DATE:  # the first with the second's year or month
        year, month, _ = second.values
        readings = tuple((y or year, m or month, day) for y, m, day in first.readings)
        return changed(first, readings=readings), second
    if Kind.DATE in (first.kind, second.kind) or Kind.YEAR in (first.kind, second.kind):
        return None
    first, second = read_as(first, second), read_as(second, first)
    return (first, second) if (first.kind, first.unit) == (second.kind, second.unit) else None


def _scaled_like(text: str, first: Number, second: Number, *, is_falling: bool = False) -> Number:
    """The 5 of "5-10 million" in millions, and the 10 of "from 10 to 5 million"."""
    if scale_after(text, first.end) or first.step > 1:
        return first
    power = _power_behind(text, second)
    scaled = tuple((EXACT.scaleb(reading[0], power),) for reading in first.readings)
    is_alike = is_falling and scaled[0][0] < _MOST_FALL * second.value
    if is_alike or any(a[0] < b[0] for a in scaled for b in second.readings):
        return changed(first, readings=scaled, step=EXACT.scaleb(first.step, power))
    return first


def _power_behind(text: str, number: Number) -> int:
    """The power of ten of the scale word behind digits, or behind one number word ("ten million")."""
    word = _NUMBER_WORD.match(text, number.start, number.end)
    places = (place for place in range(number.start + 1, number.end) if text[place - 1].isdigit())
    found = (scale_after(text, place) for place in ([word.end()] if word else places))
    power, end = next(filter(None, found), (0, 0))
    return 0 if word and end and _READ_ON.match(text, end, number.end) else power


def _times(text: str, first: Number, second: Number) -> tuple[Number, Number]:
    """Two times of day; the end tells the morning or the evening of a beginning that does not.

    The 8:30 of "8:30-17:30" is on the same clock of 24 hours; that of "8:30-5:30 pm" is the nearest before.
    """
    if len(first.readings) == 1 or len(second.readings) > 1:
        return first, second
    if text[second.start : second.end].replace(":", "").isdigit():
        return changed(first, readings=first.readings[:1]), second
    return _hour_before(first, second) or (first, second)


def _hour_before(first: Number, second: Number) -> tuple[Number, Number] | None:
    """The 9 of "9-5 pm" in the morning, the 5 of "5-9 pm" in the evening."""
    early = read_as(first, second)
    if early.kind is not Kind.TIME:
        return None
    ends = [(a, b) for a in early.readings for b in second.readings]
    ordered = [pair for pair in ends if pair[0] < pair[1]] or ends
    nearest = min(ordered, key=lambda pair: (pair[1][0] - pair[0][0]) % MINUTES_A_DAY)
    return changed(early, readings=(nearest[0],)), changed(second, readings=(nearest[1],))


def _ratio(text: str, first: Number, second: Number, gap: str, low: int) -> Number | None:
    """ "2-1", "3 to 1": bare numbers that do not go up."""
    if gap not in ("tight", "to") or not (_is_bare(first) and _is_bare(second)):
        return None
    if gap == "to" and _FROM.search(text, max(low, first.start - 6), first.start):
        return None
    is_score = gap == "to" or first.step == second.step == 1
    return _pair(first, second) if is_score and 0 <= second.value <= first.value < 1000 else None


def _ratio_in_words(text: str, first: Number, second: Number, gap: str) -> Number | None:
    """ "3.5 out of 5", "4 of 5", "1 in 5", "3.5/5", "2.5:1"."""
    if not (_is_bare(first) and _is_bare(second)) or second.value <= 0:
        return None
    if gap == "out_of" and first.value > second.value:
        return None
    if gap == "chance":
        is_small = 0 < first.value <= 100 and first.step == 1 and first.value < second.value <= 1_000_000
        if not is_small or second.value == 24 or _THE.match(text, second.end):
            return None
    if gap in ("out_of", "chance"):  # neither side is a share by itself: "nine out of ten" is no 10%
        first, second = (changed(side, counts=True) for side in (first, second))
    return _pair(first, second)


def _score(text: str, first: Number, second: Number) -> Number | None:
    """Runs and wickets of cricket: "301 for 6 declared" and, of a bowler, "4 for 92"."""
    are_whole = _is_bare(first) and _is_bare(second) and first.step == second.step == 1
    wickets, runs = sorted((first.value, second.value))
    is_score = are_whole and 0 < wickets <= _WICKETS < runs < _MOST_RUNS
    second = changed(second, counts=True)  # and no six hours
    return _pair(first, second) if is_score and _BEHIND_SCORE.match(text, second.end) else None


def _is_bare(number: Number) -> bool:
    return number.kind is Kind.COUNT and not number.parts


def _pair(first: Number, second: Number) -> Number:
    pair = span_of(first, second, first.start, second.end)
    return changed(pair, kind=Kind.RATIO, form=Form.EXACT)


def _price(first: Number, second: Number) -> Number | None:
    """A price as it is said: "12 pounds 50"."""
    unit = "GBP" if first.unit == "pound" else first.unit
    is_money = first.kind is Kind.MONEY or first.unit == "pound"
    is_written = second.end - second.start == _CENTS or not is_money or second.value >= _FIRST_OF_CENTS
    has_cents = _is_bare(second) and second.step == 1 and is_written and second.value < _CENTS_OF_ONE
    if not is_money or first.step != 1 or not has_cents:
        return None
    value = EXACT.add(first.value, EXACT.scaleb(second.value, -_CENTS))
    money = changed(first, readings=((value,),), kind=Kind.MONEY, unit=unit, dimension="", end=second.end)
    return changed(money, step=EXACT.scaleb(1, -_CENTS))


def _joined(first: Number, second: Number) -> Number | None:
    """A whole number of a unit and less than one of it ("6 feet 2 inches"): the sum, in the smaller unit."""
    last = first.parts[-1] if first.parts and first.kind in (Kind.DURATION, Kind.QUANTITY) else first
    many = _JOINED.get((last.unit, second.unit), 0)
    value = EXACT.add(EXACT.multiply(first.value, Decimal(many)), second.value)
    is_rest = 0 < second.value < many
    if first.kind is second.kind is Kind.MONEY:  # "two dollars and fifty cents"
        value = EXACT.add(first.value, second.value)
        second = read_as(second, first)
        is_rest = first.unit == second.unit and second.step == Decimal("0.01") and 0 < second.value < 1
    if last.step != 1 or not is_rest:
        return None
    parts = (*(first.parts or (first,)), second)
    return changed(
        second, readings=((value,),), start=first.start, parts=parts, approximate=first.approximate
    )

"""Numbers that are made of two: ranges, ratios, and lengths or durations in two units.

"52-59%", "9 am to 5 pm", "between 5 and 10" and "5-10 million" are ranges; what one end leaves out (unit,
scale, month, am or pm) is taken from the other. Going down, "2-1", "3 to 1" and "3.5 out of 5" are
ratios. "1 hour 30 minutes" is one duration. Of a composite number the parts keep their own places.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from reward.claims.numbers.clock import MINUTES_A_DAY
from reward.claims.numbers.dates import as_year, looks_like_year
from reward.claims.numbers.digits import EXACT, scale_after
from reward.claims.numbers.model import Form, Kind, Number, changed, span_of
from reward.claims.numbers.reading import read_as
from reward.claims.numbers.vocabulary import SPACE

_DASH = "[-\u2010-\u2015\u2212~\uff5e]"
_LONGEST_GAP = 24
_GAP = re.compile(
    rf"""
    (?P<tight>{_DASH})
  | (?P<spaced>{SPACE}?{_DASH}{SPACE}?)
  | (?P<to>{SPACE}(?:up[ ])?to{SPACE}|-to-)
  | (?P<through>{SPACE}(?:through|thru|until|till|til){SPACE})
  | (?P<and>{SPACE}and{SPACE})
  | (?P<out_of>{SPACE}(?:(?:stars?|points?){SPACE})?out{SPACE}of{SPACE}(?:a{SPACE})?(?:possible{SPACE})?
      |{SPACE}of{SPACE}|-out-of-)
  | (?P<chance>{SPACE}in{SPACE}(?:every{SPACE})?|-in-)
  | (?P<over>/) | (?P<colon>:)
  | (?P<join>,?{SPACE}?)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BETWEEN = re.compile(rf"(?<![^\W_])between{SPACE}$", re.IGNORECASE)
_FROM = re.compile(rf"(?<![^\W_])from{SPACE}$", re.IGNORECASE)
# How many of the second unit make one of the first, of pairs that are written together.
_JOINED = {
    ("hour", "minute"): 60, ("minute", "second"): 60, ("foot", "inch"): 12, ("pound", "ounce"): 16,
    ("stone", "pound"): 14, ("year", "month"): 12, ("week", "day"): 7, ("day", "hour"): 24,
    ("10 * year", "year"): 10,
}  # fmt: skip
_NUMBER_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)?")
_READ_ON = re.compile(rf"{SPACE}(?:and|hundred|thousand|million|billion|trillion){SPACE}?", re.IGNORECASE)
_BARE = (Kind.COUNT,)
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
        alone = not composed or (number.start in weak and composed[-1].start in weak)
        whole = None if alone else _together(text, composed[-1], number, low)
        if whole is not None:
            composed[-1] = whole
        else:
            composed.append(number)
    return composed


def _together(text: str, first: Number, second: Number, low: int) -> Number | None:
    if (
        second.start - first.end > _LONGEST_GAP
        or first.form is not Form.EXACT
        or second.form is not Form.EXACT
    ):
        return None
    gap = _GAP.fullmatch(text, first.end, second.start)
    if gap is None or first.kind in _NEVER_IN_RANGES or second.kind in _NEVER_IN_RANGES:
        return None
    name = gap.lastgroup
    if name in ("join", "and") and (joined := _joined(first, second)):
        return joined
    if name in ("out_of", "chance", "over", "colon"):
        return _ratio_in_words(text, first, second, name)
    if name == "join" or (
        name == "and" and not _BETWEEN.search(text, max(low, first.start - 9), first.start)
    ):
        return None
    return _range(text, first, second, str(name), low) or _ratio(text, first, second, str(name), low)


def _range(text: str, first: Number, second: Number, gap: str, low: int) -> Number | None:
    ends = _ends(text, first, second)
    if ends is None or (first.parts and first.kind is not Kind.DATE):
        return None
    whole = span_of(*ends, first.start, second.end)
    if whole.kind is not Kind.TIME:
        if not _ascending(*ends):
            return None
        if gap == "spaced" and _chained(text, second.end):
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
    if first.kind is Kind.DATE and second.kind is Kind.DATE:
        return _filled(first, second), second
    if Kind.DATE in (first.kind, second.kind) or Kind.YEAR in (first.kind, second.kind):
        return None
    first, second = read_as(first, second), read_as(second, first)
    return (first, second) if (first.kind, first.unit) == (second.kind, second.unit) else None


def _ascending(low: Number, high: Number) -> bool:
    return any(a < b for a in low.readings for b in high.readings)


def _chained(text: str, at: int) -> bool:
    """Whether a spaced dash follows the second number, too: a row of a table, or a sum."""
    return re.compile(rf"{SPACE}{_DASH}{SPACE}\d").match(text, at) is not None


def _scaled_like(text: str, first: Number, second: Number) -> Number:
    """The 5 of "5-10 million" in millions."""
    if scale_after(text, first.end) or (first.step != 1 and first.step > 1):
        return first
    power = _power_behind(text, second)
    scaled = tuple((EXACT.scaleb(v[0], power),) for v in first.readings)
    if any(a[0] < b[0] for a in scaled for b in second.readings):
        return changed(first, readings=scaled, step=EXACT.scaleb(first.step, power))
    return first


def _power_behind(text: str, number: Number) -> int:
    """The power of ten of the scale word behind digits, or behind one number word ("ten million")."""
    word = _NUMBER_WORD.match(text, number.start, number.end)
    places = [word.end()] if word else range(number.start + 1, number.end)
    for place in places:
        if (word or text[place - 1].isdigit()) and (scale := scale_after(text, place)):
            more = word and _READ_ON.match(text, scale[1], number.end)
            return 0 if more else scale[0]
    return 0


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


def _filled(first: Number, second: Number) -> Number:
    """A date with the year, or the month, that only the later one writes."""
    readings = tuple(
        tuple(b if a == 0 and i < 2 else a for i, (a, b) in enumerate(zip(own, second.values, strict=True)))
        for own in first.readings
    )
    return changed(first, readings=readings)


def _ratio(text: str, first: Number, second: Number, gap: str, low: int) -> Number | None:
    """ "2-1", "3 to 1": bare numbers that do not go up."""
    if gap not in ("tight", "to") or not (_is_bare(first) and _is_bare(second)):
        return None
    if gap == "to" and _FROM.search(text, max(low, first.start - 6), first.start):
        return None
    small = max(first.value, second.value) < 1000 and first.value >= second.value >= 0
    whole = first.step == 1 and second.step == 1
    return _pair(first, second) if small and (whole or gap == "to") else None


def _ratio_in_words(text: str, first: Number, second: Number, gap: str) -> Number | None:
    """ "3.5 out of 5", "4 of 5", "1 in 5", "3.5/5", "2.5:1"."""
    if not (_is_bare(first) and _is_bare(second)) or second.value <= 0:
        return None
    if gap == "chance" and not (
        0 < first.value < second.value <= 1000000 and first.step == 1 and second.value != 24
    ):
        return None
    if gap == "chance" and (first.value > 100 or re.compile(rf"{SPACE}(?:the|a)\b").match(text, second.end)):
        return None
    if gap == "out_of" and first.value > second.value:
        return None
    return _pair(first, second)


def _is_bare(number: Number) -> bool:
    return number.kind in _BARE and number.form is Form.EXACT and not number.parts


def _pair(first: Number, second: Number) -> Number:
    pair = span_of(first, second, first.start, second.end)
    return changed(pair, kind=Kind.RATIO, form=Form.EXACT)


def _joined(first: Number, second: Number) -> Number | None:
    """A whole number of a unit and less than one of it ("6 feet 2 inches"): the sum, in the smaller unit."""
    last = first.parts[-1] if first.parts and first.kind in (Kind.DURATION, Kind.QUANTITY) else first
    pair = (last.unit, second.unit)
    if first.kind is Kind.MONEY:
        return _dollars_and_cents(first, second)
    if pair not in _JOINED or last.step != 1 or not 0 < second.value < _JOINED[pair]:
        return None
    value = EXACT.add(EXACT.multiply(first.value, Decimal(_JOINED[pair])), second.value)
    parts = (*(first.parts or (first,)), second)
    return changed(
        second, readings=((value,),), start=first.start, parts=parts, approximate=first.approximate
    )


def _dollars_and_cents(first: Number, second: Number) -> Number | None:
    """Money in two units: "two dollars and fifty cents"."""
    is_rest = second.step == Decimal("0.01") and 0 < second.value < 1
    if second.kind is not Kind.MONEY or first.unit != second.unit or first.step != 1 or not is_rest:
        return None
    value = EXACT.add(first.value, second.value)
    return changed(second, readings=((value,),), start=first.start, parts=(first, second))

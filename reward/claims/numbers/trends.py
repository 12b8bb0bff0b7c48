"""The trend of a number: a rise or a fall, a profit or a loss, above or below, before or after.

A rise by so much says nothing of a fall by so much, nor of a rise to so much, and a fall of 3% is a change of
-3%. The words beside a number tell its trend: `moves.py` reads those of amounts, `sides.py` those of dates.
"""

from enum import StrEnum
from itertools import permutations

from reward.claims.numbers.model import Form, Kind, Number, changed


class Trend(StrEnum):
    """What the words beside a number make of it."""

    RISE_BY = "rise by"
    RISE_TO = "rise to"
    RISE_FROM = "rise from"
    FALL_BY = "fall by"
    FALL_TO = "fall to"
    FALL_FROM = "fall from"
    UP = "up"  # "5%, up from 4%"
    DOWN = "down"
    STEADY = "steady"  # "unchanged at 8%"
    EARLIER = "earlier"  # "against 8% a year earlier"
    PROFIT = "profit"
    LOSS = "loss"
    ABOVE = "above"  # sea level, the average
    BELOW = "below"
    BEFORE = "before"  # a day, or ahead of a schedule
    AFTER = "after"
    NOT_BEFORE = "not before"  # "does not cover what was signed before 1996"
    NOT_AFTER = "not after"
    BIRTH = "birth"  # of somebody
    DEATH = "death"
    EARLY = "early"  # in a year or month
    MID = "mid"
    LATE = "late"
    AT_LEAST_UNTIL = "at least until"  # a day
    AT_LATEST = "at the latest"
    MORE_THAN = "more than"  # another thing
    LESS_THAN = "less than"
    FASTER = "faster"
    SLOWER = "slower"
    MULTIPLIED = "multiplied"  # "tripled", and no "three times"
    AS_MULTIPLE = "as multiple"  # a rise by 200% as what is tripled
    PLUS = "plus"  # "+5%"
    EXACTLY = "exactly"  # so many, and neither about nor at least so many
    MINUS = "minus"  # a negative number that is written without its sign
    NONE = ""


MOVES = (Trend.RISE_BY, Trend.RISE_TO, Trend.RISE_FROM, Trend.FALL_BY, Trend.FALL_TO, Trend.FALL_FROM)
_ONE_OF = (  # of each row no number can be two
    MOVES,
    *((Trend.PROFIT, Trend.LOSS), (Trend.ABOVE, Trend.BELOW), (Trend.BEFORE, Trend.AFTER)),
    *((Trend.NOT_BEFORE, Trend.NOT_AFTER), (Trend.AT_LATEST, Trend.AFTER)),
    (Trend.AT_LATEST, Trend.AT_LEAST_UNTIL),
    *((Trend.FASTER, Trend.SLOWER), (Trend.BIRTH, Trend.DEATH), (Trend.EARLY, Trend.MID, Trend.LATE)),
)
_LESS_OR_MORE = (
    *((Trend.ABOVE, Trend.FALL_BY), (Trend.BELOW, Trend.RISE_BY)),  # "3% above" and "3% less than"
    *((Trend.MORE_THAN, Trend.LESS_THAN), (Trend.MORE_THAN, Trend.FALL_BY), (Trend.LESS_THAN, Trend.RISE_BY)),
)
_SIGNS = ((Trend.PLUS, Trend.FALL_BY), (Trend.PLUS, Trend.LOSS))
_MOVED = (
    *((Trend.UP, Trend.DOWN), (Trend.UP, Trend.FALL_TO), (Trend.DOWN, Trend.RISE_TO)),
    *((Trend.UP, Trend.FALL_BY), (Trend.DOWN, Trend.RISE_BY)),
)
_DIRECTIONS = {
    **dict.fromkeys((Trend.RISE_BY, Trend.RISE_TO), Trend.UP),
    **dict.fromkeys((Trend.FALL_BY, Trend.FALL_TO), Trend.DOWN),
}
_UNMOVED = tuple((Trend.STEADY, one) for one in (Trend.UP, Trend.DOWN, Trend.RISE_TO, Trend.FALL_TO))
_STARTED = ((Trend.EARLIER, Trend.RISE_TO), (Trend.EARLIER, Trend.FALL_TO))
_OPPOSED = frozenset(
    pair
    for row in (*_ONE_OF, *_LESS_OR_MORE, *_SIGNS, *_MOVED, *_UNMOVED, *_STARTED)
    for pair in permutations(row, 2)
)
# The months of a year, and the days of a month, that can be called early, mid and late.
PARTS_OF_TIME = {
    Trend.EARLY: ((1, 6), (1, 15)),
    Trend.MID: ((3, 10), (7, 24)),
    Trend.LATE: ((7, 12), (16, 31)),
}
_DOWN = (Trend.FALL_BY, Trend.LOSS)
_SIGNED = frozenset({Kind.PERCENT, Kind.PERCENTAGE_POINT, Kind.MONEY, Kind.COUNT})
_SIGNED_DIMENSIONS = ("mass", "length", "pressure")  # a fall of 5 °C is no -5 °C


def are_opposed(claimed: Number, found: Number) -> bool:
    """Whether one number is of another trend than the other, as a rise and a fall are."""
    if claimed.trend == Trend.MINUS:
        return found.trend not in _DOWN
    if claimed.trend == Trend.EXACTLY:
        return found.is_bound or found.approximate
    if claimed.trend == Trend.AS_MULTIPLE:
        return found.trend != Trend.MULTIPLIED
    is_day = claimed.kind is Kind.DATE and claimed.values[2] != 0  # "late on 7 May" is a time of that day
    is_dated = claimed.trend in PARTS_OF_TIME and found.kind is Kind.DATE and found.form is Form.EXACT
    # "Late March 2017" is early in the year: its month says so, and not its word.
    is_of_year = claimed.kind is Kind.YEAR and is_dated and found.trend in PARTS_OF_TIME
    is_opposed = not is_of_year and (claimed.trend, found.trend) in _OPPOSED
    return is_opposed or (is_dated and not is_day and _is_of_other_part(claimed, found))


def _is_of_other_part(claimed: Number, found: Number) -> bool:
    """Whether a date lies in another part of the claimed year or month: November for "early 2017"."""
    is_of_month = claimed.kind is Kind.DATE and claimed.values[1] != 0
    place = 2 if is_of_month else 1  # a day or a month among the values of a date
    first, last = PARTS_OF_TIME[Trend(claimed.trend)][place - 1]
    return bool(found.values[place]) and not first <= found.values[place] <= last


def in_other_sign(number: Number) -> Number | None:
    """A change of -3% as a fall of 3%, which `MINUS` asks for, and a fall of 3% as a change of -3%."""
    is_signed = number.kind in _SIGNED or number.dimension in _SIGNED_DIMENSIONS
    if not is_signed or number.parts or len(number.readings) > 1:
        return None
    if number.value < 0 or number.trend in _DOWN:
        trend = Trend.MINUS if number.value < 0 else Trend.NONE
        return changed(number, readings=((-number.value,),), trend=trend)
    return None


def with_trend(number: Number, trend: Trend) -> Number:
    """A number of a trend; the ends of a range ("rose by 8% to 12%") only have its direction."""
    if number.form is not Form.RANGE:
        return changed(number, trend=trend)
    parts = (changed(one, trend=one.trend or _DIRECTIONS.get(trend, "")) for one in number.parts)
    return changed(number, trend=trend, parts=tuple(parts))

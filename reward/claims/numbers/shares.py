"""A share of something in its writings: three-quarters are 75%, three in four, and 0.75 times as many."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from reward.claims.numbers.digits import EXACT, fraction
from reward.claims.numbers.model import Form, Kind, Number, changed
from reward.claims.numbers.trends import Trend

_HUNDRED, _TEN = Decimal(100), 10
_PLACES = (Decimal(1), Decimal("0.1"), Decimal("0.01"))  # of a percentage that is rounded
_MOST_FEW = 12  # so many times may be a multiple of anything
_MOST_PARTS = 100  # "one in 100"
_SLACK = Fraction(1, 10**30)  # of a share that is a division, such as a third


def as_share(number: Number, like: Number) -> Number:
    """A share in the terms of another one: 75% as three-quarters, and "two in five" as a percentage.

    A decimal says nothing of its own: "0.75" is no 75%. What is no share stays as it is. What rose by 200% is
    tripled, too.
    """
    for writing in multiples(number):
        is_meant = writing.trend == like.trend or (writing.unit == "times" and like.trend == Trend.MULTIPLIED)
        if (writing.kind, writing.unit) == (like.kind, like.unit) and is_meant:
            return writing
    if number.kind is like.kind or not (_is_plain(number) and _is_plain(like)):
        return number
    share, other = share_of(number), share_of(like)
    if share is None or other is None:
        return number
    own = {"kind": like.kind, "unit": like.unit, "dimension": like.dimension, "parts": ()}
    # 33% is a third as a whole percentage has it; "one in 30" is not rounded.
    may_round = number.kind is Kind.PERCENT and like.kind is Kind.COUNT and _repeats(other)
    slack = Fraction(number.step) / 200 if may_round else _SLACK
    if abs(Fraction(share) - Fraction(other)) < max(slack, _SLACK):
        return changed(number, readings=like.readings, step=like.step, **own)
    if like.kind is Kind.RATIO:
        return number  # its sides are never rounded
    is_percent = like.kind is Kind.PERCENT
    value = EXACT.multiply(share, _HUNDRED) if is_percent else share
    step = number.step.scaleb(-2) if number.kind is Kind.PERCENT else Decimal(0)
    return changed(number, readings=((value,),), step=step, **own)


def _repeats(share: Decimal) -> bool:
    """Whether a share has no end as a decimal, such as a third."""
    return EXACT.multiply(share, Decimal(1000)) % 1 != 0


def _is_plain(number: Number) -> bool:
    """Whether a number says that it is a share: a percentage, a fraction in words, or "two in five"."""
    is_of_all = number.kind is Kind.RATIO and bool(number.parts) and number.parts[0].counts  # no "1:3"
    return number.kind is Kind.PERCENT or is_of_all or (number.kind is Kind.COUNT and not number.step)


def multiples(number: Number) -> Iterator[Number]:
    """What is tripled has risen by 200%, and what is halved has fallen by 50%; "three times" says neither.

    What has more than doubled has risen by more than 100%, while the bound of a fall would turn round.
    """
    is_bound_of_rise = number.is_bound and (number.trend == Trend.RISE_BY or number.value > 1)
    if len(number.values) > 1 or not (number.form is Form.EXACT or is_bound_of_rise):
        return
    if number.trend == Trend.MULTIPLIED:
        trend, percent = Trend.RISE_BY, (number.value - 1) * _HUNDRED
        if percent < 0:
            trend, percent = Trend.FALL_BY, -percent
        yield _written(number, percent, Kind.PERCENT, "%", "", trend)
    elif number.kind is Kind.PERCENT and number.trend in (Trend.RISE_BY, Trend.FALL_BY):
        change = number.value / _HUNDRED * (1 if number.trend == Trend.RISE_BY else -1)
        if change > -1:
            yield _written(number, 1 + change, Kind.QUANTITY, "times", "multiple", Trend.AS_MULTIPLE)


def _written(number: Number, value: Decimal, kind: Kind, unit: str, dimension: str, trend: Trend) -> Number:
    fields = {"kind": kind, "unit": unit, "dimension": dimension, "trend": trend, "step": Decimal(0)}
    return changed(number, readings=((value,),), **fields)


def shares(number: Number) -> Iterator[Number]:
    """A share as a percentage, a fraction, a multiple and a ratio.

    A percentage of a fraction may be rounded: two-thirds are borne out by 67%, and by 66.7%.
    """
    is_of_few = number.kind is Kind.RATIO and number.values[-1] <= _MOST_FEW  # "more than six in ten"
    is_part = number.is_bound and (number.kind in (Kind.COUNT, Kind.PERCENT) or is_of_few)  # "over half"
    share = share_of(number) if is_part or number.form is Form.EXACT else None
    if share is None:
        return
    # What is halved falls by half.
    trend = Trend.FALL_BY if number.trend == Trend.MULTIPLIED else number.trend
    plain = changed(number, readings=((share,),), parts=(), unit="", dimension="", counts=False, trend=trend)
    if number.kind is not Kind.PERCENT:
        percent = EXACT.multiply(share, _HUNDRED)
        step = Decimal(4 * number.approximate)  # "almost a third" of 31.7%, by its share of it
        yield changed(plain, readings=((percent,),), kind=Kind.PERCENT, unit="%", step=step)
        if not number.step and _repeats(share):
            for step in _PLACES:  # a third of 33%, and of 33.3%
                if rounded := percent.quantize(step):
                    yield changed(plain, readings=((rounded,),), kind=Kind.PERCENT, unit="%", step=Decimal(0))
    if number.kind is not Kind.COUNT:
        # It counts parts, so that 0.12 for 12% is no amount of money.
        yield changed(plain, kind=Kind.COUNT, step=number.step.scaleb(-2), counts=True)
    if number.unit != "times" and number.trend not in (Trend.RISE_BY, Trend.FALL_BY):
        yield changed(plain, kind=Kind.QUANTITY, unit="times", dimension="multiple", step=Decimal(0))
    if number.kind is not Kind.RATIO:
        yield from _ratios(plain, share)


def _ratios(plain: Number, share: Decimal) -> Iterator[Number]:
    """The ratio of smallest whole numbers, and that of ten: four fifths are eight out of ten, too."""
    multiples = ((Fraction(share) * many, many) for many in range(1, _MOST_PARTS + 1))
    whole = ((round(n), many) for n, many in multiples if round(n) and abs(n - round(n)) < _SLACK)
    ratio = next(whole, None)
    for times in dict.fromkeys((1, _TEN // ratio[1])) if ratio else ():
        sides = tuple(Decimal(side * times) for side in ratio or ())
        if times and (times == 1 or sides[1] == _TEN):
            yield changed(plain, readings=(sides,), kind=Kind.RATIO, step=Decimal(1))


def share_of(number: Number) -> Decimal | None:
    """The share, above 0 and below 1, that a number is; None for what is none."""
    share: Decimal | None = None
    is_fraction = number.kind is Kind.COUNT and number.step < 1  # "two-thirds", "0.46"
    if number.kind is Kind.RATIO and number.values[1] and all(v == int(v) for v in number.values):
        share = fraction(int(number.values[0]), int(number.values[1]))
    elif len(number.values) == 1 and number.kind is Kind.PERCENT:
        share = EXACT.divide(number.value, _HUNDRED)
    elif len(number.values) == 1 and (is_fraction or number.unit == "times"):  # "halved" leaves a half
        share = number.value
    return share if share is not None and 0 < share < 1 else None

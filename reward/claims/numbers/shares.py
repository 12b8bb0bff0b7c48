"""One share in its other writings: "half" is 50%, "one in five" 20%, "two-thirds" about 67%.

They are different kinds of numbers, and no two of them are `equal`; the audit asks for each writing in turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from reward.claims.numbers.digits import EXACT, fraction
from reward.claims.numbers.model import Form, Kind, Number

_HUNDRED = Decimal(100)
_FISCAL_YEAR = re.compile(r"fy ?'?(\d{4}|\d\d)")
TIMES = "multiple"  # the dimension of "twice"
_MOST_PARTS = 100  # "one in 100"
_SLACK = Fraction(1, 10**30)  # of a share that is a division, such as a third


def other_writings(number: Number) -> Iterator[Number]:
    """The share that a number is, as a fraction, as a percentage and as one in so many; none for other
    numbers.

    A percentage of a fraction has the precision of a whole per cent, so that 67% is borne out by two-thirds.
    """
    if number.unit == "pound":  # of mass, or of money
        yield replace(number, kind=Kind.MONEY, unit="GBP", dimension="", parts=())
    if fiscal := _FISCAL_YEAR.fullmatch(number.unit):
        year = Decimal(fiscal[1]) + (0 if len(fiscal[1]) > 2 else 2000)
        yield replace(number, readings=((year,),), kind=Kind.YEAR, unit="")
    share = _share(number)
    if share is None or number.form is not Form.EXACT:
        return
    plain = replace(number, parts=(), unit="", dimension="", counts=False)
    if number.kind is not Kind.PERCENT:
        percent = EXACT.multiply(share, _HUNDRED)
        yield replace(plain, readings=((percent,),), kind=Kind.PERCENT, unit="%", step=Decimal(0))
    if number.kind is not Kind.COUNT:
        # It counts parts, so that 0.12 for 12% is no amount of money.
        yield replace(plain, readings=((share,),), kind=Kind.COUNT, step=number.step.scaleb(-2), counts=True)
    if number.unit != "times":  # "halved"
        times = replace(plain, kind=Kind.QUANTITY, unit="times", dimension=TIMES)
        yield replace(times, readings=((share,),), step=Decimal(0))
    if number.kind is not Kind.RATIO:
        for many in range(1, _MOST_PARTS + 1):
            parts = Fraction(share) * many
            whole = round(parts)
            if whole and abs(parts - whole) < _SLACK:
                readings = ((Decimal(whole), Decimal(many)),)
                yield replace(plain, readings=readings, kind=Kind.RATIO, step=Decimal(1))
                return


def is_fraction(number: Number) -> bool:
    """Whether a bare number is a fraction: "two-thirds", "half"."""
    return number.kind is Kind.COUNT and number.step == 0


def _share(number: Number) -> Decimal | None:
    """The share, above 0 and below 1, that a number is; None for what is none."""
    share: Decimal | None = None
    if number.kind is Kind.PERCENT and len(number.values) == 1:
        share = EXACT.divide(number.value, _HUNDRED)
    elif len(number.values) == 1 and (
        number.unit == "times" or is_fraction(number)
    ):  # "halved" leaves a half
        share = number.value
    elif number.kind is Kind.RATIO and number.values[1] and all(v == int(v) for v in number.values):
        share = fraction(int(number.values[0]), int(number.values[1]))
    return share if share is not None and 0 < share < 1 else None

"""Numbers of a table whose heading gives their scale or unit: "(in thousands)" makes $842,310 $842 million.

The heading is valid for the rest of its table, up to the first sentence or another heading, but not for rows
of amounts per share. A bare number counts as an amount of the heading's currency, or of any if it names none.
The number as it is written remains valid, since not every row of such a table is in thousands.

The head of a row or column gives a unit in parentheses: 0.98 under "Weight (kg)" is 980 g.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from decimal import Decimal
from operator import attrgetter

from reward.claims.numbers.dates import looks_like_year
from reward.claims.numbers.digits import EXACT
from reward.claims.numbers.find import find_numbers
from reward.claims.numbers.model import Form, Kind, Number, changed
from reward.claims.numbers.units import SIGNS, currency_at
from reward.claims.numbers.vocabulary import END, TABLES, by_word, either
from reward.claims.tables import tables_of

ANY_CURRENCY = "?"  # the unit of an amount whose heading names no currency
_POWERS = {word: int(power) for word, power in by_word(TABLES["scales"]["of_headings"]).items()}
_CURRENCY = rf"(?:(?P<{{}}>{either(SIGNS)})[ \u00a0]?)"
_SCALE = rf"['\u2019]?(?P<{{}}>{either(_POWERS)}){END}"
_HEADING = re.compile(
    rf"(?:(?:^|[(|:]|\b(?i:amounts?|figures|numbers|values|data|all|expressed|stated|shown|presented),?)"
    rf"[ \t*_]{{0,3}}(?i:in|en)[ ]{_CURRENCY.format('code')}?{_SCALE.format('scale')}"
    rf"(?P<of>[ ](?:of[ ]|de[ ]|d['\u2019]))?"
    rf"|(?<![\w.,]){_CURRENCY.format('sign')}{_SCALE.format('short')}(?=[ ]?(?:[|):\t\n]|$)))",
    re.MULTILINE,
)
_SENTENCE = re.compile(r"(?<=[^\W\d_]{2})[.!?](?=\s|$)|\n[ \t]*\n(?![ \t]*\|)")
_PER_SHARE = re.compile(r"\bper\b|\bEPS\b|/ ?share", re.IGNORECASE)
_LONGEST_LABEL = 200  # characters of a row before its number
_UNIT = re.compile(r"\((?:in )?([^()\d]{1,20})\)\W*$")
_OF_MONEY = re.compile(rf"({either(SIGNS)})[ \u00a0]?(.*)")  # "$", "€ million"
_MOST_UNITS = 500  # of the cells of one document


def united_numbers(text: str, numbers: Sequence[Number]) -> Iterator[Number]:
    """The bare numbers of a text's tables in the units that the heads of their rows and columns give.

    Args:
        text: A document.
        numbers: Its numbers, from left to right.
    """
    left = _MOST_UNITS
    bare = [one for one in numbers if one.kind is Kind.COUNT and not one.parts]
    for table in tables_of(text) if bare else ():
        for cell, number in table.numbers(bare):
            heads = (table.rows[cell.row].text, table.columns[cell.column].text)
            for unit in filter(None, map(_UNIT.search, heads)):
                if not left:
                    return
                left -= 1
                written = text[number.start : number.end]
                money = _OF_MONEY.fullmatch(unit[1])
                # The reader of numbers takes the unit as if it were written beside the number.
                found = find_numbers(f"{money[1]}{written} {money[2]}" if money else f"{written} {unit[1]}")
                if len(found) == 1 and found[0].kind is not Kind.COUNT:
                    yield changed(found[0], start=number.start, end=number.end)


def scaled_amounts(text: str, numbers: Sequence[Number]) -> Iterator[Number]:
    """The numbers of a text's tables in the scale of their headings; bare ones have `ANY_CURRENCY`.

    Args:
        text: A document.
        numbers: Its numbers, from left to right.
    """
    headings = list(_HEADING.finditer(text)) if numbers else []
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    for heading, end in zip(headings, ends, strict=False):
        power = _POWERS[heading["scale"] or heading["short"]]
        unit, begin = _unit(text, heading)
        sentence = _SENTENCE.search(text, begin + 1, end)
        last = sentence.start() if sentence else end
        for place in range(bisect_left(numbers, begin, key=attrgetter("start")), len(numbers)):
            if numbers[place].start >= last:
                break
            if _is_amount(text, numbers[place]):
                yield _scaled(text, numbers[place], power, unit)


def _unit(text: str, heading: re.Match[str]) -> tuple[str, int]:
    """The currency of a heading, and where it ends: "in GBP million", "in thousands of dollars"."""
    if heading["of"] and (behind := currency_at(text, heading.end())):
        return behind[0], behind[2]
    before = heading["code"] or heading["sign"]
    return SIGNS[before] if before else ANY_CURRENCY, heading.end()


def _is_amount(text: str, number: Number) -> bool:
    """Whether a number of a table is an amount without a scale of its own, and not per share."""
    if number.kind not in (Kind.COUNT, Kind.MONEY) or number.form is not Form.EXACT or number.parts:
        return False
    if number.step > 1 or (looks_like_year(number) and number.kind is Kind.COUNT):
        return False
    line = max(text.rfind("\n", 0, number.start) + 1, number.start - _LONGEST_LABEL)
    return _PER_SHARE.search(text, line, number.start) is None


def _scaled(text: str, number: Number, power: int, unit: str) -> Number:
    """A number in its scale; a bare one in parentheses is negative, as accountants write it."""
    is_bare = number.kind is Kind.COUNT
    is_loss = is_bare and text[number.start - 1 : number.start] + text[number.end : number.end + 1] == "()"
    factor = Decimal(-1 if is_loss else 1)
    scaled = tuple((EXACT.scaleb(EXACT.multiply(value[0], factor), power),) for value in number.readings)
    unit = unit if is_bare else number.unit
    step = EXACT.scaleb(number.step, power)
    return changed(number, readings=scaled, kind=Kind.MONEY, unit=unit, step=step, counts=False)

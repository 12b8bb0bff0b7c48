"""How far two cells of one row or column of a table are apart: "€1,399, €250 more than the Aria 13".

Such a number is supported if its sentence, or the response up to there, states the value of one of the cells,
and states the other, too, or names its column (of two in a row) or row (of two in a column): by the words of
its label, or as the year before. The direction must be right: the difference is said of the cell that is
stated, unless the other is named before it.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from reward.claims.numbers.lookup import NumberLookup
from reward.claims.numbers.model import Kind, Number
from reward.claims.numbers.relations import Relation
from reward.claims.tables import Cell, Label, Table, tables_of, without_pairs, words_of

_YEAR_BEFORE = re.compile(
    r"\b(?:year|quarter) (?:before|earlier|ago)\b|\b(?:last|previous|prior) year\b|\bJahr zuvor\b|\bVorjahr"
    r"|\bl['\u2019]année précédente\b|\baño anterior\b|\banno (?:prima|precedente)\b",
    re.IGNORECASE,
)
_BESIDE = re.compile(r"(?:(?! (?:and|und|et|y|e) )[^.]){0,40}")  # between a value and its difference
_MOST_OWN = 16  # cells with the value that is stated


class _Valued(NamedTuple):
    """A cell, and the number that it holds."""

    cell: Cell
    number: Number


def cells_apart(
    number: Number,
    relation: Relation,
    response: str,
    sentence: tuple[int, int],
    numbers: Sequence[Number],
    lookup: NumberLookup,
) -> str:
    """The two cells whose difference a number is ("1,399 - 1,149"); empty without them.

    Args:
        number: A number of a response that no document holds.
        relation: What its sentence says of it.
        response: What is audited.
        sentence: Where its sentence begins and ends.
        numbers: All numbers of the response.
        lookup: The documents.
    """
    if relation.is_ratio or relation.sign is None or not number.value:
        return ""
    before, behind = response[sentence[0] : number.start], response[number.end : sentence[1]]
    own = next(
        (one for one in reversed(numbers) if sentence[0] <= one.start and one.end <= number.start), None
    )
    if own is None or not _is_like(own, number) or not _BESIDE.fullmatch(response, own.end, number.start):
        return ""
    for document, index in lookup.texts:
        usable = [one for one in index.numbers if _is_of_kind(one, own)]
        for table in tables_of(document.text) if usable else ():
            cells = [_Valued(*one) for one in table.numbers(usable)]
            for mine, other in _pairs(cells, own.value, number.value):
                sign = _sign(table, mine, other, before, behind)
                is_greater = mine.number.value > other.number.value
                if sign and (not relation.sign or (relation.sign * sign > 0) == is_greater):
                    pair = (mine.number, other.number) if is_greater else (other.number, mine.number)
                    return " - ".join(document.text[one.start : one.end] for one in pair)
    return ""


def _is_like(own: Number, number: Number) -> bool:
    """Whether a difference is in the unit of the value that is stated before it."""
    is_bare = number.kind is Kind.COUNT and own.kind in (Kind.QUANTITY, Kind.MONEY)
    return is_bare or (own.kind is number.kind and own.unit == number.unit)


def _is_of_kind(one: Number, own: Number) -> bool:
    """Whether a number of a table can be in the unit of the value that is stated, as all bare ones can."""
    is_like = one.kind is Kind.COUNT or (one.kind is own.kind and one.unit == own.unit)
    return is_like and not one.parts


def _pairs(
    cells: Sequence[_Valued], value: Decimal, difference: Decimal
) -> Iterator[tuple[_Valued, _Valued]]:
    """Each cell of a value, with each one of its row or column at this difference."""
    for own in islice((one for one in cells if one.number.value == value), _MOST_OWN):
        for other in cells:
            is_beside = (own.cell.row == other.cell.row) != (own.cell.column == other.cell.column)
            if is_beside and abs(own.number.value - other.number.value) == difference:
                yield own, other


def _sign(table: Table, own: _Valued, other: _Valued, before: str, behind: str) -> int:
    """1 if a difference is said of the cell that is stated, -1 if of the other; 0 if that is not named."""
    if own.cell.row == other.cell.row:
        labels, mine, its = table.columns, table.columns[own.cell.column], table.columns[other.cell.column]
    else:
        labels, mine, its = table.rows, table.rows[own.cell.row], table.rows[other.cell.row]
    if mine.years and its.years and _YEAR_BEFORE.search(behind):
        is_year_before = int(min(mine.years)) - int(min(its.years)) == 1
        return int(is_year_before and _words(its) - its.years == _words(mine) - mine.years)
    telling = _words(its) - _words(mine)
    unique = telling.difference(*(_words(one) for one in labels if one is not its))
    for sign, text in ((1, behind), (-1, before)):
        said = words_of(text)
        if not unique.isdisjoint(said) or (telling and telling <= said):
            return sign
    return 0


def _words(label: Label) -> frozenset[str]:
    """The words of a label, and those of the texts of its row."""
    return without_pairs(label.words.union(*label.cell_texts))

"""How far two cells of one row or column of a table are apart: "€1,399, €250 more than the Aria 13".

Such a number is supported if its sentence, or the response up to there, states the value of one of the cells,
and states the other, too, or names its column (of two in a row) or row (of two in a column): by the words of
its label, or as the year before. The direction must be right: the difference is said of the cell that is
stated, unless the other is named before it.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
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
_MOST_STATED = 8  # numbers of a response that are tried


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
    if relation.is_ratio or relation.sign is None:
        return ""
    stated = [one for one in numbers if one.start < sentence[1] and one is not number][-_MOST_STATED:]
    before, behind = response[sentence[0] : number.start], response[number.end : sentence[1]]
    for document, index in lookup.texts if stated else ():
        usable = [one for one in index.numbers if _is_of_kind(one, number)]
        for table in tables_of(document.text):
            cells = [_Valued(cell, one) for one in usable if (cell := table.at(one.start)) is not None]
            for own, other in _pairs(cells, stated, number.value):
                sign = _sign(table, own, other, before, behind, stated)
                is_greater = own.number.value > other.number.value
                if sign and (not relation.sign or (relation.sign * sign > 0) == is_greater):
                    pair = (own.number, other.number) if is_greater else (other.number, own.number)
                    return " - ".join(document.text[one.start : one.end] for one in pair)
    return ""


def _is_of_kind(one: Number, number: Number) -> bool:
    """Whether a number of a table can be in the unit of a difference, as all bare ones can."""
    is_like = one.kind is Kind.COUNT or (one.kind is number.kind and one.unit == number.unit)
    return is_like and not one.parts


def _pairs(
    cells: Sequence[_Valued], stated: Sequence[Number], difference: Decimal
) -> Iterator[tuple[_Valued, _Valued]]:
    """Each cell whose value is stated, with each one of its row or column at this difference, if not 0."""
    values = {one.value for one in stated}
    for own in cells if difference else ():
        for other in cells if own.number.value in values else ():
            is_beside = (own.cell.row == other.cell.row) != (own.cell.column == other.cell.column)
            if is_beside and abs(own.number.value - other.number.value) == difference:
                yield own, other


def _sign(
    table: Table, own: _Valued, other: _Valued, before: str, behind: str, stated: Sequence[Number]
) -> int:
    """1 if a difference is said of the cell that is stated, -1 if of the other; 0 if that is not named."""
    starts = {one.value: one.start for one in reversed(stated)}  # where each value is stated first
    if other.number.value in starts:
        return 1 if starts[own.number.value] < starts[other.number.value] else -1
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

"""How far two cells of one row or column of a table are apart: "€1,399, €250 more than the Aria 13".

Such a number is supported if its sentence, or the response up to there, states the value of one of the cells,
and states the other, too, or names its column (of two in a row) or row (of two in a column): by the words of
its label, or as the year before. The direction must be right: the cell that is stated is the one that is
spoken of, unless the other is named before the difference.
"""

import re
from collections.abc import Iterator, Sequence

from reward.claims.numbers.lookup import NumberLookup
from reward.claims.numbers.model import Kind, Number
from reward.claims.numbers.relations import Relation
from reward.claims.tables import Cell, Label, Table, tables_of, words_of

_YEAR_BEFORE = re.compile(
    r"\b(?:year|quarter) (?:before|earlier|ago)\b|\b(?:last|previous|prior) year\b|\bJahr zuvor\b|\bVorjahr"
    r"|\bl['\u2019]année précédente\b|\baño anterior\b|\banno (?:prima|precedente)\b",
    re.IGNORECASE,
)
_MOST_STATED = 8  # numbers of a response that are tried
_Valued = tuple[Cell, Number]


def cells_apart(
    number: Number,
    relation: Relation,
    response: str,
    sentence: tuple[int, int],
    numbers: Sequence[Number],
    lookup: NumberLookup,
) -> str:
    """The two cells whose difference a number is ("1,399 - 1,149"); empty if it is of none.

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
    for document, index in lookup.texts:
        for table in tables_of(document.text):
            cells = [
                (cell, one)
                for one in index.numbers
                if (cell := table.at(one.start)) is not None and _is_of_kind(one, number)
            ]
            for own, other in _pairs(cells, stated):
                if abs(own[1].value - other[1].value) != number.value:
                    continue
                sign = _sign(table, own, other, before, behind, stated)
                is_greater = own[1].value > other[1].value
                if sign and (not relation.sign or (relation.sign * sign > 0) == is_greater):
                    parts = sorted((own[1], other[1]), key=lambda one: one.value, reverse=True)
                    return " - ".join(document.text[one.start : one.end] for one in parts)
    return ""


def _is_of_kind(one: Number, number: Number) -> bool:
    """Whether a number of a table can be in the unit of a difference, as all bare ones can."""
    is_bare = one.kind is Kind.COUNT and not one.parts
    return is_bare or (one.kind is number.kind and one.unit == number.unit and not one.parts)


def _pairs(cells: Sequence[_Valued], stated: Sequence[Number]) -> Iterator[tuple[_Valued, _Valued]]:
    """Each cell whose value is stated, with each other one of its row and column."""
    values = {one.value for one in stated}
    for own in cells:
        if own[1].value in values:
            for other in cells:
                is_beside = (own[0].row == other[0].row) != (own[0].column == other[0].column)
                if is_beside and other[1].value != own[1].value:
                    yield own, other


def _sign(
    table: Table, own: _Valued, other: _Valued, before: str, behind: str, stated: Sequence[Number]
) -> int:
    """1 if a difference is said of the cell that is stated, -1 if of the other; 0 if that is not named."""
    if any(one.value == other[1].value for one in stated):
        places = [next(s.start for s in stated if s.value == one.value) for one in (own[1], other[1])]
        return 1 if places[0] < places[1] else -1
    is_row = own[0].row == other[0].row
    labels = table.columns if is_row else table.rows
    mine, its = (labels[one.column if is_row else one.row] for one in (own[0], other[0]))
    if mine.years and its.years and _YEAR_BEFORE.search(behind):
        is_year_before = int(min(mine.years)) - int(min(its.years)) == 1
        return int(is_year_before and _words(its) - its.years == _words(mine) - mine.years)
    telling, others = _words(its) - _words(mine), [one for one in labels if one is not its]
    unique = telling.difference(*map(_words, others))
    for sign, text in ((1, behind), (-1, before)):
        said = words_of(text)
        if not unique.isdisjoint(said) or (telling and telling <= said):
            return sign
    return 0


def _words(label: Label) -> frozenset[str]:
    """The words of a label, and those of the texts of its row."""
    return frozenset(word for word in label.words.union(*label.texts) if " " not in word)

"""Numbers and names that a table of the documents gives, but in another row or column.

"Revenue was $700 million in 2021", where the row "Revenue" has 700 in the column of 2020, or the row "Net
income" has it. What a response says is of another cell if each place of the documents that holds it is:

- of another year: its row and column are of other years than the only one that is spoken of, and the table
  has that year elsewhere;
- of another row: another row fits better, and the clause does not state that row's value, too. A row fits
  better if it has all the words that this one has of what is spoken of, and more of them, or the same and
  fewer others. Its words are those of its label, and each short text of its cells that is spoken of as a
  whole. Columns likewise, but not for names.

Spoken of is what the clause says, and what the query asks if the clause adds no word to it, or holds the only
mention of its kind in the response.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from reward.claims.clauses import Clauses
from reward.claims.kind import Place, Target
from reward.claims.names import Name
from reward.claims.names.index import index_names
from reward.claims.numbers import Form, Kind, Number
from reward.claims.numbers.vocabulary import TABLES
from reward.claims.tables import Cell, Label, Table, tables_of, words_of, years_of
from reward.types import RagQuery

_WIDE = frozenset(TABLES["tables"]["wide"].split())  # they tell no labels apart by themselves
_COMPARES, _IN_ORDER, _DENIES = (
    re.compile(rf"\b(?:{TABLES['tables'][words]})\b", re.IGNORECASE)
    for words in ("compares", "in_order", "denies")
)
_FROM = re.compile(r"\b(?:de|desde|da)\s*$", re.IGNORECASE)
_BESIDE = re.compile(r"\([^()]*\)?")
_GOES_ON = re.compile(r"\s?\w")
_SHORT = 200  # characters of an answer to the query alone
_MOST_NAMES = 2  # in a response whose names are held against tables
_OPENING, _BEHIND = 6, 4  # words
_LONGEST_WORD = 20  # characters
_MOST_PLACES = 16  # what is in more of them may be right


class _Spoken(NamedTuple):
    """What is spoken of where a response says something."""

    clause: str
    words: frozenset[str]
    years: frozenset[str]
    own: frozenset[str]  # of the clause alone
    asked: frozenset[str]
    named: tuple[frozenset[str], ...]  # the first words of the clause, and those behind the mention
    is_answer: bool  # whether it is all of the answer
    is_plain: bool  # whether it neither compares nor denies anything


class Cells:
    """The tables of the documents, for what a response says."""

    def __init__(self, query: RagQuery, response: str, targets: Sequence[Target]) -> None:
        self._query = query.query
        self._clauses = Clauses(response, targets)
        self._texts = [one.text for one in query.documents if tables_of(one.text)]
        labels = frozenset().union(*(one.words for text in self._texts for one in _labels(text)))
        self._counts = Counter(
            one.kind.name
            for one in targets
            if not _is_year(one.mention) and not _is_of_label(response, one, labels)
        )
        self._is_short = len(response) <= _SHORT

    def of_another(self, target: Target, places: Sequence[Place[Any]]) -> str:
        """The row, column or year that a mention is of, where the response says another; else empty.

        Args:
            target: The mention.
            places: The places of the documents that support it; of a name one.
        """
        is_one_of_many = target.kind.name == "name" and self._counts["name"] > _MOST_NAMES
        has_parts = isinstance(target.mention, Number) and target.mention.form is Form.RANGE
        if not self._texts or is_one_of_many or has_parts:
            return ""
        found = list(islice(self._places(target, places), _MOST_PLACES + 1))
        if len(found) > _MOST_PLACES:
            return ""
        spoken, others = self._spoken(target), []
        if _IN_ORDER.search(spoken.clause):
            return ""
        for text, start in found:
            others.append(_other(text, start, spoken, target.mention))
            if not others[-1]:
                return ""
        return others[0] if others else ""

    def _spoken(self, target: Target) -> _Spoken:
        before, behind = self._clauses.around(target)
        opening = self._clauses.opening(target) if before.lstrip()[:1].islower() else ""
        clause = f"{opening} {before} {behind}"
        own = words_of(clause)
        is_answer = self._is_short and self._counts[target.kind.name] <= 1
        is_answer = is_answer or (bool(own) and own <= self._asked)
        is_plain = not (_COMPARES.search(clause) or _DENIES.search(clause) or _FROM.search(before))
        years = self._years(f"{opening} {before}", behind)
        if is_answer and years is None:
            years = years_of(self._query)
        parts = ((opening, _OPENING), (before, _OPENING), (behind if _GOES_ON.match(behind) else "", _BEHIND))
        named = tuple(words_of(" ".join(part.split()[:most])) for part, most in parts)
        words = own | self._asked if is_answer else own
        return _Spoken(clause, words, years or frozenset(), own, self._asked, named, is_answer, is_plain)

    def _years(self, before: str, behind: str) -> frozenset[str] | None:
        """The years that a clause names; none of what it compares with, and None if it names no year."""
        before, behind = _BESIDE.sub("", before), _BESIDE.sub("", behind)
        if _COMPARES.search(before) or _FROM.search(before):
            return frozenset()
        years = years_of(before)
        if later := years_of(behind):
            return frozenset() if _COMPARES.search(behind) or _DENIES.search(behind) else years | later
        return years or None

    @cached_property
    def _asked(self) -> frozenset[str]:
        return words_of(self._query)

    def _places(self, target: Target, places: Sequence[Place[Any]]) -> Iterator[tuple[str, int]]:
        """All places of a mention: the text and where it begins there."""
        if not isinstance(target.mention, Name):
            yield from ((one.document.text, one.mention.start) for one in places)
            return
        for text in {one.document.text: None for one in places} | dict.fromkeys(self._texts):
            index = index_names(text)
            for place in index.places.get(target.mention.tokens[-1], ()):
                yield text, index.tokens.starts[place]


def _other(text: str, start: int, spoken: _Spoken, mention: Number | Name) -> str:
    """What the cell at a place is of, if the response says another; empty outside of tables."""
    found = next(((table, cell) for table in tables_of(text) if (cell := table.at(start))), None)
    if found is None:
        return ""
    table, cell = found
    row = _other_row(table, cell, spoken)
    if isinstance(mention, Name):
        column = _other_column(table, cell, spoken) if spoken.is_answer else ""
        return (row or column) if spoken.is_plain else ""
    year = "" if _is_calendar(mention) else _other_year(table, cell, spoken)
    return year or row or _other_column(table, cell, spoken)


def _is_calendar(mention: Any) -> bool:
    return isinstance(mention, Number) and mention.is_calendar


def _is_year(mention: Any) -> bool:
    return isinstance(mention, Number) and mention.kind is Kind.YEAR


def _other_year(table: Table, cell: Cell, spoken: _Spoken) -> str:
    own = table.rows[cell.row].years | table.columns[cell.column].years
    is_other = own and len(spoken.years) == 1 and spoken.years <= table.years - own
    return ", ".join(sorted(own)) if is_other else ""


def _other_row(table: Table, cell: Cell, spoken: _Spoken) -> str:
    better = [place for place in range(len(table.rows)) if _is_better(table.rows, place, cell.row, spoken)]
    beside = [one for one in table.cells if one.row in better and one.column == cell.column]
    return _named(table.rows[cell.row]) if better and not _say(table, beside, spoken) else ""


def _other_column(table: Table, cell: Cell, spoken: _Spoken) -> str:
    labels = table.columns
    better = [place for place in range(len(labels)) if _is_better(labels, place, cell.column, spoken)]
    if not spoken.is_answer:  # "the milk has 3.8% fat" is not of the column "Milk"
        better = [one for one in better if _is_written(labels[one], spoken)]
    beside = [one for one in table.cells if one.column in better and one.row == cell.row]
    beside = [one for one in beside if _shape(table, one) == _shape(table, cell)]
    better = [one.column for one in beside]
    return _named(labels[cell.column]) if better and not _say(table, beside, spoken) else ""


def _shape(table: Table, cell: Cell) -> tuple[bool, ...]:
    """Whether a cell holds a number, a percentage, and an amount of money."""
    text = table.text[cell.start : cell.end]
    return any(map(str.isdigit, text)), "%" in text, any(sign in text for sign in "$€£")


def _is_written(label: Label, spoken: _Spoken) -> bool:
    """Whether a clause writes a label as it is, or has its words behind the number."""
    return label.name in spoken.clause or label.words <= spoken.named[-1]


def _named(label: Label) -> str:
    return label.text or "a cell without a label"


def _say(table: Table, cells: Sequence[Cell], spoken: _Spoken) -> bool:
    """Whether the clause states the value of a cell, which its other words are then about."""
    values = (table.text[one.start : one.end].strip(" $€£()*") for one in cells)
    return any(value and value in spoken.clause for value in values)


def _is_better(labels: Sequence[Label], place: int, own_place: int, spoken: _Spoken) -> bool:
    """Whether a label fits better than another what is spoken of."""
    label, own, said = labels[place], labels[own_place], spoken.words
    named = [text for text in label.texts if text <= said]
    if place == own_place or not (label.words & said or named):
        return False
    is_subject = any(text and text <= part for text in (label.words, *named) for part in spoken.named)
    if not spoken.is_answer and not (is_subject and spoken.is_plain):
        return False
    for_own = spoken.own if is_subject else said | spoken.asked
    mine = (own.words | own.beside).union(*own.texts) & for_own
    theirs = ((label.words | label.beside) & said).union(*named)
    missing, lacking = _single(label.words - said), _single(own.words - for_own)
    if not mine <= theirs or not (named or missing <= lacking):
        return False
    more = theirs - mine
    is_closer = bool(own.words) and not more and missing < lacking and not lacking <= _WIDE
    return is_closer or bool(more and mine) or bool(more - _WIDE)


def _labels(text: str) -> Iterator[Label]:
    return (label for table in tables_of(text) for label in (*table.rows, *table.columns))


def _is_of_label(response: str, target: Target, labels: frozenset[str]) -> bool:
    """Whether a number is part of a label: the 14 of "Aero 14"."""
    before = response[max(0, target.start - _LONGEST_WORD) : target.start].split(" ")[-2:]
    behind = response[target.end : target.end + _LONGEST_WORD].split(" ")[:2]
    near = words_of(f"{' '.join(before)}{response[target.start : target.end]}{' '.join(behind)}")
    return any(" " in pair and pair in labels for pair in near)


def _single(words: frozenset[str]) -> frozenset[str]:
    """Those that are no numbers with the word beside them, which differ from label to label."""
    return frozenset(word for word in words if " " not in word)

"""Numbers and names that a table of the documents gives, but in another row or column.

"Revenue was $700 million in 2021", where the row "Revenue" has 700 in the column of 2020, or the row "Net
income" has it. A mention is of another cell if each place of the documents that holds it is in a cell, and is

- of another year: its row and column are of other years than the only one that is spoken of, and the table
  has that year elsewhere; or
- of another row: another row fits better, and the clause does not also state that row's value. A row fits
  better if it has all the words that this one has of what is spoken of, and more of them, or the same and
  fewer others. Its words are those of its label, and each short text of its cells that is spoken of as a
  whole; or
- of another column, by the same rule, but for a name only if it is all of the answer.

What the clause says is spoken of. What the query asks is, too, if the clause adds no word to it, or holds the
only mention of its kind in a short response.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice, takewhile
from typing import Any, NamedTuple

from reward.claims.clauses import Clauses
from reward.claims.kind import Place, Target
from reward.claims.names import Name
from reward.claims.names.index import index_names
from reward.claims.numbers import Form, Kind, Number
from reward.claims.numbers.vocabulary import TABLES
from reward.claims.tables import Cell, Label, Table, tables_of, without_pairs, words_of, years_of
from reward.claims.text import sentence_span
from reward.types import RagQuery

_WIDE = frozenset(TABLES["tables"]["wide"].split())  # words that alone do not distinguish two labels
_COMPARES, _IN_ORDER, _DENIES, _BESIDE = (
    re.compile(rf"\b(?:{TABLES['tables'][words]})\b", re.IGNORECASE)
    for words in ("compares", "in_order", "denies", "beside")
)
_FROM = re.compile(r"\b(?:de|desde|da)\s*$", re.IGNORECASE)
_PARENTHESES = re.compile(r"\([^()]*\)?")
_GOES_ON = re.compile(r"\s?\w")
_SHORT = 200  # characters of a response that only answers the query
_MOST_NAMES = 2  # in a response whose names are compared with tables
_STEM = 5  # letters that the writings of one word share
_OPENING, _BEHIND = 6, 4  # words
_LONGEST_WORD = 20  # characters
_MOST_PLACES = 16  # of a mention; with more of them one may be right


class _Spoken(NamedTuple):
    """What is spoken of where a response has a mention."""

    clause: str
    words: frozenset[str]  # of the clause, and of the query if the mention is its answer
    years: frozenset[str]
    own: frozenset[str]  # words of the clause alone
    asked: frozenset[str]  # words of the query
    openings: tuple[frozenset[str], ...]  # the first words of the sentence and of the clause
    behind: frozenset[str]  # the words right behind the mention
    is_answer: bool  # whether it answers the query
    is_plain: bool  # whether it neither compares nor denies anything


class Cells:
    """The tables of the documents, for the mentions of a response."""

    def __init__(self, query: RagQuery, response: str, targets: Sequence[Target], clauses: Clauses) -> None:
        self._query = query.query
        self._clauses = clauses
        self._texts = [one.text for one in query.documents if tables_of(one.text)]
        self._counts = self._count(response, targets) if self._texts else Counter()
        self._is_short = len(response) <= _SHORT

    def _count(self, response: str, targets: Sequence[Target]) -> Counter[str]:
        """How many mentions a response has of each kind, without years and the numbers of labels."""
        tables = [table for text in self._texts for table in tables_of(text)]
        labels = frozenset().union(*(one.words for table in tables for one in (*table.rows, *table.columns)))
        return Counter(
            one.kind.name
            for one in targets
            if getattr(one.mention, "kind", None) is not Kind.YEAR and not _is_of_label(response, one, labels)
        )

    def of_another(self, target: Target, places: Sequence[Place[Any]]) -> str:
        """The row, column or years of a mention's cell, where the response speaks of another; else empty.

        Args:
            target: The mention.
            places: The places of the documents that support it; of a name one.
        """
        is_one_of_many = target.kind.name == "name" and self._counts["name"] > _MOST_NAMES
        is_range = isinstance(target.mention, Number) and target.mention.form is Form.RANGE
        if not self._texts or is_one_of_many or is_range:
            return ""
        found = list(islice(self._places(target, places), _MOST_PLACES + 1))
        if not found or len(found) > _MOST_PLACES:
            return ""
        spoken = self._spoken(target)
        if _IN_ORDER.search(spoken.clause) or _BESIDE.search(spoken.clause):
            return ""
        others = (_other(text, start, spoken, target.mention) for text, start in found)
        known = list(takewhile(bool, others))
        return known[0] if len(known) == len(found) else ""

    def _spoken(self, target: Target) -> _Spoken:
        before, behind = self._clauses.around(target)
        # A clause in small letters goes on with the subject that its sentence begins with.
        opening = self._clauses.opening(target) if before.lstrip()[:1].islower() else ""
        clause = f"{opening} {before} {behind}"
        own = words_of(clause)
        is_alone = self._is_short and self._counts[target.kind.name] <= 1
        is_answer = is_alone or (bool(own) and own <= self._asked)
        years = self._years(f"{opening} {before}", behind)
        if is_answer and years is None:
            years = years_of(self._question)
        return _Spoken(
            clause,
            words=own | words_of(self._question) if is_answer else own,
            years=years or frozenset(),
            own=own,
            asked=self._asked,
            openings=(_first_words(opening, _OPENING), _first_words(before, _OPENING)),
            behind=_first_words(behind if _GOES_ON.match(behind) else "", _BEHIND),
            is_answer=is_answer,
            is_plain=not (_COMPARES.search(clause) or _DENIES.search(clause) or _FROM.search(before)),
        )

    def _years(self, before: str, behind: str) -> frozenset[str] | None:
        """The years that a clause names: none if it compares with one, and None if it names no year."""
        before, behind = _PARENTHESES.sub("", before), _PARENTHESES.sub("", behind)
        if _COMPARES.search(before) or _FROM.search(before):
            return frozenset()
        years = years_of(before)
        if later := years_of(behind):
            return frozenset() if _COMPARES.search(behind) or _DENIES.search(behind) else years | later
        return years or None

    @cached_property
    def _asked(self) -> frozenset[str]:
        return words_of(self._query)

    @cached_property
    def _question(self) -> str:
        """The last sentence of the query, if it asks for what it names."""
        query = self._query.rstrip(" ?!.")
        question = query[slice(*sentence_span(query, max(0, len(query) - 1), len(query)))]
        return "" if _BESIDE.search(question) else question

    def _places(self, target: Target, places: Sequence[Place[Any]]) -> Iterator[tuple[str, int]]:
        """Each text that holds a mention, and where it begins there; a name is where its last word is."""
        if not isinstance(target.mention, Name):
            yield from ((one.document.text, one.mention.start) for one in places)
            return
        for text in dict.fromkeys((*(one.document.text for one in places), *self._texts)):
            index = index_names(text)
            for place in index.places.get(target.mention.tokens[-1], ()):
                yield text, index.tokens.starts[place]


def _first_words(text: str, most: int) -> frozenset[str]:
    return words_of(" ".join(text.split()[:most]))


def _other(text: str, start: int, spoken: _Spoken, mention: Number | Name) -> str:
    """What the cell at a place is of, if the response speaks of another; empty outside of tables."""
    found = next(((table, cell) for table in tables_of(text) if (cell := table.at(start))), None)
    if found is None:
        return ""
    if not isinstance(mention, Name):
        year = "" if mention.is_calendar else _other_year(*found, spoken)
        return year or _other_row(*found, spoken) or _other_column(*found, spoken)
    if not spoken.is_plain:
        return ""
    return _other_row(*found, spoken) or (_other_column(*found, spoken) if spoken.is_answer else "")


def _other_year(table: Table, cell: Cell, spoken: _Spoken) -> str:
    own = table.rows[cell.row].years | table.columns[cell.column].years
    is_other = own and len(spoken.years) == 1 and spoken.years <= table.years - own
    return ", ".join(sorted(own)) if is_other else ""


def _other_row(table: Table, cell: Cell, spoken: _Spoken) -> str:
    better = _better(table.rows, cell.row, spoken)
    beside = [one for one in table.cells if one.row in better and one.column == cell.column] if better else []
    return _named(table.rows[cell.row]) if better and not _states_one(table, beside, spoken) else ""


def _other_column(table: Table, cell: Cell, spoken: _Spoken) -> str:
    better = _better(table.columns, cell.column, spoken)
    if not spoken.is_answer:  # "the milk has 3.8% fat" is not of the column "Milk"
        better = [one for one in better if _is_written(table.columns[one], spoken)]
    beside = [one for one in table.cells if one.column in better and one.row == cell.row] if better else []
    beside = [one for one in beside if _form(table, one) == _form(table, cell)]
    return _named(table.columns[cell.column]) if beside and not _states_one(table, beside, spoken) else ""


def _better(labels: Sequence[Label], own: int, spoken: _Spoken) -> list[int]:
    others = (place for place in range(len(labels)) if place != own)
    return [place for place in others if _is_better(labels[place], labels[own], spoken)]


def _is_better(label: Label, own: Label, spoken: _Spoken) -> bool:
    """Whether a label fits what is spoken of better than a cell's own one."""
    if any(own.words and own.words <= text for text in label.cell_texts) or any(
        label.words and label.words <= text for text in own.cell_texts
    ):
        return False  # one row names the other: "the manager of Ann"
    named = [text for text in label.cell_texts if text <= spoken.words]
    if not (named or label.words & spoken.words):
        return False
    subjects = (*spoken.openings, spoken.behind)
    is_subject = any(text and text <= one for text in (label.words, *named) for one in subjects)
    if not spoken.is_answer and not (is_subject and spoken.is_plain):
        return False
    # What is asked does not count for the cell's own label where the clause itself names the other one.
    for_own = spoken.own if is_subject else spoken.words | spoken.asked
    shared = ((label.words | label.context) & spoken.words).union(*named)
    heads = {word[:_STEM] for word in for_own.difference(label.words, label.context, *named)}  # "weighs"
    own_words = (own.words | own.context).union(*own.cell_texts)
    own_shared = frozenset(word for word in own_words if word in for_own or word[:_STEM] in heads)
    unsaid, own_unsaid = without_pairs(label.words - spoken.words), without_pairs(own.words - for_own)
    if not own_shared <= shared or not (named or unsaid <= own_unsaid):
        return False
    more = shared - own_shared
    is_closer = bool(own.words) and not more and unsaid < own_unsaid and not own_unsaid <= _WIDE
    return is_closer or bool(more and own_shared) or bool(more - _WIDE)


def _is_written(label: Label, spoken: _Spoken) -> bool:
    """Whether a clause writes a label as it is, or has its words behind the mention."""
    return label.name in spoken.clause or label.words <= spoken.behind


def _form(table: Table, cell: Cell) -> tuple[bool, ...]:
    """Whether a cell holds a digit, a percent sign, and a sign of a currency."""
    text = table.text[cell.start : cell.end]
    return any(map(str.isdigit, text)), "%" in text, any(sign in text for sign in "$€£")


def _named(label: Label) -> str:
    return label.text or "a cell without a label"


def _states_one(table: Table, cells: Sequence[Cell], spoken: _Spoken) -> bool:
    """Whether the clause states the value of one of some cells: what it says may then be of that cell."""
    values = (table.text[one.start : one.end].strip(" $€£()*") for one in cells)
    return any(value and value in spoken.clause for value in values)


def _is_of_label(response: str, target: Target, labels: frozenset[str]) -> bool:
    """Whether a number is part of a label: the 14 of "Aero 14"."""
    before = response[max(0, target.start - _LONGEST_WORD) : target.start].split(" ")[-2:]
    behind = response[target.end : target.end + _LONGEST_WORD].split(" ")[:2]
    near = words_of(f"{' '.join(before)}{response[target.start : target.end]}{' '.join(behind)}")
    return any(" " in pair and pair in labels for pair in near)

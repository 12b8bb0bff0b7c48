"""Names in text: people, places, organisations, works, products and nationalities, as one kind of claim.

`find.py` finds names by capitals, `lookup.py` says where documents hold one, `roles.py` whether they allow
its title, `match.py` when two answers name the same. spaCy's small English tagger was measured, too: it
finds fewer exchanged names, raises more false alarms and reads 57 responses a second, so rules do the work.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from reward.claims.kind import ClaimKind
from reward.claims.names import asking, match
from reward.claims.names.find import find_names
from reward.claims.names.index import index_names
from reward.claims.names.lookup import NameLookup
from reward.claims.names.model import Name
from reward.claims.names.reading import read_name
from reward.types import Document, RagQuery

__all__ = ["Name", "NameLookup", "Names", "find_names"]


_MOST_COMPARED = 512  # earlier names


@dataclass(frozen=True)
class Names(ClaimKind):
    """The names of one audit (`reward.claims.kind.ClaimKind`).

    A name is checked once, where it first occurs, and one that the query gives only where the answer gives no
    other: then the answer is a choice among the names of the query.
    """

    query: RagQuery
    name: str = "name"

    def find(self, response: str) -> Sequence[Name]:
        """The names of a response that must be checked, from left to right."""
        names = _distinct(find_names(response, self._is_small))
        return [name for name in names if not self._is_given(name)] or names

    def _is_small(self, word: str) -> bool:
        """Whether a document writes a word small."""
        indexes = (index_names(document.text) for document in self.query.documents)
        return any(index.holds_small(word) for index in indexes)

    def _is_given(self, name: Name) -> bool:
        given = self._given.get(name)
        if given is None:
            given = self._given[name] = self._asked.find(name) is not None
        return given

    @functools.cached_property
    def _given(self) -> dict[Name, bool]:
        """Whether the query gives a name, for the names that were asked for."""
        return {}

    @functools.cached_property
    def _asked(self) -> NameLookup:
        """The query; many are typed without any capitals, and then small letters say nothing."""
        return _lookup_in(self.query.query)

    def read(self, answer: str, *, of_documents: bool = False) -> Name | None:
        """The one name that an answer gives; None for several names, a sentence, a number or "yes"."""
        return read_name(answer)

    def taken_as(self, answer: Name, asked: Name, *, stated: Name | None = None) -> Name:
        """The asked name where an answer says it in another writing, else the answer."""
        return match.taken_as(answer, asked)

    def equal(self, a: Name, b: Name) -> bool:
        """Whether two answers are one name."""
        return match.equal(a, b)

    def bears_out(self, consensus: Name, claimed: Name, *, relative_tolerance: float = 0.0) -> bool:
        """Whether the consensus names what the response names."""
        return match.says(consensus, claimed)

    def written(self, answer: Name, asked: Name) -> str:
        """One text for all answers that are equal."""
        return match.written(answer, asked)

    def is_about(self, claimed: Name, mention: Name) -> bool:
        """Whether a bracket names a mention of the response."""
        return match.says(match.taken_as(claimed, mention), mention)

    def asks_for(self, question: str, mention: Name, response: str) -> bool:
        """Whether a question does not ask for a number or a date."""
        return asking.asks_for(question, mention)

    def gives_away(self, text: str, mention: Name) -> bool:
        """Whether a text holds a name, in any writing."""
        return asking.gives_away(text, mention)

    def stated(self, text: str, start: int, end: int, answer: Name) -> Name | None:
        """The answer at the place of a quotation `text[start:end]` that holds it."""
        holds = asking.holds(text, start, end, answer)
        return answer._replace(start=start, end=end) if holds else None

    def lookup(self, documents: Sequence[Document]) -> NameLookup:
        """The documents made ready; the index of a text is kept for the next response to it."""
        return NameLookup(documents)

    def is_looked_up(self, response: str, mention: Name) -> bool:
        """A lookup cannot tell which of the names of the query is the right one."""
        return not self._is_given(mention)


@functools.lru_cache(maxsize=256)
def _lookup_in(query: str) -> NameLookup:
    return NameLookup([Document(id="query", text=query[:1].lower() + query[1:])])


def _distinct(names: Sequence[Name]) -> list[Name]:
    """The names without those that only repeat, or shorten, an earlier one."""
    distinct: list[Name] = []
    compared: list[frozenset[str]] = []
    by_word: dict[str, list[frozenset[str]]] = {}
    for name in names:
        # A state or country that is added later is a claim of its own, the more so another one.
        whole = frozenset((*name.tokens, *(f", {word}" for word in name.place)))
        fewest = min((by_word.get(word, []) for word in whole), key=len, default=compared)
        if any(whole <= earlier for earlier in fewest):
            continue
        distinct.append(name)
        if len(compared) < _MOST_COMPARED:
            compared.append(whole)
            for word in whole:
                by_word.setdefault(word, []).append(whole)
    return distinct

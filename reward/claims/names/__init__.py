"""Names in text: people, places, organisations, works, products and nationalities, as one kind of claim.

`find.py` finds names by capitals, `lookup.py` says where documents hold one, `roles.py` whether they allow
its title, `match.py` when two answers name the same, `contradicted.py` which small words exclude another.
spaCy's small English tagger was measured, too: it finds fewer exchanged names, raises more false alarms and
reads 57 responses a second, so rules do the work.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from reward.claims.kind import ClaimKind
from reward.claims.names import match
from reward.claims.names.contradicted import contradicted
from reward.claims.names.find import find_names
from reward.claims.names.index import Index, Range, index_names
from reward.claims.names.lexicon import is_common
from reward.claims.names.lookup import NameLookup
from reward.claims.names.model import Name
from reward.claims.names.reading import read_inverted, read_name
from reward.types import Document, RagQuery

__all__ = ["Name", "NameLookup", "Names", "find_names"]


_MOST_COMPARED = 512  # earlier names
_ASKS_OTHERWISE = re.compile(
    r"^\W*(?:when|how (?:many|much|long|old|far|often|tall|large|big)|what (?:year|date|time|percentage))\b",
    re.I,
)


@dataclass(frozen=True)
class Names(ClaimKind):
    """The names of one audit (`reward.claims.kind.ClaimKind`).

    A name is checked once, where it first occurs, and one that the query gives only where the answer gives no
    other: then the answer is a choice among the names of the query.
    """

    query: RagQuery
    name: str = "name"

    def find(self, response: str) -> Sequence[Name]:
        names = _distinct(find_names(response, self._is_small))
        names = [name for name in names if not self._is_given(name)] or names
        texts = (text for document in self.query.documents for text in (document.title, document.text))
        words = list(contradicted(response, texts))
        return sorted((*names, *words), key=attrgetter("start")) if words else names

    def _is_small(self, word: str) -> bool:
        return any(index_names(document.text).holds_small(word) for document in self.query.documents)

    def _is_given(self, name: Name) -> bool:
        return _lookup_in(self.query.query).find(name) is not None

    def read(self, answer: str, *, of_documents: bool = False, asked: Name | None = None) -> Name | None:
        return read_name(answer) or (read_inverted(answer, asked) if asked is not None else None)

    def taken_as(self, answer: Name, asked: Name, *, stated: Name | None = None) -> Name:
        return match.taken_as(answer, asked)

    def equal(self, a: Name, b: Name) -> bool:
        return match.key(a) == match.key(b)

    def bears_out(self, consensus: Name, claimed: Name, *, relative_tolerance: float = 0.0) -> bool:
        return match.says(consensus, claimed)

    def written(self, answer: Name, asked: Name) -> str:
        return match.written(answer, asked)

    def is_about(self, claimed: Name, mention: Name) -> bool:
        return match.says(match.taken_as(claimed, mention), mention)

    def asks_for(self, question: str, mention: Name, response: str) -> bool:
        """Whether a question does not hold the name, and asks for no number and no date."""
        return not (_ASKS_OTHERWISE.match(question) or self.gives_away(question, mention))

    def gives_away(self, text: str, mention: Name) -> bool:
        """Whether a text holds a name in any writing, or what stands for it (a surname, an acronym)."""
        index = index_names(text)
        if index.find(mention) or (len(mention.tokens) == 1 and mention.tokens[0] in index.places):
            return True  # in small letters, too
        return any(match.says(other, mention) or _is_part(other, mention) for other in find_names(text))

    def stated(self, text: str, start: int, end: int, answer: Name) -> Name | None:
        """The answer at the place of a quotation `text[start:end]` that holds it, as the text has it there.

        A surname alone holds a full name if the person whom the text last named in full with it is that one.
        """
        index = index_names(text)
        starts, ends, ranges = index.tokens.starts, index.tokens.ends, index.find(answer)
        is_whole = any(start <= starts[low] and ends[high - 1] <= end for low, high in ranges)
        holds = is_whole or _surname_holds(index, start, end, answer, ranges)
        return answer._replace(start=start, end=end) if holds else None

    def lookup(self, documents: Sequence[Document]) -> NameLookup:
        return NameLookup(documents)

    def is_looked_up(self, response: str, mention: Name) -> bool:
        """A lookup cannot tell which of the names of the query is the right one."""
        return not self._is_given(mention)


@functools.lru_cache(maxsize=256)
def _lookup_in(query: str) -> NameLookup:
    """The names of a query; many are typed without any capitals, and then small letters say nothing."""
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


def _is_part(other: Name, mention: Name) -> bool:
    """A first name or another telling word of the name alone."""
    return (
        len(other.tokens) == 1 < len(mention.tokens)
        and match.is_person(mention, mention.tokens)
        and other.tokens[0] in mention.tokens
        and not is_common(other.tokens[0])
    )


def _surname_holds(index: Index, start: int, end: int, mention: Name, ranges: Sequence[Range]) -> bool:
    """Whether a quotation holds the surname alone of the person whom the text last named in full with it."""
    if not ranges or len(mention.tokens) < 2:
        return False
    surname = mention.tokens[-1]
    if not match.says(Name(0, 0, surname.capitalize(), (surname,)), mention):
        return False
    named: int | None = None  # the place of the last full name
    for place in index.places.get(surname, ()):
        if index.tokens[place].end > end:
            break
        if _is_full(index, place):
            named = place
        elif index.tokens[place].start >= start and named is not None:
            return any(first <= named < last for first, last in ranges)
    return False


def _is_full(index: Index, place: int) -> bool:
    """Whether a first name or an initial comes before a surname."""
    if place == 0:
        return False
    before, token = index.tokens[place - 1], index.tokens[place]
    gap = index.text[before.end : token.start]
    joined = gap == " " or (gap == ". " and len(before.word) == 1)
    return joined and before.capital and not is_common(before.word)

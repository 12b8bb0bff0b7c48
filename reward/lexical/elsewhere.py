"""Numbers and dates that the documents hold, but say of somebody else.

"Edwin Richards was born on 30 May 1917", where the document on Edwin Richards holds no such day and the one
on Alexander Fuks does: a policy's own errors look like this on real text (docs/log.md). Documents are held
against each other and never parts of one, where "he" and "the company" refer to names before them; of more
than 32 none are, since each mention asks all of them. A mention is said of another if all of this holds:

1. Its clause begins with a name, or with something of it, and a document holds a name of the clause; or else
   the query asks about it, and the documents that hold the mention are about others by their full names, each
   with a word that the name of the clause has not, in any spelling.
2. No document that holds the mention does, nor a part of such a name ("Jobs" for "Steve Jobs").
3. The sentences, or else the titles, of these documents are about somebody else by name.
4. No document holds both names: it could say that they are one ("Moira Strachan, writing as M. E. Ridley").
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from reward.claims.clauses import Clauses, fit, subject_of
from reward.claims.kind import Place, Target
from reward.claims.names import Name, find_names
from reward.claims.names.index import index_names
from reward.claims.names.lexicon import LINKS, is_common
from reward.claims.names.match import alike, says
from reward.claims.names.text import Text
from reward.claims.text import sentence_span
from reward.types import Document, RagQuery

_REACH = 300  # most characters of a sentence on each side of a mention
_MOST_DOCUMENTS = 32  # with more the kept indexes no longer hold them, and a thousand take 16 seconds
_SPELT_ALIKE = 0.8  # by difflib: Mohammed and Mohamed 0.93, Sergei and Sergey 0.83, Kevin and Karin 0.6
_MOST_PARTS = 100  # places of a name's words in one text that are looked at


class Elsewhere:
    """The documents of a query one by one, for the mentions of a response."""

    def __init__(self, query: RagQuery, clauses: Clauses) -> None:
        self._asked, self._documents = query.query, query.documents
        self._clauses = clauses

    def says_of_another(self, target: Target, place: Place[Any]) -> str:
        """Whom the documents say a mention of; empty if it may be whom the response means."""
        if not 2 <= len(self._documents) <= _MOST_DOCUMENTS or target.kind.name == "name":
            return ""
        if self._clauses.subject(target) is None:
            return ""
        names = self._clauses.names_beside(target)
        if _hold(place.document, names):
            return ""
        is_known = any(_hold(document, names) for document in self._documents)
        others = []
        for found in self._places(target):
            if _hold(found.document, names) or _hold_in_part(found.document, names):
                return ""
            others.append(_other(found, names, self._clauses.words_beside(target)))
        known = [other for other in others if other is not None]
        if (
            not known
            or len(known) < len(others)
            or any(  # none: no document holds both sides of "3-2"
                _hold(document, known) and _hold(document, names) for document in self._documents
            )
        ):
            return ""
        if is_known or all(any(_are_relatives(one, name) for name in names) for one in known):
            return known[0].text
        subject = self._clauses.subject(target)
        if subject is None or not index_names(self._asked).find(subject):
            return ""  # who is not asked about either is refuted as a name
        return known[0].text if all(_are_strangers(one, subject) for one in known) else ""

    def _places(self, target: Target) -> Iterator[Place[Any]]:
        """Where each document that holds a mention holds it."""
        for document in self._documents:
            if (place := target.kind.lookup([document]).find(target.mention)) is not None:
                yield place


def _other(place: Place[Any], names: Sequence[Name], words: frozenset[str]) -> Name | None:
    """Whom the sentence of a place, or else the title of its document, is about.

    None if nobody is named, if the clause names the same, or if it is an acronym or "the Customer".
    """
    text = place.document.text
    low, high = sentence_span(text, place.mention.start, place.mention.end, reach=_REACH)
    sentence = text[low:high]
    subject = subject_of(sentence, find_names(sentence), place.mention.start - low)
    if subject is None and place.document.title:
        subject = next(iter(find_names(place.document.title)), None)
    if subject is None or subject.text.isupper() or all(is_common(word) for word in subject.tokens):
        return None
    return None if words.issuperset(subject.tokens) or any(fit(subject, one) for one in names) else subject


def _are_relatives(other: Name, name: Name) -> bool:
    """Whether two people have one surname and other first names."""
    is_full = len(other.tokens) > 1 and len(name.tokens) > 1
    return (
        is_full and other.tokens[-1] == name.tokens[-1] and not _may_be_one(other.tokens[0], name.tokens[0])
    )


def _are_strangers(one: Name, other: Name) -> bool:
    """Whether two names are full ones, and each has a word that the other has not in any writing."""
    if min(len(one.tokens), len(other.tokens)) < 2 or says(one, other) or says(other, one):
        return False
    left, right = set(one.tokens) - set(other.tokens), set(other.tokens) - set(one.tokens)
    return bool(left and right) and not any(_may_be_one(a, b) for a in left for b in right)


def _may_be_one(a: str, b: str) -> bool:
    """Whether two words may be one: "Bill" and "William", or other spellings, as "Sergei" and "Sergey"."""
    return alike(a, b) or SequenceMatcher(None, a, b, autojunk=False).ratio() >= _SPELT_ALIKE


def _hold(document: Document, names: Sequence[Name]) -> bool:
    return any(index_names(text).find(name) for text in _texts(document) for name in names)


def _hold_in_part(document: Document, names: Sequence[Name]) -> bool:
    """Whether a document has a name that is short for one of some names, or that one is short for."""
    words = {word for name in names for word in name.tokens}
    for text in _texts(document):
        index = index_names(text)
        places = {place for word in words for place in islice(index.places.get(word, ()), _MOST_PARTS)}
        for place in sorted(places)[:_MOST_PARTS]:
            word, start, end, _ = index.tokens[place]
            low, high = sentence_span(text, start, end, reach=_REACH)
            if any(word == name.tokens[-1] for name in names) and _is_alone(index, place):
                return True
            if any(fit(name, one) for one in find_names(text[low:high]) for name in names):
                return True
    return False


def _is_alone(index: Text, place: int) -> bool:
    """Whether a word has a capital, as a surname alone has, and the word before it none."""
    before = place - 1
    if place > 1 and index.gap(place, -1) == " " and index.words[before] in LINKS:  # "Anne of Orléans"
        before -= 1
    is_behind_name = index.gap(before + 1, -1) == " " and index.tokens[before].capital
    return index.tokens[place].capital and not is_behind_name


def _texts(document: Document) -> list[str]:
    return [text for text in (document.title, document.text) if text]

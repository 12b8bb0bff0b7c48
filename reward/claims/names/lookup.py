"""Where the documents of a query hold a name."""

import re
from collections.abc import Sequence

from reward.claims.kind import Context, Place, nearest
from reward.claims.names.index import Index, Range, index_names
from reward.claims.names.lexicon import (
    COUNTRIES,
    GIVEN_NAMES,
    KINDS,
    OF_HEADS,
    PREFIXES,
    STATES,
    is_acronym,
    is_common,
    stem,
)
from reward.claims.names.model import Name, name_of
from reward.claims.names.places import differ, place_behind
from reward.claims.names.roles import allows, is_other_courtesy
from reward.types import Document

_REACH = 20  # words around a place that are held against the context
_TELLING = 3  # words
_LONGEST_SHORT = 3  # letters; a longer word that a text writes small may be a trade
_MOST_NEAR = 32  # places that are held against the context
_HALVES = re.compile(r" (?:of|for) (?:the )?| ?& ")
_POST = re.compile(
    r"(?<=\w) (?:C[EFOT]O|Chief Executive(?: Officer)?|Chair(?:man|woman)?|Managing Director) (?=\w)"
)
_INSTITUTION = re.compile(rf"(?<=\w) (?:of|for) (?:the )?(?=(?i:{'|'.join(sorted(OF_HEADS))}) of )")
_FIRST_NAMES = GIVEN_NAMES - {"guy", "chance", "charity", "chase", "hunter", "summer", "patience"}
_STATES = {name[0] for name in STATES.values() if len(name) == 1} | {"ny"}
Found = tuple[Document, Index, Range]
_COUNTRIES_APART = re.compile(r"[- ]")
_CUT = {
    **{"Sev": "Severity", "Sec": "Section", "Fig": "Figure", "Art": "Article", "App": "Appendix"},
    **{"Vol": "Volume", "Ver": "Version", "Para": "Paragraph", "Prio": "Priority", "Eq": "Equation"},
}


class NameLookup:
    """The names of all documents of a query, in their texts and titles."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._texts = [(document, index_names(document.text)) for document in documents]
        self._titles = [(document, index_names(document.title)) for document in documents if document.title]
        self._indexes = [index for _, index in (*self._texts, *self._titles)]

    def find(self, claimed: Name, *, context: Context | None = None) -> Place[Name] | None:
        """The place that supports a name of a response; of several the one nearest to the context.

        A word that only describes ("Actor Tom Hanks") can stand elsewhere, and so can the two halves of
        "Joan of Arc"; what tells the name must stand in one place. A name that only a title holds has the
        place 0 to 0 in the text.
        """
        if claimed.roles and not allows(_bearer(claimed), self._indexes):
            return None
        if claimed.courtesy and is_other_courtesy(claimed, self._indexes):
            return None
        found = self._find(claimed, context)
        if found is None and len(claimed.tokens) > 1 and not claimed.title:
            found = self._find_described(claimed, context) or self._find_halves(claimed, context)
        return found or self._find_cut(claimed, context)

    def _find_cut(self, claimed: Name, context: Context | None) -> Place[Name] | None:
        """A word that is cut before its number: "Sev 2" for "Severity 2"."""
        whole = _CUT.get(claimed.text, "")
        number = re.search(rf"\b{claimed.text}\.?[ ](\d+)\b", context()) if whole and context else None
        for document, _ in self._texts if number else ():
            found = re.search(rf"\b{whole} {number[1]}\b", document.text) if number else None
            if found:
                return Place(claimed._replace(start=found.start(), end=found.end()), document)
        return None

    def _find(self, claimed: Name, context: Context | None) -> Place[Name] | None:
        ranges = [(document, index, r) for document, index in self._texts for r in index.find(claimed)]
        if claimed.place and _are_elsewhere(claimed, ranges):
            return None
        if ranges:
            document, index, (first, last) = nearest(ranges[:_MOST_NEAR], context, _words_near)
            start, end = index.tokens.starts[first], index.tokens.ends[last - 1]
            return Place(Name(start, end, index.text[start:end], tuple(index.words[first:last])), document)
        for document, index in self._titles:
            if index.find(claimed):
                return Place(Name(0, 0, document.title, claimed.tokens), document)
        return None

    def _find_described(self, claimed: Name, context: Context | None) -> Place[Name] | None:
        """A name without the trade or nationality before it, which the documents must hold somewhere."""
        words = claimed.tokens
        described = [
            self._describes(word) or (i == 0 and self._is_of_whom(claimed)) for i, word in enumerate(words)
        ]
        start = described.index(False) if False in described else len(words)
        is_body = len(words) > 2 or KINDS.issuperset(words[1:])
        if words[0] in COUNTRIES and words[1:] == ("government",):
            return self._find(claimed._replace(tokens=words[:1]), context)
        if start == len(words) and words[0] in COUNTRIES and is_body:
            start = 1  # "US Congress", "US Border Patrol"
        if start in (0, len(words)) or not all(map(self._may_stand_elsewhere, words[:start])):
            return None
        if len(words[-1]) == 1:
            return None  # "Pool D" where a document has a Pool B, and a D
        return self._find(claimed._replace(tokens=words[start:], inverted=False), context)

    def _describes(self, word: str) -> bool:
        """Whether a word can tell what the name behind it is: a trade, a nationality, a small word."""
        if word in PREFIXES or word in _FIRST_NAMES:
            return False
        if is_common(word) or word in COUNTRIES or any(f"{word}s" in one.places for one in self._indexes):
            return True  # an "Indiana Pacer" is one of the Pacers
        return len(word) > _LONGEST_SHORT and any(one.holds_small(word) for one in self._indexes)

    def _is_of_whom(self, claimed: Name) -> bool:
        """Whether a name begins with the state or the body of a person: "Texas Governor", "NYPD chief"."""
        is_long = len(claimed.tokens) > 2 or bool(claimed.roles)
        return is_long and (claimed.tokens[0] in _STATES or is_acronym(claimed.text.split()[0]))

    def _may_stand_elsewhere(self, word: str) -> bool:
        return word not in KINDS and any(stem(word) in index.stems for index in self._indexes)

    def _find_halves(self, claimed: Name, context: Context | None) -> Place[Name] | None:
        """Each half of "Joan of Arc", if both say something alone; "US-Pakistan" are two countries.

        A country at the end is a half: "Ministry of Education of Norway" is Norway's Ministry of Education.
        """
        halves = _HALVES.split(claimed.text)
        if len(held := _POST.split(claimed.text)) == 2:  # "Barclays CEO Ann Lee"
            halves = held
        whole = _INSTITUTION.search(claimed.text)
        if whole is not None:  # "Amelia Okafor of the University of Cape Town"
            halves = [claimed.text[: whole.start()], claimed.text[whole.end() :]]
        of_country = len(halves) > 2 and " of " in claimed.text and claimed.tokens[-1] in COUNTRIES
        if of_country:
            halves = claimed.text.rsplit(" of ", 1)
        if len(claimed.tokens) == 2 and all(word in COUNTRIES for word in claimed.tokens):
            halves = _COUNTRIES_APART.split(claimed.text)
        halves = [half for half in halves if half.strip()]
        if len(halves) < 2:
            return None
        names = [name_of(half, 0, len(half)) for half in halves]
        of_country = of_country or (" of " in claimed.text and self._is_of_country(names))
        if not of_country and any(len(n.tokens) < _TELLING and all(map(is_common, n.tokens)) for n in names):
            return None  # a text can hold "World Changers" by chance
        places = [self._find(name, context) for name in names]
        return places[0] if all(places) else None

    def _is_of_country(self, names: Sequence[Name]) -> bool:
        """Whether a surname and a country are meant: "Strode of Britain"."""
        person, country = names[0], names[-1]
        return len(names) == 2 and country.tokens[-1] in COUNTRIES and KINDS.isdisjoint(person.tokens)


def _bearer(claimed: Name) -> Name:
    """Who has the title of "Sergeant Ian Lowther of Cumbria Police"."""
    person = claimed.text.partition(" of ")[0]
    bearer = name_of(person, 0, len(person))
    is_person = len(bearer.tokens) > 1 and KINDS.isdisjoint(bearer.tokens)
    return bearer._replace(roles=claimed.roles) if is_person else claimed


def _are_elsewhere(claimed: Name, ranges: Sequence[Found]) -> bool:
    """Whether the documents only add other states or countries to a name than a response does."""
    places = [place_behind(index.text, index.tokens.ends[last - 1]) for _, index, (_, last) in ranges]
    return any(places) and all(differ(claimed.place, place) for place in places if place)


def _words_near(found: Found) -> Sequence[str]:
    _, index, (first, last) = found
    return index.words[max(0, first - _REACH) : last + _REACH]

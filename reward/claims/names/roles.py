"""What someone is, said before or behind a name: "Senator Brown", "Merkel, the chancellor".

A title is no part of a name, so "President Obama" is supported by "Barack Obama" where the documents say
nothing of what he is. But where they call the bearer of a name something else, a claimed title is refused: a
senator is no president. The title of a thing is refused, too: "Bishop Haakon" where the documents only
have "the Haakon".
Of courtesies only Mr and Mrs tell people apart ("Sir" says nothing); "Dr" and "Professor" are one. Names of
organisations have no roles.
"""

import re
from collections.abc import Iterator, Sequence

from reward.claims.names.index import Index, Range
from reward.claims.names.lexicon import COUNTRIES, KINDS, SUFFIXES, TITLES, is_common, words
from reward.claims.names.match import agree
from reward.claims.names.model import COURTESIES, ROLES, Name

_FAMILY = frozenset(("wife", "husband", "brother", "sister", "son", "daughter", "father", "mother", "widow"))
_TWO_PEOPLE = re.compile(r"(?:\band|\bor|&|/)[^.;!?]{0,16}$")
_LINKS = words("role_links") | COUNTRIES
_MOST_STEPS = 6  # words around a name
_MOST_MENTIONS = 200
_JOINED = (" ", ". ", "-")
_APPOSED = (" ", ", ", " (")


def allows(claimed: Name, indexes: Sequence[Index]) -> bool:
    """Whether the documents leave a name the title that a response gives it."""
    if not claimed.roles or any(word in KINDS for word in claimed.tokens):
        return True
    described = [one for index in indexes for one in _descriptions(index, claimed)]
    if any(claimed.roles <= roles and agree(claimed.roles, roles) for roles, _ in described):
        return True
    if any(roles for roles, _ in described):
        return False
    return len(claimed.tokens) > 1 or not described or not all(thing for _, thing in described)


def is_other_courtesy(claimed: Name, indexes: Sequence[Index]) -> bool:
    """Whether the documents call the bearer of a name Mrs where a response says Mr, or the other way.

    They must say so at the first mention, and speak of nobody else with that name: of no first name, no other
    title, no wife, and not of Mr and Mrs.
    """
    said: set[str] = set()
    for index in indexes:
        if not _FAMILY.isdisjoint(index.places):
            return False
        for first, _ in _mentions(index, claimed):
            courtesy = _courtesy_before(index, first)
            if courtesy in COURTESIES.values():
                said.add(courtesy)
            elif courtesy or not said:
                return False
    return bool(said) and claimed.courtesy not in said


def _courtesy_before(index: Index, first: int) -> str:
    """The Mr or Mrs before a name; "other" for another title, a first name, or "Mr and Mrs"."""
    if first == 0:
        return ""
    before = index.tokens[first - 1]
    gap = index.text[before.end : index.tokens[first].start]
    if gap not in (" ", ". ") or not before.capital:
        return ""
    if before.word not in COURTESIES:
        return "other" if gap == " " or before.word in TITLES else ""
    both = _TWO_PEOPLE.search(index.text, max(0, before.start - 24), before.start)
    return "other" if both else COURTESIES[before.word]


def _descriptions(index: Index, claimed: Name) -> Iterator[tuple[frozenset[str], bool]]:
    """The roles at each mention of a name, before and behind it, and whether it is "the Haakon"."""
    for first, last in _mentions(index, claimed):
        article = first > 0 and index.tokens[first - 1].word == "the"
        yield frozenset(_roles_before(index, first)), article
        yield frozenset(_roles_behind(index, last)), article


def _mentions(index: Index, claimed: Name) -> Iterator[Range]:
    """Where a text holds the name, or its surname with nothing but a title before it."""
    ranges = index.find(claimed)[:_MOST_MENTIONS]
    yield from ranges
    if len(claimed.tokens) == 1 or claimed.tokens[-1] in SUFFIXES:
        return
    for place in index.places.get(claimed.tokens[-1], ())[:_MOST_MENTIONS]:
        before = index.tokens[place - 1] if place else None
        if before is not None and before.word in ROLES:
            yield place, place + 1


def _roles_before(index: Index, first: int) -> Iterator[str]:
    """The title before a name: "Vice President", "the president, "."""
    found = False
    for place in range(first - 1, max(-1, first - 1 - _MOST_STEPS), -1):
        word = index.tokens[place].word
        gap = index.text[index.tokens[place].end : index.tokens[place + 1].start]
        apposed = gap == ", " and place == first - 1 and not index.tokens[place].capital
        if not (gap in _JOINED or apposed):
            return
        if word in ROLES:
            found = True
            yield ROLES[word]
        elif found or not (word in TITLES or (index.tokens[place].capital and not is_common(word))):
            return  # the Robert of "General Robert Hale" is passed over


def _roles_behind(index: Index, last: int) -> Iterator[str]:
    """What is said of someone behind a name: ", the former president", "became king"."""
    for place in range(last, min(len(index.tokens), last + _MOST_STEPS)):
        token = index.tokens[place]
        gap = index.text[index.tokens[place - 1].end : token.start]
        if gap not in _APPOSED:
            return
        if token.word in ROLES:
            yield ROLES[token.word]
        elif token.word not in _LINKS:
            return

"""Numbers that the documents hold, but of other things: 79 million flights of 79 million passengers.

A number is of something else if each equal one of the documents is: of another line or cell of `[things]` in
the vocabulary, or of an opposite ("injured" for "killed"), or of another English noun, where no document has
the response's own ("vehicles" where they only speak of passengers). Words that may name the same are left
alone: those of one line of `alike`, and those of `wide`, such as "people" and "items".
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from reward.claims.names.index import index_names
from reward.claims.names.lexicon import stem
from reward.claims.numbers import Kind, Number
from reward.claims.numbers.lookup import NumberLookup
from reward.claims.numbers.things import Thing, is_of_opposite, may_be_one, stated_things, thing_behind
from reward.claims.text import lowered, words_in
from reward.types import Document

_COUNTED = (Kind.COUNT, Kind.RATIO)
_MEASURED = ("mass", "volume")
_OF_WHAT = re.compile(r" of((?: [a-z]{3,}){1,3})\b")  # "400 ml of cream"
_TELLING = frozenset(["the", "and", "with", "were", "for", "by"])  # they are words of English alone
_ENGLISH = _TELLING | frozenset(["of", "in", "is", "was", "to", "at", "has", "have", "a", "an"])
_SMALL = 12  # of numbers in words, which often count what the response itself names: "the two towns"
_MOST_DOCUMENTS = 32  # with more, each number would ask very many texts for its noun
_MOST_WORDS = 2  # of what a response counts; with more, one is often a verb


def counts_others(number: Number, response: str, lookup: NumberLookup) -> str:
    """What the documents count with a number that the response says of other things; empty if nothing."""
    places = [(one.mention, one.document.text) for one in lookup.places(number)]
    if not places:
        return ""
    if is_of_opposite(number, response, places):
        return "the opposite"
    documents = tuple(document for document, _ in lookup.texts)
    return "other things" if _is_of_others(number, response, places, documents) else ""


def _is_of_others(
    number: Number, response: str, places: Sequence[tuple[Number, str]], documents: tuple[Document, ...]
) -> bool:
    thing = _thing(number, response)
    if thing is None:
        return False
    written = response[number.start : number.end]
    is_checked = abs(number.value) > _SMALL or any(map(str.isdigit, written))
    is_checked = is_checked and len(documents) <= _MOST_DOCUMENTS
    is_new = is_checked and len(thing.words) <= _MOST_WORDS and _are_english(response, documents)
    is_new = is_new and not any(_says(word, documents) for word in thing.words)
    for found, text in places:
        behind, stated = _thing(found, text), stated_things(found, text)
        differs = is_new and behind is not None and _differ(thing, behind)
        if not differs and not (stated and all(map(thing.excludes, stated))):
            return False
    return True


def _thing(number: Number, text: str) -> Thing | None:
    """What a count, or an amount of something, is of."""
    if number.kind in _COUNTED:
        return thing_behind(number, text)
    match = _OF_WHAT.match(text, number.end) if number.dimension in _MEASURED else None
    return Thing(tuple(match[1].split())) if match else None


def _differ(one: Thing, other: Thing) -> bool:
    """Whether two English nouns name two things, as far as is known."""
    return not one.is_like(other) and not may_be_one(one, other)


def _are_english(response: str, documents: tuple[Document, ...]) -> bool:
    """Whether nouns can be held against each other: a document in German has "Wohnungen" for flats."""
    words = words_in(lowered(response)).all
    return not _ENGLISH.isdisjoint(words) and all(map(_is_english, documents))


@lru_cache(maxsize=512)
def _is_english(document: Document) -> bool:
    return not _TELLING.isdisjoint(words_in(lowered(document.text)).all)


@lru_cache(maxsize=512)
def _says(word: str, documents: tuple[Document, ...]) -> bool:
    """Whether a document has a word, in singular or plural."""
    texts = (text for document in documents for text in (document.text, document.title) if text)
    return any(stem(word) in index_names(text).stems for text in texts)

"""Numbers that the documents hold, but of other things: 79 million flights of 79 million passengers.

A number is of something else if each equal one of the documents is: of another line or cell of `[things]` in
the vocabulary, or of an opposite ("injured" for "killed"), or of another English noun, where no document has
the response's own ("vehicles" where they only speak of passengers). Words that may name the same are left
alone: those of one line of `alike`, and those of `wide`, such as "people" and "items".
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from reward.claims.kind import Place
from reward.claims.names.index import index_names
from reward.claims.names.lexicon import stem
from reward.claims.numbers import Form, Kind, Number
from reward.claims.numbers.lookup import NumberLookup
from reward.claims.numbers.things import Thing, is_of_opposite, may_be_one, stated_things, thing_behind
from reward.claims.numbers.vocabulary import TABLES
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

_LABELS = frozenset(f"{TABLES['parts']['words']} {TABLES['parts']['labels']}".split())
_SCORED = frozenset(TABLES["things"]["scored"].split())
_WORD_BEFORE, _BEHIND = re.compile(r"([A-Za-z]+)(?:(?<=no)\.)? $", re.I), re.compile(r"(?: [a-z]{3,}){1,3}")
_SCORE = re.compile(r"\d+\s?[-\u2010-\u2015\u2212]\s?\d+")
_ARE = re.compile(r" (?:were|are|have|had|did|of (?:the|them))\b")
_FOREIGN = frozenset(["de", "los", "las", "les", "des", "der", "dei", "delle", "das"])
_NEAR = 200  # characters
_LONGEST_WORD = 20  # characters


def counts_others(number: Number, response: str, lookup: NumberLookup) -> str:
    """What the documents count with a number that the response says of other things; empty if nothing."""
    places = [(one.mention, one.document.text) for one in lookup.places(number)]
    if not places:
        return ""
    if is_of_opposite(number, response, places):
        return "the opposite"
    documents = tuple(document for document, _ in lookup.texts)
    return "other things" if _is_of_others(number, response, places, documents) else ""


def is_of_no_count(number: Number, response: str, lookup: NumberLookup) -> bool:
    """Whether a response counts or ranks things by a number that the documents only hold as another kind.

    Room 3 makes no third seed, but Phase 3 is the third phase; a score of 6-4 counts games and no titles;
    "under 12" says of nothing that there are twelve; and "all but two" is not said by "the second officer".
    """
    if number.form is not Form.EXACT or _label_before(number, response):
        return False
    is_count, places = number.kind is Kind.COUNT, lookup.places(number)
    thing = thing_behind(number, response) if is_count else _ranked(number, response)
    if (
        is_count
        and _ARE.match(response, number.end)
        and places
        and all(one.mention.kind is Kind.ORDINAL for one in places)
    ):
        return True
    is_foreign = not _FOREIGN.isdisjoint(words_in(lowered(response)).all)  # "dos de los tres goles"
    pairs = {id(document): {} if is_foreign else index.pairs for document, index in lookup.texts}
    return bool(places and thing) and all(
        _is_label_of_other(one, thing)
        or _is_score(pairs[id(one.document)].get(one.mention.start), number, thing, one.document.text)
        or (is_count and one.mention.form is Form.LESS_THAN and not one.mention.counts)
        for one in places
        if thing is not None
    )


def _ranked(number: Number, response: str) -> Thing | None:
    """What an ordinal ranks: "edition" of "the third edition"."""
    behind = _BEHIND.match(response, number.end) if number.kind is Kind.ORDINAL else None
    return Thing(tuple(behind[0].split())) if behind else None


def _is_label_of_other(place: Place[Number], thing: Thing) -> bool:
    """Whether a number of a document only labels something else: "Room 3" for "the third seed"."""
    label = _label_before(place.mention, place.document.text)
    return label != "" and not Thing((label,)).is_like(thing)


def _label_before(number: Number, text: str) -> str:
    """The word that a number makes a label: "room" of "Room 3"; empty where it counts."""
    word = _WORD_BEFORE.search(text, max(0, number.start - _LONGEST_WORD), number.start)
    return word[1].lower() if word and word[1].lower() in _LABELS else ""


def _is_score(pair: Number | None, number: Number, thing: Thing, text: str) -> bool:
    """Whether a number is a side of a score that counts something else: titles, or match points."""
    if pair is None or not _SCORE.fullmatch(text, pair.start, pair.end) or thing_behind(pair, text):
        return False
    around = text[max(0, pair.start - _NEAR) : pair.end + _NEAR].lower()
    is_counted = len(thing.words) > 1 and " ".join(thing.words) in around
    return number.kind is not Kind.COUNT or is_counted or thing.words[-1] not in _SCORED


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

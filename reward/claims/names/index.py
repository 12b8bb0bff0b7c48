"""Where documents hold a name: all its words, in one place.

The words of a text are indexed once and kept for the next response to the same documents. "John Smith" is not
in a text that holds "John Adams" and "Mary Smith": between two words of a name may stand what belongs to it
(a middle name, an initial, "of"), and no comma, "and" or verb.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reward.claims.kind import Place
from reward.claims.names.model import Name, Token, name_of, tokens_of
from reward.claims.names.nations import COUNTRIES, STATES
from reward.claims.names.words import KINDS, LIKE, LINKS, OF_HEADS, PREFIXES, TITLES, is_common, stem
from reward.claims.text import content_words
from reward.types import Document

_REACH = 120  # characters around a place that are held against the context
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_HALVES = re.compile(r" (?:of|for) (?:the )?| ?& ")
_MOST_PLACES = 2_000  # of one word in one text that are looked at
_MOST_BETWEEN = 3  # words of a document's name between two words of the claimed one
_BREAK = re.compile(r"[,;:!?()\"\u201c\u201d|]|\n\s*\n|\.\s")
_SHORT_ACRONYM = 3
_PLURALS = ("ans", "ists", "ites", "crats", "isms")  # "Republicans" are more than one Republican


@dataclass(frozen=True)
class Index:
    """The words of one text, by each of their writings."""

    text: str
    tokens: Sequence[Token]
    places: dict[str, list[int]]  # of a word among the tokens
    stems: frozenset[str]
    initials: str  # first letters of all words, joined

    def find(self, name: Name) -> list[tuple[int, int]]:
        """The ranges of tokens that say a name, in the order of the text."""
        found: list[tuple[int, int]] = []
        if all(map(self._holds, name.tokens)):
            for order, linked in _orders(name):
                found += self._in_order(order, linked)
        if not found and len(name.tokens) == 1:
            found = list(self._spelt_out(name))
        elif not found:  # "Wi-Fi" and "WiFi", "Business Parking" and a key "BusinessParking"
            found = [(place, place + 1) for place in self.places.get("".join(name.tokens), ())]
        return sorted(set(found))

    def _holds(self, word: str) -> bool:
        """Whether a word stands in the text; a quick look at most that do not."""
        return len(word) == 1 or any(one in self.places for one in _alike(word))

    def _in_order(self, words: tuple[str, ...], linked: bool) -> Iterator[tuple[int, int]]:
        sets = [self._places_of(word) for word in words]
        if not all(sets):
            return
        rarest = min(range(len(sets)), key=lambda i: len(sets[i]))
        members = [frozenset(s) if len(s) > 8 else s for s in sets]
        for place in sets[rarest][:_MOST_PLACES]:
            first = self._extend(place, reversed(members[:rarest]), -1)
            last = self._extend(place, iter(members[rarest + 1 :]), 1)
            if first is None or last is None or self._is_other(first, words[0]):
                continue
            if (
                not linked
                or any(self.tokens[i].word in LINKS for i in range(first, last))
                or self._comma(first)
            ):
                yield first, last + 1

    def _extend(self, place: int, rest: Iterator[Sequence[int] | frozenset[int]], step: int) -> int | None:
        """The token of the last of some words that follow a place (or stand before it), one after the other."""
        for members in rest:
            for _ in range(_MOST_BETWEEN + 1):
                if not self._joined(place, step):
                    return None
                place += step
                if place in members:
                    break
                if not self._inside(place):
                    return None
            else:
                return None
        return place

    def _joined(self, place: int, step: int) -> bool:
        """Whether a word and its neighbour can belong to one name."""
        left, right = (place, place + 1) if step > 0 else (place - 1, place)
        if left < 0 or right >= len(self.tokens):
            return False
        gap = self.text[self.tokens[left].end : self.tokens[right].start]
        if gap == " " or not gap:
            return True
        if gap in (" (", ") "):
            return True
        if gap.startswith(". "):
            return len(self.tokens[left].word) <= 4 and len(gap) == 2
        return (len(gap) < 8 and not _BREAK.search(gap)) or gap in (", ", '", "')

    def _inside(self, place: int) -> bool:
        """Whether a word that is not claimed can stand inside a name."""
        token = self.tokens[place]
        return (token.capital and token.word not in PREFIXES) or (token.word in LINKS and token.word != "and")

    def _is_other(self, first: int, word: str) -> bool:
        """Whether the word before makes another name of it: "New York" is not York."""
        if first == 0 or word in PREFIXES:
            return False
        before = self.tokens[first - 1]
        gap = self.text[before.end : self.tokens[first].start]
        return before.word in PREFIXES and before.capital and self.tokens[first].capital and gap in (" ", "-")

    def _comma(self, first: int) -> bool:
        return self.text.startswith(",", self.tokens[first].end)

    def _places_of(self, word: str) -> Sequence[int]:
        if len(word) == 1 and word.isalpha():
            return [i for i, t in enumerate(self.tokens) if t.capital and t.word.startswith(word)]
        alike = [self.places[w] for w in _alike(word) if w in self.places]
        return alike[0] if len(alike) == 1 else sorted(p for places in alike for p in places)

    def _spelt_out(self, name: Name) -> Iterator[tuple[int, int]]:
        """Where the words stand that an acronym is made of: "WHO" for "World Health Organization"."""
        letters = name.text.replace(".", "")
        if not (2 <= len(letters) <= 7 and letters.isalpha() and sum(c.isupper() for c in letters) >= 2):
            return
        letters = letters.lower()
        place = self.initials.find(letters)
        for _ in range(_MOST_PLACES):
            if place < 0:
                return
            capitals = sum(self.tokens[i].capital for i in range(place, place + len(letters)))
            if capitals >= min(2, len(letters)) or len(letters) > _SHORT_ACRONYM:
                yield place, place + len(letters)
            place = self.initials.find(letters, place + 1)


def _describes(word: str) -> bool:
    """Whether a word before a name can tell what it names: a trade, a nationality."""
    return (is_common(word) or word in COUNTRIES) and word not in PREFIXES


@functools.lru_cache(maxsize=1 << 14)
def _alike(word: str) -> Sequence[str]:
    """The writings that count as one word: nicknames, abbreviations, states, plurals of common words."""
    alike = {word, *LIKE.get(word, ())}
    if is_common(word):
        alike |= {stem(word), f"{stem(word)}s"}
    if word.endswith(_PLURALS):
        alike |= {word[:-1]}
    if word in STATES and len(STATES[word]) == 1:
        alike |= {STATES[word][0]}
    return sorted(alike)


def _camel_parts(word: str) -> Sequence[str]:
    """The words of a key such as "HasTV"; none of a word that is one."""
    parts = _CAMEL.split(word)
    return [part.lower() for part in parts] if len(parts) > 1 else ()


def _orders(name: Name) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The orders in which a name's words can stand, and whether a link or a comma must then stand between."""
    words = name.tokens
    yield words, False
    if 2 <= len(words) <= 5:
        if words[-1] in OF_HEADS or len(words) == 2:
            yield (words[-1], *words[:-1]), True
        if (words[0] in OF_HEADS and len(words) > 2) or name.inverted:
            yield (*words[1:], words[0]), False


@functools.lru_cache(maxsize=256)
def index_names(text: str) -> Index:
    """Indexes the words of a text."""
    tokens = tokens_of(text)
    places: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        places.setdefault(token.word, []).append(place)
        if place and text[token.start - 1] == "-":  # "Wi-Fi" is WiFi
            places.setdefault(tokens[place - 1].word + token.word, []).append(place - 1)
        if token.capital and token.end - token.start > len(token.word[:1]):
            for part in _camel_parts(text[token.start : token.end]):
                places.setdefault(part, []).append(place)
    for short, full in STATES.items():  # "CA" is California, too
        if short in places and len(full) == 1:
            extra = [i for i in places[short] if text[tokens[i].start : tokens[i].end].isupper()]
            if extra:
                places[full[0]] = sorted({*places.get(full[0], ()), *extra})
    stems = frozenset(stem(word) for word in places)
    return Index(text, tokens, places, stems, "".join(token.word[:1].lower() or "?" for token in tokens))


class NameLookup:
    """The names of all documents of a query."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._texts = [(document, index_names(document.text)) for document in documents]
        self._titles = [(document, index_names(document.title)) for document in documents if document.title]

    def find(self, claimed: Name, *, context: str = "") -> Place[Name] | None:
        """The place that supports a name of a response; of several the one nearest to the context.

        A word that only describes ("Actor Tom Hanks") can stand elsewhere, and so can the two halves of
        "Joan of Arc"; what tells the name must stand in one place.
        """
        found = self._find(claimed, context)
        if found is None and len(claimed.tokens) > 1:
            found = self._find_described(claimed, context) or self._find_halves(claimed, context)
        return found

    def _find(self, claimed: Name, context: str) -> Place[Name] | None:
        places = [
            Place(_name_at(index, first, last), document)
            for document, index in self._texts
            for first, last in index.find(claimed)
        ]
        if places:
            return _nearest(places, context)
        for document, index in self._titles:
            if index.find(claimed):
                return Place(Name(0, 0, document.title, claimed.tokens), document)
        return None

    def _find_described(self, claimed: Name, context: str) -> Place[Name] | None:
        words = claimed.tokens
        start = next(
            (i for i, word in enumerate(words) if not is_common(word) or word in PREFIXES), len(words)
        )
        described = words[:start]
        if not described or any(word in KINDS or not self._holds_word(word) for word in described):
            return None
        if start == len(words):
            return None
        return self._find(replace(claimed, tokens=words[start:], inverted=False), context)

    def _holds_word(self, word: str) -> bool:
        return any(stem(word) in index.stems for _, index in (*self._texts, *self._titles))

    def _find_halves(self, claimed: Name, context: str) -> Place[Name] | None:
        halves = [half for half in _HALVES.split(claimed.text) if half.strip()]
        if all(word in COUNTRIES for word in claimed.tokens):  # "US-Pakistan"
            halves = re.split(r"[- ]", claimed.text) if len(claimed.tokens) == 2 else halves
        if len(halves) < 2:
            return None
        names = [name_of(half, 0, len(half)) for half in halves]
        if any(all(is_common(word) for word in name.tokens) for name in names):
            return None
        places = [self._find(name, context) for name in names]
        return places[0] if all(places) else None


def _name_at(index: Index, first: int, last: int) -> Name:
    start, end = index.tokens[first].start, index.tokens[last - 1].end
    words = tuple(token.word for token in index.tokens[first:last])
    return Name(
        start,
        end,
        index.text[start:end],
        tuple(w for w in words if w not in TITLES and w not in LINKS) or words,
    )


def _nearest(places: Sequence[Place[Name]], context: str) -> Place[Name]:
    """The place whose surroundings share most words with the context; the first of equals."""
    if len(places) == 1 or not context:
        return places[0]
    words = content_words(context)

    def num_shared(place: Place[Name]) -> int:
        start, end = max(0, place.mention.start - _REACH), place.mention.end + _REACH
        return len(words & content_words(place.document.text[start:end]))

    return max(places[:32], key=num_shared)

"""The words of one text, and where they make a name: all of its words, in one place.

"John Smith" is not in a text that holds "John Adams" and "Mary Smith": between two words of a name may stand
what belongs to it (a middle name, an initial, "of"), and no comma, "and" or verb.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from reward.claims.names.model import Name, Token, name_of, singulars, tokens_of
from reward.claims.names.orders import alike, holds, joins, orders, small_words
from reward.claims.names.surnames import sharing
from reward.claims.names.titles import find_title
from reward.claims.names.words import (
    COUNTRIES,
    LINKS,
    PREFIXES,
    STATES,
    TABLES,
    canonical,
    means_else_small,
    stem,
    transcribed,
)

_MOST_PLACES = 500  # of one word in one text that are looked at, and of one name that are listed
_MOST_MERGED = 1 << 16  # places of one of several writings
_MOST_WORDS = 16  # of a name
_MOST_KEPT = 512  # names whose places in one text are kept, those of long names and of many places never
_LONGEST_KEPT = 64  # characters
_MOST_PLACES_KEPT = 16
_MOST_BETWEEN = 3  # words of a document's name between two words of the claimed one
_CAPITAL_PHRASES = frozenset(TABLES["capital_phrases"].strip().splitlines())
_COMMAS = (", ", '", "')
_SHORT_ACRONYM = 3  # letters; all are first letters of capitalised words
_LONGEST_ACRONYM = 7
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WHERE = 2  # the fields of a name that say where it is come first
Range = tuple[int, int]  # of tokens


@dataclass(frozen=True)
class Index:
    """The words of one text, by each of their writings."""

    text: str
    tokens: Sequence[Token]
    places: dict[str, list[int]]  # of a word among the tokens, in order
    stems: frozenset[str]

    def find(self, name: Name) -> Sequence[Range]:
        """The ranges of tokens that say a name, in the order of the text; the first 500 of very many.

        Kept for the next response that says the name.
        """
        key = name[_WHERE:]
        found = self._kept.get(key)
        if found is None:
            found = self._search(name)
            if len(name.text) <= _LONGEST_KEPT and len(found) <= _MOST_PLACES_KEPT:
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = found
        return found

    @functools.cached_property
    def words(self) -> list[str]:
        """The words alone, in order."""
        return [token.word for token in self.tokens]

    @functools.cached_property
    def _kept(self) -> dict[tuple[object, ...], Sequence[Range]]:
        return {}

    def _search(self, name: Name) -> Sequence[Range]:
        found = self._find(name)
        if not found and not name.text.isascii() and (text := transcribed(name.text)) != name.text:
            found = self._find(name_of(text, 0, len(text)))
        if not found and name.family:
            members = (name._replace(tokens=(word,), family=False) for word in singulars(name))
            found = set().union(*map(self._find, members))
        return sorted(found)

    def holds_small(self, word: str) -> bool:
        """Whether the text writes a word, or its plural, small, and others with capitals."""
        if self._uncased:
            return False
        forms = {word, stem(word), f"{word}s"}
        return any(
            not self.tokens[place].capital
            for form in forms
            for place in self.places.get(form, ())[:_MOST_PLACES]
        )

    def _find(self, name: Name) -> set[Range]:
        if len(name.tokens) > _MOST_WORDS:
            return set()
        if name.title and (found := set(find_title(self.text, self.tokens, self.places, name.tokens))):
            return found
        found = self._in_any_order(name)
        if found and (len(name.tokens) == 1 or " ".join(name.tokens) in _CAPITAL_PHRASES):
            found = {r for r in found if self._is_name(r[0], name)}
        if not found and len(name.tokens) == 1:
            found = set(self._spelt_out(name))
        elif not found:  # "Wi-Fi" and "WiFi", "Business Parking" and a key "BusinessParking"
            joined = self.places.get("".join(name.tokens), ())
            found = {(place, place + 1) for place in joined[:_MOST_PLACES]} or set(self._as_letters(name))
            found = found or set(sharing(self, name))
        return found

    def _is_name(self, place: int, name: Name) -> bool:
        """Whether a word is the name and no common word: "sunny windows" does not say "Windows"."""
        if self.tokens[place].capital or self._uncased:
            return True
        return len(name.tokens) == 1 and not means_else_small(name.tokens[0])

    @functools.cached_property
    def _uncased(self) -> bool:
        """Whether a text has no capitals, so that small letters say nothing."""
        return self.text.islower()

    def _in_any_order(self, name: Name) -> set[Range]:
        places: dict[str, Sequence[int]] = {}
        for word in name.tokens:
            if not (found := self.places_of(word)):
                return set()
            places[word] = found
        if len(name.tokens) == 1:
            (word,) = name.tokens
            return {(at, at + 1) for at in places[word][:_MOST_PLACES] if not self._is_other(at, word)}
        inside = small_words(name)
        ranges = (self._in_order(words, linked, places, inside) for words, linked in orders(name))
        return next(filter(None, ranges), set())

    def _in_order(
        self, words: Sequence[str], linked: bool, places: dict[str, Sequence[int]], inside: frozenset[str]
    ) -> set[Range]:
        found: set[Range] = set()
        members = [places[word] for word in words]
        rarest = min(range(len(members)), key=lambda i: len(members[i]))
        most = [0 if len(word) == 1 and word.isalpha() else _MOST_BETWEEN for word in words]
        if not linked:
            most[-1] = _MOST_BETWEEN  # the "V" of "Charles the Fifth" is no initial
        left = list(zip(members[:rarest], most[1:], strict=False))[::-1]
        right = list(zip(members[rarest + 1 :], most[rarest + 1 :], strict=True))
        for place in members[rarest][:_MOST_PLACES]:
            first = self._extend(place, left, -1, linked, inside)
            last = self._extend(place, right, 1, linked, inside)
            if first is None or last is None or self._is_other(first, words[0]):
                continue
            if not linked or self._is_linked(first, last):
                found.add((first, last + 1))
        return found

    def _extend(
        self,
        place: int,
        rest: Sequence[tuple[Sequence[int], int]],
        step: int,
        linked: bool,
        inside: frozenset[str],
    ) -> int | None:
        """The place of the last of some words, each of which is after (or before) the one before it.

        With each word comes how many others may stand between: none before an initial, so that "George W.
        Bush" is not "George H. W. Bush".
        """
        for members, most in rest:
            for num_between in range(most + 1):
                gap = self.gap(place, step)
                place += step
                if (
                    num_between == 0
                    and (gap == ": " or (gap in _COMMAS and linked))
                    and holds(members, place)
                ):
                    break
                if gap is None or not joins(gap, self.tokens[place - max(step, 0)].word):
                    return None
                if holds(members, place):
                    break
                if not self._inside(place, inside):
                    return None
            else:
                return None
        return place

    def gap(self, place: int, step: int) -> str | None:
        """What is between a word and its neighbour."""
        left, right = (place, place + 1) if step > 0 else (place - 1, place)
        if left < 0 or right >= len(self.tokens):
            return None
        return self.text[self.tokens[left].end : self.tokens[right].start]

    def _inside(self, place: int, small: frozenset[str]) -> bool:
        """Whether a word that is not claimed can stand inside a name."""
        token = self.tokens[place]
        return (token.capital and token.word not in PREFIXES) or token.word in small

    def _is_other(self, first: int, word: str) -> bool:
        """Whether the word before makes another name of it: "New York" is not York."""
        if first == 0 or word in PREFIXES:
            return False
        before, token = self.tokens[first - 1], self.tokens[first]
        if before.word not in PREFIXES or not before.capital or not token.capital:
            return False
        return self.text[before.end : token.start] in (" ", "-")

    def _is_linked(self, first: int, last: int) -> bool:
        """Whether words stand in another order because of an "of" or a comma."""
        if self.text.startswith(",", self.tokens[first].end):  # "Curie, Marie", but not "Adams, John Brown"
            follows = last + 1 < len(self.tokens) and self.tokens[last + 1].capital
            return not (follows and self.gap(last, 1) == " ")
        return any(token.word in LINKS for token in self.tokens[first:last])

    def places_of(self, word: str) -> Sequence[int]:
        """The places of a word in all its writings, in order; of a letter those of the words it begins."""
        letter = len(word) == 1 and word.isalpha()
        lists = [self.places[w] for w in alike(word) if w in self.places and not (letter and w == word)]
        if letter:
            lists.append(self._by_initial.get(word, []))
        if len(lists) < 2:
            return lists[0] if lists else ()
        return sorted({place for some in lists for place in some[:_MOST_MERGED]})

    @functools.cached_property
    def _by_initial(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, token in enumerate(self.tokens):
            if token.capital:
                found.setdefault(token.word[0].lower(), []).append(place)
        return found

    def _spelt_out(self, name: Name) -> Iterator[Range]:
        """Where the words stand that an acronym is made of: "WHO" for "World Health Organization"."""
        letters = name.text.replace(".", "")
        if not (
            2 <= len(letters) <= _LONGEST_ACRONYM
            and letters.isalpha()
            and sum(map(str.isupper, letters)) >= 2
        ):
            return
        for initials, places in (self._initials, self._telling_initials):
            at = -1
            for _ in range(_MOST_PLACES):
                at = initials.find(letters.lower(), at + 1)
                if at < 0:
                    break
                words = places[at : at + len(letters)]
                if len(letters) > _SHORT_ACRONYM or all(self.tokens[place].capital for place in words):
                    yield words[0], words[-1] + 1

    @functools.cached_property
    def _initials(self) -> tuple[str, Sequence[int]]:
        """The first letters of all words, joined, and the places of these words."""
        return "".join(token.word[:1].lower() or "?" for token in self.tokens), range(len(self.tokens))

    @functools.cached_property
    def _telling_initials(self) -> tuple[str, Sequence[int]]:
        """The same without small words: "ICJ" is the International Court of Justice."""
        places = [i for i, token in enumerate(self.tokens) if token.capital or token.word not in LINKS]
        return "".join(self.tokens[i].word[:1].lower() or "?" for i in places), places

    def _as_letters(self, name: Name) -> Iterator[Range]:
        """Where letters stand for a part of a country: "WA" for Western Australia."""
        if len(name.tokens) < 2 or not all(word in PREFIXES or word in COUNTRIES for word in name.tokens):
            return
        letters = "".join(word[0] for word in name.text.split() if word[0].isupper())
        for place in self.places.get(letters.lower(), ())[:_MOST_PLACES]:
            if self.text.startswith(letters, self.tokens[place].start) or not self._by_initial:
                yield place, place + 1


@functools.lru_cache(maxsize=256)
def index_names(text: str) -> Index:
    """Indexes the words of a text; kept for the next response to it."""
    tokens = tokens_of(text)
    places: dict[str, list[int]] = {}
    for place, (word, *_) in enumerate(tokens):
        if word in places:
            places[word].append(place)
        else:
            places[word] = [place]
    for word, others in _other_writings(text, tokens, places).items():
        places[word] = sorted({*places.get(word, ()), *others})
    stems = frozenset(stem(word) for word in places)
    return Index(text, tokens, places, stems)


def _other_writings(text: str, tokens: Sequence[Token], places: dict[str, list[int]]) -> dict[str, list[int]]:
    """Words in another writing: "WiFi" where "Wi-Fi" is, "TV" in "HasTV", California for "CA"."""
    others: dict[str, list[int]] = {}
    if "-" in text:
        for place, (before, token) in enumerate(pairwise(tokens)):
            if text[token.start - 1] == "-":
                others.setdefault(before.word + token.word, []).append(place)
    for place, (_, start, end, capital) in enumerate(tokens):
        if capital and end - start > 3:
            parts = _CAMEL.split(text[start:end])
            for part in parts if len(parts) > 1 else ():
                others.setdefault(part.lower(), []).append(place)
    if not text.isascii():
        for place, (word, start, end, _) in enumerate(tokens):
            written = text[start:end]
            if not written.isascii() and (other := canonical(transcribed(written))) != word:
                others.setdefault(other, []).append(place)
    for short, full in STATES.items():
        if len(full) == 1 and short in places:
            letters = [i for i in places[short] if text[tokens[i].start : tokens[i].end].isupper()]
            others.setdefault(full[0], []).extend(letters)
    return others

"""The words of one text, and where they make a name: all of its words, in one place.

"John Smith" is not in a text that holds "John Adams" and "Mary Smith": between two words of a name may stand
what belongs to it (a middle name, an initial, "of"), and no comma, "and" or verb.
"""

import functools
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from reward.claims.names.lexicon import (
    ARTICLES,
    CITIES,
    GIVEN_NAMES,
    KINDS,
    LIKE,
    LINKS,
    NATIONS,
    OF_HEADS,
    PREFIXES,
    RULERS,
    TABLES,
    TITLES,
    is_common,
    means_else_small,
    transcribed,
)
from reward.claims.names.match import numbered, turned
from reward.claims.names.model import Name, name_of, singulars
from reward.claims.names.text import MOST_PLACES, Text
from reward.claims.names.titles import find_title

_CAMEL = re.compile(r"[^\W\d_]+[A-Z][a-z]+s$")
_CODE = re.compile(r"([a-z]{2,5})\d{2,}")
_MOST_WORDS = 16  # of a name
_MOST_KEPT = 512  # names whose places in one text are kept, those of long names and of many places never
_LONGEST_KEPT = 64  # characters
_MOST_PLACES_KEPT = 16
_MOST_BETWEEN = 3  # words of a document's name between two words of the claimed one
_CAPITAL_PHRASES = frozenset(TABLES["capital_phrases"].strip().splitlines())
_COMMAS = (", ", '", "')
_SHORT_ACRONYM = 3  # letters; all are first letters of capitalised words
_LONGEST_ACRONYM = 7
_MOST_INITIALS = 3
_MOST_SHARING = 6  # people with one surname
_WHERE = 2  # the fields of a name that say where it is come first
_QUOTE_ENDS = ('" ', "\u201d ", "' ", "\u2019 ")  # of a nickname
_BY_BIRTH = ("nee", "ne")
_MOST_BEFORE_BIRTH = 5  # words from a first name to "née"
_LONGEST_GAP = 8  # characters
_BREAK = re.compile(r"[,;:!?()\"\u201c\u201d|]|\n\s*\n|\.\s")
_ALWAYS_INSIDE = LINKS - {"and", "for", "the"}
_MAYBE_INSIDE = LINKS | ARTICLES
_GENERIC = ("mount", "mt", "lake")  # "Etna" is Mount Etna
_POSTS = frozenset(("gm", "qb", "cm", "mp", "da", "pm", "md"))  # before a surname, and no initials
_RULERS = frozenset(RULERS.values())
Range = tuple[int, int]  # of tokens
_Others = tuple[Sequence[int], int]  # the places of a word, and how many others may stand before it


class Index(Text):
    """The words of one text, ready for the question where they make a name."""

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

    def _find(self, name: Name) -> set[Range]:
        if len(name.tokens) > _MOST_WORDS:
            return set()
        if name.title and (found := set(find_title(self, name.tokens))):
            return found
        found = self._in_any_order(name)
        if found and (len(name.tokens) == 1 or " ".join(name.tokens) in _CAPITAL_PHRASES):
            found = {r for r in found if self._is_name(r[0], name)}
        if not found and len(name.tokens) == 1:
            found = set(self._spelt_out(name)) or self._codes.get(name.text, set())
            if not found and _CAMEL.match(name.text):  # "iPhones" of an iPhone
                found = {(at, at + 1) for at in self.places.get(name.tokens[0][:-1], ())[:MOST_PLACES]}
        elif not found:  # "Wi-Fi" and "WiFi", "Business Parking" and a key "BusinessParking"
            joined = self.places.get("".join(name.tokens), ())
            found = {(place, place + 1) for place in joined[:MOST_PLACES]}
            found = found or set(_sharing(self, name)) or set(_called(self, name))
            if not found and (other := numbered(name)) != name.tokens:
                found = self._in_any_order(name._replace(tokens=other))
            if not found and (joined_name := _initials_joined(name)):
                found = {r for r in self._in_any_order(joined_name) if self._are_initials(r[0])}
        return found

    def _are_initials(self, place: int) -> bool:
        """Whether a word is the initials of a name ("JRR"), and no title ("Mr", "VP")."""
        token = self.tokens[place]
        return self.text[token.start : token.end].isupper() and token.word not in TITLES | _POSTS

    def _is_name(self, place: int, name: Name) -> bool:
        """Whether a word is the name and no common word: "sunny windows" does not say "Windows"."""
        if self.tokens[place].capital or self.uncased:
            return True
        return len(name.tokens) == 1 and not means_else_small(name.tokens[0])

    def _in_any_order(self, name: Name) -> set[Range]:
        places: dict[str, Sequence[int]] = {}
        for word in name.tokens:
            if not (found := self.places_of(word)):
                return set()
            places[word] = found
        if len(name.tokens) == 1:
            (word,) = name.tokens
            return {(at, at + 1) for at in places[word][:MOST_PLACES] if not self._is_other(at, word)}
        inside = _ALWAYS_INSIDE.union(_MAYBE_INSIDE.intersection(name.text.lower().split()))
        if "&" in name.text:
            inside |= {"and"}
        if name.tokens[-1] in _RULERS:
            inside |= {"the"}  # "Henry VIII" is "Henry the Eighth"
        own = name.tokens
        ranges = (
            self._in_order(words, linked, places, inside, is_own=words == own)
            for words, linked in _orders(name)
        )
        return next(filter(None, ranges), set())

    def _in_order(
        self,
        words: Sequence[str],
        linked: bool,
        places: dict[str, Sequence[int]],
        inside: frozenset[str],
        *,
        is_own: bool,
    ) -> set[Range]:
        found: set[Range] = set()
        members = [places[word] for word in words]
        rarest = min(range(len(members)), key=lambda i: len(members[i]))
        # "Oxford University" has no other word between where "University of Oxford" is claimed.
        far = _MOST_BETWEEN if is_own or linked else 0
        most = [0 if len(word) == 1 and word.isalpha() else far for word in words]
        if not linked and words[-1] in _RULERS:
            most[-1] = _MOST_BETWEEN  # the "V" of "Charles the Fifth" is no initial
        left = list(zip(members[:rarest], most[1:], strict=False))[::-1]
        right = list(zip(members[rarest + 1 :], most[rarest + 1 :], strict=True))
        for place in members[rarest][:MOST_PLACES]:
            first = self._extend(place, left, -1, linked, inside)
            last = self._extend(place, right, 1, linked, inside)
            if first is None or last is None or self._is_other(first, words[0]):
                continue
            if not linked or self._is_linked(first, last):
                found.add((first, last + 1))
        return found

    def _extend(
        self, place: int, rest: Sequence[_Others], step: int, linked: bool, inside: frozenset[str]
    ) -> int | None:
        """The place of the last of some words, each of which is after (or before) the one before it.

        With each word comes how many others may stand between: none before an initial, so that "George W.
        Bush" is not "George H. W. Bush".
        """
        for members, most in rest:
            for num_between in range(most + 1):
                gap = self.gap(place, step)
                place += step
                is_joined = num_between == 0 and (gap == ": " or (gap in _COMMAS and linked))
                if is_joined and _holds(members, place):
                    break
                if gap is None or not _joins(gap, self.tokens[place - max(step, 0)].word):
                    return None
                if _holds(members, place):
                    break
                token = self.tokens[place]
                may_stand = token.capital and token.word not in PREFIXES
                if not (may_stand or token.word in inside):
                    return None
                if token.word == "state" and self.words[place + 1 : place + 2] in (
                    ["university"],
                    ["college"],
                ):
                    return None  # "Ohio University" is not Ohio State University
            else:
                return None
        return place

    def _is_other(self, first: int, word: str) -> bool:
        """Whether the word before makes another name of it: "New York" is not York."""
        if first == 0 or word in PREFIXES:
            return False
        before, token = self.tokens[first - 1], self.tokens[first]
        if before.word in ("saint", "st") and word not in CITIES | GIVEN_NAMES:
            return False  # "Saint Aldegisa"
        if before.word not in PREFIXES or before.word in _GENERIC or not before.capital or not token.capital:
            return False
        return self.text[before.end : token.start] in (" ", "-")

    def _is_linked(self, first: int, last: int) -> bool:
        """Whether words stand in another order because of an "of" or a comma."""
        # "Curie, Marie" and "Sánchez Molina, Lucía", but not "Adams, John Brown"
        if self.text.startswith(",", self.tokens[last - 1].end):
            follows = last + 1 < len(self.tokens) and self.tokens[last + 1].capital
            return not (follows and self.gap(last, 1) == " ")
        return not LINKS.isdisjoint(self.words[first:last])

    def _spelt_out(self, name: Name) -> Iterator[Range]:
        """Where the words stand that an acronym is made of: "WHO" for "World Health Organization"."""
        letters = name.text.replace(".", "")
        letters = letters[:-1] if letters.endswith("s") and letters[:-1].isupper() else letters  # "FTEs"
        may_be_acronym = letters.isalpha() and sum(map(str.isupper, letters)) >= 2
        if not may_be_acronym or len(letters) > _LONGEST_ACRONYM:
            return
        for initials, places in self._initials:
            at = -1
            for _ in range(MOST_PLACES):
                at = initials.find(letters.lower(), at + 1)
                if at < 0:
                    break
                words = places[at : at + len(letters)]
                if len(letters) > _SHORT_ACRONYM or self._may_be_short(words):
                    yield words[0], words[-1] + 1

    @functools.cached_property
    def _codes(self) -> dict[str, set[Range]]:
        """Where codes are by their letters: "BA" of "BA2490", which a response writes "BA 2490"."""
        codes: dict[str, set[Range]] = {}
        for word, places in self.places.items():
            if code := _CODE.fullmatch(word):
                codes.setdefault(code[1].upper(), set()).update((at, at + 1) for at in places[:MOST_PLACES])
        return codes

    def _may_be_short(self, places: Sequence[int]) -> bool:
        """Whether some words have capitals, or are one term: "VAT" for "value-added tax".

        Any three small words in a row would spell most acronyms somewhere in a text.
        """
        if all(self.tokens[place].capital for place in places):
            return True
        gaps = [self.gap(place, 1) for place in places[:-1]]
        return len(places) == _SHORT_ACRONYM and "-" in gaps and set(gaps) <= {"-", " "}

    @functools.cached_property
    def _initials(self) -> list[tuple[str, Sequence[int]]]:
        """The first letters of all words, joined, and the places of these words.

        Then the same without small words: "ICJ" is the International Court of Justice, and "OECD" the
        Organisation for Economic Co-operation and Development.
        """
        letters = [word[:1].lower() or "?" for word in self.words]
        telling = [
            i
            for i, token in enumerate(self.tokens)
            if token.capital or not (token.word in LINKS or (i and self.gap(i - 1, 1) == "-"))
        ]
        both: tuple[Sequence[int], ...] = (range(len(letters)), telling)
        return [("".join(letters[i] for i in places), places) for places in both]


index_names = functools.lru_cache(maxsize=256)(Index)  # kept for the next response to a text


def _initials_joined(name: Name) -> Name | None:
    """A name with its initials in the other writing: "J. R. R. Tolkien" and "JRR Tolkien"."""
    num = next((i for i, word in enumerate(name.tokens) if len(word) > 1), 0)
    if num > 1:
        return name._replace(tokens=("".join(name.tokens[:num]), *name.tokens[num:]))
    first, *rest = name.tokens
    letters = name.text.split()[0]
    if (
        not rest
        or not letters.isupper()
        or not 2 <= len(letters) <= _MOST_INITIALS
        or letters.lower() != first
    ):
        return None
    return name._replace(tokens=(*first, *rest))


def _sharing(text: Text, name: Name) -> Iterator[Range]:
    """Where a text says a first name, and behind it the surname for several people."""
    given, surname = name.tokens[0], name.tokens[-1]
    if len(name.tokens) != 2 or surname in KINDS or surname in CITIES or surname not in text.places:
        return
    for place in text.places_of(given)[:MOST_PLACES]:
        last = _surname_behind(text, place)
        if last is not None and text.tokens[last].word == surname:
            yield place, last + 1


def _called(text: Text, name: Name) -> Iterator[Range]:
    """Where a text gives a person another name: Bobby of 'Robert "Bobby" Tench', or the one by birth.

    "Edith Carrow (née Holloway)" is Edith Holloway, too.
    """
    *first, given, surname = ("", *name.tokens)[-3:]
    if not 2 <= len(name.tokens) <= 3:
        return
    for place in text.places_of(given)[:MOST_PLACES]:
        is_called = place and text.gap(place, 1) in _QUOTE_ENDS and text.words[place + 1] == surname
        if is_called and first[0] in ("", text.words[place - 1]):
            yield place, place + 2
        if first[0]:
            continue
        for birth in range(place + 2, min(place + _MOST_BEFORE_BIRTH, len(text.tokens) - 1)):
            if text.words[birth] in _BY_BIRTH and text.words[birth + 1] == surname:
                yield place, birth + 2


def _surname_behind(text: Text, place: int) -> int | None:
    """The place of the surname behind first names that "and" joins; none behind a surname of its own.

    In "Elton John and Tim Rice" nobody is called John Rice.
    """
    before = text.tokens[place - 1] if text.gap(place, -1) == " " else None
    if before is not None and before.capital and not is_common(before.word):
        return None
    last = False
    for _ in range(_MOST_SHARING):
        gap = text.gap(place, 1)
        if gap is None or not text.tokens[place].capital:
            return None
        if last:
            return place + 1 if gap == " " and text.tokens[place + 1].capital else None
        joined = gap in (" ", ", ") and text.tokens[place + 1].word == "and"
        last = joined or gap == " & "
        if not last and gap != ", ":
            return None
        place += 2 if joined else 1
        if place >= len(text.tokens):
            return None
    return None


def _holds(places: Sequence[int], place: int) -> bool:
    """Whether a list in order holds a place."""
    at = bisect_left(places, place)
    return at < len(places) and places[at] == place


def _joins(gap: str, before: str) -> bool:
    """Whether what is between two words can stand inside a name."""
    if gap in (" ", "", " (", ") "):
        return True
    if gap == ". ":
        return len(before) <= 4  # "J. Smith", "Mrs. Smith"
    return len(gap) < _LONGEST_GAP and not _BREAK.search(gap)


def _is_told(word: str) -> bool:
    """Whether a word is known as a first name, a place or a thing, so that its order in a name tells."""
    return (
        word in LIKE
        or word in KINDS
        or word in CITIES
        or word in PREFIXES
        or word in NATIONS
        or is_common(word)
    )


def _orders(name: Name) -> Iterator[tuple[Sequence[str], bool]]:
    """The orders in which a name's words can stand, and whether an "of" or a comma must stand between."""
    words = name.tokens
    yield words, False
    if 2 <= len(words) <= 5:
        if words[0] in RULERS:  # "Second Punic War" is "Punic War II"
            yield (*words[1:], words[0]), False
        elif words[-1] in _RULERS:
            yield (words[-1], *words[:-1]), False
        if words[-1] in OF_HEADS or len(words) == 2:
            yield (words[-1], *words[:-1]), True
        if len(words) == 2 and not any(map(_is_told, words)):
            yield words[::-1], False  # "Fujimoto Haruka"
        if words[0] in OF_HEADS and len(words) > 2:
            yield (*words[1:], words[0]), False
        if name.inverted:
            yield turned(name), False
        if len(words) > 2:  # "Molina, Lucía" with two surnames
            yield (*words[1:], words[0]), True
        for first in range(1, len(words) - 1):  # "Graz Philharmonic Orchestra", "Orchestra of Graz"
            if not KINDS.isdisjoint(words[first:]):
                yield (*words[first:], *words[:first]), True

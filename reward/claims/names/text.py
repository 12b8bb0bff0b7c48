"""The words of one text, by each of their writings, and what is between them."""

import functools
from collections import defaultdict
from collections.abc import Sequence

from reward.claims.names.lexicon import LIKE, ROMAN, STATES, canonical, is_common, stem, transcribed
from reward.claims.names.model import CAMEL, Token, Tokens, tokens_of

MOST_PLACES = 500  # of one word in one text that are looked at
_MOST_MERGED = 1 << 16  # places of one of several writings
_LONG_PEOPLE = 8  # letters: "Ligurian" is of Liguria, Julian is not Julia
_PLURALS = ("ans", "ists", "ites", "crats", "isms")  # "Republicans" are more than one Republican


class Text:
    """A text, word by word."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens = text, tokens_of(text)
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place, reading in enumerate(self.tokens.readings):
            places[reading.word].append(place)
        for word, others in _other_writings(text, self.tokens, places).items():
            places[word] = sorted({*places.get(word, ()), *others})
        self.places = dict(places)  # of a word among the tokens, in order
        self.stems = frozenset(map(stem, places))

    @functools.cached_property
    def words(self) -> list[str]:
        """The words alone, in order."""
        return [reading.word for reading in self.tokens.readings]

    def holds_small(self, word: str) -> bool:
        """Whether the text writes a word, or its plural, small, and others with capitals."""
        if self.uncased:
            return False
        forms = {word, stem(word), f"{word}s"}
        return any(
            not self.tokens.readings[place].capital
            for form in forms
            for place in self.places.get(form, ())[:MOST_PLACES]
        )

    @functools.cached_property
    def uncased(self) -> bool:
        """Whether a text has no capitals, so that small letters say nothing."""
        return self.text.islower()

    def gap(self, place: int, step: int) -> str | None:
        """What is between a word and its neighbour."""
        left, right = (place, place + 1) if step > 0 else (place - 1, place)
        if left < 0 or right >= len(self.tokens):
            return None
        return self.text[self.tokens.ends[left] : self.tokens.starts[right]]

    def places_of(self, word: str) -> Sequence[int]:
        """The places of a word in all its writings, in order; of a letter those of the words it begins."""
        letter = len(word) == 1 and word.isalpha()
        lists = [self.places[w] for w in alike(word) if w in self.places and not (letter and w == word)]
        if letter:
            lists.append(self.by_initial.get(word, []))
        if len(lists) < 2:
            return lists[0] if lists else ()
        return sorted({place for some in lists for place in some[:_MOST_MERGED]})

    @functools.cached_property
    def by_initial(self) -> dict[str, list[int]]:
        """The places of the words with a capital, by their first letters."""
        found: dict[str, list[int]] = {}
        for place, token in enumerate(self.tokens):
            if token.capital and not self._is_ruler(token):
                found.setdefault(token.word[0].lower(), []).append(place)
        return found

    def _is_ruler(self, token: Token) -> bool:
        """Whether a word is the number of a ruler, such as "II", which no initial stands for."""
        return len(token.word) > 1 and token.word in ROMAN and self.text[token.start : token.end].isupper()


def _other_writings(text: str, tokens: Tokens, places: dict[str, list[int]]) -> dict[str, list[int]]:
    """Words in another writing: "WiFi" where "Wi-Fi" is, "TV" in "HasTV", California for "CA"."""
    others: defaultdict[str, list[int]] = defaultdict(list)
    readings, starts, ends = tokens.readings, tokens.starts, tokens.ends
    if "-" in text:
        behind_hyphens = [place for place, start in enumerate(starts) if text[start - 1] == "-"]
        for place in filter(None, behind_hyphens):
            others[readings[place - 1].word + readings[place].word].append(place - 1)
    for place in (place for place, reading in enumerate(readings) if reading.odd):
        written = text[starts[place] : ends[place]]
        parts = CAMEL.split(written) if readings[place].capital and len(written) > 3 else ()
        for part in parts if len(parts) > 1 else ():
            others[part.lower()].append(place)
        if written[1:2] in ("'", "\u2019") and len(written) > 4:  # "Esposito" for "D'Esposito"
            others[canonical(written[2:])].append(place)
        if not written.isascii() and (other := canonical(transcribed(written))) != readings[place].word:
            others[other].append(place)
    for place in places.get("washington", ()):  # a phrase: "Washington, D.C." holds "D.C.", too
        if text[starts[place] : ends[place]].replace(".", "").endswith("DC"):
            others["dc"].append(place)
    for word, at in places.items():
        if (digits := ROMAN.get(word)) is not None:  # "Chapter XIV" and "Chapter 14"
            others[digits].extend(place for place in at if text[starts[place] : ends[place]].isupper())
    for short, full in STATES.items():
        if len(full) == 1 and short in places:
            letters = [place for place in places[short] if text[starts[place] : ends[place]].isupper()]
            others[full[0]].extend(letters)
    return others


@functools.lru_cache(maxsize=1 << 14)
def alike(word: str) -> Sequence[str]:
    """The writings that count as one word: nicknames, abbreviations, states, plurals of common words."""
    alike = {word, *LIKE.get(word, ())}
    if is_common(word):
        alike |= {stem(word), f"{stem(word)}s"}
    if word.endswith("ian") and len(word) >= _LONG_PEOPLE:
        alike.add(word[:-1])
    elif word.endswith("ia") and len(word) + 1 >= _LONG_PEOPLE:
        alike.add(f"{word}n")
    if word.endswith(_PLURALS):
        alike.add(word[:-1])
    if word in STATES and len(STATES[word]) == 1:
        alike.add(STATES[word][0])
    return sorted(alike)

"""What a name is, and how its words are read."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from reward.claims.names import lexicon
from reward.claims.names.lexicon import canonical, fold, groups


class Name(NamedTuple):
    """A name as a text writes it.

    Example: of "Dr. Marie Curie's" the text is "Dr. Marie Curie" and the tokens are ("marie", "curie").
    """

    start: int
    end: int
    text: str  # as written, without a possessive
    tokens: tuple[str, ...]  # its words in their one writing, without titles, "of" and articles
    inverted: bool = False  # "University of Oslo": what follows "of" can stand first
    place: tuple[str, ...] = ()  # what a comma adds: "Paris, Texas"
    roles: frozenset[str] = frozenset()  # what the bearer is: "Senator Brown"
    family: bool = False  # "the Hartleys", "the Hartley family"
    title: bool = False  # a title in quotation marks, of common words, too
    courtesy: str = ""  # "mr" or "mrs"

    @property
    def atoms(self) -> tuple[Name, ...]:
        """A name is checked as a whole."""
        return (self,)


class Token(NamedTuple):
    """A word of a text, or a phrase that one word stands for ("United States" is `usa`)."""

    word: str
    start: int
    end: int
    capital: bool


class Reading(NamedTuple):
    """How a word is read wherever it is written."""

    word: str  # in its one writing
    capital: bool  # whether it has one
    dotted: bool = False  # it may be initials
    begins: bool = False  # a known phrase can begin with it
    odd: bool = False  # it has a capital inside, letters beyond ASCII, or begins as "D'Esposito" does


class Tokens:
    """The words of one text.

    A long text has very many: they are kept as lists of what is shared and of plain integers, which cost the
    garbage collector nothing, and each becomes a `Token` when it is asked for.
    """

    def __init__(self, readings: list[Reading], starts: list[int], ends: list[int]) -> None:
        self.readings, self.starts, self.ends = readings, starts, ends

    def __len__(self) -> int:
        return len(self.readings)

    def __getitem__(self, place: int) -> Token:
        word, capital, *_ = self.readings[place]
        return _new(Token, (word, self.starts[place], self.ends[place], capital))

    def __iter__(self) -> Iterator[Token]:
        return map(self.__getitem__, range(len(self)))

    def replaced(self, parts: Iterable[tuple[int, int, Sequence[Token]]]) -> Tokens:
        """The same with other words in some places: of each part its range, in order, and what it becomes."""
        others = Tokens([], [], [])
        end = 0
        for first, last, tokens in (*parts, (len(self), len(self), ())):
            others.readings += self.readings[end:first] + [Reading(one.word, one.capital) for one in tokens]
            others.starts += self.starts[end:first] + [one.start for one in tokens]
            others.ends += self.ends[end:first] + [one.end for one in tokens]
            end = last
        return others


COURTESIES = {"mr": "mr", "mrs": "mrs", "ms": "mrs", "miss": "mrs"}
ROLES = {word: role for role, *others in groups("roles") for word in (role, *others)}
_new = tuple.__new__  # half the time of a named tuple's own constructor
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_POSSESSIVE = re.compile(r"(?:['\u2019`]s?)$")
_ARTICLE = re.compile(r"(?:the|an?) ", re.IGNORECASE)
KEPT_DOTTED = frozenset(
    ("us", "uk", "un", "eu", "usa", "dc", "la", "ny", "nyc", "phd", "md", "ad", "bc", "am", "pm")
)


def tokens_of(text: str, start: int = 0, end: int | None = None) -> Tokens:
    """The words of a text, from left to right; phrases of the table are one word."""
    found = lexicon.WORD.finditer(text, start, len(text) if end is None else end)
    bounds = [place for match in found for place in match.span()]
    starts, ends = bounds[::2], bounds[1::2]
    readings = [_read(text[at:last]) for at, last in zip(starts, ends, strict=True)]
    tokens = Tokens(readings, starts, ends)
    if any(reading.dotted for reading in readings):
        tokens = tokens.replaced(_initials(text, tokens))
    if any(reading.begins for reading in readings):
        tokens = tokens.replaced(_phrases(tokens))
    return tokens


@functools.lru_cache(maxsize=1 << 16)
def _read(written: str) -> Reading:
    word = canonical(written)
    capital = not written.islower() and not written.isdigit()
    dotted = "." in written and fold(written) not in KEPT_DOTTED
    odd = not written.isascii() or CAMEL.search(written) is not None or written[1:2] == "'"
    return Reading(word, capital, dotted, word in lexicon.PHRASES, odd)


def _initials(text: str, tokens: Tokens) -> Iterator[tuple[int, int, list[Token]]]:
    """The places of initials, and their letters: "J.K. Rowling" has three words."""
    for place in (place for place, reading in enumerate(tokens.readings) if reading.dotted):
        _, at, end, _ = tokens[place]
        is_before_surname = text[end : end + 1] in (" ", "") and text[end + 1 : end + 2].isupper()
        if is_before_surname and len(fold(text[at:end])) <= 3:
            letters = ((i, text[i]) for i in range(at, end) if text[i] != ".")
            yield place, place + 1, [Token(c.lower(), i, i + 1, c.isupper()) for i, c in letters]


def _phrases(tokens: Tokens) -> Iterator[tuple[int, int, list[Token]]]:
    """The ranges of known phrases, and the word that each stands for."""
    end = 0
    for first in (place for place, reading in enumerate(tokens.readings) if reading.begins):
        for words, short in lexicon.PHRASES[tokens.readings[first].word] if first >= end else ():
            last = first + len(words)
            if [one.word for one in tokens.readings[first:last]] == [*words]:
                end = last
                yield first, last, [Token(short, tokens.starts[first], tokens.ends[last - 1], True)]
                break


def name_of(text: str, start: int, end: int, said: Sequence[str] = ()) -> Name:
    """The name that is at a place of a text; `said` are words before it that may be its title."""
    article = _ARTICLE.match(text, start, end) if text[start] in "TtAa" else None
    if article and not lexicon.WORD.search(text, article.end(), end):
        article = None  # "A -"
    start = article.end() if article else start
    written = text[start:end].rstrip(".")
    if not written.isalnum():
        written = _POSSESSIVE.sub("", written)
    end = start + len(written)
    if written.isalnum() and (word := canonical(written)) not in lexicon.PHRASES:  # most names are one word
        family = _is_family(text, start, end)
        roles, courtesy = _roles((), (), said), _courtesy(said)
        return _new(Name, (start, end, written, (word,), False, (), roles, family, False, courtesy))
    tokens = tokens_of(text, start, end)
    words = tuple(token.word for token in tokens)
    of_a_place = len(words) > 1 and words[1] in lexicon.KINDS  # "King Street"
    kept = tuple(
        token.word
        for i, token in enumerate(tokens)
        if (i == 0 and of_a_place and token.word in lexicon.TITLES)
        or (i == 0 < len(tokens) - 1 and _POSSESSIVE.search(text, token.end - 2, token.end))
        or _tells(
            token,
            first=i == 0,
            is_letter=text.startswith(".", token.end)
            or (0 < i == len(tokens) - 1 and "." not in text[token.start - 2 : token.start]),
            linked=i > 0 and tokens[i - 1].word in lexicon.LINKS,
        )
    )
    kept = kept or words
    if len(kept) > 1 and kept[-1] in lexicon.LEGAL_FORMS:
        kept = kept[:-1]
    heads = map(fold, written.partition(" of ")[0].split())  # "Technical University of Munich"
    inverted = " of " in written and not lexicon.OF_HEADS.isdisjoint(heads)
    if kept[-1] in lexicon.RULERS and " the " in written:  # "Henry the Eighth" is Henry VIII
        kept = (*kept[:-1], lexicon.RULERS[kept[-1]])
    family = len(kept) == 1 and _is_family(text, start, end)
    roles, courtesy = _roles(words, kept, said), _courtesy((*said, *words[:-1]))
    return Name(start, end, written, kept, inverted, (), roles, family, courtesy=courtesy)


def _roles(words: tuple[str, ...], kept: tuple[str, ...], said: Sequence[str]) -> frozenset[str]:
    """What the titles before a name say; the King of "Martin Luther King" is a surname."""
    if len(words) > len(kept) and words[-1] not in lexicon.TITLES:
        said = (*said, *words)
    return frozenset([ROLES[word] for word in said if word in ROLES])


def _courtesy(said: Sequence[str]) -> str:
    """The Mr or Mrs of a name; neither where both are said."""
    found = {COURTESIES[word] for word in said if word in COURTESIES}
    return found.pop() if len(found) == 1 else ""


def _is_family(text: str, start: int, end: int) -> bool:
    """Whether a name is that of several people: "the Hartleys", "the Hartley family"."""
    if text[end - 1] == "s" and text[max(0, start - 4) : start].lower() == "the ":
        return True
    return text.startswith(" family", end)


def singulars(name: Name) -> tuple[str, ...]:
    """The names of one member, and of all, of a family: "hartley" and "hartleys"."""
    word = name.tokens[0]
    short = [word[: -len(end)] for end in ("s", "es") if word.endswith(end) and len(word) > len(end) + 2]
    return (*short, f"{word}s", f"{word}es")


def _tells(token: Token, *, first: bool, is_letter: bool, linked: bool) -> bool:
    """Whether a word tells a name from others: no title and no "of", but the "El" of "El Salvador".

    A capital "A" is no article where it is an initial, or ends a name ("Annex A").
    """
    if token.word in lexicon.SUFFIXES:
        return not first
    return (
        (token.word not in lexicon.TITLES or linked)  # "Court of Justice"
        and (token.word not in lexicon.ARTICLES or (is_letter and token.capital and token.word == "a"))
        and (token.word not in lexicon.LINKS or (first and token.capital))
    )

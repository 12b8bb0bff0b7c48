"""What a name is, and how its words are read."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
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


ROLES = {word: role for role, *others in groups("roles") for word in (role, *others)}
_new = tuple.__new__  # half the time of a named tuple's own constructor
_NO_ROLES: frozenset[str] = frozenset()
_POSSESSIVE = re.compile(r"(?:['\u2019`]s?)$")
_ARTICLE = re.compile(r"(?:the|an?) ", re.IGNORECASE)
_KEPT_DOTTED = frozenset(
    ("us", "uk", "un", "eu", "usa", "dc", "la", "ny", "nyc", "phd", "md", "ad", "bc", "am", "pm")
)


def tokens_of(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """The words of a text, from left to right; phrases of the table are one word."""
    found: list[Token] = []
    phrases: list[int] = []
    for match in lexicon.WORD.finditer(text, start, len(text) if end is None else end):
        at, end = match.span()
        word, capital, dotted, begins = _read(match[0])
        if dotted and _is_initials(text, end, fold(match[0])):
            found += (
                Token(c.lower(), at + i, at + i + 1, c.isupper()) for i, c in enumerate(match[0]) if c != "."
            )
            continue
        if begins:
            phrases.append(len(found))
        found.append(_new(Token, (word, at, end, capital)))
    return _joined(found, phrases) if phrases else found


@functools.lru_cache(maxsize=1 << 16)
def _read(written: str) -> tuple[str, bool, bool, bool]:
    """A word in its one writing, whether it has a capital, may be initials, and begins a known phrase."""
    word = canonical(written)
    dotted = "." in written and fold(written) not in _KEPT_DOTTED
    return word, not written.islower() and not written.isdigit(), dotted, word in lexicon.PHRASES


def _is_initials(text: str, end: int, letters: str) -> bool:
    """Whether dotted letters stand before a surname: "J.K. Rowling"."""
    return len(letters) <= 3 and text[end : end + 1] in (" ", "") and text[end + 1 : end + 2].isupper()


def _joined(found: list[Token], firsts: list[int]) -> list[Token]:
    joined: list[Token] = []
    place = 0
    for first in firsts:
        if first < place:
            continue
        for words, short in lexicon.PHRASES[found[first].word]:
            last = first + len(words)
            if last <= len(found) and all(found[first + i].word == w for i, w in enumerate(words)):
                whole = Token(short, found[first].start, found[last - 1].end, True)
                joined += found[place:first]
                joined.append(whole)
                place = last
                break
    return joined + found[place:]


def name_of(text: str, start: int, end: int, said: Sequence[str] = ()) -> Name:
    """The name that is at a place of a text; `said` are words before it that may be its title."""
    article = _ARTICLE.match(text, start, end) if text[start] in "TtAa" else None
    start = article.end() if article else start
    written = text[start:end].rstrip(".")
    if not written.isalnum():
        written = _POSSESSIVE.sub("", written)
    end = start + len(written)
    if written.isalnum() and (word := canonical(written)) not in lexicon.PHRASES:  # most names are one word
        roles = _roles((), (), said) if said else _NO_ROLES
        family = _is_family(text, start, end)
        return _new(Name, (start, end, written, (word,), False, (), roles, family, False))
    tokens = tokens_of(text, start, end)
    words = tuple(token.word for token in tokens)
    of_a_place = tokens[1:2] and tokens[1].word in lexicon.KINDS  # "King Street"
    kept = tuple(
        token.word
        for i, token in enumerate(tokens)
        if (i == 0 and of_a_place and token.word in lexicon.TITLES)
        or _tells(token, first=i == 0, linked=i > 0 and tokens[i - 1].word in lexicon.LINKS)
    )
    kept = kept or words
    if len(kept) > 1 and kept[-1] in lexicon.LEGAL_FORMS:
        kept = kept[:-1]
    inverted = " of " in written and fold(written.split()[0]) in lexicon.OF_HEADS
    if kept[-1] in lexicon.RULERS and " the " in written:  # "Henry the Eighth" is Henry VIII
        kept = (*kept[:-1], lexicon.RULERS[kept[-1]])
    family = len(kept) == 1 and _is_family(text, start, end)
    return Name(start, end, written, kept, inverted, (), _roles(words, kept, said), family)


def _roles(words: tuple[str, ...], kept: tuple[str, ...], said: Sequence[str]) -> frozenset[str]:
    """What the titles before a name say; the King of "Martin Luther King" is a surname."""
    if len(words) > len(kept) and words[-1] not in lexicon.TITLES:
        said = (*said, *words)
    if not said:
        return _NO_ROLES
    roles = [ROLES[word] for word in said if word in ROLES]
    return frozenset(roles) if roles else _NO_ROLES


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


def _tells(token: Token, *, first: bool, linked: bool) -> bool:
    """Whether a word tells a name from others: no title and no "of", but the "El" of "El Salvador"."""
    if token.word in lexicon.SUFFIXES:
        return not first
    return (
        (token.word not in lexicon.TITLES or linked)  # "Court of Justice"
        and token.word not in lexicon.ARTICLES
        and (token.word not in lexicon.LINKS or (first and token.capital))
    )

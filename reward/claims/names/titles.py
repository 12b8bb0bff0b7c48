"""Titles between quotation marks or asterisks: "Beyond the Ice", *The Glass Harbour*.

Common words make titles, too, so the whole phrase is one name: all its words but articles and "of" must
stand in one place, in order. Which marks a text uses, and whether it uses any, says nothing.
"""

import re
from collections.abc import Iterator, Sequence

from reward.claims.names import lexicon
from reward.claims.names.model import Name, Tokens, tokens_of
from reward.claims.names.text import MOST_PLACES, Text

_QUOTED = re.compile(
    r"(?<![\w\"\u201c*])(?:"
    r"\"(?=[^\W_])([^\"\u201c\u201d\n]{5,80})\"(?![\w\"])"
    r"|[\u201c\u201e](?=[^\W_])([^\"\u201c\u201d\n]{5,80})[\u201d\u201c]"
    r"|\*(?=[^\W_])([^*\n]{5,80})(?<=[\w.!?])\*(?![\w*])"
    r"|\u2018(?=[^\W_])([^\u2018\u2019\"\n]{5,80})\u2019(?!\w)"
    r"|'(?=[A-Z])([^'\"\n]{5,80})'(?!\w))"
)
_TRAILING = " ,.;:!?"
_SILENT = lexicon.ARTICLES | lexicon.LINKS
_SMALL_INSIDE = lexicon.words("small_in_titles") | _SILENT
_MOST_WORDS = 12
_MOST_SILENT = 3  # articles and the like between two words
_LONGEST_GAP = 8  # characters
_LONGEST_ABBREVIATION = 4  # of a word whose point ends no sentence
_ARTICLE = re.compile(r"(?:the|an?) ", re.IGNORECASE)


def find_titles(text: str) -> Iterator[Name]:
    """The titles of a text: two or more telling words, all written with a capital."""
    for match in _QUOTED.finditer(text):
        start, end = match.span(match.lastindex or 0)
        end = start + len(text[start:end].rstrip(_TRAILING))
        if article := _ARTICLE.match(text, start, end):
            start = article.end()
        tokens = tokens_of(text, start, end)
        if _is_title(text, tokens):
            yield Name(start, end, text[start:end], title_words(tokens), title=True)


def _is_title(text: str, tokens: Tokens) -> bool:
    words = [(text[token.start], token.word) for token in tokens]
    num_large = sum(first.isupper() and word not in _SILENT for first, word in words)
    are_fit = all(first.isupper() or first.isdigit() or word in _SMALL_INSIDE for first, word in words)
    return are_fit and num_large >= 2 and len(words) <= _MOST_WORDS


def title_words(tokens: Tokens) -> tuple[str, ...]:
    """The telling words of a title."""
    return tuple(token.word for token in tokens if token.word not in _SILENT)


def find_title(text: Text, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The ranges of tokens that hold all words of a title, in order, with nothing but small words between."""
    for first in text.places.get(words[0], ())[:MOST_PLACES]:
        place = first
        for word in words[1:]:
            place = _next(text, place, word)
            if place < 0:
                break
        else:
            yield first, place + 1


def _next(text: Text, place: int, word: str) -> int:
    """The place of a word behind a place, if only small words and no new paragraph are between; else -1."""
    for at in range(place + 1, min(len(text.tokens), place + 2 + _MOST_SILENT)):
        gap = text.gap(at, -1) or ""
        ends = ". " in gap and len(text.tokens[at - 1].word) > _LONGEST_ABBREVIATION
        if ends or len(gap) > _LONGEST_GAP or "\n\n" in gap:
            return -1
        if text.tokens[at].word == word:
            return at
        if text.tokens[at].word not in _SILENT:
            return -1
    return -1

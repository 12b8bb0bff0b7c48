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
_MOST_SILENT = 12  # articles and the like between its words
_ENDS = re.compile(r"\w{5}[.!?] |\n\s*\n")  # of a sentence, behind no abbreviation, and of a paragraph
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
    most = len(words) + _MOST_SILENT
    for first in text.places.get(words[0], ())[:MOST_PLACES]:
        near = range(first, min(len(text.words), first + most))
        places = [place for place in near if text.words[place] not in _SILENT][: len(words)]
        if [text.words[place] for place in places] != [*words]:
            continue
        if not _ENDS.search(text.text, text.tokens.starts[first], text.tokens.starts[places[-1]]):
            yield first, places[-1] + 1

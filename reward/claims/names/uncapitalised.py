"""An answer without capitals, with those that its names would have: "simone delacour" is "Simone Delacour".

Small letters would hide names from the audit. In an answer whose only capitals begin sentences, a
nationality, a known city, a day and a month get theirs. The same holds for words that are no common English
ones and that neither documents nor query write small, if two are side by side or the answer is as short as a
name: one alone in a sentence may be a rare word. An answer in another language, or beside a document in one,
stays as it is.
"""

import re

from reward.claims.names.capitals import IsSmall
from reward.claims.names.index import index_names
from reward.claims.names.lexicon import (
    CALENDAR,
    CITIES,
    LINKS,
    NATIONS,
    TITLES,
    is_common,
    looks_common,
    stem,
)
from reward.claims.names.openings import is_foreign
from reward.types import RagQuery

_WORD = re.compile(r"(?<![\w'\u2019-])[^\W\d_]{4,}(?![\w\u2019-])")
_ENGLISH = re.compile(r"\b(?:the|and|with|were)\b", re.IGNORECASE)
_CAPITAL_INSIDE = re.compile(r"[\w,;:)'\u2019] ?(?!I\b)[A-Z]")
_MONTH_BEFORE = re.compile(r"\b(?:in|of|since|until|by|early|late|mid|last|next)[ -]$|\d[ ]?$")
_MONTHS_TOO = ("march", "may")
_MOST_SHORT = 3  # words: "in london"


def with_capitals(answer: str, query: RagQuery) -> str:
    """The answer with capitals where names would have them, if it has none inside; no character moves."""
    texts = [document.text for document in query.documents]
    if _CAPITAL_INSIDE.search(answer) or is_foreign(answer) or not all(map(_ENGLISH.search, texts)):
        return answer
    indexes = [index_names(text) for text in (*texts, *(one.title for one in query.documents), query.query)]

    def is_small(word: str) -> bool:
        return any(index.holds_small(word) for index in indexes)

    names = _rare_names(answer, is_small)

    def written(word: re.Match[str]) -> str:
        titled = word[0].title()
        is_name = len(titled) == len(word[0]) and (word.start() in names or _is_known(word, is_small))
        return titled if is_name else word[0]  # "ß" would become two letters

    return _WORD.sub(written, answer)


def _rare_names(answer: str, is_small: IsSmall) -> set[int]:
    """Where rare words begin that are names by their number."""
    rare = {word.start(): word.end() for word in _WORD.finditer(answer) if _is_rare(word[0], is_small)}
    is_short = len(answer.split()) <= _MOST_SHORT and not any(map(str.isdigit, answer))
    behind = {end + 1 for end in rare.values() if answer.startswith(" ", end)}
    return {start for start, end in rare.items() if is_short or start in behind or end + 1 in rare}


def _is_rare(word: str, is_small: IsSmall) -> bool:
    is_known = is_common(word) or looks_common(word) or word in LINKS or word in TITLES
    return word.islower() and not (is_known or is_small(word) or is_small(stem(word)))


def _is_known(found: re.Match[str], is_small: IsSmall) -> bool:
    """Whether a word is a nationality, a city, a day or a month."""
    word, start = found[0], found.start()
    if word in CALENDAR:
        before = found.string[max(0, start - 6) : start]
        return word not in _MONTHS_TOO or _MONTH_BEFORE.search(before) is not None
    return (word in NATIONS or (word in CITIES and not is_common(word))) and not is_small(word)

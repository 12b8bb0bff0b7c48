"""Where names stand in a text, by rules on capitals.

A name is a run of capitalised words, with what links them ("of", "de", "van"). A word that is capitalised
because a sentence, a heading or a quotation begins is a name only if it is no common English word, or if the
text or the documents show it so: capitalised inside a sentence, and never small. Months and weekdays are no
names; they belong to dates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reward.claims.names.model import Name, tokens_of
from reward.claims.names.words import (
    ABBREVIATIONS,
    ARTICLES,
    CALENDAR,
    LINKS,
    OF_HEADS,
    TITLES,
    fold,
    is_common,
)

_UPPER = "".join(c for c in map(chr, range(0x2000)) if c.isupper()).replace("-", "")
_CAPITAL = re.compile(
    rf"(?<![\w'\u2019])(?:[{_UPPER}](?:\.[{_UPPER}])+(?!\w)\.?|[a-z]{{0,2}}[{_UPPER}][\w]*(?:['\u2019`][^\W_]+)*(?:&\w+)*)"
)
_LINK = re.compile(
    r"(?: (?:of the|of|de la|de los|de|du|des|la|le|del|della|di|da|do|dos|van der|van den|van|von|der|den|ten|al|bin|ibn) |"
    r" |-|\u2010|\u2011| ?& |(?<=\.) ?)"
)
_FOR = re.compile(r" for ")
_START = re.compile(
    r"(?:^|[.!?:\n|*#>\u2022(\[\"\u201c\u2018{}=/]|(?<!\w)'|[\u2014\u2013]|(?:^|\s)-)[\s*_\"\u201c\u2018'(\[#>-]*$"
)
_POSSESSIVE = re.compile(r"(?:['\u2019`]s?)$")
_ARTICLE = re.compile(r"(?:the|an?) ", re.IGNORECASE)
_LOOK_BACK = 24


@dataclass(frozen=True, slots=True)
class Part:
    """A capitalised word."""

    start: int
    end: int
    text: str
    low: str  # folded
    first: bool  # capitalised, perhaps, only because something begins here


def find_names(text: str, is_name: Callable[[str], bool] = lambda word: False) -> list[Name]:
    """All names of a text, from left to right.

    Args:
        text: Any text.
        is_name: Whether a common word, in small letters, is known to be a name where it begins a sentence.
    """
    return [name for run in _runs(text) for name in _names(text, run, is_name)]


def _parts(text: str) -> Iterator[Part]:
    for match in _CAPITAL.finditer(text):
        written = match[0]
        low = fold(written)
        if low and low not in _PRONOUNS:
            start = match.start()
            yield Part(start, match.end(), written, low, _begins(text, start))


_PRONOUNS = frozenset(["i", "im", "ive", "ill", "id", "ok", "okay"])


def _begins(text: str, start: int) -> bool:
    """Whether a sentence, line, heading, bracket or quotation begins at a place."""
    if start == 0:
        return True
    if text[start - 1] == " " and text[max(0, start - 2)].isalnum():
        return False
    before = text[max(0, start - _LOOK_BACK) : start]
    found = _START.search(before)
    if not found or (start - len(before) > 0 and found.start() == 0):
        return bool(found)
    if before[found.start()] == ".":
        word = before[: found.start()].split()[-1:] or [""]
        return not (len(word[0]) == 1 and word[0].isupper()) and fold(word[0]) not in ABBREVIATIONS
    return True


def _runs(text: str) -> Iterator[list[Part]]:
    """Capitalised words that stand together as one name."""
    run: list[Part] = []
    for part in _parts(text):
        if run and not _continues(text, run[-1], part):
            yield run
            run = []
        run.append(part)
    if run:
        yield run


def _continues(text: str, before: Part, part: Part) -> bool:
    gap = text[before.end : part.start]
    if len(gap) > 9 or "\n" in gap or before.low in CALENDAR or part.low in CALENDAR:
        return False
    if before.text.endswith(("'s", "\u2019s")):
        return False
    if gap == " ":
        return not (before.text[-1] == "." and part.first)
    if gap == ". ":
        return len(before.low) == 1 or before.low in ABBREVIATIONS
    if gap == " for ":
        return before.low in OF_HEADS
    return bool(_LINK.fullmatch(gap))


def _names(text: str, run: list[Part], is_name: Callable[[str], bool]) -> Iterator[Name]:
    run = [part for part in run if part.low not in CALENDAR]
    while run and _only_begins(run, is_name):
        run = run[1:]
    while run and (
        run[0].low in ARTICLES
        or run[0].low in LINKS
        or (run[0].low in _SMALL_WORDS and not run[0].text.isupper())
    ):
        run = run[1:]
    if not run or all(part.low in TITLES for part in run):
        return
    if all(is_common(part.low) for part in run) and _is_heading(text, run, is_name):
        return
    yield name_of(text, run[0].start, run[-1].end)


_SMALL_WORDS = frozenset(
    ["in", "on", "at", "to", "by", "from", "with", "as", "it", "its", "this", "that", "these", "those", "he", "she", "they", "we", "you", "his", "her", "their", "our", "your", "if", "when", "while", "after", "before", "since", "but", "or", "nor", "so", "yet", "not", "no", "is", "was", "are", "were", "be", "has", "have", "had", "do", "does", "did", "what", "who", "which", "where", "how", "why", "there", "here", "also", "however", "although", "though", "because"]
)


def _only_begins(run: list[Part], is_name: Callable[[str], bool]) -> bool:
    """Whether the first word of a run has its capital from where it stands, and is no name."""
    first = run[0]
    return first.first and is_common(first.low) and not is_name(first.low) and not _is_acronym(first)


def _is_acronym(part: Part) -> bool:
    return 2 <= len(part.low) <= 5 and part.text.isupper() and not is_common(part.low)


def _is_heading(text: str, run: list[Part], is_name: Callable[[str], bool]) -> bool:
    """Whether common words are capitalised as a heading, a label or an emphasis, and not as a name."""
    if all(part.text.isupper() and len(part.text) > 1 for part in run):
        return True
    line = text.rfind("\n", 0, run[0].start) + 1
    before = text[max(line, run[0].start - 40) : run[0].start].split()
    small = any(word[:1].islower() and word not in LINKS for word in before[-3:])
    return not small


def name_of(text: str, start: int, end: int) -> Name:
    """The name that stands at a place of a text."""
    article = _ARTICLE.match(text, start, end)
    start = article.end() if article else start
    written = _POSSESSIVE.sub("", text[start:end].rstrip("."))
    tokens = tokens_of(text, start, start + len(written))
    words = [token.word for token in tokens]
    kept = tuple(w for w in words if w not in TITLES and w not in LINKS) or tuple(words)
    inverted = " of " in written and fold(written.split()[0]) in OF_HEADS
    return Name(start, start + len(written), written, kept, inverted)

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

from reward.claims.names.model import Name, name_of
from reward.claims.names.tables import words
from reward.claims.names.words import (
    ABBREVIATIONS,
    CALENDAR,
    LINKS,
    OF_HEADS,
    PREFIXES,
    TITLES,
    fold,
    is_common,
    is_content,
    looks_common,
)

_UPPER = "".join(c for c in map(chr, range(0x2000)) if c.isupper()).replace("-", "")
_CAPITAL = re.compile(
    rf"(?<![\w'\u2019])(?:[{_UPPER}](?:\.[{_UPPER}])+(?!\w)\.?|[a-z]{{0,2}}[{_UPPER}][\w]*(?:['\u2019`][^\W_]+)*(?:&[{_UPPER}]\w*)*)"
)
_LINK = re.compile(
    r"(?: (?:of the|of|de la|de los|de|du|des|la|le|del|della|di|da|do|dos|van der|van den|van|von|der|den|ten|al|bin|ibn) |"
    r" |-|\u2010|\u2011| ?& |(?<=\.) ?)"
)
_FOR = re.compile(r" for ")
_START = re.compile(
    r"(?:^|[.!?:\n|*#>\u2022(\[\"\u201c\u2018{}=/]|(?<!\w)'|[\u2014\u2013]|(?:^|\s)[-+])[\s*_\"\u201c\u2018'(\[#>+-]*$"
)
_SMALL_BEHIND = re.compile(r"[.,]?[ ]?(?=[a-z])")
_LOOK_BACK = 24


@dataclass(slots=True)  # one for each capital: frozen ones take three times as long to make
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


_PRONOUNS = words("pronouns")
_EMPTY = words("empty")  # no name begins with one of these


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
        return (len(before.low) == 1 or before.low in ABBREVIATIONS) and not is_common(part.low)
    if gap == " for ":
        return before.low in OF_HEADS
    return bool(_LINK.fullmatch(gap))


def _names(text: str, run: list[Part], is_name: Callable[[str], bool]) -> Iterator[Name]:
    whole = run = [part for part in run if part.low not in CALENDAR]
    while run and (run[0].low in _EMPTY or _only_begins(run, is_name)):
        run = run[1:]
    if not run or all(is_common(part.low) for part in run):
        run = _common_name(text, whole)
    if run and not all(part.low in TITLES or len(part.low) == 1 for part in run):
        yield name_of(text, run[0].start, run[-1].end)


def _only_begins(run: list[Part], is_name: Callable[[str], bool]) -> bool:
    """Whether the first word of a run has its capital from where it stands, and is no name."""
    first = run[0]
    if not first.first or _is_acronym(first) or is_name(first.low):
        return False
    if first.low in PREFIXES and len(run) > 1 and run[1].start == first.end + 1:
        return False  # "South Korea"
    return is_common(first.low) or (len(run) == 1 and looks_common(first.low))


def _is_acronym(part: Part) -> bool:
    return 2 <= len(part.low) <= 5 and part.text.isupper() and not is_common(part.low)


def _common_name(text: str, run: list[Part]) -> list[Part]:
    """The name that common words make ("White House"): none in a heading or for one word that begins a
    sentence.
    """
    while run and (run[0].low in _EMPTY or (run[0].first and not is_content(run[0].low))):
        run = run[1:]
    if not run or (len(run) == 1 and run[0].first) or all(p.text.isupper() and len(p.text) > 1 for p in run):
        return []
    return run if _in_prose(text, run) else []


def _in_prose(text: str, run: list[Part]) -> bool:
    """Whether a word beside a run is written small, so that its capitals are not those of a heading."""
    line = text.rfind("\n", 0, run[0].start) + 1
    before = text[max(line, run[0].start - 40) : run[0].start].split()[-3:]
    behind = _SMALL_BEHIND.match(text, run[-1].end)
    return bool(behind) or any(word[:1].islower() and word not in LINKS for word in before)

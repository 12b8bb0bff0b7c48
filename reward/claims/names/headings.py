"""Headings and labels of markdown, whose capitals are no sign of a name.

"## Baggage Rules" and "**Cabin Bags:**" name nothing if all their words are ordinary ones: common words,
those of a table, and those that stand written small in the documents. "**Paris Hotels**" still names Paris.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from reward.claims.names.tables import words
from reward.claims.names.words import LINKS, is_common, stem

IsSmall = Callable[[str], bool]  # whether the documents write a word small
HEADING_MARKS = ("#", "**", "__")
_ORDINARY = words("ordinary")
_HEAD = re.compile(r"(?:^|\n)[ \t>]*#{1,6} [^\n]*$")
_BOLD = re.compile(r"(?:^|[\n.!?:;#>\u2022-]|\d\.)[ \t#>]*(?:[-*+\u2022][ ]+)?(?:\*\*|__)[^*_\n]*$")
_LOOK_BACK = 120  # characters


def nowhere_small(word: str) -> bool:
    """What a caller passes who knows no documents."""
    return False


def is_ordinary(word: str, is_small: IsSmall) -> bool:
    """Whether a folded word is an everyday word, or the documents write it small."""
    single = stem(word)
    return (
        is_common(word)
        or word in LINKS
        or word.isdigit()
        or not _ORDINARY.isdisjoint((word, single, word[:-2] if word.endswith("es") else single))
        or is_small(word)
    )


def in_heading(text: str, start: int) -> bool:
    """Whether a place is in a heading, or in a bold label that begins a line or a sentence."""
    before = text[max(0, start - _LOOK_BACK) : start]
    if not any(mark in before for mark in HEADING_MARKS):
        return False
    return bool(_HEAD.search(before) or _BOLD.search(before))

"""Where a number can begin: at a digit, or at a word that a number in words can begin with.

Looking each word of a text up in a set is many times as fast as trying a pattern of all number words at each
character; the pattern is tried only where a word is one of the set.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product

from reward.claims.numbers.amounts import ABOUT, DECADE_WORDS, DECADES, JOINED, MULTIPLES
from reward.claims.numbers.digits import VULGAR
from reward.claims.numbers.foreign import SURE
from reward.claims.numbers.roman import NUMERALS, ROMAN, WAR
from reward.claims.numbers.vocabulary import either
from reward.claims.numbers.words import FIRST_WORDS, STARTS

DIGITS = frozenset((*"0123456789", *VULGAR))
_DIGIT = f"[0-9{''.join(VULGAR)}]"
_START = re.compile(_DIGIT)
_DIGIT_OR_WORD = re.compile(rf"{_DIGIT}|[^\W\d_{''.join(VULGAR)}]+")
_DIGITS_OR_WORD = re.compile(r"[0-9]+|[^\W\d_]+")
_FROM_WORD = re.compile(
    rf"""
    (?<![^\W_]) (?: (?P<time>noon|midday|midnight)(?![^\W_])
      | (?P<past>(?:half|(?:a[ ])?quarter)(?=[ ](?:past|to|after)[ ]))
      | (?P<article>an?)(?=[ ](?:decade|century|fortnight|hour|minute|day|week|month|year|mile)(?![^\W_]))
      | (?P<war>{WAR}) | (?P<about>{ABOUT}) | (?P<decade>{DECADES}) | {STARTS}
      | (?P<multiple>{either(MULTIPLES)}(?![^\W_])) | (?P<joined>{either(JOINED)}(?![^\W_]))
      | (?P<roman>{ROMAN}) )
    """,
    re.VERBOSE,  # of a text in lower case: three times as fast as without regard to case
)
_FIRST = frozenset({
    *DIGITS, *FIRST_WORDS, *MULTIPLES, *DECADE_WORDS, *JOINED, "noon", "midday", "midnight",
    "first", "second", "third", "world", "couple", "some", "hundred", "thousand", "dozen",
    *("ww" + place for place in ("1", "2", "3", "i", "ii", "iii")), "ww",
    *(written.lower() + ending for written, ending in product(NUMERALS, ("", "th", "e"))),
})  # fmt: skip
_COUNTED = _FIRST.union(SURE) - {"a", "an", "some"}


@lru_cache(maxsize=256)
def num_starts(text: str) -> int:
    """About how many numbers a text holds, counted fast: runs of digits, and words that can begin one."""
    tokens = _DIGITS_OR_WORD.findall(text.lower())
    return sum(token in _COUNTED or token[0] in DIGITS for token in tokens)


def next_start(lowered: str, place: int, *, words: bool) -> re.Match[str] | None:
    """The next place from which a number may be read: one digit, or the words that begin it, by groups.

    Args:
        lowered: Plain text in lower case.
        place: Where to begin.
        words: Whether numbers in words are looked for, too.
    """
    if not words:
        return _START.search(lowered, place)
    for token in _DIGIT_OR_WORD.finditer(lowered, place):
        if (word := token[0]) in _FIRST:
            if word in DIGITS:
                return token
            if start := _FROM_WORD.match(lowered, token.start()):
                return start
    return None

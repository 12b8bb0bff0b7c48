"""Where a number can begin: at a digit, or at a word that a number in words can begin with.

The pattern of all number words is tried only where a word of the text is one that a number can begin with,
which is many times as fast as trying it at each character.
"""

import re
from collections import Counter
from functools import lru_cache
from itertools import product

from reward.claims.numbers.amounts import ABOUT, DECADE_WORDS, DECADES, JOINED, MULTIPLES
from reward.claims.numbers.digits import VULGAR
from reward.claims.numbers.foreign import SURE, compound_of
from reward.claims.numbers.roman import NUMERALS, ROMAN, WAR
from reward.claims.numbers.vocabulary import BEGIN, END, TABLES, either
from reward.claims.numbers.words import FIRST_WORDS, STARTS
from reward.claims.text import words_in

DIGITS = frozenset((*"0123456789", *VULGAR))
_DIGIT = f"[0-9{''.join(VULGAR)}]"
_START = re.compile(_DIGIT)
_DIGITS_OR_WORD = re.compile(rf"[0-9]+|[{''.join(VULGAR)}]|[^\W\d_{''.join(VULGAR)}]+")
_FROM_WORD = re.compile(
    rf"""
    {BEGIN} (?: (?P<time>noon|midday|midnight){END}
      | (?P<past>(?:half(?:[ ]an[ ]hour)?|(?:a[ ])?quarter(?:[ ]of[ ]an[ ]hour)?
          |five|ten|twenty(?:-five)?|[a-z]+(?:-[a-z]+)?[ ]minutes?)
          (?=[ ](?:past|to|after|before[ ](?:noon|mid))[ ]?))
      | (?P<article>an?)(?=[ ](?:{either(TABLES["english"]["one_of"].split())}){END})
      | (?P<war>{WAR}) | (?P<about>{ABOUT}) | (?P<decade>{DECADES}) | {STARTS}
      | (?P<multiple>{either(MULTIPLES)}{END}) | (?P<joined>{either(JOINED)}{END})
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
def num_starts(text: str, more: frozenset[str] = frozenset()) -> int:
    """About how many numbers a text holds, counted fast: runs of digits, and words that can begin one.

    Args:
        text: Any text.
        more: Other words, in small letters, that are counted, too.
    """
    counted = _COUNTED | more if more else _COUNTED
    tokens = Counter(_DIGITS_OR_WORD.findall(text.lower()))
    starts = (one for one in tokens if one in counted or one[0] in DIGITS or compound_of(one))
    return sum(map(tokens.__getitem__, starts))


class Starts:
    """The places from which numbers may be read, from left to right.

    Args:
        low: Plain text in lower case.
        words: Whether numbers in words are looked for, too.
    """

    def __init__(self, low: str, *, words: bool) -> None:
        self._low = low
        self._digit = _START.search(low)
        self._words = iter(words_in(low).places(_FIRST) if words else ())
        self._word = next(self._words, None)

    def after(self, place: int) -> re.Match[str] | None:
        """The next from a place on: one digit, or the words that begin a number, by groups."""
        if self._digit and self._digit.start() < place:
            self._digit = _START.search(self._low, place)
        while (at := self._word) is not None and not (self._digit and self._digit.start() < at):
            self._word = next(self._words, None)
            if at >= place and (start := _FROM_WORD.match(self._low, at)):
                return start
        return self._digit

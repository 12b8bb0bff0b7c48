"""The text that numbers are searched in: ASCII digits, and no Markdown marks inside of a number.

Digits of all scripts and full-width signs become their ASCII ones, character by character. Emphasis and
code marks around a number or its unit ("**999** million", "`5` km") are taken out, and so are characters
that cannot be seen, such as marks of the writing direction; `Plain.original` leads back to the original
places. Marks that mean something else stay: "3*4", "a_1", "1_000", a bullet.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from reward.claims.letters import UNSEEN
from reward.claims.numbers.model import Number, changed

_MARKS = "*_`"
_RUN = re.compile(rf"(?P<marks>[*_`]+)|[{UNSEEN}]+")
_UNSEEN_ONE = re.compile(f"[{UNSEEN}]")
_LONGEST_RUN = 3  # of marks: "***"
_HYPHENS = (0x02D7, 0x2010, 0x2011, 0x2796, 0xFE63)  # drawn as a hyphen or a minus
_IDEOGRAPHS = 0x20000  # from here on no plane has digits


def _ascii_of() -> dict[int, str]:
    """Digits of every script, full-width letters and signs, hyphens, and the Arabic separators."""
    digits = {c: str(unicodedata.decimal(chr(c), "")) for c in range(128, _IDEOGRAPHS) if chr(c).isdecimal()}
    full_width = {c: chr(c - 0xFEE0) for c in range(0xFF01, 0xFF5F)}
    others = {0xFFE5: "¥", 0xFFE1: "£", 0x3000: " ", 0x066A: "%", 0x066B: ".", 0x066C: "\u202f"}
    return full_width | digits | others | dict.fromkeys(_HYPHENS, "-")


_ASCII = _ascii_of()
_TRANSLATED = frozenset(map(chr, _ASCII))
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


@dataclass(frozen=True)
class Plain:
    """A text ready for the search."""

    text: str
    kept: Sequence[int]  # where each kept piece begins in `text`; none where nothing was taken out
    taken: Sequence[int]  # how many characters were taken out before each of these pieces

    def original(self, number: Number) -> Number:
        """The number, and its parts, with their places in the original text."""
        if not self.kept:
            return number
        last = number.end - 1
        start = number.start + self.taken[bisect_right(self.kept, number.start) - 1]
        end = last + self.taken[bisect_right(self.kept, last) - 1] + 1
        return changed(number, start=start, end=end, parts=tuple(map(self.original, number.parts)))


@lru_cache(maxsize=8)
def plain_text(text: str) -> Plain:
    """Prepares a text, in time linear in its length."""
    same_length, is_unseen = text, False
    if not text.isascii():
        unusual = _BEYOND_ASCII.findall(text)
        same_length = text if _TRANSLATED.isdisjoint(unusual) else text.translate(_ASCII)
        is_unseen = _UNSEEN_ONE.search("".join(unusual)) is not None
    if not is_unseen and not any(mark in same_length for mark in _MARKS):
        return Plain(same_length, (), ())
    pieces: list[str] = []
    kept, taken = [0], [0]
    end = 0
    for run in _RUN.finditer(same_length):
        if run["marks"] is None or _is_emphasis(same_length, run.start(), run.end()):
            pieces.append(same_length[end : run.start()])
            end = run.end()
            kept.append(kept[-1] + len(pieces[-1]))
            taken.append(end - kept[-1])
    pieces.append(same_length[end:])
    return Plain("".join(pieces), kept, taken)


def _is_emphasis(text: str, start: int, end: int) -> bool:
    """Whether a run of marks opens or closes an emphasis that can stand in a number."""
    if end - start > _LONGEST_RUN:
        return False
    before, after = text[start - 1 : start], text[end : end + 1]
    if before.isalnum() and after.isalnum():
        return text[start:end] == "**" and before.isdigit() and after.isalpha()
    if before.isalnum() or before in ("%", ")"):
        return after + text[end + 1 : end + 2] not in (" *", " _", " `")  # "**5** **6**" are two numbers
    return bool(after.strip()) and (before != " " or text[start - 2 : start - 1] not in (*_MARKS,))

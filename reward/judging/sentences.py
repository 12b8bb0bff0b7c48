"""Where a sentence of plain text begins and ends: at a full stop or another end mark, or a line."""

from __future__ import annotations

import re

SENTENCE_END = re.compile(r"[.!?][\"')\]\u201d]?(?=\s)|[\u3002\uff01\uff1f]|\n")


def sentence_span(text: str, start: int, end: int, *, reach: int) -> tuple[int, int]:
    """The bounds of the sentence that holds `text[start:end]`, without white space at its ends.

    Args:
        text: The text.
        start: Where the held part begins.
        end: Where the held part ends.
        reach: Most characters to take on each side; a longer sentence is cut there.
    """
    low, high = max(0, start - reach), min(len(text), end + reach)
    for boundary in SENTENCE_END.finditer(text, low, start):
        low = boundary.end()
    after = SENTENCE_END.search(text, end, high)
    high = after.end() if after else high
    while low < start and text[low].isspace():
        low += 1
    while high > end and text[high - 1].isspace():
        high -= 1
    return low, high

"""Pieces of a text for people: where its marks are, and what is around a place in it."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from reward.claims.text import sentence_span
from reward.offline.rows import AuditRow
from reward.types import Verdict

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Mark:
    """What was said of a place of a response."""

    start: int
    end: int
    name: str  # a claim's state, "uncovered" or "human"
    claim: int | None = None  # its index


@dataclass(frozen=True)
class Segment:
    """A piece of a response and everything that was said about it."""

    text: str
    names: Sequence[str]  # of its marks, each once, those of claims first
    claim: int | None  # the first claim that is about it

    @property
    def state(self) -> str:
        """The state of that claim, "uncovered" or nothing."""
        return next((name for name in self.names if name != "human"), "")


def segment(text: str, marks: Sequence[Mark]) -> list[Segment]:
    """Cuts a text wherever a mark starts or ends; the pieces joined are the text."""
    places = (place for mark in marks if mark.start < mark.end for place in (mark.start, mark.end))
    cuts = sorted({0, len(text), *(min(len(text), place) for place in places)})
    by_claim = sorted(marks, key=lambda mark: math.inf if mark.claim is None else mark.claim)
    pieces = []
    for low, high in pairwise(cuts):
        here = [mark for mark in by_claim if mark.start <= low < mark.end]
        names = list(dict.fromkeys(mark.name for mark in here))
        pieces.append(Segment(text[low:high], names, here[0].claim if here else None))
    return pieces


def response_marks(row: AuditRow, verdict: Verdict) -> list[Mark]:
    """What an audit and people said of places in a response."""
    marks = [
        Mark(found.claim.span.start, found.claim.span.end, found.state.value, found.claim.index)
        for found in verdict.claims
        if found.claim.span
    ]
    marks += [Mark(span.start, span.end, "uncovered") for span in verdict.uncovered]
    return marks + [Mark(span.start, span.end, "human") for span in row.human_spans or ()]


def sentence(text: str, start: int, end: int, *, reach: int = 300) -> str:
    """The sentence that holds `text[start:end]`, verbatim, at most `reach` characters to each side."""
    low, high = sentence_span(text, start, end, reach=reach)
    return text[low:high]


def windows(num_chars: int, places: Sequence[tuple[int, int]], *, most: int) -> list[tuple[int, int]]:
    """Which parts of a text to show when it is longer than `most` characters: its head and around each place.

    The parts are in order, do not touch, and cover every place; together they may exceed `most`.
    """
    if num_chars <= most:
        return [(0, num_chars)]
    reach = most // (2 * (len(places) + 1))
    wanted = [(0, reach), *((max(0, a - reach), min(num_chars, b + reach)) for a, b in places)]
    merged: list[tuple[int, int]] = []
    for low, high in sorted(wanted):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def shortened(text: str, most: int) -> str:
    """A long name without its middle, in `most` letters at most."""
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}\u2026{text[-half:]}"


def printable(text: str) -> str:
    """A text that no terminal obeys: control characters and overrides of direction show as U+FFFD.

    The length stays, so that places in the text do, too.
    """
    return _CONTROL.sub("\ufffd", text)

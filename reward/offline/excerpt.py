"""Pieces of a text for people: where its marks lie, and what stands around a place in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from reward.claims.text import sentence_span
from reward.offline.rows import AuditRow
from reward.types import Verdict

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Segment:
    """A piece of a text and everything that was said about it."""

    text: str
    marks: tuple[str, ...]  # sorted, each once


def segment(text: str, marks: Iterable[tuple[int, int, str]]) -> list[Segment]:
    """Cuts a text wherever a mark (start, end, name) starts or ends; the pieces joined are the text."""
    inside = [(max(0, start), min(len(text), end), name) for start, end, name in marks]
    cuts = sorted(
        {0, len(text), *(place for start, end, _ in inside if start < end for place in (start, end))}
    )
    return [
        Segment(text[low:high], tuple(sorted({name for a, b, name in inside if a <= low and high <= b})))
        for low, high in pairwise(cuts)
    ]


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


def printable(text: str) -> str:
    """A text that no terminal obeys: control characters and overrides of direction show as U+FFFD.

    The length stays, so that places in the text do, too.
    """
    return _CONTROL.sub("\ufffd", text)


def response_marks(row: AuditRow, verdict: Verdict) -> list[tuple[int, int, str]]:
    """What an audit and people said of places in a response: a claim's state, "uncovered", "human"."""
    marks = [(c.claim.span.start, c.claim.span.end, c.state.value) for c in verdict.claims if c.claim.span]
    marks += [(span.start, span.end, "uncovered") for span in verdict.uncovered]
    return marks + [(span.start, span.end, "human") for span in row.human_spans or ()]

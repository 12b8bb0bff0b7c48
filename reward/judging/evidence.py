"""Where in the documents a Checker's evidence is, verbatim; none is believed that was invented.

Evidence is compared up to white space and found at its place, so that a reader can be shown it there. What
counts is the document's own number, name or date at that place: "raised 466" is no evidence for 466 in
"raised 466 million".
"""

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import Any, NamedTuple

from reward.claims.kind import ClaimKind
from reward.claims.text import is_whole
from reward.types import Answer, Document, DocumentSpan

_QUOTED = re.compile(
    r'"([^"]+)"|\u201c([^\u201c\u201d]+)\u201d|\u201e([^\u201c\u201d\u201e]+)[\u201c\u201d]'
    r"|\u00ab([^\u00ab\u00bb]+)\u00bb|\u300c([^\u300c\u300d]+)\u300d|`([^`]+)`"
)
# What a voter writes around the document's words.
_MARKS = " \t\n*_`'\"\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u2013\u2014\u2192->"
_ENDS = ".,;:\u2026"
_MOST_QUOTES = 4  # in the evidence of one answer
_MOST_PLACES = 64  # of one quotation in one document
_SPACE, _LONG_SPACE = re.compile(r"\s+"), re.compile(r"\s\s+")


def place_evidence(
    answer: Answer, kind: ClaimKind, mention: Any, within: Sequence[Document], *, required: bool
) -> Answer:
    """The answer with the place of its evidence; "cannot answer" if evidence is required and is nowhere.

    The evidence is each part of what the voter gave in quotation marks (the first four, and all from the
    first quote to the last, since a quotation may hold quotes of its own); without any, the whole of it. It
    may be between other marks and end with a stop that the document does not have there. A place
    where the document itself says what the voter answered is preferred to the first one, and is the only one
    that counts when evidence is required. That an answer without it counts against the claim, and not as an
    unreadable vote, matters in training: an unreadable vote leaves the answer unscored, and a Checker that
    invents evidence would shield the Solver. `mention` is what the voter answered, in the terms of the claim.
    """
    first: DocumentSpan | None = None
    for text, start, end, place in _places(answer.evidence, within):
        stated = kind.stated(text, start, end, mention)
        if stated is not None:
            says = text[stated.start : stated.end]
            return answer.model_copy(update={"evidence_at": place, "evidence_says": says})
        first = first or place
    if required:
        return answer.model_copy(update={"value": None, "unproven": answer.value})
    return answer.model_copy(update={"evidence_at": first})


def _places(evidence: str, within: Sequence[Document]) -> Iterator[tuple[str, int, int, DocumentSpan | None]]:
    """Where texts hold the evidence, and then where titles do, which voters are shown, too.

    A place in a title is none in a document's text.
    """
    together = list(product(_quotations(evidence), _flattened(tuple(within))))
    for quote, (document, text, _) in together:
        for start, end in _places_of(quote, text):
            place = DocumentSpan(document=document.id, start=start, end=end)
            yield document.text, start, end, place
    for quote, (document, _, title) in together:
        for start, end in _places_of(quote, title):
            yield document.title, start, end, None


class _Flat(NamedTuple):
    """A text with one space for each run of white space, in which a quotation is found in linear time."""

    text: str
    original: str
    starts: list[int]  # in the flat text, rising: from here on
    shifts: list[int]  # the original's places are so much further on


@lru_cache(maxsize=4)  # of the audit at hand: its claims and voters quote the same documents
def _flattened(documents: tuple[Document, ...]) -> list[tuple[Document, _Flat, _Flat]]:
    return [(one, _flat(one.text), _flat(one.title)) for one in documents]


def _flat(text: str) -> _Flat:
    starts, shifts = [0], [0]
    for run in _LONG_SPACE.finditer(text):
        shifts.append(shifts[-1] + len(run.group()) - 1)
        starts.append(run.end() - shifts[-1])
    return _Flat(_SPACE.sub(" ", text), text, starts, shifts)


def _places_of(quote: str, flat: _Flat) -> Iterator[tuple[int, int]]:
    found = (_original_span(flat, *span) for span in _found(" ".join(quote.split()), flat.text))
    return islice((span for span in found if is_whole(flat.original, *span)), _MOST_PLACES)


def _found(quote: str, text: str) -> Iterator[tuple[int, int]]:
    end = 0
    while (start := text.find(quote, end)) >= 0:
        end = start + len(quote)
        yield start, end


def _original_span(flat: _Flat, start: int, end: int) -> tuple[int, int]:
    first, last = (place + flat.shifts[bisect(flat.starts, place) - 1] for place in (start, end - 1))
    return first, last + 1


def _quotations(evidence: str) -> list[str]:
    quotes = ["".join(groups) for groups in _QUOTED.findall(evidence)][:_MOST_QUOTES]
    outer = evidence[evidence.find('"') + 1 : evidence.rfind('"')]
    candidates = [*quotes, outer] if len(quotes) > 1 else quotes or [evidence]
    bare = [candidate.strip(_MARKS).rstrip(_ENDS).strip(_MARKS) for candidate in candidates]
    return [quote for quote in dict.fromkeys((*candidates, *bare)) if quote.strip()]

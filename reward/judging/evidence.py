"""Where in the documents a Checker's evidence is, verbatim; none is believed that was invented.

Evidence is compared up to white space and found at its place in the original text, so that a reader can be
shown it there. What counts is the document's own number, name or date at that place: "raised 466" is no
evidence for 466 in "raised 466 million".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from reward.claims.kind import ClaimKind
from reward.claims.text import whole_places
from reward.types import Answer, Document, DocumentSpan

_QUOTED = re.compile(r'"([^"]+)"|\u201c([^\u201c\u201d]+)\u201d')
_WORD = re.compile(r"\S+")
_MOST_QUOTES = 4  # in the evidence of one answer
_MOST_PLACES = 64  # of one quotation in one document


@dataclass(frozen=True)
class Source:
    """A document that is searched for quotations."""

    document: Document
    flat: str  # the text with every run of white space as one space

    @cached_property
    def _words(self) -> tuple[list[int], list[int]]:
        """Where each word begins: in the flat text, and in the document's own."""
        flat, own, place = [], [], 0
        for word in _WORD.finditer(self.document.text):
            flat.append(place)
            own.append(word.start())
            place += word.end() - word.start() + 1
        return flat, own

    def span(self, start: int, end: int) -> DocumentSpan:
        """The place in the document's own text of `flat[start:end]`, which has no space at its ends."""
        return DocumentSpan(document=self.document.id, start=self._own(start), end=self._own(end - 1) + 1)

    @cached_property
    def _indent(self) -> int | None:
        """White space before the text, where there is no other that `flat` has not; None otherwise."""
        text = self.document.text
        return len(text) - len(text.lstrip()) if text.strip() == self.flat else None

    def _own(self, place: int) -> int:
        if self._indent is not None:  # mostly, and then no word need be looked at
            return place + self._indent
        flat, own = self._words
        word = bisect_right(flat, place) - 1
        return own[word] + place - flat[word]


@dataclass(frozen=True)
class Evidence:
    """Where a document holds what was quoted, and what it says there."""

    at: DocumentSpan
    stated: str = ""  # the document's own mention at that place, as it is written


def sources(documents: Sequence[Document]) -> list[Source]:
    """The documents made ready for many searches."""
    return [Source(document, " ".join(document.text.split())) for document in documents]


def find_evidence(evidence: str, within: Sequence[Source]) -> Evidence | None:
    """Where a document first holds the evidence verbatim, up to white space; None when none does.

    The evidence is each part of it in double quotes (the first four, and all from the first quote to the
    last, since a quotation may hold quotes of its own); without quotes, the whole of it.

    Args:
        evidence: What the Checker gave as evidence.
        within: The documents, as `sources` gives them.
    """
    places = (Evidence(span) for _, span in _places(evidence, within))
    return next(places, None)


def find_stated(evidence: str, within: Sequence[Source], kind: ClaimKind, answer: Any) -> Evidence | None:
    """Where the evidence is and the document itself says there what the voter answered.

    Args:
        evidence: What the Checker gave as evidence.
        within: The documents, as `sources` gives them.
        kind: The kind of the claim.
        answer: The voter's answer, in the terms of the claim.
    """
    for source, span in _places(evidence, within):
        text = source.document.text
        stated = kind.stated(text, span.start, span.end, answer)
        if stated is not None:
            return Evidence(span, text[stated.start : stated.end])
    return None


def place_evidence(
    answer: Answer, kind: ClaimKind, mention: Any, within: Sequence[Source], *, required: bool
) -> Answer:
    """The answer with the place of its evidence; "cannot answer" if evidence is required and is nowhere.

    A quotation at a place that states the answer is preferred, and is the only one that counts when evidence
    is required. That an answer without it counts against the claim, and not as an unreadable vote, matters in
    training: an unreadable vote leaves the answer unscored, and a Checker that invents evidence would shield
    the Solver.
    """
    found = find_stated(answer.evidence, within, kind, mention)
    if found is None and required:
        return answer.model_copy(update={"value": None, "unproven": answer.value})
    found = found or find_evidence(answer.evidence, within)
    if found is None:
        return answer
    return answer.model_copy(update={"evidence_at": found.at, "evidence_says": found.stated})


def _places(evidence: str, within: Sequence[Source]) -> Iterator[tuple[Source, DocumentSpan]]:
    for quote in _quotations(evidence):
        for source in within:
            for start in islice(whole_places(quote, source.flat), _MOST_PLACES):
                yield source, source.span(start, start + len(quote))


def _quotations(evidence: str) -> list[str]:
    quotes = [first or second for first, second in _QUOTED.findall(evidence)][:_MOST_QUOTES]
    outer = evidence[evidence.find('"') + 1 : evidence.rfind('"')]
    candidates = [*quotes, outer] if len(quotes) > 1 else quotes
    flat = (" ".join(quote.split()) for quote in candidates or [evidence])
    return [quote for quote in flat if quote]

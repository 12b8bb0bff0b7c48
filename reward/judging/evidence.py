"""Where in the documents a Checker's evidence is, verbatim; none is believed that was invented.

Evidence is compared up to white space and found at its place, so that a reader can be shown it there. What
counts is the document's own number, name or date at that place: "raised 466" is no evidence for 466 in
"raised 466 million".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from reward.claims.kind import ClaimKind
from reward.claims.text import is_whole
from reward.types import Answer, Document, DocumentSpan

_QUOTED = re.compile(r'"([^"]+)"|\u201c([^\u201c\u201d]+)\u201d')
_MOST_QUOTES = 4  # in the evidence of one answer
_MOST_PLACES = 64  # of one quotation in one document


@dataclass(frozen=True)
class Evidence:
    """Where a document holds what was quoted, and what it says there."""

    at: DocumentSpan
    stated: str = ""  # the document's own mention at that place, as it is written


def find_evidence(evidence: str, within: Sequence[Document]) -> Evidence | None:
    """Where a document first holds the evidence verbatim, up to white space; None when none does.

    The evidence is each part of it in double quotes (the first four, and all from the first quote to the
    last, since a quotation may hold quotes of its own); without quotes, the whole of it.

    Args:
        evidence: What the Checker gave as evidence.
        within: The documents.
    """
    places = (Evidence(span) for _, span in _places(evidence, within))
    return next(places, None)


def find_stated(evidence: str, within: Sequence[Document], kind: ClaimKind, answer: Any) -> Evidence | None:
    """Where the evidence is and the document itself says there what the voter answered.

    Args:
        evidence: What the Checker gave as evidence.
        within: The documents.
        kind: The kind of the claim.
        answer: The voter's answer, in the terms of the claim.
    """
    for text, span in _places(evidence, within):
        stated = kind.stated(text, span.start, span.end, answer)
        if stated is not None:
            return Evidence(span, text[stated.start : stated.end])
    return None


def place_evidence(
    answer: Answer, kind: ClaimKind, mention: Any, within: Sequence[Document], *, required: bool
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


def _places(evidence: str, within: Sequence[Document]) -> Iterator[tuple[str, DocumentSpan]]:
    """Where the evidence is, with the text of the document that holds it."""
    for quote in _quotations(evidence):
        pattern = re.compile(r"\s++".join(map(re.escape, quote.split())))
        for document in within:
            found = (match.span() for match in pattern.finditer(document.text))
            whole = (span for span in found if is_whole(document.text, *span))
            for start, end in islice(whole, _MOST_PLACES):
                yield document.text, DocumentSpan(document=document.id, start=start, end=end)


def _quotations(evidence: str) -> list[str]:
    quotes = [first or second for first, second in _QUOTED.findall(evidence)][:_MOST_QUOTES]
    outer = evidence[evidence.find('"') + 1 : evidence.rfind('"')]
    candidates = [*quotes, outer] if len(quotes) > 1 else quotes
    return [quote for quote in candidates or [evidence] if quote.strip()]

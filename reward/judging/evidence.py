"""Where in the documents a Checker's evidence is, verbatim; none is believed that was invented.

Evidence is compared up to white space and found at its place, so that a reader can be shown it there. What
counts is the document's own number, name or date at that place: "raised 466" is no evidence for 466 in
"raised 466 million".
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

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
    together = list(product(_quotations(evidence), within))
    for quote, document in together:
        for start, end in _places_of(quote, document.text):
            place = DocumentSpan(document=document.id, start=start, end=end)
            yield document.text, start, end, place
    for quote, document in together:
        for start, end in _places_of(quote, document.title):
            yield document.title, start, end, None


def _places_of(quote: str, text: str) -> Iterator[tuple[int, int]]:
    pattern = re.compile(r"\s++".join(map(re.escape, quote.split())))
    found = (match.span() for match in pattern.finditer(text))
    return islice((span for span in found if is_whole(text, *span)), _MOST_PLACES)


def _quotations(evidence: str) -> list[str]:
    quotes = ["".join(groups) for groups in _QUOTED.findall(evidence)][:_MOST_QUOTES]
    outer = evidence[evidence.find('"') + 1 : evidence.rfind('"')]
    candidates = [*quotes, outer] if len(quotes) > 1 else quotes or [evidence]
    bare = [candidate.strip(_MARKS).rstrip(_ENDS).strip(_MARKS) for candidate in candidates]
    return [quote for quote in dict.fromkeys((*candidates, *bare)) if quote.strip()]

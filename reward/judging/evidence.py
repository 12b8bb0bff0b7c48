"""Where in the documents a Checker's evidence stands, verbatim; none is believed that was invented.

Evidence is compared up to white space and found at its place in the original text, so that a reader can be
shown it there. It must begin and end where words and numbers do: "raised 46" is no part of "raised 466".
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from reward.claims.numbers import Number, find_numbers
from reward.judging.readings import says
from reward.types import Answer, Document, DocumentSpan

_QUOTED = re.compile(r'"([^"]+)"|\u201c([^\u201c\u201d]+)\u201d')
_WORD = re.compile(r"\S+")
_MOST_QUOTES = 4  # in the evidence of one answer
_LONGEST_KEPT = 2000  # characters of a quotation whose numbers are remembered


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


def sources(documents: Sequence[Document]) -> list[Source]:
    """The documents made ready for many searches."""
    return [Source(document, " ".join(document.text.split())) for document in documents]


def find_evidence(
    evidence: str, within: Sequence[Source], number: Number | None = None
) -> DocumentSpan | None:
    """Where a document first holds the evidence verbatim, up to white space; None when none does.

    The evidence is each part of it in double quotes (the first four, and all from the first quote to the
    last, since a quotation may hold quotes of its own); without quotes, the whole of it.

    Args:
        evidence: What the Checker gave as evidence.
        within: The documents, as `sources` gives them.
        number: When given, the same quotation must hold this number, in digits or in words.
    """
    for quote in _quotations(evidence):
        if number is not None and not holds(quote, number):
            continue
        for source in within:
            start = find_whole(quote, source.flat)
            if start is not None:
                return source.span(start, start + len(quote))
    return None


def find_whole(quote: str, text: str) -> int | None:
    """Where a text first holds a quotation (not empty) that cuts no word and no number at its ends."""
    start = text.find(quote)
    while start >= 0:
        if _is_whole(text, start, start + len(quote)):
            return start
        start = text.find(quote, start + len(quote))
    return None


def holds(text: str, number: Number) -> bool:
    """Whether a text holds a number, alone or as a part of a range, a date or a ratio."""
    found = _numbers_in(text) if len(text) <= _LONGEST_KEPT else find_numbers(text, enumerators=True)
    return any(says(number, other) for whole in found for other in {whole, *whole.atoms})


@lru_cache(maxsize=512)  # one quotation is asked about when it is placed and again when votes are counted
def _numbers_in(text: str) -> tuple[Number, ...]:
    return tuple(find_numbers(text, enumerators=True))


def place_evidence(answer: Answer, number: Number, within: Sequence[Source], *, required: bool) -> Answer:
    """The answer with the place of its evidence; "cannot answer" if evidence is required and stands nowhere.

    A quotation that holds the answer's number is preferred, and is the only one that counts when evidence is
    required. That an answer without it counts against the claim, and not as an unreadable vote, matters in
    training: an unreadable vote leaves the answer unscored, and a Checker that invents evidence would shield
    the Solver.
    """
    place = find_evidence(answer.evidence, within, number)
    if place is None and required:
        return answer.model_copy(update={"value": None})
    return answer.model_copy(update={"evidence_at": place or find_evidence(answer.evidence, within)})


def _quotations(evidence: str) -> list[str]:
    quotes = [first or second for first, second in _QUOTED.findall(evidence)][:_MOST_QUOTES]
    outer = evidence[evidence.find('"') + 1 : evidence.rfind('"')]
    candidates = [*quotes, outer] if len(quotes) > 1 else quotes
    flat = (" ".join(quote.split()) for quote in candidates or [evidence])
    return [quote for quote in flat if quote]


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]` cuts no word and no number at its ends."""
    before, first, last, after = (
        text[max(0, start - 2) : start],
        text[start],
        text[end - 1],
        text[end : end + 2],
    )
    cuts_word = (first.isalnum() and before[-1:].isalnum()) or (last.isalnum() and after[:1].isalnum())
    inside_first = first.isdigit() and (
        before[-1:] == "-" or (before[:1].isdigit() and before[1:] in (".", ","))
    )
    inside_last = last.isdigit() and after[:1] in (".", ",") and after[1:].isdigit()
    return not (cuts_word or inside_first or inside_last)

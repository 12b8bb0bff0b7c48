"""Where things stand: the numbers of a response that claims must cover, and evidence in the documents.

Coverage closes a way to be paid for silence: a number that no claim asks about is an unchecked number (the
published code lets it pass). Verbatim evidence closes another: a Checker that invents its evidence.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from reward.numbers import (
    Kind,
    Number,
    canonical,
    equal,
    find_number_words,
    find_numbers,
    parse_number,
    read_as,
)
from reward.parse import values_in
from reward.types import Claim, Document, RagQuery, Span

_PLACES = r"\d{1,3}(?:(?:,|[ \t](?:and|or|&))[ \t]?\d{1,3}|[-\u2013]\d{1,3})*"
_CITATION = re.compile(
    rf"(?:\b(?:document|doc|passage|source|reference)s?[ \t]{{0,2}}#?{_PLACES}|\[{_PLACES}\])(?!\w|[.,]\d)",
    re.IGNORECASE,
)
_LENGTH = re.compile(r"\b(\d{1,6})[ -]words?\b", re.IGNORECASE)
_OPENING = re.compile(r"\s{0,9}[^\n]{1,200}:[ \t]{0,9}(?=\n)")
_QUOTED = re.compile(r'"([^"]+)"|\u201c([^\u201c\u201d]+)\u201d')
_LONGEST_NAME = 64  # characters
_MOST_QUOTES = 4  # in the evidence of one answer
_MOST_NAMES = 256  # in one response; each is searched for in all documents


@dataclass(frozen=True)
class CoveredClaim:
    """A claim, with its span, and the number of the response that it is about."""

    claim: Claim
    number: Number


@dataclass(frozen=True)
class Coverage:
    """Which claims are about which numbers of a response."""

    claims: tuple[CoveredClaim, ...]  # numbered from 1 again
    uncovered: tuple[Span, ...]  # numbers without a claim, from left to right
    num_dropped: int  # claims about a number that does not stand in the response, or is already covered


def response_numbers(response: str, query: RagQuery) -> list[Number]:
    """The numbers of a response that must be checked.

    Left out are digits of names that stand in the query or its documents as they are ("COVID-19"), citations
    of its documents ("passage 2", "[1]") up to the number of documents, and the response's own length ("in 50
    words") where the query asks for it or an opening line with a colon says it. Any other digits must be
    checked, so that nothing is hidden by its looks.
    """
    names = _known_names(response, query)
    others = names | _citations(response, len(query.documents)) | _lengths(response, query)
    return [number for number in find_numbers(response) if number.start not in others]


def cover(numbers: Sequence[Number], claims: Sequence[Claim]) -> Coverage:
    """Gives each claim one number of the response, from left to right.

    A claim's bare number covers any number of that value, but first one of its own kind.

    Args:
        numbers: The numbers of the response that must be checked, from left to right.
        claims: The Proposer's claims.
    """
    free: dict[Decimal, dict[str, deque[Number]]] = {}  # by value, then by kind and unit
    for number in numbers:
        free.setdefault(number.value, {}).setdefault(canonical(number), deque()).append(number)
    covered: list[CoveredClaim] = []
    for claim in claims:
        taken = _take(claim, free)
        if taken is not None:
            span = Span(start=taken.start, end=taken.end)
            numbered = claim.model_copy(update={"index": len(covered) + 1, "span": span})
            covered.append(CoveredClaim(numbered, taken))
    left = [n for kinds in free.values() for same in kinds.values() for n in same]
    uncovered = tuple(Span(start=n.start, end=n.end) for n in sorted(left, key=lambda n: n.start))
    return Coverage(tuple(covered), uncovered, len(claims) - len(covered))


def blind_rounds(claims: Sequence[CoveredClaim]) -> list[list[CoveredClaim]]:
    """Splits claims so that no question stands beside a claim whose answer it gives away.

    "How many sat the exam in 2025?" must not be shown with "In which year was the exam?", whose claimed
    answer is 2025. Each round is one Checker prompt; nearly always one or two are enough.
    """
    rounds: list[tuple[list[CoveredClaim], set[Decimal], set[Decimal]]] = []
    for claim in claims:
        shown = values_in(claim.claim.question)
        fitting = (r for r in rounds if claim.number.value not in r[2] and not shown & r[1])
        members, answers, given = next(fitting, None) or ([], set(), set())
        if not members:
            rounds.append((members, answers, given))
        members.append(claim)
        answers.add(claim.number.value)
        given |= shown
    return [members for members, _, _ in rounds]


def find_evidence(evidence: str, documents: Sequence[Document], number: Number | None = None) -> str | None:
    """The id of the first document that holds the evidence verbatim, up to white space.

    The evidence is each part of it in double quotes (the first four); without quotes, the whole of it. It
    must begin and end where words and numbers of the document do: "raised 46" is no part of "raised 466".

    Args:
        evidence: What the Checker gave as evidence.
        documents: Documents as `flatten` returns them.
        number: When given, the same quotation must hold this number, in digits or in words.
    """
    quotes = [first or second for first, second in _QUOTED.findall(evidence)][:_MOST_QUOTES] or [evidence]
    for quote in (" ".join(quote.split()) for quote in quotes):
        if not quote or (number is not None and not _holds(quote, number)):
            continue
        for document in documents:
            if _stands_in(quote, document.text):
                return document.id
    return None


def flatten(documents: Sequence[Document]) -> list[Document]:
    """The documents with every run of white space as one space, made once for many searches."""
    return [d.model_copy(update={"text": " ".join(d.text.split())}) for d in documents]


def _take(claim: Claim, free: dict[Decimal, dict[str, deque[Number]]]) -> Number | None:
    """Takes out the number that a claim is about."""
    claimed = parse_number(claim.answer)
    kinds = free.get(claimed.value, {}) if claimed else {}
    same = kinds.get(canonical(claimed)) if claimed else None
    if not same and claimed and claimed.kind is Kind.PLAIN:
        same = min((others for others in kinds.values() if others), key=lambda o: o[0].start, default=None)
    return same.popleft() if same else None


def _lengths(response: str, query: RagQuery) -> set[int]:
    """Starts of numbers of words that speak of the response itself."""
    asked = {length[1] for length in _LENGTH.finditer(query.query)}
    opening = _OPENING.match(response)
    end = opening.end() if opening else 0
    return {m.start() for m in _LENGTH.finditer(response) if m[1] in asked or m.start() < end}


def _known_names(response: str, query: RagQuery) -> set[int]:
    """Starts of the digits of names that the query or a document holds, in any case."""
    named = [number for number in find_numbers(response) if number.kind is Kind.NAME]
    if not named:
        return set()
    texts = [query.query.casefold(), *(f"{d.title}\n{d.text}".casefold() for d in query.documents)]
    known: dict[str, bool] = {}
    for number in named:
        name = _name_around(response, number).casefold()
        if name and name not in known and len(known) < _MOST_NAMES:
            known[name] = any(_stands_in(name, text) for text in texts)
    return {n.start for n in named if known.get(_name_around(response, n).casefold(), False)}


def _citations(response: str, num_documents: int) -> set[int]:
    """Starts of the numbers that cite a document by its place."""
    starts = set()
    for citation in _CITATION.finditer(response):
        for digits in re.finditer(r"\d+", citation[0]):
            if 1 <= int(digits[0]) <= num_documents:
                starts.add(citation.start() + digits.start())
    return starts


def _name_around(text: str, number: Number) -> str:
    """The name that a number's digits belong to: "COVID-19", "T2" of "T2-weighted"; empty when too long."""
    start, end = _word_start(text, number.start), number.end
    if text[start - 1 : start] == "-":
        start = _word_start(text, start - 1)
    while end < len(text) and end - number.end <= _LONGEST_NAME and text[end].isalnum():
        end += 1
    return text[start:end] if end - start <= _LONGEST_NAME else ""


def _word_start(text: str, end: int) -> int:
    start = end
    while start > 0 and end - start <= _LONGEST_NAME and text[start - 1].isalnum():
        start -= 1
    return start


def _holds(quote: str, number: Number) -> bool:
    found = [*find_numbers(quote, enumerators=True), *find_number_words(quote)]
    return any(equal(read_as(number, other), other) for other in found)


def _stands_in(quote: str, text: str) -> bool:
    return any(_is_whole(text, start, start + len(quote)) for start in _occurrences(quote, text))


def _occurrences(quote: str, text: str) -> Iterator[int]:
    start = text.find(quote)
    while start >= 0:
        yield start
        start = text.find(quote, start + len(quote))


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

"""The audit without a model: is each number of the response written anywhere in its documents?

The embedded default of `march audit`, and the baseline that a model has to beat. It sees invented numbers. It
cannot see a true number in a wrong place (what the July picnic raised, told of the May picnic), and it
refutes numbers that the response works out itself, such as a sum.

Numbers match by typed equality, where a number that states no kind matches any: a document's `"price": 20`
supports "$20", and "12%" supports a bare 12, but "$12" never supports "12%". Number words of the documents
count ("three" supports 3), and so do their clock times in twelve hours ("17:30" supports "5:30 pm"); number
words of the response are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from reward.auditor import AuditFailure, check_bounds, no_claims
from reward.config import AuditConfig
from reward.grounding import response_numbers
from reward.numbers import Kind, Number, equal, find_number_words, find_numbers
from reward.types import Answer, Claim, ClaimVerdict, Document, Outcome, RagQuery, Span, Verdict
from reward.vote import Reason, judge, vote

_SENTENCE_END = re.compile(r"[.!?][\"')\]]?(?=\s)|\n")
_CLOCK = re.compile(r"\b(\d{1,2}):\d{1,2}\b")
_HALF_DAY = re.compile(r"(?::\d{2})?[ \u00a0\u202f]?[ap]\.?m\b", re.IGNORECASE)
_REACH = 300  # most characters of a sentence shown on each side of its number


@dataclass(frozen=True)
class _Place:
    number: Number
    document: Document


def lexical_audit(query: RagQuery, response: str, config: AuditConfig) -> Verdict:
    """Looks every number of a response up in the documents of its query; needs no model.

    A claim is SUPPORTED, with the sentence of the first document that holds its number as evidence, or
    NOT_IN_DOCUMENTS. The bounds, rewards and outcomes are those of `reward.auditor.audit`.
    """
    try:
        check_bounds(query, response, config)
        numbers = response_numbers(response, query)
        if len(numbers) > config.max_claims:
            detail = f"{len(numbers)} numbers exceed max_claims: {config.max_claims}"
            raise AuditFailure(Reason.TOO_MANY_CLAIMS, detail)
    except AuditFailure as error:
        return Verdict(
            id=query.id, outcome=Outcome.UNSCORED, reward=None, reason=error.reason, detail=error.detail
        )
    if not numbers:
        return no_claims(query, config)
    places, hours = _places(query.documents), _hours(query.documents)
    claims = [_claim_verdict(i, number, response, places, hours) for i, number in enumerate(numbers, start=1)]
    judgement = judge(claims, num_uncovered=0, config=config)
    return Verdict(
        id=query.id,
        outcome=judgement.outcome,
        reward=judgement.reward,
        reason=judgement.reason,
        claims=tuple(claims),
        num_numbers=len(numbers),
        num_voters=1,
    )


def sentence_around(text: str, start: int, end: int) -> str:
    """The sentence that holds `text[start:end]`, verbatim, within a bound on each side."""
    low, high = max(0, start - _REACH), min(len(text), end + _REACH)
    for boundary in _SENTENCE_END.finditer(text, low, start):
        low = boundary.end()
    after = _SENTENCE_END.search(text, end, high)
    return text[low : after.end() if after else high].strip()


def _places(documents: Sequence[Document]) -> dict[Decimal, list[_Place]]:
    """Where each value stands in the documents, in their order."""
    places: dict[Decimal, list[_Place]] = {}
    for document in documents:
        found = [*find_numbers(document.text, enumerators=True), *find_number_words(document.text)]
        for number in sorted(found, key=lambda n: n.start):
            places.setdefault(number.value, []).append(_Place(number, document))
    return places


def _hours(documents: Sequence[Document]) -> dict[Decimal, _Place]:
    """The hours of the documents' clock times as a twelve-hour clock says them."""
    hours: dict[Decimal, _Place] = {}
    for document in documents:
        for time in _CLOCK.finditer(document.text):
            hour = Decimal(int(time[1]) % 12 or 12)
            hours.setdefault(hour, _Place(Number(hour, start=time.start(), end=time.end()), document))
    return hours


def _matches(claimed: Number, found: Number) -> bool:
    unstated = (Kind.PLAIN, Kind.NAME)
    return claimed.value == found.value and (
        equal(claimed, found) or claimed.kind in unstated or found.kind in unstated
    )


def _claim_verdict(
    index: int,
    number: Number,
    response: str,
    places: dict[Decimal, list[_Place]],
    hours: dict[Decimal, _Place],
) -> ClaimVerdict:
    written = response[number.start : number.end]
    claim = Claim(
        index=index,
        question=f'Where do the documents say "{sentence_around(response, number.start, number.end)}"?',
        answer=written,
        span=Span(start=number.start, end=number.end),
    )
    candidates = [p for p in places.get(number.value, []) if _matches(number, p.number)]
    place = next((p for p in candidates if equal(number, p.number)), candidates[0] if candidates else None)
    if place is None and _HALF_DAY.match(response, number.end):
        place = hours.get(number.value)
    if place is None:
        answer = Answer(value=None)
    else:
        evidence = sentence_around(place.document.text, place.number.start, place.number.end)
        answer = Answer(value=written, evidence=evidence, evidence_document=place.document.id)
    return vote(claim, [answer], num_valid_needed=1, number=number)

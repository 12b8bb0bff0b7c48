"""The audit without a model: is each number of the response written in its documents, for what it is said of?

The embedded default of `march audit`, and the baseline that a model has to beat (`facts.py` asks the
questions). It sees invented numbers, hours on the wrong day and ratings of the wrong thing. It cannot see a
true number in a wrong place of running text (what the July picnic raised, told of the May picnic), and it
refutes numbers that the response works out itself, such as a sum.

Numbers in words are checked from a hundred on: smaller ones ("three layers", "two reviewers") mostly count
what the response itself lists. Shares and multiples are checked too ("two-thirds", "half the people",
"twice as many", "tripled"), but not how often something happened ("twice"), nor amounts without a value
("several hundred"): those are mostly the response's own words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reward.auditor import AuditFailure, check_bounds, no_claims, unscored
from reward.claims.numbers import Kind, Number
from reward.config import AuditConfig
from reward.judging.grounding import response_numbers
from reward.judging.sentences import sentence_span
from reward.judging.vote import CANNOT_ANSWER, Reason, judge
from reward.lexical.facts import Facts, Found
from reward.provenance import provenance_of
from reward.roles.thought import answer_start, moved
from reward.types import (
    Answer,
    Claim,
    ClaimSource,
    ClaimState,
    ClaimVerdict,
    DocumentSpan,
    RagQuery,
    Span,
    Verdict,
)

_REACH = 300  # most characters of a sentence shown on each side of its number
_PLACE = re.compile(
    r"\b(?:step|part|tip|method|option|review|reason|example)s?[ \t]#?$", re.IGNORECASE
)  # of the response itself
_KEY = re.compile(r"""["'][\w ]{1,64}["']\s?:""")
_VALUE_END = re.compile(r"""(?<=["'])[,}\]]|[.!?](?=\s)|[,}\]](?=\s?["'}\]]|$)""")
_LONGEST_PLACE = 12  # characters
_SMALL_WORD = 100
_MULTIPLE = re.compile(r"(?:fold|(?:doubl|tripl|trebl|quadrupl|quintupl|halv)(?:e[ds]?|ing))$", re.IGNORECASE)
_OF_SOMETHING = re.compile(
    r"[ \t](?:as|the|its|their|his|her|what|that|more|larger|higher|bigger|greater|faster|longer|older)\b"
)


def lexical_audit(query: RagQuery, response: str, config: AuditConfig) -> Verdict:
    """Looks every number of a response up in the documents of its query; needs no model.

    The bounds, rewards and outcomes are those of `reward.auditor.audit`. A claim is SUPPORTED, with the
    sentence of the document that holds its number as evidence, CONTRADICTED or NOT_IN_DOCUMENTS.
    """
    start = answer_start(response, config)
    return moved(_looked_up(query, response[start:], config), start)


def _looked_up(query: RagQuery, response: str, config: AuditConfig) -> Verdict:
    provenance = provenance_of(config, auditor="lexical")
    try:
        check_bounds(query, response, config)
        numbers = claimed_numbers(query, response, words=config.number_words)
        if len(numbers) > config.max_claims:
            detail = f"{len(numbers)} numbers exceed max_claims: {config.max_claims}"
            raise AuditFailure(Reason.TOO_MANY_CLAIMS, detail)
    except AuditFailure as error:
        return unscored(query, error, provenance=provenance)
    if not numbers:
        return no_claims(query, config, provenance=provenance)
    claims = _claims(query, response, numbers, config)
    judgement = judge(claims, num_uncovered=0, config=config)
    return Verdict(
        id=query.id,
        outcome=judgement.outcome,
        reward=judgement.reward,
        reason=judgement.reason,
        claims=tuple(claims),
        num_numbers=len(numbers),
        num_voters=1,
        provenance=provenance,
    )


def claimed_numbers(query: RagQuery, response: str, *, words: bool = True) -> list[Number]:
    """The numbers that are looked up: those that must be checked, but for small words and "Step 3"."""
    return [
        number
        for number in response_numbers(response, query, words=words)
        if not _is_small_word(response, number)
        and not _PLACE.search(response, max(0, number.start - _LONGEST_PLACE), number.start)
    ]


def _is_small_word(response: str, number: Number) -> bool:
    written = response[number.start : number.end]
    if abs(number.value) >= _SMALL_WORD or any(character.isdigit() for character in written):
        return False
    if number.unit == "times":
        return not (_MULTIPLE.search(written) or _OF_SOMETHING.match(response, number.end))
    is_share = number.kind is Kind.COUNT and number.value != number.value.to_integral_value()
    return not is_share


def _claims(
    query: RagQuery, response: str, numbers: Sequence[Number], config: AuditConfig
) -> list[ClaimVerdict]:
    facts = Facts(query, response, numbers, relative_tolerance=config.relative_tolerance)
    claims: list[ClaimVerdict] = []
    supported: list[Number] = []
    for index, number in enumerate(numbers, start=1):
        found = facts.find(number, supported)
        if found.state is ClaimState.SUPPORTED:
            supported.append(number)
        claims.append(_claim_verdict(index, number, response, found))
    return claims


def _claim_verdict(index: int, number: Number, response: str, found: Found) -> ClaimVerdict:
    """The verdict of the one voter that the lookup is."""
    low, high = sentence_span(response, number.start, number.end, reach=_REACH)
    written = response[number.start : number.end]
    claim = Claim(
        index=index,
        question=f'Where do the documents say "{response[low:high]}"?',
        answer=written,
        span=Span(start=number.start, end=number.end),
        source=ClaimSource.LEXICAL,
    )
    value = {ClaimState.SUPPORTED: written, ClaimState.CONTRADICTED: found.instead}.get(found.state)
    return ClaimVerdict(
        claim=claim,
        state=found.state,
        consensus=value,
        votes=(_answer(value, found),),
        tally={value or CANNOT_ANSWER: 1},
        evidence_holds_consensus=True if found.document is not None else None,
        note=found.note,
    )


def _answer(value: str | None, found: Found) -> Answer:
    if found.document is None:
        return Answer(value=value)
    text = found.document.text
    low, high = _quoted_span(text, found.start, found.end)
    place = DocumentSpan(document=found.document.id, start=low, end=high)
    return Answer(value=value, evidence=text[low:high], evidence_at=place)


def _quoted_span(text: str, start: int, end: int) -> tuple[int, int]:
    """What to show around a number of a document: its sentence, or its key and value in JSON."""
    low, high = sentence_span(text, start, end, reach=_REACH)
    if text[:1] not in ("{", "["):
        return low, high
    key = next((m.start() for m in reversed(list(_KEY.finditer(text, low, start)))), low)
    value_end = _VALUE_END.search(text, end, high)
    return key, value_end.start() if value_end else high

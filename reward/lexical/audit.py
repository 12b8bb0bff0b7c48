"""The audit without a model: does each number, name and date of the response stand in its documents?

The embedded default of `march audit`, and the baseline that a model has to beat (`facts.py` asks the
questions). It sees invented numbers and names, and numbers that other documents hold of somebody else. It
cannot see a true number in a wrong place of one document (what the July picnic raised, said of the May
picnic), and it refutes numbers that the response works out itself, such as a sum.

What is in the query alone is no claim of the answer, and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from reward.checks import Found
from reward.claims import kinds_for, targets_of
from reward.claims.kind import Target
from reward.claims.text import sentence_span
from reward.config import AuditConfig
from reward.judging.unjudged import AuditFailure, check_bounds, no_claims, says_nothing, unscored
from reward.judging.vote import CANNOT_ANSWER, Reason, judge
from reward.lexical.facts import Facts
from reward.provenance import provenance_of
from reward.roles.asking import answer_start, moved
from reward.types import ClaimSource, ClaimState, ClaimVerdict, RagQuery, Verdict

FIELD = "field"  # kind of the claims that only a check finds
_REACH = 300  # most characters of a sentence shown on each side of its number
_KEY = re.compile(r"""["'][\w ]{1,64}["']\s?:""")
_VALUE_END = re.compile(r"""(?<=["'])[,}\]]|[.!?](?=\s)|[,}\]](?=\s?["'}\]]|$)""")


def lexical_audit(query: RagQuery, response: str, config: AuditConfig) -> Verdict:
    """Looks every number, name and date of a response up in the documents of its query; needs no model.

    The bounds, rewards and outcomes are those of `reward.auditor.audit`. A claim is SUPPORTED, with the
    sentence of the document that holds it as evidence, CONTRADICTED or NOT_IN_DOCUMENTS.
    """
    start = answer_start(response, config)
    return moved(_looked_up(query, response[start:], config), start)


def _looked_up(query: RagQuery, response: str, config: AuditConfig) -> Verdict:
    provenance = provenance_of(config, auditor="lexical")
    try:
        check_bounds(query, response, config)
        found = targets_of(response, kinds_for(config, query, response))
        targets = [one for one in found if one.kind.is_looked_up(response, one.mention)]
        if len(targets) > config.max_claims:
            detail = f"{len(targets)} claims exceed max_claims: {config.max_claims}"
            raise AuditFailure(Reason.TOO_MANY_CLAIMS, detail)
    except AuditFailure as error:
        return unscored(query, error, provenance=provenance)
    claims = _claims(query, response, [] if says_nothing(query, response, targets) else targets, config)
    if not claims:
        return no_claims(query, response, config, provenance=provenance)
    judgement = judge(claims, num_uncovered=0, config=config)
    return Verdict(
        id=query.id,
        outcome=judgement.outcome,
        reward=judgement.reward,
        reason=judgement.reason,
        claims=tuple(claims),
        num_mentions=len(claims),
        num_voters=1,
        provenance=provenance,
    )


def _claims(
    query: RagQuery, response: str, targets: Sequence[Target], config: AuditConfig
) -> list[ClaimVerdict]:
    """A verdict on each mention but those that only repeat the query, of which the documents say nothing, and
    on what the optional checks find beside them.
    """
    facts = Facts(query, response, targets, config)
    found = [(one.span.start, one.span.end, FIELD, one.found) for one in facts.own_claims()]
    own = {start for start, *_ in found}
    supported: list[Target] = []
    for target in targets:
        start, end = target.mention.start, target.mention.end
        said = None if start in own else facts.find(target, supported)
        if said is None:
            continue
        if said.state is ClaimState.SUPPORTED:
            supported.append(target)
        found.append((start, end, target.kind.name, said))
    found.sort(key=itemgetter(0))
    return [_claim_verdict(index, response, *one) for index, one in enumerate(found, start=1)]


def _claim_verdict(index: int, response: str, start: int, end: int, kind: str, found: Found) -> ClaimVerdict:
    """The verdict of the one voter that the lookup is; validated once, with all that is in it."""
    low, high = sentence_span(response, start, end, reach=_REACH)
    written = response[start:end]
    value = {ClaimState.SUPPORTED: written, ClaimState.CONTRADICTED: found.instead}.get(found.state)
    return ClaimVerdict.model_validate(
        {
            "claim": {
                "index": index,
                "question": f'Where do the documents say "{response[low:high]}"?',
                "answer": written,
                "kind": kind,
                "span": {"start": start, "end": end},
                "source": ClaimSource.LEXICAL,
            },
            "state": found.state,
            "consensus": value,
            "votes": (_answer(value, found),),
            "tally": {value or CANNOT_ANSWER: 1},
            "evidence_holds_consensus": True if found.document is not None else None,
            "note": found.note,
        }
    )


def _answer(value: str | None, found: Found) -> dict[str, Any]:
    """The fields of an `Answer`."""
    if found.document is None:
        return {"value": value}
    text = found.document.text
    low, high = _quoted_span(text, found.start, found.end)
    place = {"document": found.document.id, "start": low, "end": high}
    return {"value": value, "evidence": text[low:high], "evidence_at": place}


def _quoted_span(text: str, start: int, end: int) -> tuple[int, int]:
    """What to show around a number of a document: its sentence, or its key and value in JSON."""
    low, high = sentence_span(text, start, end, reach=_REACH)
    if text[:1] not in ("{", "["):
        return low, high
    key = next((m.start() for m in reversed(list(_KEY.finditer(text, low, start)))), low)
    value_end = _VALUE_END.search(text, end, high)
    return key, value_end.start() if value_end else high

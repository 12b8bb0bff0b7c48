"""The audit without a model: does each number, name and date of the response stand in its documents?

The embedded default of `march audit`, and the baseline that a model has to beat. It sees invented numbers and
names, and numbers that other documents hold of somebody else. It cannot see a true number in a wrong place of
one document (what the July picnic raised, said of the May picnic), and it refutes numbers that the response
works out itself, such as a sum.

Four questions are asked of each mention of a response, in this order:

    checks          those that the settings name, none by default          `reward/checks/`
    lookup          does a mention of the documents support it, and not of somebody else (`elsewhere.py`)?
    the response    does it follow from a supported mention before it ("165 °F (74 °C)")?
    the query       does it only repeat the query? Then it is no claim, and is left out.

A check can say CONTRADICTED, with what the documents give instead; the others say NOT_IN_DOCUMENTS.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from reward.checks import CHECKS
from reward.checks.check import Found
from reward.claims import kinds_for, targets_of
from reward.claims.clauses import Clauses
from reward.claims.kind import Lookup, Mention, Place, Target
from reward.claims.numbers import Kind, Number
from reward.claims.numbers.lookup import NumberLookup
from reward.claims.tables import laid_out
from reward.claims.text import sentence_span
from reward.config import AuditConfig, RewardFunction
from reward.judging.unjudged import AuditFailure, check_bounds, no_claims, says_nothing, unscored
from reward.judging.vote import CANNOT_ANSWER, Reason, judge
from reward.lexical.cells import Cells
from reward.lexical.counted import counts_others, is_of_no_count
from reward.lexical.elsewhere import Elsewhere
from reward.provenance import provenance_of
from reward.roles.reading import read
from reward.types import Answer, ClaimSource, ClaimState, ClaimVerdict, Document, RagQuery, Span, Verdict

FIELD = "field"  # kind of the claims that only a check finds
_UNCHECKED = (Kind.WEEKDAY, Kind.DATE, Kind.YEAR)
_CONTEXT_REACH = 150  # characters on each side of a mention
_REACH = 300  # most characters of a sentence shown on each side of its number
_KEY = re.compile(r"""["'][\w ]{1,64}["']\s?:""")
_VALUE_END = re.compile(r"""(?<=["'])[,}\]]|[.!?](?=\s)|[,}\]](?=\s?["'}\]]|$)""")


def lexical_audit(query: RagQuery, response: str, config: AuditConfig) -> Verdict:
    """Looks every number, name and date of a response up in the documents of its query; needs no model.

    The bounds, rewards and outcomes are those of `reward.auditor.audit`. A claim is SUPPORTED, with the
    sentence of the document that holds it as evidence, CONTRADICTED or NOT_IN_DOCUMENTS.
    """
    found = read(query, response, config)
    laid = _laid_out(found.query)
    verdict = _looked_up(laid, found.answer, config)
    return found.place(verdict if laid is found.query else _as_written(verdict, found.query))


def _laid_out(query: RagQuery) -> RagQuery:
    """A query whose documents' tables are lines of cells; each character stays at its place."""
    texts = [laid_out(one.text) for one in query.documents]
    if texts == [one.text for one in query.documents]:
        return query
    pairs = zip(query.documents, texts, strict=True)
    documents = tuple(one.model_copy(update={"text": text}) for one, text in pairs)
    return query.model_copy(update={"documents": documents})


def _as_written(verdict: Verdict, query: RagQuery) -> Verdict:
    """A verdict on tables that were laid out, with the evidence as the documents write it."""
    texts = {one.id: one.text for one in query.documents}
    claims = tuple(
        one.model_copy(update={"votes": tuple(vote and _quoted(vote, texts) for vote in one.votes)})
        for one in verdict.claims
    )
    return verdict.model_copy(update={"claims": claims})


def _quoted(vote: Answer, texts: Mapping[str, str]) -> Answer:
    """A vote whose evidence is quoted from the texts of the documents, by their ids."""
    at = vote.evidence_at
    return vote if at is None else vote.model_copy(update={"evidence": texts[at.document][at.start : at.end]})


def _looked_up(query: RagQuery, response: str, config: AuditConfig) -> Verdict:
    provenance = provenance_of(config, auditor="lexical")
    try:
        check_bounds(query, response, config)
        found = targets_of(response, kinds_for(config, query, response))
        targets = [one for one in found if one.kind.is_looked_up(response, one.mention)]
        looked_at = [] if says_nothing(query, response, targets) else targets[: config.max_claims]
        claims, left = _claims(query, response, looked_at, config), targets[config.max_claims :]
        if left and not _is_refuted(claims, config):
            detail = f"{len(targets)} claims exceed max_claims: {config.max_claims}"
            raise AuditFailure(Reason.TOO_MANY_CLAIMS, detail)
    except AuditFailure as error:
        return unscored(query, error, provenance=provenance)
    if not claims:
        return no_claims(query, response, config, provenance=provenance)
    judgement = judge(claims, num_uncovered=0, config=config)
    return Verdict(
        id=query.id,
        **judgement._asdict(),
        claims=tuple(claims),
        num_mentions=len(claims) + len(left),
        uncovered=tuple(Span(start=one.mention.start, end=one.mention.end) for one in left),
        num_voters=1,
        provenance=provenance,
    )


def _is_refuted(claims: Sequence[ClaimVerdict], config: AuditConfig) -> bool:
    """Whether some claims refute the answer, whatever the others are; a rate of errors needs them all."""
    is_one_enough = config.reward_function is RewardFunction.ZERO_TOLERANCE
    return is_one_enough and any(claim.state is not ClaimState.SUPPORTED for claim in claims)


def _claims(
    query: RagQuery, response: str, targets: Sequence[Target], config: AuditConfig
) -> list[ClaimVerdict]:
    """A verdict on each mention but those that only repeat the query, of which the documents say nothing, and
    on what the optional checks find beside them.
    """
    facts = _Facts(query, response, targets, config)
    own_claims = [one for check in facts.checks for one in check.claims()]
    found = [(one.span.start, one.span.end, FIELD, one.found) for one in own_claims]
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


class _Facts:
    """The documents of a query, read once for all mentions of a response."""

    def __init__(
        self, query: RagQuery, response: str, targets: Sequence[Target], config: AuditConfig
    ) -> None:
        self._response = response
        self._asked = [Document(id="query", text=query.query)]
        kinds = {target.kind.name: target.kind for target in targets}
        self._lookups = {name: kind.lookup(query.documents) for name, kind in kinds.items()}
        self._titles = [Document(id=one.id, text=one.title) for one in query.documents if one.title]
        clauses = Clauses(response, targets)
        self._elsewhere = Elsewhere(query, clauses)
        self._cells = Cells(query, response, targets, clauses)
        self.checks = []
        if config.checks:
            numbers = [target.mention for target in targets if isinstance(target.mention, Number)]
            documents = NumberLookup(query.documents, relative_tolerance=config.relative_tolerance)
            self.checks = [
                CHECKS[name](
                    query, response, numbers, in_documents=lambda one: documents.find(one) is not None
                )
                for name in config.checks
            ]

    def find(self, target: Target, supported: Sequence[Target]) -> Found | None:
        """What is said of a mention, after those before it that are supported; None when it only repeats the
        query.
        """
        mention, lookup = target.mention, self._lookups[target.kind.name]
        if self.checks and (found := self._checked(target)) is not None:
            return found
        place = lookup.find(mention, context=partial(self._around, mention))
        other = "" if place is None else self._elsewhere.says_of_another(target, place)
        of_others = ""
        if not other and isinstance(mention, Number) and isinstance(lookup, NumberLookup):
            of_others = counts_others(mention, self._response, lookup)
            if is_of_no_count(mention, self._response, lookup):
                place = None
        other = other or of_others
        # What ends at 0 is in no text: it is in a title.
        if place is not None and place.mention.end and not other:
            other = self._cells.of_another(target, self._places(mention, lookup) or (place,))
        if other:
            place = None
        if place is not None and not place.mention.end:
            return Found(ClaimState.SUPPORTED, note=f"is in the title of document {place.document.id}")
        if place is not None:
            return Found(ClaimState.SUPPORTED, place.document, place.mention.start, place.mention.end)
        if not other and (document := self._titled(target)):
            return Found(ClaimState.SUPPORTED, note=f"is in the title of document {document}")
        before = [one.mention for one in supported if one.kind is target.kind]
        if note := target.kind.follows(mention, self._response, before):
            return Found(ClaimState.SUPPORTED, note=note)
        if target.kind.lookup(self._asked).find(mention) is not None:
            return None
        must_stand = bool(of_others) or target.kind.must_stand(self._response, mention)
        note = f"the documents say it of another: {other}" if other else self._otherwise(target)
        return Found(ClaimState.NOT_IN_DOCUMENTS, note=note) if must_stand else None

    def _places(self, mention: Mention, lookup: Lookup) -> Sequence[Place[Any]]:
        """All places that support a number; none of other mentions."""
        if not isinstance(mention, Number) or not isinstance(lookup, NumberLookup):
            return ()
        return lookup.places(mention) or lookup.scaled_places(mention)

    def _otherwise(self, target: Target) -> str:
        """What differs in a number of the documents that has the same value; empty without one."""
        mention, lookup = target.mention, self._lookups[target.kind.name]
        if isinstance(mention, Number) and isinstance(lookup, NumberLookup):
            return lookup.otherwise(mention)
        return ""

    def _titled(self, target: Target) -> str:
        """The id of a document whose title holds a date: "Alcaria 2018-19 season"; empty without one.

        Other numbers of titles count documents and chapters: "passage 3".
        """
        if not isinstance(target.mention, Number) or not target.mention.is_calendar:
            return ""
        place = target.kind.lookup(self._titles).find(target.mention) if self._titles else None
        return "" if place is None else place.document.id

    def _around(self, mention: Mention) -> str:
        """The sentence of a mention, or what is near of it."""
        low, high = sentence_span(self._response, mention.start, mention.end, reach=_CONTEXT_REACH)
        return self._response[low:high]

    def _checked(self, target: Target) -> Found | None:
        """What the optional checks say: of amounts and times, and not of small numbers in words."""
        mention = target.mention
        if not isinstance(mention, Number) or mention.kind in _UNCHECKED:
            return None
        if not target.kind.must_stand(self._response, mention):
            return None
        found = (check.find(mention) for check in self.checks)
        return next((one for one in found if one is not None), None)


def _claim_verdict(index: int, response: str, start: int, end: int, kind: str, found: Found) -> ClaimVerdict:
    """The verdict of the one voter that the lookup is; validated once, with all that is in it."""
    low, high = sentence_span(response, start, end, reach=_REACH)
    written = response[start:end]
    stated = found.document.text[found.start : found.end] if found.document is not None else written
    value = {ClaimState.SUPPORTED: stated, ClaimState.CONTRADICTED: found.instead}.get(found.state)
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

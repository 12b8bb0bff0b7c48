"""What the documents say of one mention of a response: four questions, in this order.

    checks          those that the settings name, none by default          `reward/checks/`
    lookup          does a mention of the documents support it, and not of somebody else (`elsewhere.py`)?
    the response    does it follow from a supported mention before it ("165 °F (74 °C)")?
    the query       does it only repeat the query? Then it is no claim.

A check can say CONTRADICTED, with what the documents give instead; the others say NOT_IN_DOCUMENTS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from reward.checks import CHECKS, Found, OwnClaim
from reward.claims.kind import Mention, Target
from reward.claims.numbers import Kind, Number
from reward.claims.numbers.kind import is_calendar
from reward.claims.numbers.lookup import NumberLookup
from reward.claims.text import sentence_span
from reward.config import AuditConfig
from reward.lexical.elsewhere import Elsewhere
from reward.types import ClaimState, Document, RagQuery

_UNCHECKED = (Kind.WEEKDAY, Kind.DATE, Kind.YEAR)
_CONTEXT_REACH = 150  # characters on each side of a mention


class Facts:
    """The documents of a query, read once for all mentions of a response."""

    def __init__(
        self, query: RagQuery, response: str, targets: Sequence[Target], config: AuditConfig
    ) -> None:
        self._response = response
        self._asked = [Document(id="query", text=query.query)]
        kinds = {target.kind.name: target.kind for target in targets}
        self._lookups = {name: kind.lookup(query.documents) for name, kind in kinds.items()}
        self._titles = [Document(id=one.id, text=one.title) for one in query.documents if one.title]
        self._elsewhere = Elsewhere(query.documents, response, targets)
        self._checks = []
        if config.checks:
            numbers = [target.mention for target in targets if isinstance(target.mention, Number)]
            documents = NumberLookup(query.documents, relative_tolerance=config.relative_tolerance)
            self._checks = [
                CHECKS[name](
                    query, response, numbers, in_documents=lambda one: documents.find(one) is not None
                )
                for name in config.checks
            ]

    def find(self, target: Target, supported: Sequence[Target]) -> Found | None:
        """What is said of a mention; None when it only repeats the query.

        Args:
            target: A mention of the response.
            supported: The mentions before it that are supported, from left to right.
        """
        mention = target.mention
        if self._checks and (found := self._checked(target)) is not None:
            return found
        place = self._lookups[target.kind.name].find(mention, context=partial(self._around, mention))
        other = "" if place is None else self._elsewhere.says_of_another(target, place)
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
        must_stand = target.kind.must_stand(self._response, mention)
        note = f"the documents say it of another: {other}" if other else ""
        return Found(ClaimState.NOT_IN_DOCUMENTS, note=note) if must_stand else None

    def _titled(self, target: Target) -> str:
        """The id of a document whose title holds a date: "Alcaria 2018-19 season"; empty without one.

        Other numbers of titles count documents and chapters: "passage 3".
        """
        if not isinstance(target.mention, Number) or not is_calendar(target.mention):
            return ""
        place = target.kind.lookup(self._titles).find(target.mention) if self._titles else None
        return "" if place is None else place.document.id

    def _around(self, mention: Mention) -> str:
        """The sentence of a mention, or what is near of it."""
        low, high = sentence_span(self._response, mention.start, mention.end, reach=_CONTEXT_REACH)
        return self._response[low:high]

    def own_claims(self) -> Iterator[OwnClaim]:
        """What the optional checks alone find in the response."""
        for check in self._checks:
            yield from check.claims()

    def _checked(self, target: Target) -> Found | None:
        """What the optional checks say: of amounts and times, and not of small numbers in words."""
        mention = target.mention
        if not isinstance(mention, Number) or mention.kind in _UNCHECKED:
            return None
        if not target.kind.must_stand(self._response, mention):
            return None
        found = (check.find(mention) for check in self._checks)
        return next((one for one in found if one is not None), None)

"""What the documents say of one mention of a response: four questions, in this order.

    optional checks  do they give these opening hours, this rating?  (`AuditConfig.checks`)
    lookup           does a mention of the documents support it?
    the response     does it follow from a supported mention before it ("165 °F (74 °C)")?
    the query        does it only repeat the query? Then it is no claim.

A check can say CONTRADICTED, with what the documents give instead; the others say NOT_IN_DOCUMENTS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reward.claims.kind import Target
from reward.claims.numbers import Number
from reward.claims.numbers.lookup import NumberLookup
from reward.claims.text import sentence_span
from reward.config import AuditConfig
from reward.lexical.days import find_day_sets
from reward.lexical.hours import Opening, Timetable, agrees, describe, find_openings, find_timetables
from reward.lexical.ratings import Rating, RatingCheck, check_rating, check_review_count, find_ratings
from reward.types import ClaimState, Document, RagQuery

_CONTEXT_REACH = 150  # characters on each side of a number


@dataclass(frozen=True)
class Found:
    """What the documents say of one number; `document.text[start:end]` is what decided."""

    state: ClaimState
    document: Document | None = None
    start: int = 0
    end: int = 0
    instead: str = ""  # what they give in its place
    note: str = ""


class Facts:
    """The documents of a query, read once for all numbers of a response."""

    def __init__(
        self, query: RagQuery, response: str, targets: Sequence[Target], config: AuditConfig
    ) -> None:
        self._response = response
        asked = [Document(id="query", text=query.query)]
        kinds = {target.kind.name: target.kind for target in targets}
        self._lookups = {name: kind.lookup(query.documents) for name, kind in kinds.items()}
        self._queries = {name: kind.lookup(asked) for name, kind in kinds.items()}
        numbers = [target.mention for target in targets if isinstance(target.mention, Number)]
        self._lookup = NumberLookup(query.documents, relative_tolerance=config.relative_tolerance)
        self._timetables: list[Timetable] = find_timetables(query.documents)
        self._ratings: list[Rating] = find_ratings(query.documents)
        self._openings: list[Opening] = find_openings(response, numbers) if self._timetables else []

    def find(self, target: Target, supported: Sequence[Target]) -> Found | None:
        """What is said of a mention; None when it only repeats the query.

        Args:
            target: A mention of the response.
            supported: The mentions before it that are supported, from left to right.
        """
        mention, name = target.mention, target.kind.name
        if isinstance(mention, Number) and (checked := self._checked(mention)) is not None:
            return checked
        low, high = sentence_span(self._response, target.start, target.end, reach=_CONTEXT_REACH)
        place = self._lookups[name].find(mention, context=self._response[low:high])
        if place is not None:
            return Found(ClaimState.SUPPORTED, place.document, place.mention.start, place.mention.end)
        before = [one.mention for one in supported if one.kind is target.kind]
        if note := target.kind.follows(mention, self._response, before):
            return Found(ClaimState.SUPPORTED, note=note)
        return None if self._queries[name].find(mention) is not None else Found(ClaimState.NOT_IN_DOCUMENTS)

    def _checked(self, number: Number) -> Found | None:
        return self._in_timetables(number) or self._in_ratings(number)

    def _in_timetables(self, number: Number) -> Found | None:
        opening = next((opening for opening in self._openings if opening.number is number), None)
        if opening is None:
            return self._every_day(number)
        for table in self._timetables:
            if (hours := agrees(opening, table, self._openings)) is not None:
                return Found(ClaimState.SUPPORTED, table.document, hours.start, hours.end)
        if not opening.stated or (opening.days is None and self._lookup.find(number) is not None):
            return None
        table = self._timetables[0]
        first = (
            next(hours for day in table.days.values() for hours in day) if any(table.days.values()) else None
        )
        at = (first.start, first.end) if first else (0, 0)
        return Found(ClaimState.CONTRADICTED, table.document, *at, instead=describe(table, opening))

    def _every_day(self, number: Number) -> Found | None:
        """Whether "7 days a week" can be said: a table leaves no day closed."""
        day_sets = find_day_sets(self._response[number.start : number.end + len(" per week")])
        if not self._timetables or not day_sets or day_sets[0].start != 0:
            return None
        table = next((t for t in self._timetables if sum(map(bool, t.days.values())) == 7), None)
        if table is None:
            return Found(ClaimState.NOT_IN_DOCUMENTS)
        hours = table.days[0][0]
        return Found(ClaimState.SUPPORTED, table.document, hours.start, hours.end)

    def _in_ratings(self, number: Number) -> Found | None:
        checked = check_review_count(self._response, number, self._ratings)
        checked = checked or check_rating(self._response, number, self._ratings)
        if checked is None:
            return None
        rating = checked.rating
        if checked.check is RatingCheck.UNKNOWN or rating is None:
            return Found(ClaimState.NOT_IN_DOCUMENTS)
        if checked.check is RatingCheck.AGREES:
            return Found(ClaimState.SUPPORTED, rating.document, rating.start, rating.end)
        return Found(
            ClaimState.CONTRADICTED, rating.document, rating.start, rating.end, instead=f"{rating.value}"
        )

"""What the documents say of one number of a response: four questions, in this order.

    opening hours   do the documents give these hours for these days?             `hours.py`
    ratings         is it the rating of the business, or that of a review?        `ratings.py`
    lookup          does a number of the documents, or of the query, support it?  `lookup.py`
    the response    is it a number before it in another unit ("165 °F (74 °C)"), or the length of its own
    list?

The first two can say CONTRADICTED, with what the documents give instead; the others say NOT_IN_DOCUMENTS.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from reward.claims.numbers import Number, find_numbers, supports
from reward.judging.sentences import sentence_span
from reward.lexical.days import find_day_sets
from reward.lexical.hours import Opening, Timetable, agrees, describe, find_openings, find_timetables
from reward.lexical.lookup import Lookup
from reward.lexical.ratings import Rating, RatingCheck, check_rating, check_review_count, find_ratings
from reward.types import ClaimState, Document, RagQuery

_CONVERTED = re.compile(r"[(/=\u2248]|(?:\bto|-|\u2013)\s?$")
_CONTEXT_REACH = 150  # characters on each side of a number
_CONVERSION_REACH = 24  # characters from a number to the same one in another unit
_COUNTED = re.compile(
    r"\s(?:\w+\s)?(?:steps|parts|ways|tips|points|reasons|items|things|methods|options|uses)\b", re.IGNORECASE
)


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
        self, query: RagQuery, response: str, numbers: Sequence[Number], *, relative_tolerance: float = 0.0
    ) -> None:
        self._response = response
        self._lookup = Lookup(query.documents, relative_tolerance=relative_tolerance)
        self._query = Lookup([Document(id="query", text=query.query)], relative_tolerance=relative_tolerance)
        self._timetables: list[Timetable] = find_timetables(query.documents)
        self._ratings: list[Rating] = find_ratings(query.documents)
        self._openings: list[Opening] = find_openings(response, numbers) if self._timetables else []

    def find(self, number: Number, supported: Sequence[Number]) -> Found:
        """What is said of a number.

        Args:
            number: A number of the response.
            supported: The numbers before it that are supported, from left to right.
        """
        found = self._in_timetables(number) or self._in_ratings(number)
        if found is not None:
            return found
        low, high = sentence_span(self._response, number.start, number.end, reach=_CONTEXT_REACH)
        place = self._lookup.find(number, context=self._response[low:high])
        if place is not None:
            return Found(ClaimState.SUPPORTED, place.document, place.number.start, place.number.end)
        if self._query.find(number) is not None:
            return Found(ClaimState.SUPPORTED, note="stands in the query")
        if self._is_conversion(number, supported[-2:]):
            return Found(ClaimState.SUPPORTED, note="a number before it, in another unit")
        if self._counts_own_list(number):
            return Found(ClaimState.SUPPORTED, note="counts the response's own list")
        return Found(ClaimState.NOT_IN_DOCUMENTS)

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

    def _is_conversion(self, number: Number, before: Sequence[Number]) -> bool:
        """Whether a number repeats one before it in another unit: "55°F to 52°F (13°C to 11°C)"."""
        if not number.dimension or not before:
            return False
        if not _CONVERTED.search(self._response, before[-1].end, number.start):
            return False
        near = [one for one in before if number.start - one.end <= _CONVERSION_REACH]
        originals = [atom for one in near for atom in one.atoms]
        return all(any(supports(atom, original) for original in originals) for atom in number.atoms)

    def _counts_own_list(self, number: Number) -> bool:
        if not _COUNTED.match(self._response, number.end):
            return False
        with_places, without = (
            len(find_numbers(self._response, enumerators=places, words=False)) for places in (True, False)
        )
        return number.value == with_places - without

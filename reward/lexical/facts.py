"""What the documents say of one number of a response: three questions, in this order.

    checks          those that the settings name, none by default                 `reward/checks/`
    lookup          does a number of the documents, or of the query, support it?  `lookup.py`
    the response    is it a number before it in another unit ("165 °F (74 °C)"), or the length of its own
    list?

A check can say CONTRADICTED, with what the documents give instead; the others say NOT_IN_DOCUMENTS.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reward.checks import CHECKS, Found
from reward.claims.numbers import Number, find_numbers, supports
from reward.config import AuditConfig
from reward.judging.sentences import sentence_span
from reward.lexical.lookup import Lookup
from reward.types import ClaimState, Document, RagQuery

_CONVERTED = re.compile(r"[(/=\u2248]|(?:\bto|-|\u2013)\s?$")
_CONTEXT_REACH = 150  # characters on each side of a number
_CONVERSION_REACH = 24  # characters from a number to the same one in another unit
_COUNTED = re.compile(
    r"\s(?:\w+\s)?(?:steps|parts|ways|tips|points|reasons|items|things|methods|options|uses)\b", re.IGNORECASE
)


class Facts:
    """The documents of a query, read once for all numbers of a response."""

    def __init__(
        self, query: RagQuery, response: str, numbers: Sequence[Number], config: AuditConfig
    ) -> None:
        self._response = response
        tolerance = config.relative_tolerance
        self._lookup = Lookup(query.documents, relative_tolerance=tolerance)
        self._query = Lookup([Document(id="query", text=query.query)], relative_tolerance=tolerance)
        self._checks = [
            CHECKS[name](query, response, numbers, in_documents=self._in_documents) for name in config.checks
        ]

    def find(self, number: Number, supported: Sequence[Number]) -> Found:
        """What is said of a number.

        Args:
            number: A number of the response.
            supported: The numbers before it that are supported, from left to right.
        """
        for check in self._checks:
            if (found := check.find(number)) is not None:
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

    def _in_documents(self, number: Number) -> bool:
        return self._lookup.find(number) is not None

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

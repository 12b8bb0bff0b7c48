"""What a check is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from reward.claims.numbers import Number
from reward.types import ClaimState, Document, RagQuery


@dataclass(frozen=True)
class Found:
    """What the documents say of one number; `document.text[start:end]` is what decided."""

    state: ClaimState
    document: Document | None = None
    start: int = 0
    end: int = 0
    instead: str = ""  # what they give in its place
    note: str = ""


class Check(Protocol):
    """Reads the documents and one response once, then is asked about each number of the response."""

    def __init__(
        self,
        query: RagQuery,
        response: str,
        numbers: Sequence[Number],
        *,
        in_documents: Callable[[Number], bool],
    ) -> None:
        """Prepares the check.

        Args:
            query: The documents, and what was asked.
            response: What is audited.
            numbers: Its numbers, from left to right.
            in_documents: Whether the lookup finds a number in the documents at all.
        """

    def find(self, number: Number) -> Found | None:
        """What the documents say of a number of `numbers`; None where the check has nothing to say."""

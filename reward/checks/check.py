"""What a check is, and what it finds."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from reward.claims.numbers import Number
from reward.types import ClaimState, Document, RagQuery, Span


@dataclass(frozen=True)
class Found:
    """What the documents say of one number; `document.text[start:end]` is what decided."""

    state: ClaimState
    document: Document | None = None
    start: int = 0
    end: int = 0
    instead: str = ""  # what they give in its place
    note: str = ""


@dataclass(frozen=True)
class OwnClaim:
    """Something that a check alone finds in a response, and what the documents say of it."""

    span: Span
    found: Found


@dataclass
class Check:
    """Asked what it has to say of one response; what it reads of the texts, it reads once."""

    query: RagQuery  # the documents, and what was asked
    response: str
    numbers: Sequence[Number]  # of the response, from left to right
    in_documents: Callable[[Number], bool]  # whether the lookup finds a number in the documents at all

    def find(self, number: Number) -> Found | None:
        """What the documents say of a number of `numbers`; None where the check has nothing to say."""
        return None

    def claims(self) -> Iterable[OwnClaim]:
        """Claims that are of no kind of `audit.kinds`, such as "offers outdoor seating"."""
        return ()

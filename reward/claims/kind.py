"""What a kind of claim is: the functions that the audit needs of it, and nothing else.

A kind is one file (or package) beside this one. Proposer, Checker, vote, coverage, evidence, templates and the
audit without a model call these functions and know nothing of numbers or names themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from reward.types import Document, RagQuery


class Mention(Protocol):
    """One thing of a text that can be checked; `text[start:end]` is where it stands."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def atoms(self) -> Sequence[Mention]:
        """The mentions that each need a check: the parts of a composite one, or itself alone."""


M = TypeVar("M", bound=Mention)


@dataclass(frozen=True)
class Place(Generic[M]):
    """Where a document says what is claimed."""

    mention: M
    document: Document


class Lookup(Protocol[M]):
    """The mentions of all documents of a query, indexed for the audit without a model."""

    def find(self, claimed: M, *, context: str = "") -> Place[M] | None:
        """The place that supports a mention of a response; None when none does.

        Args:
            claimed: What the response says.
            context: Text around it; of several places the one that shares most words with it is taken.
        """


class ClaimKind(Protocol[M]):
    """The functions that the audit needs of one kind of claim."""

    name: str  # as `audit.kinds` names it

    def find(self, response: str, query: RagQuery) -> list[M]:
        """The mentions of a response that must be checked, from left to right."""

    def blanks(self, text: str) -> list[M]:
        """All mentions of any text, those that need no check too: what a question must not show."""

    def read(self, answer: str) -> M | None:
        """What the bracket of a claim, or of a vote, says; None when it says nothing of this kind."""

    def taken_as(self, answer: M, asked: M) -> M:
        """An answer in the terms of what was asked: what it leaves out (unit, title) is taken from there."""

    def equal(self, a: M, b: M) -> bool:
        """Whether two answers to one question, both as `taken_as` gives them, are the same; an equivalence."""

    def bears_out(self, consensus: M, claimed: M) -> bool:
        """Whether the consensus of the voters, as `taken_as` gives it, says what the response says."""

    def written(self, answer: M, asked: M) -> str:
        """The canonical text of an answer in the terms of what was asked; equal answers have one text."""

    def gives_away(self, text: str, mention: M) -> bool:
        """Whether a text (a question) holds the value of a mention or of a part of it, in any writing."""

    def holds(self, text: str, start: int, end: int, mention: M) -> bool:
        """Whether the quotation `text[start:end]` of a document holds the mention.

        What counts is the document's own mention at that place: "raised 466" of "raised 466 million" holds
        466,000,000 and not 466.
        """

    def asks_for(self, question: str, mention: M, sentence: str) -> bool:
        """Whether a question can be about a mention that stands in a sentence: its kind, unit and subject."""

    def question(self, mention: M) -> str:
        """What a template asks for: "Which amount of money in EUR", "Which person or thing"."""

    def lookup(self, documents: Sequence[Document]) -> Lookup[M]:
        """The documents made ready for `Lookup.find`; kept for the next response to the same documents."""

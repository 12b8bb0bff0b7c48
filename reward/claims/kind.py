"""What a kind of claim is: the functions that the audit needs of it, and nothing else.

A kind is one file, or package, beside this one. Proposer, Checker, vote, coverage, evidence and the audit
without a model call these functions and know nothing of numbers or names themselves. A kind is made for one
audit (`reward.claims.kinds_for`), so that it may learn from the audit's texts how they write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from reward.claims.text import content_words
from reward.types import Document


class Mention(Protocol):
    """One thing of a text that can be checked; `text[start:end]` is where it is."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def atoms(self) -> Sequence[Any]:
        """The mentions that each need a check: the parts of a composite one, or itself alone."""


M = TypeVar("M")
Context = Callable[[], str]


class Place(NamedTuple, Generic[M]):
    """Where a document says what is claimed."""

    mention: M
    document: Document


def nearest(places: Sequence[M], context: Context | None, words_near: Callable[[M], Iterable[str]]) -> M:
    """The place whose surroundings share most words with the context; the first of equals."""
    if len(places) == 1 or context is None:
        return places[0]
    words = content_words(context())
    return max(places, key=lambda place: len(words.intersection(words_near(place))))


class Lookup(Protocol):
    """The mentions of all documents of a query, indexed for the audit without a model."""

    def find(self, claimed: Any, *, context: Context | None = None) -> Place[Any] | None:
        """The place that supports a mention of a response; None when none does.

        Args:
            claimed: What the response says.
            context: Text around it, asked for where there are several places: the one that shares most words
                with it is taken.
        """


class ClaimKind(Protocol):
    """The functions that the audit needs of one kind of claim; a mention is always one of this kind.

    The last three have a usual answer, for a kind that derives from this class.
    """

    @property
    def name(self) -> str:
        """As `audit.kinds` names it."""

    def find(self, response: str) -> Sequence[Mention]:
        """The mentions of a response that must be checked, from left to right."""

    def read(self, answer: str, *, of_documents: bool = False, asked: Any | None = None) -> Any | None:
        """What the bracket of a claim says; None when it says nothing of this kind.

        Args:
            answer: The text in the bracket.
            of_documents: It is a vote, which copies from the documents; else it copies from the response.
            asked: Of a vote the mention that is asked for.
        """

    def taken_as(self, answer: Any, asked: Any, *, stated: Any | None = None) -> Any:
        """An answer in the terms of what was asked: what it leaves out (a unit, a title) is taken from there.

        Args:
            answer: What a claim's or a vote's bracket says.
            asked: The mention of the response that the question is about.
            stated: The document's own mention at the place of the vote's evidence, if it has one.
        """

    def equal(self, a: Any, b: Any) -> bool:
        """Whether two answers to one question, both as `taken_as` gives them, are the same; an equivalence.

        It must be transitive: the votes are grouped by it, and their order may not matter.
        """

    def bears_out(self, consensus: Any, claimed: Any, *, relative_tolerance: float = 0.0) -> bool:
        """Whether the consensus of the voters, as `taken_as` gives it, says what the response says."""

    def written(self, answer: Any, asked: Any) -> str:
        """The canonical text of an answer in the terms of what was asked; equal answers have one text."""

    def is_about(self, claimed: Any, mention: Any) -> bool:
        """Whether a claim's bracket names a mention of the response."""

    def asks_for(self, question: str, mention: Any, response: str) -> bool:
        """Whether a question can be about a mention of a response.

        It asks for no other kind, no other unit and no other thing than the response says there.
        """

    def gives_away(self, text: str, mention: Any) -> bool:
        """Whether a text (a question) holds the value of a mention or of a part of it, in any writing."""

    def stated(self, text: str, start: int, end: int, answer: Any) -> Any | None:
        """The document's own mention in `text[start:end]` that says what an answer says; None without one.

        "raised 466" in "raised 466 million" states 466,000,000 and not 466: what counts is the document's
        mention at that place, not the quotation's.
        """

    def lookup(self, documents: Sequence[Document]) -> Lookup:
        """The documents made ready for `Lookup.find`; kept for the next response to the same documents."""

    def is_looked_up(self, response: str, mention: Any) -> bool:
        """Whether the audit without a model can judge this mention at all."""
        return True

    def must_stand(self, response: str, mention: Any) -> bool:
        """Whether a mention that the documents do not hold is wrong; else nothing is said of it."""
        return True

    def follows(self, mention: Any, response: str, before: Sequence[Any]) -> str:
        """Why a mention follows from supported ones before it ("in another unit"); empty when it does not."""
        return ""


class Target(NamedTuple):
    """A mention of a response that must be checked, with its kind."""

    kind: ClaimKind
    mention: Any

    @property
    def start(self) -> int:
        """Where it begins in the response."""
        return int(self.mention.start)

    @property
    def end(self) -> int:
        """Where it ends in the response."""
        return int(self.mention.end)

    @property
    def places(self) -> list[tuple[int, int]]:
        """Where its atoms stand in the response."""
        return [(atom.start, atom.end) for atom in self.mention.atoms]

    @property
    def parts(self) -> list[Target]:
        """Its atoms as targets; itself alone when it has no parts."""
        return [Target(self.kind, atom) for atom in self.mention.atoms]


def num_atoms(targets: Sequence[Target]) -> int:
    """How many mentions need a check, parts counted one by one."""
    return sum(len(target.mention.atoms) for target in targets)

"""Names in text: people, places, organisations, works, products and nationalities, as one kind of claim.

`find.py` finds names by capitals, `lookup.py` says where documents hold one, `match.py` when two answers name
the same. spaCy's small English tagger was measured, too: it finds fewer exchanged
names, raises more false alarms and reads 57 responses a second, so rules do the work.
"""

from __future__ import annotations

from collections.abc import Sequence

from reward.claims.names import asking, match
from reward.claims.names.find import find_names
from reward.claims.names.lookup import NameLookup
from reward.claims.names.model import Name
from reward.claims.names.reading import read_name
from reward.types import Document, RagQuery

__all__ = ["Name", "NameLookup", "Names", "find_names"]


class Names:
    """The kind of claim that a name is (`reward.claims.kind.ClaimKind`)."""

    name = "name"

    def find(self, response: str, query: RagQuery) -> list[Name]:
        """The names of a response, from left to right."""
        return find_names(response)

    def blanks(self, text: str) -> list[Name]:
        """All names of any text."""
        return find_names(text)

    def read(self, answer: str) -> Name | None:
        """The one name that an answer gives; None for several names, a sentence, a number or "yes"."""
        return read_name(answer)

    def taken_as(self, answer: Name, asked: Name) -> Name:
        """The asked name where an answer says it in another writing, else the answer."""
        return match.taken_as(answer, asked)

    def equal(self, a: Name, b: Name) -> bool:
        """Whether two answers are one name."""
        return match.equal(a, b)

    def bears_out(self, consensus: Name, claimed: Name) -> bool:
        """Whether the consensus names what the response names."""
        return match.says(consensus, claimed)

    def written(self, answer: Name, asked: Name) -> str:
        """One text for all answers that are equal."""
        return match.written(answer, asked)

    def gives_away(self, text: str, mention: Name) -> bool:
        """Whether a text holds a name, in any writing."""
        return asking.gives_away(text, mention)

    def holds(self, text: str, start: int, end: int, mention: Name) -> bool:
        """Whether the quotation `text[start:end]` of a document holds a name."""
        return asking.holds(text, start, end, mention)

    def asks_for(self, question: str, mention: Name, sentence: str) -> bool:
        """Whether a question can be about a name of a sentence."""
        return asking.asks_for(question, mention, sentence)

    def question(self, mention: Name) -> str:
        """What a template asks for."""
        return "Which person, place or thing"

    def lookup(self, documents: Sequence[Document]) -> NameLookup:
        """The documents made ready; the index of a text is kept for the next response to it."""
        return NameLookup(documents)

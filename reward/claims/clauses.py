"""Which names go with a number or a date of a response: those of its clause, and the one it is said of."""

import functools
import re
from bisect import bisect_left
from collections.abc import Sequence

from reward.claims.kind import Target
from reward.claims.names import Name, find_names
from reward.claims.text import sentence_span

_FULL = 2  # words of a name that is no surname alone
_COORDINATOR = re.compile(r";|,? (?:and|while|whereas|but) ")
_WORD = re.compile(r"\w+")
_INITIAL = re.compile(r"\b[A-Z]\.\s*\Z")
_SUBJECT = re.compile(r"\W*(?:the |an? )?(?:(?:[a-z]+ ){1,4}of (?:the )?)?", re.IGNORECASE)


class Clauses:
    """The clauses of a response that hold its numbers and dates; each is read once."""

    def __init__(self, response: str, targets: Sequence[Target]) -> None:
        self._response = response
        self._places = sorted((one.start, one.end) for one in targets if one.kind.name != "name")
        self._clause = functools.cache(self._part_of_sentence)

    @functools.cached_property
    def names(self) -> list[Name]:
        """All names of the response, each time that it says them."""
        return find_names(self._response)

    def names_beside(self, target: Target) -> list[Name]:
        """The names of a mention's clause, from left to right."""
        if not self.names:
            return []
        low, high = self._clause(target.start, target.end)
        first = bisect_left(self._name_starts, low)
        if first and self.names[first - 1].end > low:
            first -= 1
        around = self.names[first : bisect_left(self._name_starts, high)]
        return [name for name in around if name.end <= target.start or target.end <= name.start]

    def words_beside(self, target: Target) -> frozenset[str]:
        """The words of a mention's clause, in small letters."""
        low, high = self._clause(target.start, target.end)
        return frozenset(_WORD.findall(self._response[low:high].lower()))

    def around(self, target: Target) -> tuple[str, str]:
        """What the clause of a mention says before it and behind it."""
        low, high = self._clause(target.start, target.end)
        return self._response[low : target.start], self._response[target.end : high]

    def opening(self, target: Target) -> str:
        """What the sentence of a mention says before its clause."""
        low, _ = sentence_span(self._response, target.start, target.end)
        return self._response[low : max(low, self._clause(target.start, target.end)[0])]

    def subject(self, target: Target) -> Name | None:
        """The name that the clause of a mention begins with: "X was", "the date of birth of X was".

        None where it begins otherwise: "the company" and "her parents" can be of any name before.
        """
        low, _ = self._clause(target.start, target.end)
        return subject_of(self._response, self.names_beside(target), target.start, low)

    @functools.cached_property
    def _name_starts(self) -> list[int]:
        return [name.start for name in self.names]

    def _part_of_sentence(self, start: int, end: int) -> tuple[int, int]:
        """The sentence of a mention, or the part of it between words that join two statements."""
        low, high = sentence_span(self._response, start, end)
        if initial := _INITIAL.search(self._response, max(0, low - 4), low):  # "Fred F. Sears" is one name
            low, _ = sentence_span(self._response, initial.start(), end)
        inside = self._places[bisect_left(self._places, (low, 0)) : bisect_left(self._places, (high, 0))]
        for match in _COORDINATOR.finditer(self._response, low, high):
            before, behind = match.span()
            is_between = any(low <= place < before for place, _ in inside)
            if not is_between or not any(behind <= place for place, _ in inside):
                continue  # it joins two words, as in "Anna and Peter"
            if behind <= start:
                low = behind
            elif before >= end:
                return low, before
        return low, high


def subject_of(text: str, names: Sequence[Name], end: int, start: int = 0) -> Name | None:
    """The name that a clause begins with.

    Args:
        text: What holds the clause.
        names: The names of the clause, from left to right.
        end: The name must begin before it.
        start: Where the clause begins.
    """
    if not names or names[0].start >= end:
        return None
    return names[0] if _SUBJECT.fullmatch(text, start, max(start, names[0].start)) else None


def fit(a: Name, b: Name) -> bool:
    """Whether one of two names can be short for the other; initials fit all.

    What is short for a name of several words is one of them, or begins as it does: "Hamad bin Khalifa" is not
    short for "Mohammed bin Hamad bin Khalifa", whose father he is.
    """
    left, right = ([word for word in name.tokens if len(word) > 1] for name in (a, b))
    short, full = sorted((left, right), key=len)
    if not set(short) <= set(full):
        return False
    return len(short) < _FULL or short[0] == full[0]

"""When people's marks make an answer count as "holds a wrong number": the two targets of a number audit.

RAGTruth's annotators marked every hallucinated passage, most of which hold no number at all. A number audit
can be held only against marks that are about numbers, and the marks do not say so themselves:

    plain     some marked passage holds a digit
    cleaned   some marked passage holds a digit that states something: not the number of a list item at the
              start of a line ("2. "), of a cited passage ("passages 1 and 3"), or of words ("in 80 words")
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from reward.types import Span

_DIGIT = re.compile(r"\d")
_LIST_NUMBER = r"(?m:^)[ \t]*(?:[-*][ \t]+)?\(?\d{1,2}[.)][ \t]+"
_PASSAGE_NUMBER = (
    r"\bpassages?[ \t]{0,4}\d+"
    r"(?:[ \t]{0,4}(?:,|and|or|&|-|\u2013)[ \t]{0,4}(?:(?:and|or|&)[ \t]{0,4})?(?:passages?[ \t]{0,4})?\d+)*"
)
_WORD_COUNT = r"\b\d+[ -]words?\b"
_STATES_NOTHING = re.compile(rf"{_LIST_NUMBER}|{_PASSAGE_NUMBER}|{_WORD_COUNT}", re.IGNORECASE)


class Target(StrEnum):
    """Which digits of a marked passage count."""

    PLAIN = "plain"
    CLEANED = "cleaned"


def marks_a_number(response: str, marks: Sequence[Span], target: Target) -> bool:
    """Whether some marked passage of a response holds a digit that counts for the target."""
    counted = response
    if target is Target.CLEANED and any(_DIGIT.search(response, mark.start, mark.end) for mark in marks):
        counted = _STATES_NOTHING.sub(lambda found: " " * len(found[0]), response)  # places stay as they are
    return any(_DIGIT.search(counted, mark.start, mark.end) for mark in marks)

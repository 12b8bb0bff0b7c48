"""Directions that the documents contradict: "in the north" where they only speak of the south.

A direction is a claim only then, as most in small letters tell little. "Ash is north of Elm" and "Elm is
south of Ash" are both true, so the side of something is none.
"""

import re
from collections.abc import Iterable, Iterator

from reward.claims.names.model import Name

_OPPOSITES = {"north": "south", "south": "north", "east": "west", "west": "east"}
_WORD = re.compile(
    r"(?<![^\W_])(north|south)?(?:(?<=th)[- ]?)?(east|west)?(?:(?<=th)|(?<=st))"
    r"(?:ern(?:most|er|ers)?|erly|wards?|bound)?(?![^\W_])",
    re.IGNORECASE,
)
_SIDE = re.compile(r" of\b")
_THE = re.compile(r"\bthe (?:far |extreme |very )?$", re.IGNORECASE)


def contradicted_directions(response: str, documents: Iterable[str]) -> Iterator[Name]:
    """Directions in small letters that no document holds, while one has the opposite in small letters."""
    found = [match for match in _WORD.finditer(response) if match[0].islower() and not _is_side(match)]
    if not found:
        return
    in_documents = [match for document in documents for match in _WORD.finditer(document)]
    held = {part.lower() for match in in_documents for part in match.groups("")}
    held_small = {part for match in in_documents if match[0].islower() for part in match.groups("")}
    for match in found:
        parts = list(filter(None, match.groups()))
        if any(part not in held and _OPPOSITES[part] in held_small for part in parts):
            yield Name(*match.span(), match[0], (match[0],))


def _is_side(match: re.Match[str]) -> bool:
    """Whether it says on which side of something else a thing is: "12 km north of the city"."""
    if not _SIDE.match(match.string, match.end()):
        return False
    return not _THE.search(match.string, max(0, match.start() - 16), match.start())

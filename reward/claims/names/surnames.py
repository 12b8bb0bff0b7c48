"""A surname that is said once for several people: "Peter and Julia Novak" names Peter Novak, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from reward.claims.names.model import Name
from reward.claims.names.words import CITIES, KINDS, is_common

if TYPE_CHECKING:
    from reward.claims.names.index import Index

_MOST_PLACES = 500  # of a first name that are looked at
_MOST_SHARING = 6  # people with one surname


def sharing(index: Index, name: Name) -> Iterator[tuple[int, int]]:
    """Where a text says a first name, and behind it the surname for several people."""
    given, surname = name.tokens[0], name.tokens[-1]
    if len(name.tokens) != 2 or surname in KINDS or surname in CITIES or surname not in index.places:
        return
    for place in index.places_of(given)[:_MOST_PLACES]:
        last = _surname_behind(index, place)
        if last is not None and index.tokens[last].word == surname:
            yield place, last + 1


def _surname_behind(index: Index, place: int) -> int | None:
    """The place of the surname behind first names that "and" joins; none behind a surname of its own.

    In "Elton John and Tim Rice" nobody is called John Rice.
    """
    before = index.tokens[place - 1] if index.gap(place, -1) == " " else None
    if before is not None and before.capital and not is_common(before.word):
        return None
    last = False
    for _ in range(_MOST_SHARING):
        gap = index.gap(place, 1)
        if gap is None or not index.tokens[place].capital:
            return None
        if last:
            return place + 1 if gap == " " and index.tokens[place + 1].capital else None
        joined = gap in (" ", ", ") and index.tokens[place + 1].word == "and"
        last = joined or gap == " & "
        if not last and gap != ", ":
            return None
        place += 2 if joined else 1
        if place >= len(index.tokens):
            return None
    return None

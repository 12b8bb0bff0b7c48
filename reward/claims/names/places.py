"""The state or country behind a name: "Kansas City, Missouri", "Paris, France".

A name that has one is another than the same name with another one. In a list ("in Washington, Oregon and
Idaho") and at a sentence that goes on ("In Paris, France lost") nothing is said of the name before.
"""

import re

from reward.claims.names.lexicon import COUNTRIES, NATIONS, STATES, fold

Place = tuple[str, ...]
_BEHIND = re.compile(
    r"(?:, ?| \()([A-Z]\w*\.?(?:[A-Z]\.?)*(?: [A-Z]\w*){0,2})"
    r"(?!\w)(?!,? (?:and|or|&) [A-Z]|, [A-Z]|/)"
    r"(?=\)|[.,;:!?\"\u201d*]|\s*$|\s*\n"
    r"| (?:in|on|at|for|with|where|from|to|by|near|since|during|after|before|when)\b)"
)
_FULL_STATES = frozenset(STATES.values())
_BRITISH = frozenset(("uk", "england", "scotland", "wales", "ireland"))
_WITH_STATES = frozenset(("usa", "canada"))
_CONTINENTS = frozenset(("africa", "asia", "europe"))
_PHRASES = {"united states": "usa", "united kingdom": "uk", "great britain": "uk"}


def place_of(name: str) -> Place:
    """The state or country that a text names; () for anything else, nationalities included."""
    low = fold(name)
    words = tuple(low.split())
    if words in _FULL_STATES:
        return words
    letters = name.replace(".", "")
    if len(letters) == 2 and letters.isupper() and letters.lower() in STATES:
        return STATES[letters.lower()]
    if letters in ("US", "USA", "UK"):
        return (NATIONS.get(letters.lower(), letters.lower()),)
    country = _PHRASES.get(low, low)
    return (country,) if country in COUNTRIES and country not in _CONTINENTS else ()


def place_behind(text: str, end: int) -> Place:
    """The state or country that a comma or a bracket adds to the name that ends there."""
    if not text.startswith((",", " ("), end):
        return ()
    found = _BEHIND.match(text, end)
    return place_of(found[1].strip()) if found else ()


def differ(one: Place, other: Place) -> bool:
    """Whether two places cannot be one: Texas and France, but not Texas and the United States."""
    if not one or not other or one == other:
        return False
    if one in _FULL_STATES and other in _FULL_STATES:
        return True
    if one in _FULL_STATES or other in _FULL_STATES:
        return not {*one, *other} & _WITH_STATES
    return not {*one, *other} <= _BRITISH and one[-1] in COUNTRIES and other[-1] in COUNTRIES

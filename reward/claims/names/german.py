"""Nouns of German text, which have capitals without being names: "die Kosten", "40 Fahrzeuge".

In a German sentence capitals do not tell names from nouns. Behind an article, a number or an adjective a word
is taken for a noun, unless a table knows it as a name: "Berlin" is a name, and "der Umsatz" is none. A noun
without one of these before it ("Kosten sanken") counts as a name, as in other languages.
"""

import re
from functools import lru_cache

from reward.claims.names import lexicon
from reward.claims.text import lowered, words_in

_TELLING = lexicon.words("german_words")
_NO_NAMES = lexicon.words("german_beginnings")
_ENGLISH = frozenset(("the", "of", "and", "is", "was"))
_FEWEST = 2  # words that tell the language
_OPENING = re.compile(r"(?:Der|Die|Das|Ein|Eine) [A-ZÄÖÜ][^\W\d_]+ ([a-zäöüß]{3,})")
_DETERMINED = re.compile(
    r"(?<!von )(?:\b(?:der|die|das|de[mns]|deren|dessen|[a-zäöüß]+erer|eine?[mnrs]?|kein\w*|sein\w*|ihre?\w?"
    r"|unser\w*|dies\w+|jede\w*|alle[nr]?|viele|mehr|im|zum|zur|vom|beim|pro|millionen|milliarden|prozent|mio\.|mrd\.)|\d)"
    r"(?: [a-zäöüß]+e[mnrs]?)? $",
    re.IGNORECASE,
)
_REACH = 40  # characters


def is_noun(text: str, start: int, low: str) -> bool:
    """Whether a capitalised word, folded, is a noun, or opens a sentence, of German text."""
    if not is_german(text):
        return False
    if low in _NO_NAMES:
        return True
    is_known = low in lexicon.NATIONS or low in lexicon.CITIES or low in lexicon.EXONYMS
    return not is_known and _DETERMINED.search(text, max(0, start - _REACH), start) is not None


@lru_cache(maxsize=256)
def is_german(text: str) -> bool:
    """Whether a text is German, by its small words; a short one by how it begins, too."""
    words = words_in(lowered(text)).all
    if not _ENGLISH.isdisjoint(words):
        return False
    opening = _OPENING.match(text)
    is_opened = opening is not None and not lexicon.is_common(opening[1])
    return is_opened or len(_TELLING & words) >= _FEWEST

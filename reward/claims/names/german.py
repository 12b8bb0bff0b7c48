"""Nouns of German text, which have capitals without being names: "die Kosten", "40 Fahrzeuge".

In a German sentence capitals do not tell names from nouns. A word is taken for a noun or, where it opens the
sentence, for any word, if the dictionary of `simplemma` has it or ends in a word that it has
("Werkstatttarif"), or if an article, a number or an adjective is before it; but not behind "Herr" or "Frau",
nor if a table knows it as a name: "Berlin" is a name, and "Umsatz" is none. So a surname that is a word, too
("Weber"), is no claim where it is alone.
"""

import re
from functools import lru_cache

from simplemma import is_known

from reward.claims.names import lexicon
from reward.claims.text import lowered, words_in

_TELLING = lexicon.words("german_words")
_NO_NAMES = lexicon.words("german_beginnings")
_ENGLISH = frozenset(("the", "of", "and", "is", "was"))
_FEWEST = 2  # words that tell the language
_WORD = re.compile(r"\w*")
_OPENING = re.compile(r"(?:Der|Die|Das|Ein|Eine) [A-ZÄÖÜ][^\W\d_]+ ([a-zäöüß]{3,})")
_DETERMINED = re.compile(
    r"(?<!von )(?:\b(?:der|die|das|de[mns]|deren|dessen|[a-zäöüß]+erer|eine?[mnrs]?|kein\w*|sein\w*|ihre?\w?"
    r"|unser\w*|dies\w+|jede\w*|alle[nr]?|viele|mehr|im|zum|zur|vom|beim|pro|millionen|milliarden|prozent|mio\.|mrd\.)|\d)"
    r"(?: [a-zäöüß]+e[mnrs]?)? $",
    re.IGNORECASE,
)
_ADDRESSED = re.compile(r"\b(?:Herrn?|Frau|Dr\.|Prof\.|Firma|Familie) $")
_REACH = 40  # characters
_SHORTEST_PART = 4  # letters of the parts of a compound
_LONGEST_WORD = 60  # letters; a longer one would be split at each of them


def is_noun(text: str, start: int, low: str, *, is_alone: bool) -> bool:
    """Whether a capitalised word, folded, is a noun, or opens a sentence, of German text.

    Only what is alone is looked up in the dictionary: "Ute Krämer" is a name, though both are words, too.
    """
    if not is_german(text):
        return False
    if low in _NO_NAMES:
        return True
    is_name = low in lexicon.NATIONS or low in lexicon.CITIES or low in lexicon.EXONYMS
    near = max(0, start - _REACH)
    if is_name or low in lexicon.GIVEN_NAMES or _ADDRESSED.search(text, near, start):
        return False
    if _DETERMINED.search(text, near, start) is not None:
        return True
    word = _WORD.match(text, start)
    return is_alone and word is not None and is_word(word[0])


@lru_cache(maxsize=1 << 16)
def is_word(written: str) -> bool:
    """Whether the dictionary of German has a capitalised word, or its last part and what is before that."""
    if len(written) > _LONGEST_WORD:
        return False
    if is_known(written, lang="de"):
        return True
    for at in range(_SHORTEST_PART, len(written) - _SHORTEST_PART + 1):
        first, last = written[:at], written[at:]
        firsts = (first, first.removesuffix("s"), first.removesuffix("n"), f"{first}e")
        if is_known(last.title(), lang="de") and any(is_known(one, lang="de") for one in firsts):
            return True
    return False


@lru_cache(maxsize=256)
def is_german(text: str) -> bool:
    """Whether a text is German, by its small words; a short one by how it begins, too."""
    words = words_in(lowered(text)).all
    if not _ENGLISH.isdisjoint(words):
        return False
    opening = _OPENING.match(text)
    is_opened = opening is not None and not lexicon.is_common(opening[1])
    return is_opened or len(_TELLING & words) >= _FEWEST

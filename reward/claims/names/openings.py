"""Words that open a sentence of another language: "Trotz", "Pendant", "Cuando", "Le club".

English ones are common words (`lexicon.is_common`). These are the stop words of `stopwordsiso`, a few that it
lacks, and where a text has several stop words of one language, the words of its dictionary in `simplemma`.
Since many are names elsewhere ("Allen", "Will"), the text must be of such a language, too: it has none of the
smallest English words, and another word of the same list that is no English one.
"""

import re
from functools import cache, lru_cache

import stopwordsiso
from simplemma import is_known

from reward.claims.names import lexicon
from reward.claims.names.capitals import Part, begins
from reward.claims.names.lexicon import is_common
from reward.claims.text import lowered, words_in

_LANGUAGES = ("da", "de", "es", "fi", "fr", "it", "nl", "no", "pl", "pt", "sv")
_ENGLISH = frozenset(("the", "and", "with", "were", "has", "from"))
_ARTICLES = frozenset(("le", "la", "les", "une", "el", "los", "las", "una", "il", "het", "een"))
_DICTIONARIES = {"no": "nb"}
_FEWEST = 3  # stop words of a language that tell it
_MORE = lexicon.words("openings")
_ELIDED = re.compile(  # "L'an", "Dell'uomo"
    r"(?:[cdjlmnst]|qu|un|(?:d|n|s|c)?[aeou]ll)['\u2019](?=[a-zà-ÿ])", re.IGNORECASE
)
_NEXT_TWO = re.compile(r" ([^\W\d_]{2,}) ([^\W\d_]{2,})")


def opens_foreign(text: str, part: Part, *, is_alone: bool = True) -> bool:
    """Whether a capitalised word opens a sentence of another language, and is no name there.

    Only what is alone is looked up in the dictionary: "Puerto Montt" is a name, and "puerto" a word.
    """
    if not _ENGLISH.isdisjoint(_words(text)) or part.text.isupper() or not begins(text, part.start):
        return False
    if _ELIDED.match(text, part.start):
        return True
    low, behind = part.text.lower(), _NEXT_TWO.match(text, part.end)
    small = behind is not None and all(word.islower() and not is_common(word) for word in behind.groups())
    if low in _ARTICLES and small:
        return True
    languages = zip(_LANGUAGES, _stops(), _foreign(text), strict=True)
    if any(low in stops and said - {low} for _, stops, said in languages):
        return True
    return is_alone and _is_word(text, low)


def _is_word(text: str, low: str) -> bool:
    """Whether a word is in the dictionary of the language of which a text has most stop words."""
    num_said, language = max(zip(map(len, _foreign(text)), _LANGUAGES, strict=True))
    return num_said >= _FEWEST and is_known(low, lang=_DICTIONARIES.get(language, language))


def is_foreign(text: str) -> bool:
    """Whether a text has a stop word of another language, and none of the smallest English words."""
    return _ENGLISH.isdisjoint(_words(text)) and any(_foreign(text))


@cache
def _stops() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(stopwordsiso.stopwords(language)) | _MORE for language in _LANGUAGES)


@lru_cache(maxsize=64)
def _foreign(text: str) -> tuple[frozenset[str], ...]:
    """The stop words of each language that a text has, and that are no English words."""
    words = frozenset(word for word in _words(text) if not is_common(word))
    return tuple(words & stops for stops in _stops())


@lru_cache(maxsize=64)
def _words(text: str) -> frozenset[str]:
    return words_in(lowered(text)).all

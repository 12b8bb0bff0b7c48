"""Words of names: the tables, how words are written in one way, and which of them say nothing by themselves.

`tables.toml` holds the lists, and common cases only: what is not in them is compared as it is written. One
word stands for all writings of one thing: "French" and "France" are both `france`. `common.txt` holds English
words that mostly are no names: those that stand written small inside sentences of encyclopedia, news and
technical text, two million words. Inflected forms are derived (`is_common`).
"""

import functools
import re
import tomllib
import unicodedata
from pathlib import Path

from reward.claims.numbers import cardinal, roman

_HERE = Path(__file__).parent
TABLES: dict[str, str] = tomllib.loads((_HERE / "tables.toml").read_text(encoding="utf-8"))
COMMON = frozenset((_HERE / "common.txt").read_text(encoding="utf-8").split()) | frozenset(
    TABLES["more_common"].split()
)


def words(table: str) -> frozenset[str]:
    """A table that is a set of words."""
    return frozenset(TABLES[table].split())


def groups(table: str) -> list[list[str]]:
    """A table with one group of words a line."""
    return [line.split() for line in TABLES[table].strip().splitlines()]


_TAKES_S = "anirkdte"  # last letters of nationalities whose plural has an s: "Germans", "Swedes"


def _nations() -> dict[str, str]:
    nations = {word: country for country, *others in groups("countries") for word in (country, *others)}
    plurals = {f"{word}s": country for word, country in nations.items() if word[-1] in _TAKES_S}
    return {**plurals, **nations}


NATIONS = _nations()  # "french" to "france"
COUNTRIES = frozenset(NATIONS.values())
STATES = {short: tuple(name) for short, *name in groups("states")}  # "ca" to ("california",)


def _phrases() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """The phrases that begin with a word, the longest first, each with the word that stands for it."""
    phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for line in TABLES["phrases"].strip().splitlines():
        short, _, texts = line.partition(": ")
        for text in texts.split(", "):
            words = tuple(NATIONS.get(word, word) for word in text.split())
            phrases.setdefault(words[0], []).append((words, short))
    return {first: sorted(those, key=lambda phrase: -len(phrase[0])) for first, those in phrases.items()}


PHRASES = _phrases()
# Words that "and" or "for" joins within a known phrase: "Food and Drug Administration".
JOINTS = frozenset(
    (words[at - 1], words[at], words[at + 1])
    for those in PHRASES.values()
    for words, _ in those
    for at in range(1, len(words) - 1)
    if words[at] in ("and", "for") and words[at - 1] not in COUNTRIES
)

WORD = re.compile(r"[^\W\d_](?:\.[^\W\d_])+(?!\w)\.?|[^\W_]+(?:['\u2019`][^\W_]+)*(?:&[A-Z][^\W_]*)*")

TITLES = words("titles")
ABBREVIATIONS = words("abbreviations")
LINKS = words("links")
ARTICLES = frozenset(("the", "a", "an", "and"))
PREFIXES = words("prefixes")
SUFFIXES = words("suffixes")
GIVEN_NAMES = words("given_names")
KINDS = words("kinds")
CITIES = words("cities")
OF_HEADS = KINDS | {"gulf", "cape", "mount", "port", "isle"}  # "University of Oslo" is Oslo University
CALENDAR = words("calendar")
_MARKED = words("marked")
ACRONYMS = words("acronyms")
CITED = words("cited")
LEGAL_FORMS = words("legal_forms")
NUMERALS = words("numerals")
_COMMON_TABLES = KINDS | TITLES | CITED | NUMERALS
_BEGINNINGS = tuple(words("common_beginnings"))
_NAMES_IN_ING = words("names_in_ing")
_NAMES_IN_ERS = words("names_in_ers")
_NAMES_IN_S = words("names_in_s")
PLURAL_VERBS = words("plural_verbs")
_ALSO_WORDS = words("also_words")
_SAME_SMALL = words("same_small")
UNITS = words("units")
_COMMON_ENDINGS = tuple(words("common_endings"))
_DERIVED_ENDINGS = tuple(words("derived_endings"))
_SHORTEST_BASE = 4  # letters
_SMALL = frozenset(("us", "polish", "pole", "poles"))  # written small these are no nationalities
_SPECIAL = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe", "\u0131": "i", "þ": "th"}
)
_CURLY = str.maketrans({"\u2019": "'", "\u2018": "'"})
_UMLAUTS = {"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"}
_TRANSCRIBED = str.maketrans(_UMLAUTS | {one.upper(): two.title() for one, two in _UMLAUTS.items()})
_PARTICLES = ("outs", "offs", "ups")
_DOERS = ("ers", "ors", "ists", "ants")  # "gardeners" are made of "garden"


def _alike() -> dict[str, frozenset[str]]:
    alike: dict[str, frozenset[str]] = {}
    for group in (*groups("nicknames"), *groups("short")):
        for word in group:
            alike[word] = alike.get(word, frozenset()).union(group)
    return alike


RULERS = {word: group[-1] for group in groups("short") if group[1][:1].isdigit() for word in group[:-1]}
# The usual Roman numerals of names: "xi" is "11".
ROMAN = {one.lower(): str(value) for one, value in roman.NUMERALS.items() if value < 100 and len(one) > 1}
COUNTED = {word: str(value) for word, value in cardinal.CARDINALS.items() if 2 <= value <= 13}
EXONYMS = {other: name for name, *others in groups("exonyms") for other in others}  # "wien" to "vienna"
LIKE = _alike()  # "bill" to itself, "william" and "will"
# Of inflected forms, and what they stand for: "cities" are made of "city".
_ENDINGS: dict[str, tuple[str, ...]] = {
    **{"ies": ("y",), "es": ("", "e"), "s": ("",), "ed": ("", "e")},
    **{"ing": ("", "e"), "ings": ("", "e"), "ly": ("",)},
}


@functools.lru_cache(maxsize=1 << 16)
def is_common(word: str) -> bool:
    """Whether a word, in small letters, is an English word that is mostly no name, or made of one."""
    if word in COMMON or word in _COMMON_TABLES:
        return True
    if word in _NAMES_IN_ING:
        return False
    begun = (start for start in _BEGINNINGS if word.startswith(start)) if len(word) > 5 else ()
    if any(word[len(start) :] in COMMON for start in begun):
        return True
    return any(
        word.endswith(ending) and len(word) - len(ending) >= 3 and f"{word[: -len(ending)]}{rest}" in COMMON
        for ending, rests in _ENDINGS.items()
        for rest in rests
    )


@functools.lru_cache(maxsize=1 << 16)
def looks_common(word: str) -> bool:
    """Whether a word that begins a sentence seems to be English, by its ending.

    It has the ending of a verb or an abstract noun, is made of a common word, or is a plural of those who do
    something ("Gardeners").
    """
    if word in _NAMES_IN_ING:
        return False
    is_made = _is_derived(word) or _is_doers(word) or _is_joined(word)
    return word.endswith(_COMMON_ENDINGS) or word in NUMERALS or is_made


def is_in_ing(word: str) -> bool:
    """Whether a word has the ending of a verb, and is no name that has it, too."""
    return word.endswith("ing") and len(word) > _SHORTEST_BASE + 2 and word not in _NAMES_IN_ING


def _is_derived(word: str) -> bool:
    """Whether a word is made of a common one: "running", "making", "rarely"; not "Riesling" and "Emily"."""
    for ending in _DERIVED_ENDINGS:
        base = word.removesuffix(ending)
        if base == word or len(base) < _SHORTEST_BASE:
            continue
        short = base[:-1] if base[-2:-1] == base[-1:] else base
        silent = f"{base}le" if ending == "ly" else f"{base}e"  # "possibly", "making"
        american = f"{base[:-1]}ze" if base.endswith("is") else base  # "organising"
        if any(is_common(one) for one in (base, silent, short, f"{base[:-1]}y", american)):
            return True
    return False


def _is_doers(word: str) -> bool:
    """Whether a plural is made of a common word: "travellers", "swimmers", "researchers"."""
    if not word.endswith(_DOERS) or word in _NAMES_IN_ERS:
        return False
    base = word[: -4 if word.endswith(("ists", "ants")) else -3]
    short = base[:-1] if base[-2:-1] == base[-1:] else base
    return len(base) > 2 and any(is_common(one) for one in (word[:-1], base, f"{base}e", f"{base}y", short))


def _is_joined(word: str) -> bool:
    """Whether a plural is two common words written as one: "stallholders", "callouts"."""
    if word.endswith(_PARTICLES):
        return is_common(word[: -3 if word.endswith("ups") else -4])
    if not word.endswith("ers") or word in _NAMES_IN_ERS:
        return False
    places = range(_SHORTEST_BASE, len(word) - _SHORTEST_BASE)
    return any(is_common(word[:at]) and is_common(word[at:]) for at in places)


@functools.lru_cache(maxsize=1 << 16)
def is_plural(word: str) -> bool:
    """Whether a word can be a plural that names nobody; "Germans" and "Republicans" are names."""
    is_name = word in NATIONS or word in _NAMES_IN_S or word in _NAMES_IN_ING or word in _NAMES_IN_ERS
    return not is_name and len(word) > 4 and word[-1] == "s" and not word.endswith(("ss", "ans", "us", "is"))


@functools.lru_cache(maxsize=1 << 16)
def means_else_small(word: str) -> bool:
    """Whether a word is no name when it is written small: "sunny windows", but not "on my ipad".

    What a name can be one of ("the congress"), and people by what they do ("instructors"), mean the same.
    """
    if word in _ALSO_WORDS:
        return True
    same = word in KINDS or word in TITLES or word in _SAME_SMALL or _is_doers(word)
    return not same and is_common(word)


def transcribed(text: str) -> str:
    """A text with the umlauts as German and Nordic typewriters write them: "Jörg" is "Joerg"."""
    return text if text.isascii() else unicodedata.normalize("NFC", text).translate(_TRANSCRIBED)


def is_content(word: str) -> bool:
    """Whether a common word can begin a name: no adverb and no number."""
    return not word.endswith("ly") and word not in NUMERALS


def stem(word: str) -> str:
    """A common word without its plural."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


@functools.lru_cache(maxsize=1 << 16)
def fold(word: str) -> str:
    """A word without case, diacritics, apostrophes and possessive: "Skłodowska's" is "sklodowska"."""
    if not word.isascii():
        word = word.translate(_CURLY)
        low = unicodedata.normalize("NFKD", word.casefold())
        low = "".join(c for c in low if not unicodedata.combining(c)).translate(_SPECIAL)
    else:
        low = word.lower()
    if low.isalnum():  # the plural of an acronym: "ATMs"
        is_plural = len(low) > 2 and low[-1] == word[-1] == "s" and word[:-1].isupper()
        return low[:-1] if is_plural else low
    return low.removesuffix("'s").replace("'", "").replace("`", "").replace(".", "")


@functools.lru_cache(maxsize=1 << 16)
def canonical(word: str) -> str:
    """The one writing of a word of a text: folded, a nationality as its country, "WHO" apart from "who"."""
    low = fold(word)
    if word[:1].islower():
        return low if low in _SMALL else NATIONS.get(low, low)
    if low in _MARKED and word.isupper():
        return "usa" if low == "us" else low.upper()
    if low in EXONYMS and not word.isupper():  # "Rom" is Rome, a ROM is not
        return EXONYMS[low]
    return low if low == "us" else NATIONS.get(low, low)


def is_acronym(word: str) -> bool:
    """Whether a word of a text is written as an acronym: "WHO", "U.S."."""
    letters = word.replace(".", "")
    return 2 <= len(letters) <= 7 and letters.isupper() and letters.isalpha()

"""How a text writes its numbers: which sign decimals follow, and whether the day or the month comes first.

"1.500" is one and a half in one text and fifteen hundred in another, and the number itself does not show
which. So the text is asked first, then a setting, then the language, and the number gets one reading. The
decimal sign and the order of dates are told in this order, each on its own:

    1. what the text itself writes in a way that can be read once only: "1,234.5", "1,234,567", "12,5 %",
       "25/3/2021"; the majority counts, and a tie says nothing
    2. the setting `locale`, unless it is "auto". It yields to 1., which is a fact about this text, while a
       setting speaks of all texts.
    3. the language of the text, by its stop words
    4. what its other numbers suggest ("3,5" may also be a list, "3.11" a version or a day)
    5. the same of the other texts, all of them together
    6. English: a decimal point; the order of dates stays open, as the English-speaking countries differ
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import TypeVar


class DateOrder(StrEnum):
    """Which part of "5/3/2021" is which."""

    DAY_FIRST = "day_first"
    MONTH_FIRST = "month_first"


@dataclass(frozen=True)
class Conventions:
    """What must be known to read the digits of a text in one way."""

    decimal: str = "."  # "." or ","; the other one groups thousands
    date_order: DateOrder | None = None  # None leaves "5/3/2021" open
    language: str = "en"  # two letters, as ISO 639 has them


ENGLISH = Conventions()
AUTO = "auto"

_T = TypeVar("_T")

_TOKEN = re.compile(r"(?<![0-9])[0-9]++(?:[.,/-][0-9]++){1,16}")
_PIECES = re.compile(r"[/-]")
_DATE = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(?:[12]\d{3}|(?<=/)\d\d)")
_GROUPS = re.compile(r"\d{1,3}(?:([.,])\d{3}){2,}")
_ADDRESS = re.compile(r"\d+(?:\.\d+){3}")  # of the Internet: "192.168.100.200"
_GROUPS_AND_DECIMALS = re.compile(r"\d{1,3}([.,])(?:\d{2,3}\1)*\d{3}(?!\1)([.,])\d+")
_COMMA_NOUGHTS = re.compile(r"[1-9]\d{0,2},000")
_DECIMALS = re.compile(r"(\d+)([.,])(\d+)")
_MEASURED = re.compile(
    r"[ \u00a0\u202f]?(?:[%\u2030\u20ac$\u00a3\u00b0]|(?:mio|mrd|mill|mil|mld|mln|bn|percent|prozent|procent"
    r"|por\sci|pour\scent|per\scento|euro|eur|usd|dollar|km|cm|mm|kg|mg|ml|m\u00b2|kwh|mw|gb|mb)(?!\d))",
    re.IGNORECASE,
)
_MOST_TOKENS = 2000  # of one text; enough to know its habits, and a long text costs no more
_MOST_TEXT = 4000  # characters whose words are looked at
_FEWEST_WORDS = 2  # that tell a language: one may be part of a name ("El Paso", "Le Mans")

# No word of another language here is an English one too, nor one of English names and letters ("los", "est").
_STOP_WORDS = {
    "en": "the of and to is was were that with for from this which are have had has by as it be their "
    "than or an at not but they you he she its can will",
    "de": "der das und ist nicht mit dem den ein eine einer eines von auf für sich auch wird wurde "
    "wurden sind zu bei nach haben aus werden über beträgt sowie",
    "fr": "les et une des dans qui pas aux avec sont cette été ont elle mais ses leur ce",
    "es": "y una que en por con para se su fue más pero sus está desde tiene del",
    "it": "il gli è della che di con sono nel nella dei delle alla stato più anche dal del una",
    "pt": "os uma em não para foi mais são ao pela pelo tem seu sua é com que",
    "nl": "het een en dat niet voor ook wordt werd naar bij uit deze heeft hebben zijn aan",
    "sv": "och det som är av för inte den har med ett på från",
    "da": "og det som er af ikke til den har med et på fra blev",
    "nb": "og ikke som er av fra til på ble har med et",
    "pl": "nie się jest że oraz dla przez który która był była są jak",
    "cs": "je se že ve jako byl byla který která jsou podle nebo",
    "fi": "ja ei että oli joka mutta myös ovat kuin",
    "tr": "ve bir bu için ile olarak çok daha olan gibi",
    "ru": "и в не на что по как из это был была для от",
}  # fmt: skip
_WORDS_OF = {language: frozenset(words.split()) for language, words in _STOP_WORDS.items()}
_LANGUAGES_OF = {
    word: tuple(language for language, words in _WORDS_OF.items() if word in words)
    for word in frozenset().union(*_WORDS_OF.values())
}

# Of the Unicode locale data (CLDR): languages with a decimal comma, and the places that differ from theirs.
_COMMA = frozenset((
    "af", "az", "be", "bg", "bs", "ca", "cs", "da", "de", "el", "es", "et", "eu", "fi", "fr", "gl", "hr",
    "hu", "hy", "id", "is", "it", "ka", "kk", "lt", "lv", "mk", "nb", "nl", "nn", "no", "pl", "pt", "ro",
    "ru", "sk", "sl", "sq", "sr", "sv", "tr", "uk", "uz", "vi",
))  # fmt: skip
_POINT = frozenset((
    "am", "ar", "bn", "cy", "en", "fa", "ga", "gu", "he", "hi", "ja", "kn", "ko", "ml", "mr", "ms", "my",
    "ne", "pa", "sw", "ta", "te", "th", "tl", "ur", "zh",
))  # fmt: skip
_SWAPPED = frozenset((
    "de-ch", "de-li", "it-ch", "en-za", "es-mx", "es-us", "es-pr", "es-gt", "es-hn", "es-ni", "es-sv",
    "es-pa", "es-do", "es-pe", "es-cu",
))  # fmt: skip
_MONTH_FIRST = frozenset((
    "en-us", "es-pr", "es-pa", "en-ph",
))  # fmt: skip
# Of them nothing is known: they differ within, or put the year first.
_UNDECIDED = frozenset((
    "en", "eu", "fa", "hu", "ja", "ko", "lt", "zh", "en-ca", "fr-ca", "en-za",
))  # fmt: skip
_LOCALE = re.compile(r"([a-z]{2})(?:[-_]([a-z]{2}))?", re.IGNORECASE)


@dataclass(frozen=True)
class _Shown:
    """What one text shows: how many of its numbers and words speak for which convention."""

    decimals: Counter[str] = field(default_factory=Counter)  # surely
    likely_decimals: Counter[str] = field(default_factory=Counter)
    orders: Counter[DateOrder] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class _Usual:
    """What a language or a locale usually writes; None and "" where it does not say."""

    decimal: str | None = None
    date_order: DateOrder | None = None
    language: str = ""


def conventions_of(text: str, *others: str, locale: str = AUTO) -> Conventions:
    """The conventions of a text, by itself and, where it shows nothing, by other texts; see above.

    Args:
        text: What is to be read.
        others: What it speaks of, such as the documents that an answer is about. What is known of a text
            is kept, so that documents cost nothing the second time.
        locale: "auto", or a language with or without a country: "en-US", "de".

    Raises:
        ValueError: The locale is unknown.
    """
    return _conventions_of(text, others, locale)


@lru_cache(maxsize=1024)  # the documents of a query are the same for all its answers
def _conventions_of(text: str, others: tuple[str, ...], locale: str) -> Conventions:
    own, around = _shown(text), _together(others)
    given = _Usual() if locale == AUTO else _usual_of(locale)
    spoken, around_spoken = _spoken(own), _spoken(around)
    decimal = (
        _most(own.decimals)
        or given.decimal
        or spoken.decimal
        or _most(own.likely_decimals)
        or _most(around.decimals)
        or around_spoken.decimal
        or _most(around.likely_decimals)
    )
    order = _most(own.orders) or given.date_order
    if order is None and locale == AUTO:
        order = spoken.date_order
    order = order or _most(around.orders) or (around_spoken.date_order if locale == AUTO else None)
    language = given.language or spoken.language or around_spoken.language
    return Conventions(decimal or ENGLISH.decimal, order, language or ENGLISH.language)


@lru_cache(maxsize=256)
def _together(texts: tuple[str, ...]) -> _Shown:
    """What several texts show, whatever their order."""
    if len(texts) == 1:
        return _shown(texts[0])
    all_of_them = _Shown()
    for shown in map(_shown, texts):
        all_of_them.decimals.update(shown.decimals)
        all_of_them.likely_decimals.update(shown.likely_decimals)
        all_of_them.orders.update(shown.orders)
        all_of_them.languages.update(shown.languages)
    return all_of_them


@lru_cache(maxsize=1024)
def _shown(text: str) -> _Shown:
    shown = _Shown()
    for token in islice(_TOKEN.finditer(text), _MOST_TOKENS):
        before = text[token.start() - 1 : token.start()] if token.start() else ""
        if before.isalpha() or before in ("_", ".", ",", "/"):
            continue  # of a name: "v1.2"
        if date := _DATE.fullmatch(token[0]):
            _add_date(shown, int(date[1]), int(date[3]))
            continue
        is_measured = _MEASURED.match(text, token.end()) is not None
        for piece in _PIECES.split(token[0]):
            _add_number(shown, piece, is_measured=is_measured)
    words = filter(_LANGUAGES_OF.__contains__, text[:_MOST_TEXT].lower().split())
    for languages, count in Counter(map(_LANGUAGES_OF.__getitem__, words)).items():
        for language in languages:
            shown.languages[language] += count
    return shown


def _add_date(shown: _Shown, first: int, second: int) -> None:
    if 12 < first <= 31 and second <= 12:
        shown.orders[DateOrder.DAY_FIRST] += 1
    elif 12 < second <= 31 and first <= 12:
        shown.orders[DateOrder.MONTH_FIRST] += 1


def _add_number(shown: _Shown, digits: str, *, is_measured: bool) -> None:
    """Counts what the marks of one number say.

    One mark before three digits says nothing, but for "12,000": nobody writes noughts behind a comma.
    """
    if both := _GROUPS_AND_DECIMALS.fullmatch(digits):
        shown.decimals[both[2]] += 1
    elif groups := _GROUPS.fullmatch(digits):
        if not _ADDRESS.fullmatch(digits):
            shown.decimals["," if groups[1] == "." else "."] += 1
    elif _COMMA_NOUGHTS.fullmatch(digits):
        shown.likely_decimals["."] += 1
    elif (decimals := _DECIMALS.fullmatch(digits)) and len(decimals[3]) != 3:
        is_year = len(decimals[3]) == 4 and decimals[2] == ","  # "May 5,2021"
        is_sure = is_measured or (decimals[1] == "0" and len(decimals[3]) > 1)
        if not is_year:
            (shown.decimals if is_sure else shown.likely_decimals)[decimals[2]] += 1


def _most(counts: Counter[_T]) -> _T | None:
    """What most speak for; None when none do, or two as many."""
    best = counts.most_common(2) if counts else ()
    return best[0][0] if best and (len(best) == 1 or best[0][1] > best[1][1]) else None


def _spoken(shown: _Shown) -> _Usual:
    """What is usual in the language of most stop words; nothing where they are few. A tie is English."""
    best = shown.languages.most_common(1)
    if not best or best[0][1] < _FEWEST_WORDS:
        return _Usual()
    return _usual_of(best[0][0] if best[0][1] > shown.languages["en"] else "en")


@lru_cache(maxsize=64)
def _usual_of(locale: str) -> _Usual:
    """What a language or a locale usually writes.

    Raises:
        ValueError: It is unknown.
    """
    match = _LOCALE.fullmatch(locale)
    language = match[1].lower() if match else ""
    if match is None or language not in _COMMA | _POINT:
        raise ValueError(
            f'locale: {locale!r} is unknown; set "auto", or a language and country such as "de-DE"'
        )
    name = f"{language}-{match[2].lower()}" if match[2] else language
    has_comma = (language in _COMMA) is not (name in _SWAPPED)
    order: DateOrder | None = DateOrder.DAY_FIRST
    if name in _MONTH_FIRST:
        order = DateOrder.MONTH_FIRST
    elif name in _UNDECIDED or (language in _UNDECIDED and language != "en"):
        order = None
    return _Usual("," if has_comma else ".", order, language)

"""How a text writes its numbers: which sign decimals follow, and whether the day or the month comes first.

"1.500" is one and a half in one text and fifteen hundred in another, and the number itself does not show
which. So the text is asked first, then a setting, then the language, and the number gets one reading. The
decimal sign and the order of dates are found in this order, each on its own:

    1. what the text itself writes in a way that can be read once only: "1,234.5", "1,234,567", "12,5 %",
       "25/3/2021"; the majority counts, and a tie says nothing
    2. the setting `locale`, unless it is "auto". It yields to 1., which is a fact about this text, while a
       setting speaks of all texts.
    3. the language of the text, by its stop words
    4. what its other numbers suggest ("3,5" may also be a list, "3.11" a version or a day)
    5. the language of the text and of the question that it answers, together
    6. the other texts, each by itself as here, one vote a text; those of another language say nothing
    7. English: a decimal point; the order of dates stays open, as the English-speaking countries differ

An answer that is too short to show a language reads what it repeats as the documents do that write the same,
and "5,900" as English where all documents have decimal commas and one writes "5.900".
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from reward.claims.numbers.vocabulary import TABLES, count_keys, keys_of
from reward.locales import AUTO, DateOrder, Usual, usual_of


@dataclass(frozen=True)
class Conventions:
    """What must be known to read the digits of a text in one way."""

    decimal: str = "."  # "." or ","; the other one groups thousands
    date_order: DateOrder | None = None  # None leaves "5/3/2021" open
    language: str = "en"  # two letters, as ISO 639 has them


ENGLISH = Conventions()

_TOKEN = re.compile(r"(?<![0-9])[0-9]++(?:[.,/-][0-9]++){1,16}")
_OPEN_TOKEN = re.compile(r"\d{1,3}[.,]\d{3}|\d{1,2}[/-]\d{1,2}[/-]\d{2,4}")
_OPEN = re.compile(r"[0-9][.,/-][0-9]")
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
_FOREIGN_SCALE = re.compile(
    r"[ \u00a0\u202f](?:mil millones|millones|milioni|milh[õo]es|millionen|milliarden|miljoen|miljard"
    r"|milliards)\b",
    re.IGNORECASE,
)
_MOST_TOKENS = 2000  # of one text; enough to know its habits, and a long text costs no more
_MOST_REPEATED = 64  # numbers of an answer that are looked for in documents
_MOST_TEXT = 4000  # characters whose words are looked at
_OF_A_PLACE = re.compile(r"\b(?:Los|Las|La|El|Le) (?=[A-Z])")  # "Los Angeles", but "La empresa"
_FEWEST_WORDS = 2  # that tell a language: one may be part of a name ("El Paso", "Le Mans")

_LANGUAGES_OF = keys_of(TABLES["stop_words"])
# How many numbers and words of a text speak for which convention, such as ("decimal", ",").
_Shown = Counter[tuple[str, str]]


def needs_conventions(plain: str) -> bool:
    """Whether some digits of a plain text could be read in more than one way."""
    return _OPEN.search(plain) is not None


def conventions_of_response(
    response: str, question: str, documents: Sequence[str], *, locale: str = AUTO
) -> Conventions:
    """The conventions of an answer: its own, else those of the documents that write one of its numbers
    alike, else those of the question's language, else those of all documents.
    """
    found = filter(_OPEN_TOKEN.fullmatch, _TOKEN.findall(response))
    written = set(islice(found, _MOST_REPEATED))
    alike = [text for text in documents if any(token in text for token in written)]
    others = [conventions_of(text, *documents, locale=locale) for text in alike or documents]
    usual = [Usual(one.decimal, one.date_order, one.language) for one in others]
    grouped = {token.replace(",", ".") for token in written if "," in token}
    if (
        not alike
        and all(one.decimal == "," for one in others)
        and any(token in text for text in documents for token in grouped)
    ):
        usual = [Usual(".")]  # "5,900" for the "5.900" of a German document
    own = _shown(response)
    asked = _spoken(own if alike else own + _shown(question))
    return _decided(own, asked, lambda language: _most_usual(usual, language), locale)


@lru_cache(maxsize=1024)  # the documents of a query are the same for all its answers
def conventions_of(text: str, *others: str, locale: str = AUTO) -> Conventions:
    """The conventions of a text, by itself and, where it shows nothing, by other texts; see above.

    Args:
        text: What is to be read.
        others: The other documents. What is known of a text is kept, so that documents cost nothing the
            second time.
        locale: "auto", or a language with or without a country: "en-US", "de".

    Raises:
        ValueError: The locale is unknown.
    """
    own = _shown(text)
    return _decided(own, _spoken(own), lambda language: _around(others, language), locale)


def _decided(own: _Shown, asked: Usual, around: Callable[[str], Usual], locale: str) -> Conventions:
    """What a text shows, or else the language of its question, or else the texts around it."""
    given, spoken = Usual() if locale == AUTO else usual_of(locale), _spoken(own)
    language = given.language or asked.language
    others = around(language)
    decimal = (
        _most(own, "decimal")
        or given.decimal
        or spoken.decimal
        or _most(own, "likely_decimal")
        or asked.decimal
        or others.decimal
    )
    by_language = asked.date_order if locale == AUTO else None
    order = _most(own, "order") or given.date_order or by_language or others.date_order
    date_order = DateOrder(order) if order else None
    return Conventions(
        decimal or ENGLISH.decimal, date_order, language or others.language or ENGLISH.language
    )


@lru_cache(maxsize=256)
def _around(texts: tuple[str, ...], language: str) -> Usual:
    return _most_usual([_usual_in(text) for text in texts], language)


def _most_usual(others: Sequence[Usual], language: str) -> Usual:
    """What most of several texts write, whatever their order; those of another language have no vote."""
    voters = [one for one in others if not language or one.language in ("", language)]
    decimal = _most(_Shown(("decimal", one.decimal) for one in voters if one.decimal), "decimal")
    order = _most(_Shown(("order", one.date_order) for one in voters if one.date_order), "order")
    spoken = _most(_Shown(("language", one.language) for one in voters if one.language), "language")
    return Usual(decimal, DateOrder(order) if order else None, spoken or "")


def _usual_in(text: str) -> Usual:
    """What one text shows by itself."""
    shown = _shown(text)
    spoken = _spoken(shown)
    decimal = _most(shown, "decimal") or spoken.decimal or _most(shown, "likely_decimal")
    order = _most(shown, "order")
    return Usual(decimal, DateOrder(order) if order else spoken.date_order, spoken.language)


@lru_cache(maxsize=1024)
def _shown(text: str) -> _Shown:
    shown = _Shown()
    for token in islice(_TOKEN.finditer(text), _MOST_TOKENS):
        before = text[token.start() - 1 : token.start()] if token.start() else ""
        if before.isalpha() or before in ("_", ".", ",", "/"):
            continue  # of a name: "v1.2"
        if date := _DATE.fullmatch(token[0]):
            first, second = int(date[1]), int(date[3])
            # A date with points has the day first everywhere, so it says nothing of "5/3/2021".
            if date[2] != "." and min(first, second) <= 12 < max(first, second) <= 31:
                shown["order", DateOrder.DAY_FIRST if first > 12 else DateOrder.MONTH_FIRST] += 1
            continue
        if _FOREIGN_SCALE.match(text, token.end()):  # "3.300 millones", by whatever mark
            shown["decimal", ","] += 1
            continue
        is_measured = _MEASURED.match(text, token.end()) is not None
        for piece in _PIECES.split(token[0]):
            if sign := _decimal_sign(piece, is_measured=is_measured):
                shown[sign] += 1
    words = _OF_A_PLACE.sub(" ", text[:_MOST_TEXT]).lower().split()
    for language, count in count_keys(words, _LANGUAGES_OF).items():
        shown["language", language] = count
    return shown


def _decimal_sign(digits: str, *, is_measured: bool) -> tuple[str, str] | None:
    """Which sign before decimals the marks of one number show, and how surely.

    One mark before three digits says nothing, but for "12,000": nobody writes noughts behind a comma.
    """
    if both := _GROUPS_AND_DECIMALS.fullmatch(digits):
        return "decimal", both[2]
    if groups := _GROUPS.fullmatch(digits):
        return None if _ADDRESS.fullmatch(digits) else ("decimal", "," if groups[1] == "." else ".")
    if _COMMA_NOUGHTS.fullmatch(digits):
        return "likely_decimal", "."
    decimals = _DECIMALS.fullmatch(digits)
    if decimals is None or len(decimals[3]) == 3 or (len(decimals[3]) == 4 and decimals[2] == ","):
        return None  # "May 5,2021"
    is_sure = is_measured or (decimals[1] == "0" and len(decimals[3]) > 1)
    return ("decimal" if is_sure else "likely_decimal"), decimals[2]


def _most(shown: _Shown, what: str) -> str | None:
    """What most speak for; None when none do, or two as many."""
    counts = sorted(((n, value) for (name, value), n in shown.items() if name == what), reverse=True)
    return counts[0][1] if counts and (len(counts) == 1 or counts[0][0] > counts[1][0]) else None


def _spoken(shown: _Shown) -> Usual:
    """What is usual in the language of most stop words; nothing where they are few. A tie is English."""
    counts = {language: n for (name, language), n in shown.items() if name == "language"}
    best = max(counts, key=lambda language: counts[language], default="en")
    if counts.get(best, 0) < _FEWEST_WORDS:
        return Usual()
    return usual_of(best if counts[best] > counts.get("en", 0) else "en")

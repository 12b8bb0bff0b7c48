"""Number words of German, French, Spanish, Italian, Portuguese and Dutch: "sechzig Leute", "veintiuno".

The library text2num reads them; here is decided which words are read at all, so that English text pays one
quick search and no more. A word that is a number in one language and nothing in English ("sechzig") is read
wherever it stands, so that nothing is hidden in an English sentence. A word that also means something else
("elf", "once", "six", "mil") is read where its sentence, or else the text, is in that language by its stop
words.

Not read: one ("ein", "une"), the first two ordinals, multiples ("doppelt", "doble"), and other languages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from reward.claims.numbers.digits import Digits, fraction
from reward.claims.numbers.foreign_words import (
    DIVISORS,
    HALVES,
    STOP_WORDS,
    compound_of,
    languages_of,
    may_hold_some,
    words_of,
)
from reward.claims.numbers.measure import with_unit
from reward.claims.numbers.model import Kind, Number

_END_OF_SENTENCE = re.compile(r"[.!?\n]+")
_TOKEN = re.compile(r"[^\W\d_]+|[^\W_]+|\s+|[^\w\s]|_+")
_PERCENT = re.compile(
    r"[ ](?:prozent|pour cent|por ciento|por cento|per cento|procent)(?![^\W_])", re.IGNORECASE
)
_DIVISOR = re.compile(rf"[ ]({'|'.join(DIVISORS)})(?![^\W_])")
_FRENCH_PHRASE = re.compile(r"(?<![^\W_])(?:à|a|de) $", re.IGNORECASE)  # "ménage à trois", "pas de deux"
_NAME = re.compile(r"[- ][A-Z]")  # "Trois-Rivières", "Vier Jahreszeiten"
_DE_MAYO = re.compile(r" de mayo(?![^\W_])", re.IGNORECASE)
_LEAST, _LEAST_RANK = 2, 3


@dataclass(slots=True)  # one for each word: frozen ones take three times as long to make
class _Piece:
    """One token of a text, as text2num takes it."""

    written: str
    start: int
    end: int

    def text(self) -> str:
        return self.written

    def nt_separated(self, previous: _Piece) -> bool:
        return False

    def not_a_number_part(self) -> bool:
        return False


def foreign_numbers(text: str, lowered: str, *, language: str = "") -> list[Number]:
    """The numbers in words of the other languages, from left to right.

    Args:
        text: Plain text.
        lowered: The same in lower case, character by character.
        language: The text's language where it is known ("de"); detected if not given.
    """
    if not language and not may_hold_some(lowered):
        return []
    sentences = _Sentences(lowered, language)
    languages = dict.fromkeys([*sentences.languages, *_sure_languages(lowered)])
    pieces = [_piece(match) for match in _TOKEN.finditer(text)] if languages else []
    source = _Source(text, lowered, sentences, pieces)
    found = [number for name in languages for number in _in_language(source, name)]
    apart: list[Number] = []
    for number in sorted(found, key=lambda number: (number.start, -number.end)):  # the longest first
        if not apart or number.start >= apart[-1].end:
            apart.append(number)
    return apart


class _Sentences:
    """Which language each sentence of a text is in, by its stop words."""

    def __init__(self, lowered: str, language: str) -> None:
        self._starts = [0, *(match.end() for match in _END_OF_SENTENCE.finditer(lowered))]
        ends = [*self._starts[1:], len(lowered)]
        counts = [_counts(lowered[a:b]) for a, b in zip(self._starts, ends, strict=True)]
        of_all = {name: sum(count[name] for count in counts) for name in STOP_WORDS}
        whole = language or _most(of_all)
        self._languages = [whole if language else (_most(count) or whole) for count in counts]

    @property
    def languages(self) -> list[str]:
        return [language for language in dict.fromkeys(self._languages) if language not in ("", "en")]

    def language_at(self, place: int) -> str:
        return self._languages[bisect_right(self._starts, place) - 1]

    def opens(self, lowered: str, place: int) -> bool:
        """Whether a sentence begins there."""
        start = self._starts[bisect_right(self._starts, place) - 1]
        return place - start < 8 and not lowered[start:place].strip(
            " \t\r\"'(*#-\u201c\u201e\u00ab\u00bf\u00a1"
        )


@cache
def _stop_words() -> dict[str, frozenset[str]]:
    return {language: frozenset(words.split()) for language, words in STOP_WORDS.items()}


def _counts(sentence: str) -> dict[str, int]:
    words = words_of(sentence)
    return {language: sum(word in stops for word in words) for language, stops in _stop_words().items()}


def _most(counts: dict[str, int]) -> str:
    """The language with the most stop words; empty when too few, or as many of another."""
    best = max(counts, key=lambda language: counts[language])
    others = max(count for language, count in counts.items() if language != best)
    return best if counts[best] >= _LEAST and counts[best] > others else ""


def _sure_languages(lowered: str) -> Iterator[str]:
    of_words = languages_of()
    for word in set(words_of(lowered)):
        yield from of_words.get(word, ())
        if compound := compound_of(word):
            yield compound


def _piece(match: re.Match[str]) -> _Piece:
    """A word or a space as it is; digits and signs stand between numbers."""
    is_kept = match[0].isalpha() or match[0].isspace() or match[0] == "-"
    return _Piece(match[0] if is_kept else ".", match.start(), match.end())


@dataclass(frozen=True)
class _Source:
    """A text, and what is found out about it once for all languages."""

    text: str
    lowered: str
    sentences: _Sentences
    pieces: list[_Piece]


def _in_language(source: _Source, language: str) -> Iterator[Number]:
    from text_to_num import find_numbers

    for seen in find_numbers(source.pieces, language, 0):
        start, end = source.pieces[seen.start].start, source.pieces[seen.end - 1].end
        value = Decimal(int(seen.value)) if seen.is_ordinal else Decimal(seen.text.replace(",", "."))
        if divisor := _DIVISOR.match(source.lowered, end):  # "zwei Drittel"
            value, end = fraction(int(value), DIVISORS[divisor[1]]), divisor.end()
        least = _LEAST_RANK if seen.is_ordinal else _LEAST
        if (divisor or value >= least) and _is_meant(source, language, start, end):
            if divisor:
                yield Number(((value,),), step=Decimal(0), start=start, end=end)
            else:
                yield _number(source.text, value, start, end, is_ordinal=seen.is_ordinal)
    for piece in source.pieces:
        word = source.lowered[piece.start : piece.end]
        if word in HALVES and language in languages_of()[word]:
            yield Number(((Decimal("0.5"),),), step=Decimal(0), start=piece.start, end=piece.end)


def _is_meant(source: _Source, language: str, start: int, end: int) -> bool:
    """Whether the words are a number of that language: for sure, or because their sentence is in it."""
    text, lowered = source.text, source.lowered
    if text[max(0, start - 2) : start].strip(" \u00a0")[-1:].isdigit():
        return False  # "3 Millionen" is read with its digits
    if source.sentences.language_at(start) == language:
        return True
    words = words_of(lowered[start:end])
    if not any(language in languages_of().get(word, ()) or compound_of(word) == language for word in words):
        return False
    if language == "fr" and _FRENCH_PHRASE.search(lowered, max(0, start - 4), start):
        return False
    is_name = text[start].isupper() and (
        not source.sentences.opens(lowered, start) or _NAME.match(text, end) is not None
    )
    return not is_name and _DE_MAYO.match(lowered, end) is None


def _number(text: str, value: Decimal, start: int, end: int, *, is_ordinal: bool) -> Number:
    exponent = value.as_tuple().exponent
    step = Decimal((0, (1,), min(int(exponent), 0)))
    if is_ordinal:
        return Number(((value,),), Kind.ORDINAL, step=step, start=start, end=end)
    if percent := _PERCENT.match(text, end):
        return Number(((value,),), Kind.PERCENT, "%", step=step, start=start, end=percent.end())
    return with_unit(text, start, end, Digits(value, step))


def with_foreign(atoms: list[Number], foreign: list[Number]) -> list[Number]:
    """The numbers of both readers in order; where they overlap ("soixante-six"), the foreign one stays."""
    if not foreign:
        return atoms
    kept: list[Number] = []
    place = 0
    for atom in atoms:
        while place < len(foreign) and foreign[place].end <= atom.start:
            place += 1
        if place == len(foreign) or foreign[place].start >= atom.end:
            kept.append(atom)
    return sorted([*kept, *foreign], key=lambda number: number.start)

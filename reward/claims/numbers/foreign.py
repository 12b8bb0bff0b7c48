"""Number words of German, French, Spanish, Italian, Portuguese and Dutch: "sechzig Leute", "veintiuno".

The library text2num reads them; here is decided which words are read at all, so that English text pays one
quick search and no more. A word that is a number in one language and nothing in English ("sechzig") is read
wherever it is, so that nothing is hidden in an English sentence. A word that also means something else
("elf", "once", "six", "mil") is read where its sentence, or else the text, is in that language by its stop
words.

Not read: one ("ein", "une") but in "un tiers des", the first two ordinals, multiples ("doppelt", "doble"),
and other languages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any

from reward.claims.numbers.clock import HALF_A_DAY, of_clock
from reward.claims.numbers.digits import Digits, fraction, scale_after
from reward.claims.numbers.measure import with_unit
from reward.claims.numbers.model import Kind, Number, changed, years_of
from reward.claims.numbers.vocabulary import BEGIN, END, TABLES, by_word, count_keys, either, keys_of
from reward.claims.text import words_in

_WORDS = TABLES["foreign"]
_LANGUAGES_OF = keys_of(TABLES["sentence_words"])
SURE = keys_of(_WORDS["sure"])
_HALVES = by_word(_WORDS["halves"])  # words, and what they are worth
_STEMS = _WORDS["stems"].split()
_COMPOUNDS = {
    "".join(parts)
    for lists in _WORDS["compounds"].values()
    for parts in product(*(words.split() for words in lists))
}
_WORTH_A_LOOK = frozenset((*SURE, *_WORDS["telling"].split(), *_COMPOUNDS))
_DIVISORS = by_word(_WORDS["divisors"])
_DIVISOR = re.compile(rf"[ ]({either(_DIVISORS)}){END}")
_ONE_PART = re.compile(
    rf"{BEGIN}(?:une?|ein(?:e[mn])?|een|um)[ ](?P<part>{either(_DIVISORS)})"
    r"(?=[ ](?:d[eu]s?|de[lr]|d[oa]s?|d[ei]i|della|delle|degli|van|von|aller)\b|[ ]d['\u2019])"
)  # "un tiers des électeurs"
# Compounds: "vierhundertsechsundsechzig", "zesentwintig", "duecento", "ventisei".
_COMPOUND = re.compile(
    r"(?P<de>\w*(?:hundert|tausend"
    r"|und(?:zwanzig|drei(?:ß|ss)ig|vierzig|fünfzig|sechzig|siebzig|achtzig|neunzig))\w*)"
    r"|(?P<nl>\w*(?:honderd|duizend"
    r"|[eë]n(?:twintig|dertig|veertig|vijftig|zestig|zeventig|tachtig|negentig))\w*)"
    r"|(?P<it>(?:vent|trent|quarant|cinquant|sessant|settant|ottant|novant)"
    r"(?:[ai]?(?:due|tre|tré|quattro|cinque|sei|sette|nove)|uno|otto)"
    r"|(?:due|tre|quattro|cinque|sei|sette|otto|nove)cento\w*|mille\w{3,}|\w+mila"
    r"|(?:due|tre|quattro|cinque|sei|sette|otto|nove|dieci|undici|dodici|venti|trenta|quaranta|cinquanta|cento)mila\w+"
    r"|cento(?:uno|due|tre|quattro|cinque|sei|sette|nove|dieci|undici|dodici|\w+nt(?:a\w*|uno|otto)|venti?\w*|otto))"
)
_WORD = re.compile(r"[^\W\d_]+")
_END_OF_SENTENCE = re.compile(r"[.!?\n]+")
_PART = re.compile(rf"{BEGIN}(?:[^\W\d_]|\s|-)+")
_TOKEN = re.compile(r"[^\W\d_]+|\s+|-")
_BREAK = "."  # between two numbers
_AND_A_HALF = re.compile(
    r"(?P<unit>[ ][^\W\d_]{3,})?"
    rf"[ ](?:y[ ]medi[oa]|et[ ]demie?|e[ ]mezz[oa]|e[ ]mei[oa]|en[ ]een[ ]halve?){END}"
)  # "dos millones y medio", "deux heures et demie"
# Minutes from the hour that is named behind the words.
_SHIFTS = {
    "halb": -30, "half": -30, "viertel nach": 15, "kwart over": 15, "viertel vor": -15, "kwart voor": -15
}  # fmt: skip
_BEFORE_HOUR = re.compile(rf"\b({either(_SHIFTS)}) $")
_LONGEST_BEFORE, _LAST_HOUR = 16, 12
_LONGEST_OPENING, _OPENING = 8, " \t\r\"'(*#-\u201c\u201e\u00ab\u00bf\u00a1"  # signs before a sentence
_PERCENT = re.compile(rf"[ ](?:prozent|pour cent|por ciento|por cento|per cento|procent){END}", re.IGNORECASE)
_FRENCH_PHRASE = re.compile(rf"{BEGIN}(?:à|a|de) $", re.IGNORECASE)  # "ménage à trois", "pas de deux"
_NAME = re.compile(r"[- ][A-Z]")  # "Trois-Rivières", "Vier Jahreszeiten"
_DE_MAYO = re.compile(rf" de mayo{END}", re.IGNORECASE)
_LEAST, _LEAST_RANK = 2, 3
_OF_YEAR = re.compile(rf"[ ](?:trimestre|quartal|kwartaal){END}")
_CENTURY = re.compile(r"(?:Due|Tre|Quattro|Cinque|Sei|Sette|Otto|Nove)cento")
_LONG_SCALE = re.compile(rf"[ ](?:billionen|billones|bilioni|biljoen|biliões){END}")
_POWER_OF_LONG_SCALE = 12
_SCALES = (Decimal(10**9), Decimal(10**6), Decimal(1000))


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


def foreign_numbers(text: str, lowered: str) -> list[Number]:
    """The numbers in words of the other languages, from left to right.

    Args:
        text: Plain text.
        lowered: The same in lower case, character by character.
    """
    if not any(stem in lowered for stem in _STEMS) and _WORTH_A_LOOK.isdisjoint(words_in(lowered).all):
        return []
    source = _Source(text, lowered)
    wanted = source.number_words()
    if not wanted:
        return []
    found = [n for language, words in wanted.items() for n in _in_language(source, language, words)]
    found += source.parts()
    apart: list[Number] = []
    for number in sorted(found, key=lambda number: (number.start, -number.end)):  # the longest first
        if not apart or number.start >= apart[-1].end:
            apart.append(number)
    return apart


class _Source:
    """A text, and which language each of its sentences is in, by its stop words."""

    def __init__(self, text: str, lowered: str) -> None:
        self.text, self.lowered, self._words = text, lowered, words_in(lowered)
        self._starts = [0, *(match.end() for match in _END_OF_SENTENCE.finditer(lowered))]
        ends = [*self._starts[1:], len(lowered)]
        self._sentences = [self._words.within(*span) for span in zip(self._starts, ends, strict=True)]
        counts = [count_keys(sentence, _LANGUAGES_OF) for sentence in self._sentences]
        whole = _most(count_keys(self._words.within(0, len(lowered)), _LANGUAGES_OF))
        self._languages = [_most(count) or whole for count in counts]

    def number_words(self) -> dict[str, set[str]]:
        """Of each language the words of the text by which a number of it is recognised."""
        wanted: dict[str, set[str]] = {}
        for language, sentence in zip(self._languages, self._sentences, strict=True):
            if language not in ("", "en"):
                wanted.setdefault(language, set()).update(sentence)
        wanted = {language: _numbers_among(words, language) for language, words in wanted.items()}
        for word in self._words.all:
            for language in (*SURE.get(word, ()), *filter(None, [compound_of(word)])):
                wanted.setdefault(language, set()).add(word)
        return wanted

    def pieces(self, words: set[str]) -> list[_Piece]:
        """The tokens of the parts of the text, between digits and signs, that hold one of some words."""
        found: list[_Piece] = []
        end = 0
        for place in self._words.places(frozenset(words)):
            if place >= end and (part := _PART.search(self.text, self._start_of_part(place, end))):
                end = part.end()
                tokens = _TOKEN.finditer(self.text, *part.span())
                found += (_Piece(token[0], *token.span()) for token in tokens)
                found.append(_Piece(_BREAK, end, end))
        return found

    def _start_of_part(self, place: int, low: int) -> int:
        while place > low and ((char := self.text[place - 1]).isalpha() or char.isspace() or char == "-"):
            place -= 1
        return place

    def is_meant(self, language: str, start: int, end: int) -> bool:
        """Whether the words are a number of that language: for sure, or because their sentence is in it."""
        text, lowered = self.text, self.lowered
        if text[max(0, start - 2) : start].strip(" \u00a0")[-1:].isdigit():
            return False  # "3 Millionen" is read with its digits
        if lowered.startswith(("ciento", "cento"), start) and lowered.endswith(("por ", "per "), 0, start):
            return False  # "12 por ciento"
        sentence = bisect_right(self._starts, start) - 1
        if self._languages[sentence] == language:
            return True
        words = _WORD.findall(lowered[start:end])
        if not any(language in SURE.get(word, ()) or compound_of(word) == language for word in words):
            return False
        if language == "fr" and _FRENCH_PHRASE.search(lowered, max(0, start - 4), start):
            return False
        is_in_name = _NAME.match(text, end) and not _PERCENT.match(text, end)
        is_name = text[start].isupper() and (not self.opens(start) or bool(is_in_name))
        return not is_name and _DE_MAYO.match(lowered, end) is None

    def parts(self) -> Iterator[Number]:
        """A third or another part of something, which is one of its divisors alone."""
        for part in _ONE_PART.finditer(self.lowered):
            if self._languages[bisect_right(self._starts, part.start()) - 1] not in ("", "en"):
                value = fraction(1, int(_DIVISORS[part["part"]]))
                yield Number(((value,),), step=Decimal(0), start=part.start(), end=part.end())

    def opens(self, start: int) -> bool:
        """Whether a sentence begins there."""
        begin = self._starts[bisect_right(self._starts, start) - 1]
        return start - begin < _LONGEST_OPENING and not self.lowered[begin:start].strip(_OPENING)


def _most(counts: Counter[str]) -> str:
    """The language with the most stop words; empty when too few, or as many of another."""
    (best, most), (_, second) = (*counts.most_common(2), *[("", 0)] * 2)[:2]
    return best if most >= _LEAST and most > second else ""


def compound_of(word: str) -> str:
    """The language that a word in lower case looks like a compound number of; empty for none."""
    match = _COMPOUND.fullmatch(word)
    return match.lastgroup or "" if match else ""


def _find_numbers(pieces: list[_Piece], language: str) -> Iterator[Any]:
    from text_to_num import find_numbers  # loaded when a text first needs it

    yield from find_numbers(pieces, language, 0)


def _numbers_among(words: Iterable[str], language: str) -> set[str]:
    """Those of some words that are numbers, or halves, of a language by themselves."""
    pieces = [piece for word in words for piece in (_Piece(word, 0, 0), _Piece(_BREAK, 0, 0))]
    numbers = {pieces[seen.start].written for seen in _find_numbers(pieces, language)}
    return numbers | {word for word in words if word in _HALVES and language in SURE[word]}


def _in_language(source: _Source, language: str, words: set[str]) -> Iterator[Number]:
    pieces = source.pieces(words)
    for seen in _find_numbers(pieces, language):
        start, end = pieces[seen.start].start, pieces[seen.end - 1].end
        value = Decimal(int(seen.value)) if seen.is_ordinal else Decimal(seen.text.replace(",", "."))
        is_of_year = seen.is_ordinal and _OF_YEAR.match(source.lowered, end)
        least = 1 if is_of_year else _LEAST_RANK if seen.is_ordinal else _LEAST
        if divisor := _DIVISOR.match(source.lowered, end):  # "zwei Drittel"
            if source.is_meant(language, start, divisor.end()):
                value = fraction(int(value), int(_DIVISORS[divisor[1]]))
                yield Number(((value,),), step=Decimal(0), start=start, end=divisor.end())
        elif value >= least and source.is_meant(language, start, end):
            half = None if seen.is_ordinal else _AND_A_HALF.match(source.lowered, end)
            clock = _BEFORE_HOUR.search(source.lowered, max(0, start - _LONGEST_BEFORE), start)
            is_century = language == "it" and _CENTURY.fullmatch(source.text, start, end)
            if is_century and not source.opens(start):  # "nel Settecento", but "Settecento persone"
                yield years_of(1000 + int(value), 1099 + int(value), start, end)
            elif clock and value <= _LAST_HOUR and not seen.is_ordinal:
                minutes = (int(value) * 60 + _SHIFTS[clock[1]]) % HALF_A_DAY
                yield of_clock((minutes, minutes + HALF_A_DAY), clock.start(), end)
            elif scale := _LONG_SCALE.match(source.lowered, end):  # which text2num does not know
                digits = Digits(value, Decimal(1)).scaled(_POWER_OF_LONG_SCALE)
                yield with_unit(source.text, start, scale.end(), digits)
            elif half is not None:
                yield _with_half(source.text, value, start, half)
            else:
                yield _number(source.text, value, start, end, is_ordinal=seen.is_ordinal)
    for piece in pieces:
        word = source.lowered[piece.start : piece.end]
        if word in _HALVES and language in SURE[word]:
            digits, end = Digits(Decimal(_HALVES[word]), Decimal(0)), piece.end
            if behind := scale_after(source.text, end):  # "anderthalb Millionen"
                digits, end = digits.scaled(behind[0]), behind[1]
            yield with_unit(source.text, piece.start, end, digits)


def _with_half(text: str, value: Decimal, start: int, half: re.Match[str]) -> Number:
    """A number and half of its scale, or of its unit, which is before the half."""
    scale = next((scale for scale in _SCALES if not value % scale), Decimal(1))
    digits = Digits(value + (scale if half["unit"] is None else Decimal(1)) / 2, Decimal(0))
    measured = with_unit(text, start, half.start(), digits)
    return (
        with_unit(text, start, half.end(), digits)
        if half["unit"] is None
        else changed(measured, end=half.end())
    )


def _number(text: str, value: Decimal, start: int, end: int, *, is_ordinal: bool) -> Number:
    exponent = value.as_tuple().exponent
    step = Decimal((0, (1,), min(int(exponent), 0)))
    if is_ordinal:
        return Number(((value,),), Kind.ORDINAL, step=step, start=start, end=end)
    if percent := _PERCENT.match(text, end):
        return Number(((value,),), Kind.PERCENT, "%", step=step, start=start, end=percent.end())
    return with_unit(text, start, end, Digits(value, step))

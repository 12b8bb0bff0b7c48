"""Number words of German, French, Spanish, Italian, Portuguese and Dutch: "sechzig Leute", "veintiuno".

The library text2num reads them; here is decided which words are read at all, so that English text pays one
quick search and no more. A word that is a number in one language and nothing in English ("sechzig") is read
wherever it is, so that nothing is hidden in an English sentence. A word that also means something else
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

from reward.claims.numbers.digits import Digits, fraction
from reward.claims.numbers.measure import with_unit
from reward.claims.numbers.model import Kind, Number
from reward.claims.numbers.vocabulary import TABLES, by_word, either
from reward.claims.text import words_in

_WORDS = TABLES["foreign"]
_STOP_WORDS = {language: frozenset(words.split()) for language, words in TABLES["sentence_words"].items()}
SURE: dict[str, tuple[str, ...]] = {}  # of each sure word the languages that it is one of
for _language, _words in _WORDS["sure"].items():
    for _word in _words.split():
        SURE[_word] = (*SURE.get(_word, ()), _language)
_HALVES = frozenset(_WORDS["halves"].split())
_STEMS = _WORDS["stems"].split()
_WORTH_A_LOOK = frozenset((*SURE, *_WORDS["telling"].split(), *_WORDS["compounds"].split()))
_DIVISORS = by_word(_WORDS["divisors"])
_DIVISOR = re.compile(rf"[ ]({either(_DIVISORS)})(?![^\W_])")
# Compounds: "vierhundertsechsundsechzig", "zesentwintig", "duecento", "ventisei".
_COMPOUND = re.compile(
    r"(?P<de>\w*(?:hundert|tausend"
    r"|und(?:zwanzig|drei(?:ß|ss)ig|vierzig|fünfzig|sechzig|siebzig|achtzig|neunzig))\w*)"
    r"|(?P<nl>\w*(?:honderd|duizend"
    r"|[eë]n(?:twintig|dertig|veertig|vijftig|zestig|zeventig|tachtig|negentig))\w*)"
    r"|(?P<it>(?:vent|trent|quarant|cinquant|sessant|settant|ottant|novant)"
    r"(?:[ai]?(?:due|tre|tré|quattro|cinque|sei|sette|nove)|uno|otto)"
    r"|(?:due|tre|quattro|cinque|sei|sette|otto|nove)cento\w*|mille\w{3,}|\w+mila)"
)
_WORD = re.compile(r"[^\W\d_]+")
_ONLY_LETTERS = {c: " " for c in range(128) if not chr(c).isalpha()}
_END_OF_SENTENCE = re.compile(r"[.!?\n]+")
_TOKEN = re.compile(r"[^\W\d_]+|[^\W_]+|\s+|[^\w\s]|_+")
_PERCENT = re.compile(
    r"[ ](?:prozent|pour cent|por ciento|por cento|per cento|procent)(?![^\W_])", re.IGNORECASE
)
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


def foreign_numbers(text: str, lowered: str) -> list[Number]:
    """The numbers in words of the other languages, from left to right.

    Args:
        text: Plain text.
        lowered: The same in lower case, character by character.
    """
    if not any(stem in lowered for stem in _STEMS) and _WORTH_A_LOOK.isdisjoint(words_in(lowered).all):
        return []
    source = _Source(text, lowered)
    languages = dict.fromkeys((*source.languages, *_sure_languages(lowered)))
    if not languages:
        return []

    pieces = [_piece(match) for match in _TOKEN.finditer(text)]
    found = [number for language in languages for number in _in_language(source, pieces, language)]
    apart: list[Number] = []
    for number in sorted(found, key=lambda number: (number.start, -number.end)):  # the longest first
        if not apart or number.start >= apart[-1].end:
            apart.append(number)
    return apart


class _Source:
    """A text, and which language each of its sentences is in, by its stop words."""

    def __init__(self, text: str, lowered: str) -> None:
        self.text, self.lowered = text, lowered
        self._starts = [0, *(match.end() for match in _END_OF_SENTENCE.finditer(lowered))]
        ends = [*self._starts[1:], len(lowered)]
        counts = [_counts(lowered[a:b]) for a, b in zip(self._starts, ends, strict=True)]
        whole = _most({name: sum(count[name] for count in counts) for name in _STOP_WORDS})
        self._languages = [_most(count) or whole for count in counts]

    @property
    def languages(self) -> list[str]:
        return [language for language in dict.fromkeys(self._languages) if language not in ("", "en")]

    def is_meant(self, language: str, start: int, end: int) -> bool:
        """Whether the words are a number of that language: for sure, or because their sentence is in it."""
        text, lowered = self.text, self.lowered
        if text[max(0, start - 2) : start].strip(" \u00a0")[-1:].isdigit():
            return False  # "3 Millionen" is read with its digits
        sentence = bisect_right(self._starts, start) - 1
        if self._languages[sentence] == language:
            return True
        words = _words_of(lowered[start:end])
        if not any(language in SURE.get(word, ()) or _compound_of(word) == language for word in words):
            return False
        if language == "fr" and _FRENCH_PHRASE.search(lowered, max(0, start - 4), start):
            return False
        before = lowered[max(self._starts[sentence], start - 8) : start]
        opens = start - self._starts[sentence] < 8 and not before.strip(
            " \t\r\"'(*#-\u201c\u201e\u00ab\u00bf\u00a1"
        )
        is_name = text[start].isupper() and (not opens or _NAME.match(text, end) is not None)
        return not is_name and _DE_MAYO.match(lowered, end) is None


def _words_of(text: str) -> list[str]:
    """The words of a text, without digits and signs."""
    return text.translate(_ONLY_LETTERS).split() if text.isascii() else _WORD.findall(text)


def _counts(sentence: str) -> dict[str, int]:
    words = _words_of(sentence)
    return {language: sum(word in stops for word in words) for language, stops in _STOP_WORDS.items()}


def _most(counts: dict[str, int]) -> str:
    """The language with the most stop words; empty when too few, or as many of another."""
    best = max(counts, key=lambda language: counts[language])
    others = max(count for language, count in counts.items() if language != best)
    return best if counts[best] >= _LEAST and counts[best] > others else ""


def _sure_languages(lowered: str) -> Iterator[str]:
    for word in set(_words_of(lowered)):
        yield from SURE.get(word, ())
        if compound := _compound_of(word):
            yield compound


def _compound_of(word: str) -> str:
    """The language that a word in lower case looks like a compound number of; empty for none."""
    match = _COMPOUND.fullmatch(word)
    return match.lastgroup or "" if match else ""


def _piece(match: re.Match[str]) -> _Piece:
    """A word or a space as it is; digits and signs stand between numbers."""
    is_kept = match[0].isalpha() or match[0].isspace() or match[0] == "-"
    return _Piece(match[0] if is_kept else ".", match.start(), match.end())


def _in_language(source: _Source, pieces: list[_Piece], language: str) -> Iterator[Number]:
    from text_to_num import find_numbers

    for seen in find_numbers(pieces, language, 0):
        start, end = pieces[seen.start].start, pieces[seen.end - 1].end
        value = Decimal(int(seen.value)) if seen.is_ordinal else Decimal(seen.text.replace(",", "."))
        least = _LEAST_RANK if seen.is_ordinal else _LEAST
        if divisor := _DIVISOR.match(source.lowered, end):  # "zwei Drittel"
            if source.is_meant(language, start, divisor.end()):
                value = fraction(int(value), int(_DIVISORS[divisor[1]]))
                yield Number(((value,),), step=Decimal(0), start=start, end=divisor.end())
        elif value >= least and source.is_meant(language, start, end):
            yield _number(source.text, value, start, end, is_ordinal=seen.is_ordinal)
    for piece in pieces:
        word = source.lowered[piece.start : piece.end]
        if word in _HALVES and language in SURE[word]:
            yield Number(((Decimal("0.5"),),), step=Decimal(0), start=piece.start, end=piece.end)


def _number(text: str, value: Decimal, start: int, end: int, *, is_ordinal: bool) -> Number:
    exponent = value.as_tuple().exponent
    step = Decimal((0, (1,), min(int(exponent), 0)))
    if is_ordinal:
        return Number(((value,),), Kind.ORDINAL, step=step, start=start, end=end)
    if percent := _PERCENT.match(text, end):
        return Number(((value,),), Kind.PERCENT, "%", step=step, start=start, end=percent.end())
    return with_unit(text, start, end, Digits(value, step))

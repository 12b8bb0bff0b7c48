"""Numbers in English words: "four hundred and sixty-six", "two and a half million", "a dozen", "third".

A small grammar reads a cardinal and what may follow it: a fraction ("and a half", "quarters", "of a million"),
decimals ("point five"), more scale words, or an ordinal's ending. What it reads is whole or not at all: "three
four" is two numbers.

Words that are numbers only at times are marked `weak`, and the search drops them unless a unit, a bound or a
range shows that they count: "one" and "half" standing alone; "first" and "second" but where a determiner
stands before and a word behind ("the first step", not "at first" nor "the first time"). "a third" is a
fraction unless a noun follows ("a third of", "a third party"). "a couple", "several" and "dozens" are no numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from reward.numbers.digits import EXACT, fraction

_SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_CARDINALS = {w: i for i, w in enumerate(_SMALL)} | {w: 10 * i for i, w in enumerate(_TENS, start=2)}
SCALES = {
    "hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12, "quadrillion": 15, "lakh": 5,
    "lac": 5, "crore": 7,
}  # fmt: skip
_SCALE_WORDS = SCALES | {w + "s": p for w, p in SCALES.items() if w in ("lakh", "crore")}
_SMALL_ORDINALS = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
]
_ORDINALS = {w: i for i, w in enumerate(_SMALL_ORDINALS, start=1)} | {
    w[:-1] + "ieth": 10 * i for i, w in enumerate(_TENS, start=2)
}
_SCALE_ORDINALS = {
    f"{w}th": p for w, p in SCALES.items() if w in ("hundred", "thousand", "million", "billion")
}
_PARTS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4} | {
    w + s: n for w, n in _ORDINALS.items() if n > 2 for s in ("", "s")
} | {"hundredths": 100, "thousandths": 1000, "hundredth": 100, "thousandth": 1000}  # fmt: skip
_NUMBER_WORDS = {*_CARDINALS, *_SCALE_WORDS, *_ORDINALS, *_SCALE_ORDINALS, *_PARTS, "dozen"}
_SEPARATOR = r"(?:[ \u00a0]{1,2}|-)"


def _either(words: set[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_FIRST_WORDS = (
    _NUMBER_WORDS - {"quarter", "quarters", "halves", "thirds"} - {w for w in _PARTS if w.endswith("s")}
)
STARTS = (
    rf"(?:{_either(_FIRST_WORDS - set(_SCALE_WORDS) - {'dozen'})})(?![^\W_])"
    rf"|an?(?=[\x20\u00a0-](?:{_either(set(_SCALE_WORDS) | {'dozen'} | {w for w in _PARTS if not w.endswith('s')})})(?![^\W_]))"
)
_RUN = re.compile(
    rf"(?:{_either(_NUMBER_WORDS | {'a', 'an', 'and', 'of', 'point'})})(?![^\W_])"
    rf"(?:{_SEPARATOR}(?:{_either(_NUMBER_WORDS | {'a', 'an', 'and', 'of', 'point'})})(?![^\W_])){{0,30}}",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[a-z]+", re.IGNORECASE)
_DETERMINER = re.compile(
    r"(?<![^\W_])(?:the|its|his|her|their|our|my|your|this|that|every|each)[ \u00a0]$", re.IGNORECASE
)
_ADVERB = re.compile(
    r"[ \u00a0](?:time|times|thing|things|and|of all|few|hand|glance|sight|or|half|place)(?![^\W_])",
    re.IGNORECASE,
)
_NO_RANK = re.compile(r"[ \u00a0-](?:party|parties|world|person)(?![^\W_])", re.IGNORECASE)
_RANK = re.compile(
    r",|[ \u00a0](?!of\b|the\b|and\b|or\b|in\b|to\b|that\b|as\b|more\b|less\b)[a-z]|-[a-z]", re.IGNORECASE
)
_NOUN = re.compile(r"(?:[ \u00a0](?!of\b|the\b|and\b|or\b|in\b|to\b|that\b|as\b)|-)[a-z]", re.IGNORECASE)


@dataclass(frozen=True)
class WordNumber:
    """What a run of words says."""

    value: Decimal
    step: Decimal  # one in the last place that was said; 0 for a fraction
    end: int
    is_ordinal: bool = False
    weak: bool = False
    needs_unit: bool = False  # "half an": a number only with its "hour"


@dataclass(frozen=True)
class _Word:
    text: str
    start: int
    end: int


def words_at(text: str, at: int) -> WordNumber | None:
    """The number in words that begins at `at`, the longest that the grammar allows."""
    run = _RUN.match(text, at)
    if run is None:
        return None
    words = [_Word(m[0].lower(), m.start(), m.end()) for m in _TOKEN.finditer(text, at, run.end())]
    if words[0].text == "half":
        return _half(words, text)
    if words[0].text in ("a", "an"):
        return _with_article(words, text)
    if words[0].text in _ORDINALS or words[0].text in _SCALE_ORDINALS:
        return _lone_ordinal(words[0], text)
    return _Reader(words).read()


def _half(words: list[_Word], text: str) -> WordNumber:
    """ "half a million", "half-dozen", "half an hour", or a lone "half"."""
    rest = words[1:]
    article = bool(rest) and rest[0].text in ("a", "an")
    scaled = _scaled(rest[article:], Decimal("0.5"), "half")
    if scaled is not None:
        return scaled
    end = rest[0].end if article else words[0].end
    return WordNumber(Decimal("0.5"), Decimal(0), end, weak=True, needs_unit=article)


def _with_article(words: list[_Word], text: str) -> WordNumber | None:
    """ "a hundred", "a million and a half", "a dozen", "a third of", "a quarter of a million", "a half"."""
    second = words[1] if len(words) > 1 else None
    if second is None:
        return None
    if second.text in _SCALE_WORDS or second.text == "dozen":
        return _Reader([_Word("one", words[0].start, words[0].end), *words[1:]]).read()
    if second.text in _PARTS:
        value = fraction(1, _PARTS[second.text])
        if scaled := _of_a_scale(words[2:], value, second.text):
            return scaled
        is_rank = second.text not in ("quarter", "half") and _RANK.match(text, second.end)
        if is_rank:
            return None
        needs_unit = [w.text for w in words[2:4]] in (["of", "a"], ["of", "an"])
        end = words[3].end if needs_unit else second.end
        weak = needs_unit or second.text in ("half", "quarter")
        return WordNumber(value, Decimal(0), end, weak=weak, needs_unit=needs_unit)
    return None


def _lone_ordinal(word: _Word, text: str) -> WordNumber | None:
    if word.text in _SCALE_ORDINALS:
        return WordNumber(Decimal(10 ** _SCALE_ORDINALS[word.text]), Decimal(1), word.end, is_ordinal=True)
    if _NO_RANK.match(text, word.end):
        return None
    weak = word.text in ("first", "second") and not (
        _DETERMINER.search(text, max(0, word.start - 6), word.start)
        and _NOUN.match(text, word.end)
        and not _ADVERB.match(text, word.end)
    )
    return WordNumber(Decimal(_ORDINALS[word.text]), Decimal(1), word.end, is_ordinal=True, weak=weak)


def _scaled(words: list[_Word], value: Decimal, part: str) -> WordNumber | None:
    """A fraction of the scale word (or dozen) that follows at once."""
    if not words:
        return None
    if words[0].text == "dozen":
        return WordNumber(EXACT.multiply(value, Decimal(12)), Decimal(1), words[0].end)
    if words[0].text not in _SCALE_WORDS:
        return None
    power = _SCALE_WORDS[words[0].text]
    step = Decimal((0, (1,), power - (1 if part == "half" else 2)))
    return WordNumber(EXACT.scaleb(value, power), step, words[0].end)


def _of_a_scale(words: list[_Word], value: Decimal, part: str) -> WordNumber | None:
    """A fraction of a scale word: "of a million", or at once ("a quarter million")."""
    if [w.text for w in words[:2]] == ["of", "a"]:
        return _scaled(words[2:], value, part)
    return _scaled(words, value, part)


class _Reader:
    """Reads one cardinal, and what may follow it, from the front of a list of words."""

    def __init__(self, words: list[_Word]) -> None:
        self._words = words
        self._at = 0
        self._total = Decimal(0)  # of the groups that a scale word has closed
        self._group = Decimal(0)  # below a thousand, still open
        self._room = 100  # what may still be added to the group is below this
        self._last_power = 0  # of the scale word that was read last, or 0
        self._lowest_scale = 100

    def read(self) -> WordNumber | None:
        while self._at < len(self._words) and self._take(self._words[self._at].text):
            self._at += 1
        if self._at == 0:
            return None
        if year := self._year():
            return year
        value = self._total + self._group
        return self._ordinal(value) or self._fraction(value) or self._decimals(value) or self._cardinal(value)

    def _take(self, word: str) -> bool:
        if word in _CARDINALS and 0 <= _CARDINALS[word] < self._room and not (word == "zero" and self._at):
            self._group += _CARDINALS[word]
            self._room = 10 if _CARDINALS[word] >= 20 else 0
            self._last_power = 0
        elif word == "hundred" and 0 < self._group < 100:
            self._group *= 100
            self._room, self._last_power = 100, 2
        elif word in _SCALE_WORDS and word != "hundred" and self._at:
            return self._take_scale(_SCALE_WORDS[word])
        elif word == "dozen" and self._at and self._room < 100:
            self._group *= 12
            self._room, self._last_power = 0, 1
        else:
            return word == "and" and self._last_power > 1 and self._is_small(self._at + 1)
        return True

    def _take_scale(self, power: int) -> bool:
        if self._group:
            if power >= self._lowest_scale:
                return False
            self._total += EXACT.scaleb(self._group, power)
            self._lowest_scale = power
        else:
            self._total = EXACT.scaleb(self._total, power)  # "one lakh crore"
        self._group, self._room, self._last_power = Decimal(0), 100, power
        return True

    def _is_small(self, place: int) -> bool:
        """Whether a word that may follow "and" stands there, which opens no fraction ("and three quarters")."""
        texts = [w.text for w in self._words[place : place + 2]]
        small = bool(texts) and (texts[0] in _CARDINALS or texts[0] in _ORDINALS) and texts[0] != "zero"
        return small and (len(texts) < 2 or texts[1] not in _PARTS or texts[0] in _TENS)

    def _texts(self, count: int) -> list[str]:
        return [word.text for word in self._words[self._at : self._at + count]]

    def _end(self, more: int = 0) -> int:
        return self._words[self._at + more - 1].end

    def _year(self) -> WordNumber | None:
        """Two pairs of digits: "nineteen eighty-four", "twenty twenty-one"; its step 1 marks no kind."""
        if self._total or not 11 <= self._group <= 20 or self._at != 1:
            return None
        rest = _Reader(self._words[1:])
        while rest._at < len(rest._words) and rest._at < 2 and rest._words[rest._at].text in _CARDINALS:
            if not rest._take(rest._words[rest._at].text):
                break
            rest._at += 1
        if not 10 <= rest._group <= 99:
            return None
        return WordNumber(self._group * 100 + rest._group, Decimal(1), rest._end())

    def _ordinal(self, value: Decimal) -> WordNumber | None:
        """ "twenty-first", "one hundred and first", "two hundredth"."""
        for word in self._texts(1):
            if word in _ORDINALS and _ORDINALS[word] < self._room:
                return WordNumber(value + _ORDINALS[word], Decimal(1), self._end(1), is_ordinal=True)
            if word in _SCALE_ORDINALS and value == 1:
                return WordNumber(EXACT.scaleb(value, _SCALE_ORDINALS[word]), Decimal(1), self._end(1), True)
        return None

    def _fraction(self, value: Decimal) -> WordNumber | None:
        """ "two thirds", "one quarter of a million", "two and a half million", "a million and a half"."""
        texts = self._texts(3)
        if texts and texts[0] in _PARTS and (texts[0].endswith("s") or texts[0] == "halves" or value == 1):
            part = EXACT.multiply(value, Decimal(1)) if value else Decimal(0)
            exact = fraction(int(part), _PARTS[texts[0]])
            end = self._end(1)
            scaled = _of_a_scale(self._words[self._at + 1 :], exact, texts[0])
            return scaled or WordNumber(exact, Decimal(0), end)
        if texts[:1] == ["and"] and len(texts) == 3 and texts[2] in _PARTS:
            count = 1 if texts[1] in ("a", "an") else _CARDINALS.get(texts[1], 0)
            if count:
                return self._mixed(value, fraction(count, _PARTS[texts[2]]), texts[2])
        return None

    def _mixed(self, value: Decimal, part: Decimal, name: str) -> WordNumber:
        self._at += 3
        if self._last_power > 2:  # "a million and a half"
            return WordNumber(
                value + EXACT.scaleb(part, self._last_power),
                Decimal((0, (1,), self._last_power - 2)),
                self._end(),
            )
        scaled = _scaled(self._words[self._at :], value + part, name)
        return scaled or WordNumber(value + part, Decimal(0), self._end())

    def _decimals(self, value: Decimal) -> WordNumber | None:
        """ "three point one four", "two point five million"."""
        if self._texts(1) != ["point"]:
            return None
        digits = []
        for word in self._words[self._at + 1 :]:
            if _CARDINALS.get(word.text, 10) > 9:
                break
            digits.append(str(_CARDINALS[word.text]))
        if not digits:
            return None
        self._at += 1 + len(digits)
        number = Decimal(f"{int(value)}.{''.join(digits)}")
        step, end, power = Decimal((0, (1,), -len(digits))), self._end(), 0
        if self._texts(1) and self._texts(1)[0] in _SCALE_WORDS:
            power, end = _SCALE_WORDS[self._texts(1)[0]], self._end(1)
        return WordNumber(EXACT.scaleb(number, power), EXACT.scaleb(step, power), end)

    def _cardinal(self, value: Decimal) -> WordNumber:
        step = Decimal((0, (1,), self._last_power if self._last_power > 2 else 0))
        return WordNumber(value, step, self._end(), weak=self._at == 1 and self._words[0].text == "one")

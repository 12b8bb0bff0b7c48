"""One cardinal in English words, and what may follow it: the words, what they are worth, and their grammar.

"four hundred and sixty-six", "two lakh crore", "twelve hundred", "nineteen eighty-four"; then a fraction
("two thirds", "two and a half million", "a million and a half"), decimals ("two point five million"), or an
ordinal's ending ("one hundred and first").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from reward.claims.numbers.digits import EXACT, fraction

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
CARDINALS = {w: i for i, w in enumerate(_SMALL)} | {w: 10 * i for i, w in enumerate(_TENS, start=2)}
_BASE_SCALES = {
    "hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12, "quadrillion": 15, "lakh": 5,
    "lac": 5, "crore": 7,
}  # fmt: skip
SCALES = _BASE_SCALES | {w + "s": p for w, p in _BASE_SCALES.items() if w in ("lakh", "crore")}
_SMALL_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth",
    "eighteenth", "nineteenth",
)  # fmt: skip
ORDINALS = {w: i for i, w in enumerate(_SMALL_ORDINALS, start=1)} | {
    w[:-1] + "ieth": 10 * i for i, w in enumerate(_TENS, start=2)
}
SCALE_ORDINALS = {
    f"{w}th": p for w, p in _BASE_SCALES.items() if w in ("hundred", "thousand", "million", "billion")
}
PARTS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4} | {
    w + s: n for w, n in ORDINALS.items() if n > 2 for s in ("", "s")
} | {"hundredths": 100, "thousandths": 1000, "hundredth": 100, "thousandth": 1000}  # fmt: skip
NUMBER_WORDS = {*CARDINALS, *SCALES, *ORDINALS, *SCALE_ORDINALS, *PARTS, "dozen"}


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
class Word:
    text: str
    start: int
    end: int


def read_cardinal(words: Sequence[Word]) -> WordNumber | None:
    """The cardinal, fraction or ordinal at the front of a run of words, as long as the grammar allows."""
    return _Reader(words).read()


def scaled_by(words: Sequence[Word], value: Decimal, part: str) -> WordNumber | None:
    """A fraction of the scale word (or dozen) that follows at once."""
    if not words:
        return None
    if words[0].text == "dozen":
        return WordNumber(EXACT.multiply(value, Decimal(12)), Decimal(1), words[0].end)
    if words[0].text not in SCALES:
        return None
    power = SCALES[words[0].text]
    step = Decimal((0, (1,), power - (1 if part == "half" else 2)))
    return WordNumber(EXACT.scaleb(value, power), step, words[0].end)


def of_a_scale(words: Sequence[Word], value: Decimal, part: str) -> WordNumber | None:
    """A fraction of a scale word: "of a million", or at once ("a quarter million")."""
    if [w.text for w in words[:2]] == ["of", "a"]:
        return scaled_by(words[2:], value, part)
    return scaled_by(words, value, part)


class _Reader:
    """Reads one cardinal, and what may follow it, from the front of a list of words."""

    def __init__(self, words: Sequence[Word]) -> None:
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
        value = EXACT.add(self._total, self._group)
        return self._ordinal(value) or self._fraction(value) or self._decimals(value) or self._cardinal(value)

    def _take(self, word: str) -> bool:
        if word in CARDINALS and 0 <= CARDINALS[word] < self._room and not (word == "zero" and self._at):
            self._group += CARDINALS[word]
            self._room = 10 if CARDINALS[word] >= 20 else 0
            self._last_power = 0
        elif word == "hundred" and 0 < self._group < 100:
            self._group *= 100
            self._room, self._last_power = 100, 2
        elif word in SCALES and word != "hundred" and self._at:
            return self._take_scale(SCALES[word])
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
            self._total = EXACT.add(self._total, EXACT.scaleb(self._group, power))
            self._lowest_scale = power
        else:
            self._total = EXACT.scaleb(self._total, power)  # "one lakh crore"
        self._group, self._room, self._last_power = Decimal(0), 100, power
        return True

    def _is_small(self, place: int) -> bool:
        """Whether a word that may follow "and" stands there, and opens no fraction ("and three quarters")."""
        texts = [w.text for w in self._words[place : place + 2]]
        small = bool(texts) and (texts[0] in CARDINALS or texts[0] in ORDINALS) and texts[0] != "zero"
        return small and (len(texts) < 2 or texts[1] not in PARTS or texts[0] in _TENS)

    def _texts(self, count: int) -> list[str]:
        return [word.text for word in self._words[self._at : self._at + count]]

    def _end(self, more: int = 0) -> int:
        return self._words[self._at + more - 1].end

    def _year(self) -> WordNumber | None:
        """Two pairs of digits: "nineteen eighty-four", "twenty twenty-one"."""
        if self._total or not 11 <= self._group <= 20 or self._at != 1:
            return None
        rest = _Reader(self._words[1:3])
        while (
            rest._at < len(rest._words) and rest._texts(1)[0] in CARDINALS and rest._take(rest._texts(1)[0])
        ):
            rest._at += 1
        if not 10 <= rest._group <= 99:
            return None
        return WordNumber(self._group * 100 + rest._group, Decimal(1), rest._end())

    def _ordinal(self, value: Decimal) -> WordNumber | None:
        """An ordinal: "twenty-first", "one hundred and first", "two hundredth"."""
        for word in self._texts(1):
            if word in ORDINALS and ORDINALS[word] < self._room:
                return WordNumber(value + ORDINALS[word], Decimal(1), self._end(1), is_ordinal=True)
            if word in SCALE_ORDINALS and value == 1:
                return WordNumber(EXACT.scaleb(value, SCALE_ORDINALS[word]), Decimal(1), self._end(1), True)
        return None

    def _fraction(self, value: Decimal) -> WordNumber | None:
        """A fraction, or one more: "two thirds", "two and a half million", "a million and a half"."""
        texts = self._texts(3)
        if texts and texts[0] in PARTS and (texts[0].endswith("s") or texts[0] == "halves" or value == 1):
            exact = fraction(int(value), PARTS[texts[0]])
            scaled = of_a_scale(self._words[self._at + 1 :], exact, texts[0])
            return scaled or WordNumber(exact, Decimal(0), self._end(1))
        if texts[:1] == ["and"] and len(texts) == 3 and texts[2] in PARTS:
            count = 1 if texts[1] in ("a", "an") else CARDINALS.get(texts[1], 0)
            if count:
                return self._mixed(value, fraction(count, PARTS[texts[2]]), texts[2])
        return None

    def _mixed(self, value: Decimal, part: Decimal, name: str) -> WordNumber:
        self._at += 3
        if self._last_power == 1:  # "a dozen and a half"
            return WordNumber(value + EXACT.multiply(part, Decimal(12)), Decimal(1), self._end())
        if self._last_power > 2:  # "a million and a half"
            return WordNumber(
                value + EXACT.scaleb(part, self._last_power),
                Decimal((0, (1,), self._last_power - 2)),
                self._end(),
            )
        scaled = scaled_by(self._words[self._at :], value + part, name)
        return scaled or WordNumber(value + part, Decimal(0), self._end())

    def _decimals(self, value: Decimal) -> WordNumber | None:
        """Decimals: "three point one four", "two point five million"."""
        if self._texts(1) != ["point"]:
            return None
        digits = []
        for word in self._words[self._at + 1 :]:
            if CARDINALS.get(word.text, 10) > 9:
                break
            digits.append(str(CARDINALS[word.text]))
        if not digits:
            return None
        self._at += 1 + len(digits)
        number = Decimal(f"{int(value)}.{''.join(digits)}")
        step, end, power = Decimal((0, (1,), -len(digits))), self._end(), 0
        if self._texts(1) and self._texts(1)[0] in SCALES:
            power, end = SCALES[self._texts(1)[0]], self._end(1)
        return WordNumber(EXACT.scaleb(number, power), EXACT.scaleb(step, power), end)

    def _cardinal(self, value: Decimal) -> WordNumber:
        step = Decimal((0, (1,), self._last_power if self._last_power > 2 else 0))
        return WordNumber(value, step, self._end(), weak=self._at == 1 and self._words[0].text == "one")

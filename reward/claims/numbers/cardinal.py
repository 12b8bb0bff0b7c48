"""One cardinal in English words, and what may follow it: the words, what they are worth, and their grammar.

"four hundred and sixty-six", "two lakh crore", "twelve hundred", "nineteen eighty-four"; then a fraction
("two thirds", "two and a half million", "a million and a half"), decimals ("two point five million"), or an
ordinal's ending ("one hundred and first"). Words are taken from the text as the grammar asks for them.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

from reward.claims.numbers.digits import EXACT, fraction
from reward.claims.numbers.vocabulary import END, TABLES

_TENS = {word: 10 * n for n, word in enumerate(TABLES["english"]["tens"].split(), start=2)}
CARDINALS = {word: n for n, word in enumerate(TABLES["english"]["small"].split())} | _TENS
SCALES: dict[str, int] = TABLES["english"]["scales"]
ORDINALS = {word: n for n, word in enumerate(TABLES["english"]["ordinals"].split(), start=1)} | {
    word[:-1] + "ieth": n for word, n in _TENS.items()
}
SCALE_ORDINALS = {"hundredth": 2, "thousandth": 3, "millionth": 6, "billionth": 9}
PARTS = {
    **{"half": 2, "halves": 2, "quarter": 4, "quarters": 4, "hundredth": 100, "thousandth": 1000},
    **{word: n for word, n in ORDINALS.items() if n > 2},
    **{word + "s": n for word, n in (ORDINALS | {"hundredth": 100, "thousandth": 1000}).items() if n > 2},
}
_DOZEN = Decimal(12)
OF_SCALE = {*SCALES, "dozen"}
NUMBER_WORDS = {*CARDINALS, *OF_SCALE, *ORDINALS, *SCALE_ORDINALS, *PARTS}
_ALL_WORDS = NUMBER_WORDS | {"a", "an", "and", "of", "point"}
PLURAL_PARTS = {word for word in PARTS if word.endswith("s")}
_MOST_WORDS = 33  # in one number
_TOKEN = re.compile(rf"(?:[ \u00a0]{{1,2}}|-)?([a-z]{{1,16}}){END}", re.IGNORECASE)


@dataclass(frozen=True)
class WordNumber:
    """What a run of words says."""

    value: Decimal
    step: Decimal  # one in the last place that was said; 0 for a fraction
    end: int
    is_ordinal: bool = False
    weak: bool = False
    needs_unit: bool = False  # "half an": a number only with its "hour"


class Run:
    """The number words that stand at a place one behind the other, read as far as they are asked for."""

    def __init__(self, text: str, start: int) -> None:
        self.text, self.start = text, start
        self._words: list[str] = []
        self._ends = [start]

    def word(self, place: int) -> str:
        """The word at a place, in small letters; empty behind the last."""
        while len(self._words) <= place:
            if len(self._words) == _MOST_WORDS:
                return ""
            token = _TOKEN.match(self.text, self._ends[-1])
            word = token[1].lower() if token else ""
            if token is None or word not in _ALL_WORDS:
                return ""
            self._words.append(word)
            self._ends.append(token.end())
        return self._words[place]

    def end(self, num_words: int) -> int:
        """Where the first words end, which have been asked for."""
        return self._ends[num_words]

    def counts_one(self) -> None:
        """Takes the article for a "one"."""
        self._words[0] = "one"


def scaled_by(run: Run, place: int, value: Decimal, part: str) -> WordNumber | None:
    """A fraction of the scale word (or dozen) at a place."""
    word = run.word(place)
    if word == "dozen":
        return WordNumber(EXACT.multiply(value, _DOZEN), Decimal(1), run.end(place + 1))
    if word not in SCALES:
        return None
    power = SCALES[word]
    step = Decimal((0, (1,), power - (1 if part == "half" else 2)))
    return WordNumber(EXACT.scaleb(value, power), step, run.end(place + 1))


def of_a_scale(run: Run, place: int, value: Decimal, part: str) -> WordNumber | None:
    """A fraction of a scale word: "of a million", or at once ("a quarter million")."""
    of_a = run.word(place) == "of" and run.word(place + 1) == "a"
    return scaled_by(run, place + 2 * of_a, value, part)


class Cardinal:
    """Reads one cardinal, and what may follow it, from the front of a run of words."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._at = 0  # words read
        self._total = 0  # of the groups that a scale word has closed
        self._group = 0  # below a thousand, still open
        self._room = 100  # what may still be added to the group is below this
        self._last_power = 0  # of the scale word that was read last, or 0
        self._lowest_scale = 100

    def read(self) -> WordNumber | None:
        """The cardinal, fraction or ordinal, as long as the grammar allows."""
        while self._take(self._word()):
            self._at += 1
        if self._at == 0:
            return None
        value = self._total + self._group
        special = self._year() or self._ordinal(value) or self._fraction(value) or self._decimals(value)
        if special:
            return special
        weak = self._at == 1 and self._run.word(0) == "one"
        step = Decimal((0, (1,), self._last_power if self._last_power > 2 else 0))
        return WordNumber(Decimal(value), step, self._run.end(self._at), weak=weak)

    def _word(self, ahead: int = 0) -> str:
        return self._run.word(self._at + ahead)

    def _number(self, value: Decimal, step: Decimal, more: int, *, is_ordinal: bool = False) -> WordNumber:
        return WordNumber(value, step, self._run.end(self._at + more), is_ordinal)

    def _take(self, word: str) -> bool:
        if word in CARDINALS and CARDINALS[word] < self._room and not (word == "zero" and self._at):
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
            return word == "and" and self._last_power > 1 and self._goes_on(self._word(1), self._word(2))
        return True

    def _take_scale(self, power: int) -> bool:
        if self._group:
            if power >= self._lowest_scale:
                return False
            self._total += self._group * 10**power
            self._lowest_scale = power
        else:
            self._total *= 10**power  # "one lakh crore"
        self._group, self._room, self._last_power = 0, 100, power
        return True

    def _goes_on(self, word: str, following: str) -> bool:
        """Whether the number goes on behind an "and", which opens no fraction ("and three quarters")."""
        is_small = (word in CARDINALS or word in ORDINALS) and word != "zero"
        ahead = 3 if following in CARDINALS else 2
        if self._last_power > 2 and SCALES.get(self._word(ahead), 0) >= self._last_power:
            return False  # "between one thousand and twenty-five thousand"
        return is_small and (following not in PARTS or word in _TENS)

    def _year(self) -> WordNumber | None:
        """Two pairs of digits: "nineteen eighty-four", "twenty twenty-one"."""
        if self._total or not 11 <= self._group <= 20 or self._at != 1:
            return None
        pair, unit = CARDINALS.get(self._word(), 0), CARDINALS.get(self._word(1), 0)
        is_two = pair >= 20 and 0 < unit < 10
        if pair < 10:
            return None
        return self._number(Decimal(self._group * 100 + pair + unit * is_two), Decimal(1), 1 + is_two)

    def _ordinal(self, value: int) -> WordNumber | None:
        """An ordinal: "twenty-first", "one hundred and first", "one millionth"."""
        word = self._word()
        if word in ORDINALS and ORDINALS[word] < self._room:
            return self._number(Decimal(value + ORDINALS[word]), Decimal(1), 1, is_ordinal=True)
        if word in SCALE_ORDINALS and value == 1:
            return self._number(Decimal(10 ** SCALE_ORDINALS[word]), Decimal(1), 1, is_ordinal=True)
        return None

    def _fraction(self, value: int) -> WordNumber | None:
        """A fraction, or one more: "two thirds", "two and a half million", "a million and a half"."""
        word = self._word()
        if word in PLURAL_PARTS or (word in PARTS and value == 1):
            exact = fraction(value, PARTS[word])
            scaled = of_a_scale(self._run, self._at + 1, exact, word)
            return scaled or self._number(exact, Decimal(0), 1)
        if word != "and" or (part := self._word(2)) not in PARTS:
            return None
        count = 1 if self._word(1) in ("a", "an") else CARDINALS.get(self._word(1), 0)
        return self._mixed(Decimal(value), fraction(count, PARTS[part]), part) if count else None

    def _mixed(self, value: Decimal, rest: Decimal, name: str) -> WordNumber:
        if self._last_power == 1:  # "a dozen and a half"
            return self._number(value + EXACT.multiply(rest, _DOZEN), Decimal(1), 3)
        if self._last_power > 2:  # "a million and a half"
            step = Decimal((0, (1,), self._last_power - 2))
            return self._number(value + EXACT.scaleb(rest, self._last_power), step, 3)
        scaled = scaled_by(self._run, self._at + 3, value + rest, name)
        return scaled or self._number(value + rest, Decimal(0), 3)

    def _decimals(self, value: int) -> WordNumber | None:
        """Decimals: "three point one four", "two point five million"."""
        if self._word() != "point":
            return None
        digits = ""
        while CARDINALS.get(self._word(1 + len(digits)), 10) < 10:
            digits += str(CARDINALS[self._word(1 + len(digits))])
        if not digits:
            return None
        power = SCALES.get(self._word(1 + len(digits)), 0)
        number, step = Decimal(f"{value}.{digits}"), Decimal((0, (1,), power - len(digits)))
        return self._number(EXACT.scaleb(number, power), step, 1 + len(digits) + (power > 0))

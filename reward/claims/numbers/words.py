"""Numbers in English words: "four hundred and sixty-six", "two and a half million", "a dozen", "third".

A small grammar reads a cardinal ("two lakh crore", "twelve hundred", "nineteen eighty-four") and what may
follow it: a fraction ("two thirds", "and a half", "of a million"), decimals ("point five"), more scale
words, or an ordinal's ending ("one hundred and first"). What it reads is whole or not at all: "three four"
is two numbers. Words are taken from the text one by one as the grammar asks for them.

Words that are numbers only at times are marked `weak`, and the search drops them unless a unit, a bound
or a range shows that they count: "one" and "half" standing alone; "first" and "second" but where a
determiner stands before and a word behind ("the first step", not "at first" nor "the first time"). "half"
counts where it is one of an amount ("half the people", "half of them"). "a third" is a fraction unless a
noun follows ("a third of", "a third party"). "a couple", "several" and "dozens" are no numbers here: those
that stand as amounts are found by `amounts`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from reward.claims.numbers.digits import EXACT, fraction
from reward.claims.numbers.vocabulary import TABLES, either

_TENS = {word: 10 * n for n, word in enumerate(TABLES["english"]["tens"].split(), start=2)}
CARDINALS = {word: n for n, word in enumerate(TABLES["english"]["small"].split())} | _TENS
SCALES = {
    "hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12, "quadrillion": 15, "lakh": 5,
    "lakhs": 5, "lac": 5, "crore": 7, "crores": 7,
}  # fmt: skip
ORDINALS = {word: n for n, word in enumerate(TABLES["english"]["ordinals"].split(), start=1)} | {
    word[:-1] + "ieth": n for word, n in _TENS.items()
}
_SCALE_ORDINALS = {"hundredth": 2, "thousandth": 3, "millionth": 6, "billionth": 9}
_PARTS = {
    **{"half": 2, "halves": 2, "quarter": 4, "quarters": 4, "hundredth": 100, "thousandth": 1000},
    **{word: n for word, n in ORDINALS.items() if n > 2},
    **{word + "s": n for word, n in (ORDINALS | {"hundredth": 100, "thousandth": 1000}).items() if n > 2},
}
_DOZEN = Decimal(12)
_OF_SCALE = {*SCALES, "dozen"}
_NUMBER_WORDS = {*CARDINALS, *_OF_SCALE, *ORDINALS, *_SCALE_ORDINALS, *_PARTS}
_ALL_WORDS = _NUMBER_WORDS | {"a", "an", "and", "of", "point"}
_PLURAL_PARTS = {word for word in _PARTS if word.endswith("s")}
_BEGIN = _NUMBER_WORDS - {"quarter", *_PLURAL_PARTS, *_OF_SCALE}
FIRST_WORDS = frozenset(_BEGIN | {"quarter", "a", "an"})  # of `STARTS`
STARTS = (
    rf"{either(_BEGIN)}(?![^\W_])|quarter(?=[ ]of[ ]a[ ]{either(SCALES)})"
    rf"|an?(?=[\x20\u00a0-]{either(_OF_SCALE | {*_PARTS} - _PLURAL_PARTS)}(?![^\W_]))"
)
_MOST_WORDS = 33  # in one number
_TOKEN = re.compile(r"(?:[ \u00a0]{1,2}|-)?([a-z]{1,16})(?![^\W_])", re.IGNORECASE)
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
_BY = re.compile(r"(?<![^\W_])by[ ]$", re.IGNORECASE)
# Before a half that is a part of a match, a year or a page.
_ONE_OF_TWO = re.compile(
    r"(?<![^\W_])(?:first|second|third|other|latter|former|better|upper|lower|northern|southern|eastern|western"
    r"|top|bottom|front|opening|closing|final|inner|outer|the|this|each|either|every|his|her|its|their|one|'s"
    r"|(?:the|its|his|her|their)[ ](?:left|right|back|last|early|late|near|far))[ -]$",
    re.IGNORECASE,
)
_OF_AN_AMOUNT = re.compile(
    r"[ ](?:of[ ](?:the|all|its|their|them|those|these|us|his|her|our|my|your|it|what|that|this|[A-Z\d$€£])"
    r"|(?:the|its|their|his|her|our|my|your|as|that|those|these|this)[ ](?!battle|time[ ]the|way)\w)"
)


@dataclass(frozen=True)
class WordNumber:
    """What a run of words says."""

    value: Decimal
    step: Decimal  # one in the last place that was said; 0 for a fraction
    end: int
    is_ordinal: bool = False
    weak: bool = False
    needs_unit: bool = False  # "half an": a number only with its "hour"


class _Run:
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


def words_at(text: str, at: int) -> WordNumber | None:
    """The number in words that begins at `at`, the longest that the grammar allows."""
    run = _Run(text, at)
    first = run.word(0)
    if first == "half":
        return _half(run)
    if first == "quarter":
        return _of_a_scale(run, 1, fraction(1, 4), "quarter")
    if first in ("a", "an"):
        return _with_article(run)
    if first in ORDINALS or first in _SCALE_ORDINALS:
        return _lone_ordinal(run)
    return _Cardinal(run).read()


def _scaled_by(run: _Run, place: int, value: Decimal, part: str) -> WordNumber | None:
    """A fraction of the scale word (or dozen) at a place."""
    word = run.word(place)
    if word == "dozen":
        return WordNumber(EXACT.multiply(value, _DOZEN), Decimal(1), run.end(place + 1))
    if word not in SCALES:
        return None
    power = SCALES[word]
    step = Decimal((0, (1,), power - (1 if part == "half" else 2)))
    return WordNumber(EXACT.scaleb(value, power), step, run.end(place + 1))


def _of_a_scale(run: _Run, place: int, value: Decimal, part: str) -> WordNumber | None:
    """A fraction of a scale word: "of a million", or at once ("a quarter million")."""
    of_a = run.word(place) == "of" and run.word(place + 1) == "a"
    return _scaled_by(run, place + 2 * of_a, value, part)


def _half(run: _Run) -> WordNumber:
    """A half: "half a million", "half-dozen", "half an hour", "half of the people", or a lone "half"."""
    article = run.word(1) in ("a", "an")
    if scaled := _scaled_by(run, 1 + article, Decimal("0.5"), "half"):
        return scaled
    weak = article or not _is_share(run.text, run.start, run.end(1))
    return WordNumber(Decimal("0.5"), Decimal(0), run.end(1 + article), weak=weak, needs_unit=article)


def _is_share(text: str, start: int, end: int) -> bool:
    """Whether a half is one of an amount ("half the people", "by half"), not "the first half of May"."""
    before = text[max(0, start - 24) : start]
    if _BY.search(before):
        return _NOUN.match(text, end) is None
    return not _ONE_OF_TWO.search(before) and _OF_AN_AMOUNT.match(text, end) is not None


def _with_article(run: _Run) -> WordNumber | None:
    """One of something: "a hundred", "a dozen", "a third of", "a quarter of a million"."""
    text, part = run.text, run.word(1)
    if part in _OF_SCALE:
        run.counts_one()
        return _Cardinal(run).read()
    if part not in _PARTS:
        return None
    value, end = fraction(1, _PARTS[part]), run.end(2)
    if scaled := _of_a_scale(run, 2, value, part):
        return scaled
    by = text[max(0, run.start - 3) : run.start].lower() == "by "  # "fell by a third"
    if not by and part not in ("quarter", "half") and _RANK.match(text, end):
        return None
    needs_unit = run.word(2) == "of" and run.word(3) in ("a", "an")
    is_amount = part == "quarter" and _OF_AN_AMOUNT.match(text, end) is not None
    weak = needs_unit or (part in ("half", "quarter") and not is_amount)
    return WordNumber(value, Decimal(0), run.end(4) if needs_unit else end, weak=weak, needs_unit=needs_unit)


def _lone_ordinal(run: _Run) -> WordNumber | None:
    """A rank of one word; "first" and "second" may be other words (see above)."""
    text, word, end = run.text, run.word(0), run.end(1)
    if word in _SCALE_ORDINALS:
        return WordNumber(Decimal(10 ** _SCALE_ORDINALS[word]), Decimal(1), end, is_ordinal=True)
    if _NO_RANK.match(text, end):
        return None
    weak = word in ("first", "second") and not (
        _DETERMINER.search(text, max(0, run.start - 6), run.start)
        and _NOUN.match(text, end)
        and not _ADVERB.match(text, end)
    )
    return WordNumber(Decimal(ORDINALS[word]), Decimal(1), end, is_ordinal=True, weak=weak)


class _Cardinal:
    """Reads one cardinal, and what may follow it, from the front of a run of words."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._at = 0  # words read
        self._total = 0  # of the groups that a scale word has closed
        self._group = 0  # below a thousand, still open
        self._room = 100  # what may still be added to the group is below this
        self._last_power = 0  # of the scale word that was read last, or 0
        self._lowest_scale = 100

    def read(self) -> WordNumber | None:
        while self._take(self._word()):
            self._at += 1
        if self._at == 0:
            return None
        value = self._total + self._group
        return (
            self._year()
            or self._ordinal(value)
            or self._fraction(value)
            or self._decimals(value)
            or self._cardinal(value)
        )

    def _word(self, ahead: int = 0) -> str:
        return self._run.word(self._at + ahead)

    def _number(self, value: Decimal, step: Decimal, more: int = 0, *, is_ordinal: bool = False) -> WordNumber:
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
        return is_small and (following not in _PARTS or word in _TENS)

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
        if word in _SCALE_ORDINALS and value == 1:
            return self._number(Decimal(10 ** _SCALE_ORDINALS[word]), Decimal(1), 1, is_ordinal=True)
        return None

    def _fraction(self, value: int) -> WordNumber | None:
        """A fraction, or one more: "two thirds", "two and a half million", "a million and a half"."""
        word = self._word()
        if word in _PLURAL_PARTS or (word in _PARTS and value == 1):
            exact = fraction(value, _PARTS[word])
            scaled = _of_a_scale(self._run, self._at + 1, exact, word)
            return scaled or self._number(exact, Decimal(0), 1)
        if word != "and" or (part := self._word(2)) not in _PARTS:
            return None
        count = 1 if self._word(1) in ("a", "an") else CARDINALS.get(self._word(1), 0)
        return self._mixed(Decimal(value), fraction(count, _PARTS[part]), part) if count else None

    def _mixed(self, value: Decimal, rest: Decimal, name: str) -> WordNumber:
        if self._last_power == 1:  # "a dozen and a half"
            return self._number(value + EXACT.multiply(rest, _DOZEN), Decimal(1), 3)
        if self._last_power > 2:  # "a million and a half"
            step = Decimal((0, (1,), self._last_power - 2))
            return self._number(value + EXACT.scaleb(rest, self._last_power), step, 3)
        scaled = _scaled_by(self._run, self._at + 3, value + rest, name)
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

    def _cardinal(self, value: int) -> WordNumber:
        step = Decimal((0, (1,), self._last_power if self._last_power > 2 else 0))
        weak = self._at == 1 and self._run.word(0) == "one"
        return WordNumber(Decimal(value), step, self._run.end(self._at), weak=weak)

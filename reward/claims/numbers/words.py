"""Numbers in English words: "four hundred and sixty-six", "two and a half million", "a dozen", "third".

A small grammar reads a cardinal and what may follow it: a fraction ("and a half", "quarters", "of a
million"), decimals ("point five"), more scale words, or an ordinal's ending. What it reads is whole or
not at all: "three four" is two numbers.

Words that are numbers only at times are marked `weak`, and the search drops them unless a unit, a bound
or a range shows that they count: "one" and "half" standing alone; "first" and "second" but where a
determiner stands before and a word behind ("the first step", not "at first" nor "the first time"). "half"
counts where it is one of an amount ("half the people", "half of them"). "a third" is a fraction unless a
noun follows ("a third of", "a third party"). "a couple", "several" and "dozens" are no numbers here: those
that stand as amounts are found by `unread`.
"""

from __future__ import annotations

import re
from decimal import Decimal

from reward.claims.numbers.cardinal import (
    NUMBER_WORDS,
    ORDINALS,
    PARTS,
    SCALE_ORDINALS,
    SCALES,
    Word,
    WordNumber,
    of_a_scale,
    read_cardinal,
    scaled_by,
)
from reward.claims.numbers.digits import fraction

_SEPARATOR = r"(?:[ \u00a0]{1,2}|-)"


def _either(words: set[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_FIRST_WORDS = (
    NUMBER_WORDS - {"quarter", "quarters", "halves", "thirds"} - {w for w in PARTS if w.endswith("s")}
)
_BEHIND_AN_ARTICLE = {*SCALES, "dozen"} | {w for w in PARTS if not w.endswith("s")}
FIRST_WORDS = frozenset((_FIRST_WORDS - {*SCALES, "dozen"}) | {"quarter", "a", "an"})  # of `STARTS`
STARTS = (
    rf"(?:{_either(_FIRST_WORDS - {*SCALES, 'dozen'})})(?![^\W_])"
    rf"|quarter(?=[ ]of[ ]a[ ](?:{_either({*SCALES})}))"
    rf"|an?(?=[\x20\u00a0-](?:{_either(_BEHIND_AN_ARTICLE)})(?![^\W_]))"
)
_WORD = rf"(?:{_either(NUMBER_WORDS | {'a', 'an', 'and', 'of', 'point'})})(?![^\W_])"
# A short run is read first: where nobody goes on counting, a long one would be read again and again.
_FEW_WORDS, _LOOKED_AHEAD = 8, 3
_FEW = re.compile(rf"{_WORD}(?:{_SEPARATOR}{_WORD}){{0,{_FEW_WORDS - 1}}}", re.IGNORECASE)
_MANY = re.compile(rf"{_WORD}(?:{_SEPARATOR}{_WORD}){{0,32}}", re.IGNORECASE)
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


def words_at(text: str, at: int) -> WordNumber | None:
    """The number in words that begins at `at`, the longest that the grammar allows."""
    number, words = _read(_FEW, text, at)
    few_are_enough = len(words) < _FEW_WORDS or (
        number is not None and number.end <= words[_LOOKED_AHEAD].end
    )
    return number if few_are_enough else _read(_MANY, text, at)[0]


def _read(run: re.Pattern[str], text: str, at: int) -> tuple[WordNumber | None, list[Word]]:
    match = run.match(text, at)
    assert match is not None, f"no number word at {at}"
    words = [Word(m[0].lower(), m.start(), m.end()) for m in _TOKEN.finditer(text, at, match.end())]
    if words[0].text == "half":
        return _half(words, text), words
    if words[0].text == "quarter":
        return of_a_scale(words[1:], fraction(1, 4), "quarter"), words
    if words[0].text in ("a", "an"):
        return _with_article(words, text), words
    if words[0].text in ORDINALS or words[0].text in SCALE_ORDINALS:
        return _lone_ordinal(words[0], text), words
    return read_cardinal(words), words


def _half(words: list[Word], text: str) -> WordNumber:
    """A half: "half a million", "half-dozen", "half an hour", "half of the people", or a lone "half"."""
    rest = words[1:]
    article = bool(rest) and rest[0].text in ("a", "an")
    scaled = scaled_by(rest[article:], Decimal("0.5"), "half")
    if scaled is not None:
        return scaled
    end = rest[0].end if article else words[0].end
    weak = article or not _is_share(text, words[0])
    return WordNumber(Decimal("0.5"), Decimal(0), end, weak=weak, needs_unit=article)


def _is_share(text: str, half: Word) -> bool:
    """Whether a half is one of an amount ("half the people", "by half"), not "the first half of May"."""
    before = text[max(0, half.start - 24) : half.start]
    if _BY.search(before):
        return _NOUN.match(text, half.end) is None
    return not _ONE_OF_TWO.search(before) and _OF_AN_AMOUNT.match(text, half.end) is not None


def _with_article(words: list[Word], text: str) -> WordNumber | None:
    """One of something: "a hundred", "a dozen", "a third of", "a quarter of a million"."""
    second = words[1] if len(words) > 1 else None
    if second is None:
        return None
    if second.text in SCALES or second.text == "dozen":
        return read_cardinal([Word("one", words[0].start, words[0].end), *words[1:]])
    if second.text in PARTS:
        value = fraction(1, PARTS[second.text])
        if scaled := of_a_scale(words[2:], value, second.text):
            return scaled
        by = text[max(0, words[0].start - 3) : words[0].start].lower() == "by "  # "fell by a third"
        is_rank = not by and second.text not in ("quarter", "half") and _RANK.match(text, second.end)
        if is_rank:
            return None
        needs_unit = [w.text for w in words[2:4]] in (["of", "a"], ["of", "an"])
        end = words[3].end if needs_unit else second.end
        is_amount = second.text == "quarter" and _OF_AN_AMOUNT.match(text, second.end) is not None
        weak = needs_unit or (second.text in ("half", "quarter") and not is_amount)
        return WordNumber(value, Decimal(0), end, weak=weak, needs_unit=needs_unit)
    return None


def _lone_ordinal(word: Word, text: str) -> WordNumber | None:
    """A rank of one word; "first" and "second" may be other words (see above)."""
    if word.text in SCALE_ORDINALS:
        return WordNumber(Decimal(10 ** SCALE_ORDINALS[word.text]), Decimal(1), word.end, is_ordinal=True)
    if _NO_RANK.match(text, word.end):
        return None
    weak = word.text in ("first", "second") and not (
        _DETERMINER.search(text, max(0, word.start - 6), word.start)
        and _NOUN.match(text, word.end)
        and not _ADVERB.match(text, word.end)
    )
    return WordNumber(Decimal(ORDINALS[word.text]), Decimal(1), word.end, is_ordinal=True, weak=weak)

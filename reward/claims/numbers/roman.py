"""Roman numerals: "Louis XIV", "World War II", "Chapter IX", "XIX century", "LX euros".

A capital letter alone is more often a pronoun, an initial or a grade, and "MD", "CD" and "IV" are words, so
the context decides what a numeral is:

    chapter IX, type II, phase III    the count that digits would be there
    XIX century                       the ordinal
    LX euros, XX people               the amount
    Louis XIV, World War II, Rocky IV an identifier: the name, which equals its other writings
    XII, MCMXC elsewhere              an identifier that nobody can read for sure

Numerals that number the lines of a list are none.
"""

import re
from decimal import Decimal

from reward.claims.numbers.cardinal import CARDINALS, ORDINALS
from reward.claims.numbers.digits import Digits
from reward.claims.numbers.eras import CENTURY
from reward.claims.numbers.measure import with_unit
from reward.claims.numbers.model import Kind, Number, changed
from reward.claims.numbers.names import identifier
from reward.claims.numbers.vocabulary import BEGIN, END, TABLES, either

_WORTH = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
    (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip


def _written(value: int) -> str:
    written = ""
    for worth, letters in _WORTH:
        written += letters * (value // worth)
        value %= worth
    return written


NUMERALS = {_written(value): value for value in range(1, 4000)}  # in their usual form: "XIV", not "XIIII"
_WORDS_OF_WARS = (("first", "1st", "one"), ("second", "2nd", "two"), ("third", "3rd", "three"))
_WARS = {
    name: place
    for place, (rank, short, word) in enumerate(_WORDS_OF_WARS, start=1)
    for name in (
        *(f"{one} world war" for one in (rank, short)),
        *(f"world war {one}" for one in (word, place, "i" * place)),
        *(f"ww{one}" for one in (place, "i" * place)),
    )
}
# Both are searched in a text in lower case; `roman_at` looks at the letters themselves.
ROMAN = rf"[ivxlcdm]++(?:{END}|(?=th[ -]centur|e[ ]si[èe]cle))"
WAR = rf"{either(_WARS)}{END}"
_LABELS, _NO_NAMES, _RULERS, _ABBREVIATIONS, _COUNTED_NOUNS = (
    frozenset(TABLES["roman"][name].split())
    for name in ("labels", "no_names", "rulers", "abbreviations", "counted")
)
_LABEL = re.compile(rf"{BEGIN}{either(_LABELS)}\.?[ \u00a0-]$", re.IGNORECASE)
_SAID_BY_ME = re.compile(r"[ ][a-z]+")  # "the part I liked"; nouns behind a numeral are in this list:
_NOUN_BEHIND = re.compile(rf"[ ]{either(TABLES['roman']['behind_one'].split())}{END}")
_HEAD = re.compile(r"(?<![\w'\u2019-])([A-Z][\w'\u2019-]{1,24})[ \u00a0]$")
_RULER_BEFORE = re.compile(r"(?<![\w'\u2019-])([A-Z][\w'\u2019-]{1,24}) the $")
_MEDICAL = re.compile(r"[ -](?:drip|fluid|therapy|line|infusion|antibiotic|medication)s?\b", re.IGNORECASE)
_TITLE = re.compile(rf"{BEGIN}{either(TABLES['roman']['titles'].split())}[ ][A-Z][\w-]{{1,24}}[ ]$")
_OF_A_RULER = re.compile(
    r"[ ](?P<place>of[ ][A-Z])|[ ](?:was|is|had|became|ruled|reigned|died|and)|['\u2019]s\b|[,.;)]|[ ][(]|$"
)
_COUNTED = re.compile(rf"[ ]{either(_COUNTED_NOUNS)}{END}")
_SIGNS_BEFORE = frozenset("'\u2019&./-+_$")
_SIGNS_BEHIND = re.compile(r"[&+#/_]|['\u2019](?!s|$)|\.[^\W_]|-(?!century)")
_OPENS_LINE = re.compile(r"(?:^|\n)[ \t#*(-]{0,7}$")
_REACH, _LABEL_REACH = 64, 14  # characters
_SURE_LENGTH = 4  # no word of four letters is a numeral by chance ("MILD" and "CIVIC" are none)
_MOST_CENTURIES, _MOST_NAMED = 30, 30


def roman_at(text: str, start: int, end: int, low: int) -> Number | None:
    """The number that the letters `text[start:end]` are; None when they are none, or none for sure."""
    written = text[start:end]
    is_small = written.islower() and len(written) > 1 and set(written) <= set("ivxl")
    value = NUMERALS.get(written.upper() if is_small else written)
    if value is None or _is_inside(text, start, end):
        return None
    number = Number(((Decimal(value),),), step=Decimal(1), start=start, end=end)
    if CENTURY.match(text, end) and value <= _MOST_CENTURIES:
        return changed(number, kind=Kind.ORDINAL)
    if _is_labelled(text, written, start, end):
        return number
    if is_small:  # "lx euros"; alone it is no numeral
        return _amount(text, number)
    if name := _name(text, written, value, start, end, low):
        return name
    if len(written) == 1:
        return None
    is_word = written in _ABBREVIATIONS or (value >= 70 and len(written) < _SURE_LENGTH)
    return _amount(text, number) or (None if is_word else identifier(text, start, end, value=number.value))


def alone(text: str) -> Number | None:
    """The count that a text is which holds nothing but a Roman numeral, such as an answer's bracket."""
    if len(text) < 2 or text not in NUMERALS or text in _ABBREVIATIONS - {"IV", "VI", "XX", "XL"}:
        return None
    return Number(((Decimal(NUMERALS[text]),),), step=Decimal(1), end=len(text))


def war_at(text: str, start: int, end: int) -> Number:
    """A world war, in any of its writings."""
    place = _WARS[" ".join(text[start:end].lower().split())]
    return identifier(text, start, end, unit=f"world war {place}", value=Decimal(place))


def writings(unit: str) -> tuple[str, ...]:
    """The other writings, without capitals, of a name with a Roman numeral, given as an identifier's unit."""
    head, _, digits = unit.rpartition(" ")
    place = int(digits) if head and digits.isdecimal() and len(digits) < 3 else 0
    if head == "world war":
        return tuple(name for name, war in _WARS.items() if war == place)
    if not 0 < place <= _MOST_NAMED:
        return ()
    roman, cardinal, rank = _written(place).lower(), _spelt(place, CARDINALS), _spelt(place, ORDINALS)
    return tuple(f"{head} {one}" for one in (roman, digits, cardinal, f"the {rank}", f"the {digits}th"))


def _spelt(value: int, words: dict[str, int]) -> str:
    """A number up to 99 in words, or its rank."""
    last = {n: word for word, n in words.items()}
    tens = {n: word for word, n in CARDINALS.items()}
    return last[value] if value in last else f"{tens[value // 10 * 10]}-{last[value % 10]}"


def _is_inside(text: str, start: int, end: int) -> bool:
    """Whether the capitals are part of a word with signs ("X-ray", "A&M", "I'm", "C++"), or number a line."""
    if text[max(0, start - 1) : start] in _SIGNS_BEFORE or _SIGNS_BEHIND.match(text, end):
        return True
    return text[end : end + 1] in (".", ")", ":") and bool(_OPENS_LINE.search(text, max(0, start - 8), start))


def _is_labelled(text: str, written: str, start: int, end: int) -> bool:
    if not _LABEL.search(text, max(0, start - _LABEL_REACH), start):
        return False
    if written != "I":
        return len(written) > 1 or written in "VX"
    # "Part I liked": the pronoun is recognised by the verb behind it.
    return not _SAID_BY_ME.match(text, end) or _NOUN_BEHIND.match(text, end) is not None


def _name(text: str, written: str, value: int, start: int, end: int, low: int) -> Number | None:
    """A name with its numeral: a capitalised word before it, and no abbreviation."""
    head = _HEAD.search(text, max(low, start - _REACH), start)
    if head is None or head[1].casefold() in _NO_NAMES or (value >= 50 and len(written) < _SURE_LENGTH):
        return None
    name = head[1].casefold()
    if len(written) == 1:
        ruler = _OF_A_RULER.match(text, end)
        is_ruler = name in _RULERS or bool(_TITLE.search(text, max(low, start - _REACH), start))
        if written == "I":
            is_ruler = ruler is not None and (is_ruler or bool(ruler["place"]))
        if not is_ruler or written not in "IVX":
            return None
    elif written in _ABBREVIATIONS and (head[1].isupper() or value >= 20 or _MEDICAL.match(text, end)):
        return None
    return identifier(text, head.start(1), end, unit=f"{name} {value}", value=Decimal(value))


def with_ruler(text: str, rank: Number, low: int) -> Number | None:
    """A capitalised rank in words behind a name: "Louis the Fourteenth" is Louis XIV."""
    head = _RULER_BEFORE.search(text, max(low, rank.start - _REACH), rank.start)
    if head is None or not text[rank.start].isupper() or head[1].casefold() in _NO_NAMES:
        return None
    name, value = head[1].casefold(), int(rank.value)
    return identifier(text, head.start(1), rank.end, unit=f"{name} {value}", value=rank.value)


def _amount(text: str, number: Number) -> Number | None:
    """An amount with its unit or noun."""
    measured = with_unit(text, number.start, number.end, Digits(number.value, Decimal(1)))
    if measured.kind is not Kind.COUNT and text[number.end : number.end + 1] == " ":
        return measured
    return number if _COUNTED.match(text, number.end) else None

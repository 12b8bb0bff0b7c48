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

from __future__ import annotations

import re
from decimal import Decimal

from reward.claims.numbers.words import CARDINALS, ORDINALS
from reward.claims.numbers.digits import Digits
from reward.claims.numbers.measure import with_unit
from reward.claims.numbers.model import Kind, Number
from reward.claims.numbers.names import identifier

# Both are searched in a text in lower case; `roman_at` looks at the letters themselves.
ROMAN = r"[ivxlcdm]++(?:(?![^\W_])|(?=th[ -]centur|e[ ]si[èe]cle))"
WAR = (
    r"(?:(?:first|second|third|1st|2nd|3rd)[ ]world[ ]war|world[ ]war[ ](?:one|two|three|[123]|i{1,3})"
    r"|ww(?:[123]|i{1,3}))"
    r"(?![^\W_])"
)
_CANONICAL = re.compile(r"(?=.)M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_WORTH = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
    (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip
_LETTERS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_LABELS = (
    "chapter", "part", "volume", "vol", "book", "act", "scene", "section", "article", "title", "phase",
    "type", "class", "grade", "stage", "level", "group", "appendix", "figure", "fig", "table", "annex",
    "category", "division", "schedule", "siglo", "século", "canto", "amendment", "tier", "episode", "season",
    "factor", "protocol", "bowl", "mark", "mk", "photosystem", "factor", "region", "unit", "chapters",
    "parts", "types", "phases", "stages",
)  # fmt: skip
_LABEL = re.compile(rf"(?<![^\W_])(?:{'|'.join(_LABELS)})\.?[ \u00a0-]$", re.IGNORECASE)
_SAID_BY_ME = re.compile(r"[ ][a-z]+")  # "the part I liked"; nouns behind a numeral are told by this list:
_NOUN_BEHIND = re.compile(
    r"[ ](?:diabetes|trials?|errors?|study|studies|clinical|cancer|reactions?|of|and|or|to|hypersensitivity|"
    r"collagen|interferons?|superconductors?|civilization|is|was|in|for|with)(?![^\W_])"
)
_HEAD = re.compile(r"(?<![\w'\u2019-])([A-Z][\w'\u2019-]{1,24})[ \u00a0]$")
_NO_HEAD = frozenset((
    "the", "an", "this", "that", "start", "his", "her", "each", "if", "when", "no", "or", "and", "in", "on",
    "with", "for", "give", "via", "by", "as", "at", "to", "from", "of", "is", "are", "was", "use", "using",
))  # fmt: skip
_MEDICAL = re.compile(
    r"[ -](?:drips?|fluids?|therapy|lines?|infusions?|antibiotics?|medications?)\b", re.IGNORECASE
)
_TITLE = re.compile(
    r"(?<![^\W_])(?:King|Queen|Pope|Emperor|Empress|Tsar|Czar|Sultan|Kaiser|Pharaoh|Shah)"
    r"[ ][A-Z][\w-]{1,24}[ ]$"
)
_RULERS = frozenset((
    "louis", "henry", "charles", "george", "edward", "william", "james", "elizabeth", "mary", "philip",
    "pius", "leo", "paul", "francis", "frederick", "alexander", "nicholas", "napoleon", "catherine", "peter",
    "ferdinand", "alfonso", "christian", "gustav", "ramesses", "ptolemy", "umberto", "wilhelm", "darius",
    "xerxes", "baldwin",
))  # fmt: skip
_OF_A_PLACE = re.compile(r"[ ]of[ ][A-Z]")
_OF_A_RULER = re.compile(
    r"[ ](?:of[ ][A-Z]|was|is|had|became|ruled|reigned|died|and)|['\u2019]s\b|[,.;)]|[ ][(]|$"
)
_ABBREVIATIONS = frozenset((
    "CD", "DC", "MD", "CV", "MC", "DI", "CC", "CM", "MM", "ML", "DL", "LI", "LL", "LV", "MI", "CI", "CL",
    "IV", "VI", "XX", "XL", "XXX", "XXL", "MIX", "DIM", "MV", "DV", "CX", "DX", "MX", "LC", "LM", "DM", "MDX",
    "MCI", "CIV", "DIV", "MCC", "MDC", "DVI", "CVI", "MVI", "MCL", "CCC", "DCC", "CCI", "DCI", "CLI", "CLX",
    "MCV", "MMC", "CDI", "CDV", "CDX", "MCM", "MMX", "CXL", "DXL", "MDL", "MDI", "MLI", "LIV", "DLI", "DCL",
    "DCV",
))  # fmt: skip
_COUNTED = re.compile(
    r"[ ](?:people|persons|men|women|children|members|guests|visitors|students|participants|employees|"
    r"patients|cars|houses|copies|votes|goals|points|countries|cities)(?![^\W_])"
)
_CENTURY = re.compile(
    r"(?:th|e)?[ -](?:century|centuries|siècle|secolo|Jahrhundert)(?![^\W_])", re.IGNORECASE
)
_LONGEST, _REACH, _LABEL_REACH = 15, 64, 14  # characters
LARGEST_ROMAN = 3999
_WARS = (
    ("first", "1st", "one", "1", "i", "ww1", "wwi"),
    ("second", "2nd", "two", "2", "ii", "ww2", "wwii"),
    ("third", "3rd", "three", "3", "iii", "ww3", "wwiii"),
)
_SURE_LENGTH = 4  # no word of four letters is a numeral by chance ("MILD" and "CIVIC" are none)


def roman_value(written: str) -> int | None:
    """The value of a Roman numeral in its usual form ("XIV", not "XIIII"); None when it is none."""
    if len(written) > _LONGEST or not _CANONICAL.fullmatch(written):
        return None
    values = [_LETTERS[letter] for letter in written]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))


def roman_at(text: str, start: int, end: int, low: int) -> Number | None:
    """The number that the capitals `text[start:end]` are; None when they are none, or none for sure."""
    written = text[start:end]
    is_small = written.islower() and len(written) > 1 and not set(written) - set("ivxl")
    value = roman_value(written.upper() if is_small else written)
    if value is None or _is_inside(text, start, end):
        return None
    number = Number(((Decimal(value),),), step=Decimal(1), start=start, end=end)
    if _CENTURY.match(text, end) and value <= 30:
        return Number(number.readings, Kind.ORDINAL, step=Decimal(1), start=start, end=end)
    if _is_labelled(text, written, start, end):
        return number
    if is_small:  # "lx euros"; alone it is no numeral
        amount = _amount(text, number)
        return amount if amount and amount.kind is not Kind.IDENTIFIER else None
    if name := _name(text, written, value, start, end, low):
        return name
    return _amount(text, number) if len(written) > 1 else None


def alone(text: str) -> Number | None:
    """The count that a text is which holds nothing but a Roman numeral, such as an answer's bracket."""
    value = (
        roman_value(text) if len(text) > 1 and text not in _ABBREVIATIONS - {"IV", "VI", "XX", "XL"} else None
    )
    return None if value is None else Number(((Decimal(value),),), step=Decimal(1), end=len(text))


def war_at(text: str, start: int, end: int) -> Number:
    """A world war, in any of its writings."""
    words = text[start:end].lower()
    place = next(
        i for i, forms in enumerate(_WARS) if words.split()[0] in forms or words.split()[-1] in forms
    )
    return identifier(text, start, end, unit=f"world war {place + 1}", value=Decimal(place + 1))


def writings(unit: str) -> tuple[str, ...]:
    """The other writings, without capitals, of a name with a Roman numeral, given as an identifier's unit."""
    head, _, digits = unit.rpartition(" ")
    if not head or not digits.isdigit() or not 0 < int(digits) < len(_NAMES_OF):
        return ()
    if head == "world war":
        before, last = _WARS[min(int(digits), 3) - 1][:2], _WARS[min(int(digits), 3) - 1][2:5]
        return (
            *(f"{w} world war" for w in before),
            *(f"world war {w}" for w in last),
            *_WARS[int(digits) - 1][5:],
        )
    roman, rank, cardinal = _NAMES_OF[int(digits)]
    return (
        f"{head} {roman}",
        f"{head} {digits}",
        f"{head} {cardinal}",
        f"{head} the {rank}",
        f"{head} the {digits}th",
    )


def _is_inside(text: str, start: int, end: int) -> bool:
    """Whether the capitals are part of a word with signs ("X-ray", "A&M", "I'm", "C++"), or number a line."""
    before, after = text[max(0, start - 1) : start], text[end : end + 2]
    if before in ("'", "\u2019", "&", ".", "/", "-", "+", "_", "$") or after[:1] in ("&", "+", "#", "/", "_"):
        return True
    if after[:1] in ("'", "\u2019") and after[1:] not in ("s", ""):
        return True
    if (after[:1] == "." and after[1:].isalnum()) or (
        after[:1] == "-" and not text.startswith("century", end + 1)
    ):
        return True
    opens_line = not text[text.rfind("\n", max(0, start - 8), start) + 1 : start].strip(" \t#*(-")
    return (
        opens_line
        and start - max(0, text.rfind("\n", max(0, start - 8), start)) < 8
        and after[:1] in (".", ")", ":")
    )


def _is_labelled(text: str, written: str, start: int, end: int) -> bool:
    label = _LABEL.search(text, max(0, start - _LABEL_REACH), start)
    if label is None:
        return False
    if written != "I":
        return len(written) > 1 or written in "VX"
    # "Part I liked": the pronoun is told by the verb behind it.
    return not _SAID_BY_ME.match(text, end) or _NOUN_BEHIND.match(text, end) is not None


def _name(text: str, written: str, value: int, start: int, end: int, low: int) -> Number | None:
    """A name with its numeral: a capitalised word before it, and no abbreviation."""
    head = _HEAD.search(text, max(low, start - _REACH), start)
    if head is None or head[1].casefold() in _NO_HEAD or (value >= 50 and len(written) < _SURE_LENGTH):
        return None
    name = head[1].casefold()
    if len(written) == 1:
        titled = _TITLE.search(text, max(low, start - _REACH), start) is not None
        known = titled or name in _RULERS or (written == "I" and _OF_A_PLACE.match(text, end))
        if not known or written not in "IVX" or (written == "I" and not _OF_A_RULER.match(text, end)):
            return None
    elif written in _ABBREVIATIONS and (head[1].isupper() or value >= 20 or _MEDICAL.match(text, end)):
        return None
    return identifier(text, head.start(1), end, unit=f"{name} {value}", value=Decimal(value))


def _amount(text: str, number: Number) -> Number | None:
    """An amount with its unit or noun, or a numeral that stands alone and is no abbreviation."""
    start, end = number.start, number.end
    written, value = text[start:end], number.value
    measured = with_unit(text, start, end, Digits(value, Decimal(1)))
    if measured.kind is not Kind.COUNT and text[end : end + 1] == " ":
        return measured
    if _COUNTED.match(text, end):
        return number
    if written in _ABBREVIATIONS or (value >= 70 and len(written) < _SURE_LENGTH):
        return None
    return identifier(text, start, end, value=value)


def _names_of() -> list[tuple[str, str, str]]:
    """Of each number up to 30 its Roman numeral, its ordinal and its cardinal, without capitals."""
    ranks = {n: w for w, n in ORDINALS.items()}
    words = {n: w for w, n in CARDINALS.items()}
    romans = [written_roman(n).lower() for n in range(31)]

    def spelt(n: int, last: dict[int, str]) -> str:
        return last[n] if n in last else f"{words[n // 10 * 10]}-{last[n % 10]}"

    return [("", "", "")] + [(romans[n], spelt(n, ranks), spelt(n, words)) for n in range(1, 31)]


def written_roman(value: int) -> str:
    """A number from 0 to `LARGEST_ROMAN` in Roman numerals; nothing stands for 0."""
    written = ""
    for worth, letters in _WORTH:
        written += letters * (value // worth)
        value %= worth
    return written


_NAMES_OF = _names_of()

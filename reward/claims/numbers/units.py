"""What is written beside an amount: measured units behind it, and currencies before and behind it.

The vocabulary gives each unit's usual spelling first (the one that `canonical` writes), then its others;
plurals in "s", "metre", "mètre", "litre", "gramme" and the German "Metern" follow by rule. Spellings that
differ from another unit's in case only (mW and MW, Gb and GB), and single letters, are matched to the letter;
all others in any case.
"""

import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from reward.claims.numbers.vocabulary import END, SPACE, TABLES, by_word, either


@dataclass(frozen=True)
class Unit:
    """A unit, and what it measures."""

    name: str  # as pint reads it
    dimension: str
    written: str  # its usual spelling
    singular: str  # the same behind a 1


_OTHER_SPELLINGS = {"meter": ("metre", "mètre"), "liter": ("litre",), "gram": ("gramme",), "µ": ("μ",)}


def _spellings(written: str) -> set[str]:
    """All spellings of a unit: plurals, British, French and German ones, and the Greek letter beside "µ"."""
    words = set(written.split("|"))
    words |= {w + "s" for w in words if len(w.rpartition(" ")[2]) > 3 and w.islower() and w[-1] not in "sh"}
    datives = {w + "n" for w in words if w.endswith(("meter", "liter"))}
    for usual, others in _OTHER_SPELLINGS.items():
        words |= {w.replace(usual, other) for w in words for other in others}
    return words | datives


def _unit_of(name: str, dimension: str, written: str) -> Unit:
    usual, *others = written.split("|")
    is_plural = len(usual) > 3 and usual.endswith(("s", "feet", "ies", "a"))
    return Unit(name, dimension, usual, others[0] if others and is_plural else usual)


_SPELT = {n: (d, written) for d, units in TABLES["units"].items() for n, written in units.items()}
UNITS = {name: _unit_of(name, *found) for name, found in _SPELT.items()}
_EXACT = {word: UNITS[name] for name, (_, written) in _SPELT.items() for word in _spellings(written)}
_CASES = Counter(word.casefold() for word in _EXACT)
_FOREIGN = {w: UNITS[name] for name, written in TABLES["foreign_units"].items() for w in _spellings(written)}
_ANY_CASE = {w.casefold(): u for w, u in _EXACT.items() if len(w) > 1 and _CASES[w.casefold()] == 1}
# Read only right after a digit: alone they are words or grades more often than units.
_ATTACHED = {"in": "inch", "C": "degree_Celsius", "F": "degree_Fahrenheit", "x": "times", "fold": "times"}
_HYPHENATED = {"fold": "times", "time": "times", "mal": "times"}  # "three-fold", "a three-time champion"
_SPACED = frozenset({"s", "K"})  # "90s" is a decade, "5K" are thousands
_PHRASES = {w for w in _EXACT if " " in w or "-" in w}
_PHRASE_STARTS = frozenset(re.split("[ -]", w)[0].casefold() for w in _PHRASES)
_PHRASE = re.compile(either(_PHRASES).replace(SPACE, rf"\.?{SPACE}") + rf"{END}", re.IGNORECASE)
_IDEOGRAMS = re.compile(either(w for w in _EXACT if w[0] >= "\u3400"))
_WORD = r"[^\W\d_]{1,20}(?:[²³]|\^?[23](?![\d,.]))?"
_OF_HOURS = "flying|flight|driving|training|teaching|sunshine"  # "400 flying hours"
_MORE = (  # "seven more minutes"
    "more|further|additional|extra|full|whole|consecutive|straight|working|business|calendar|operating"
)
_TIMES = "(?:second|minute|hour|day|week|month|year|decade)s?"
_BETWEEN = rf"(?:{_OF_HOURS}){SPACE}(?=hours?{END})|(?:{_MORE}){SPACE}(?={_TIMES}{END})"
_FIRST = re.compile(rf"(?P<gap>{SPACE}(?:{_BETWEEN})?|-)?(?P<unit>°{SPACE}?[CF]{END}|[°℃℉]|{_WORD}{END})")
_PER = re.compile(
    rf"(?:{SPACE}(?:per|par|pro|por){SPACE}|{SPACE}?/{SPACE}?)(?P<unit>(?:(?:cubic|square){SPACE})?{_WORD}){END}"
)
_NO_RATES = {"decibel", "degree", "times", *TABLES["units"]["temperature"]} | {n for n in UNITS if " * " in n}
_RATES = (  # that are written with "per"
    *("length/time", "length/volume", "data/time", "mass/mass", "mass/volume", "volume/time"),
    *("substance/volume", "dose/time"),
)

_MONEY = TABLES["money"]
# The ISO code of each sign, code and abbreviation that comes before an amount.
SIGNS = by_word(_MONEY["signs"]) | {code: code for code in _MONEY["codes"].split()}
_HUNDREDTHS = by_word(_MONEY["hundredths"])
_NAMES = by_word(_MONEY["names"])
_PLURALS = {name + "s": code for name, code in _NAMES.items() if name[-1].isascii() and name[-1] != "s"}
_CURRENCIES = {word.casefold(): code for word, code in (SIGNS | _NAMES | _PLURALS).items()}
CURRENCY_BEFORE = re.compile(
    rf"(?P<currency>(?<![^\W\d_]){either(SIGNS)}){SPACE}?(?:(?P<inner>[-+\u2212]){SPACE}?)?\(?$"
)
_IDEOGRAPHIC = {w for w in _NAMES if w[0] >= "\u3400"}
_SYMBOLS = {w for w in (*SIGNS, *_HUNDREDTHS) if not w[-1].isalnum() and not w.endswith(".")}
_WORDS = {w for w in (*_CURRENCIES, *_HUNDREDTHS) if w[-1].isascii()} - _SYMBOLS - {"rs.", "fr."}
_CURRENCY_BEHIND = re.compile(
    rf"(?:{SPACE}?(?:{either(_SYMBOLS)})(?!{SPACE}?-?\d|{SPACE}?(?-i:US|CA|AU|NZ|GB|JP|CN){END})"
    rf"|{SPACE}?{either(_IDEOGRAPHIC)}"
    rf"|(?:{SPACE}|-)?{either(_WORDS)}(?![^\W_]|{SPACE}\d))",
    re.IGNORECASE,
)


_PENCE = re.compile(r"(?<=\d)p(?![\w-])")
_OF_CURRENCY = re.compile(
    rf"{SPACE}(?:d['\u2019]|d[ei](?={SPACE}))(?={SPACE}?{either(_WORDS)}(?![^\W_]))", re.IGNORECASE
)
_CENTS = re.compile(r"(?<=\d)c(?![\w-])")
_SIGN_NEAR = re.compile(r"[€$]|\b(?:cost|price|pay|paid|fare|fee|charge|ticket)")
_NEAR = 60  # characters, in which "90c" is beside other prices
_LINES = re.compile(r"(?<!\d)(?:144|240|360|480|576|720|1080|1440|2160|4320)$")  # "1080p" is no price
_BEGINNINGS = frozenset(word[:2].casefold() for word in (*_SYMBOLS, *_WORDS))


def unit_at(text: str, at: int) -> tuple[Unit, int] | None:
    """The unit right behind a number, after a space or a hyphen at most, and where it ends."""
    first = _FIRST.match(text, at)
    if first is None:
        return _ideogram(text, at)
    word, gap, end = first["unit"], first["gap"], first.end()
    if word.casefold() in _PHRASE_STARTS and (phrase := _PHRASE.match(text, first.start("unit"))):
        spelt = " ".join(re.sub(rf"\.|{SPACE}", " ", phrase[0]).split())
        spelt_unit = _EXACT.get(spelt) or _ANY_CASE[spelt.casefold()]
        return _rate(spelt_unit, text, phrase.end()) or (spelt_unit, phrase.end())
    is_capital = len(word) == 1 and word.isupper()
    is_initial = is_capital and text[end : end + 1] in " ." and text[end + 1 : end + 2].isupper()
    is_initial = is_initial and not text[end + 1 : end + 3].isupper()  # "12 V DC"
    unit = None
    if gap is None and word in _ATTACHED:
        unit = UNITS[_ATTACHED[word]]
    elif not is_initial and not (gap is None and word in _SPACED):  # "14 W Figueroa St"
        unit = _known(word)
    if unit is None and gap == "-" and word in _HYPHENATED:
        unit = UNITS[_HYPHENATED[word]]
    if unit is None:
        return _ideogram(text, at)
    return _rate(unit, text, end) or (unit, end)


def written_as(name: str, *, singular: bool) -> str:
    """The usual spelling of a unit."""
    if name not in UNITS:
        return "/".join(written_as(part, singular=True) for part in name.split(" / "))
    return UNITS[name].singular if singular else UNITS[name].written


def currency_at(text: str, at: int) -> tuple[str, Decimal, int] | None:
    """The currency that is written behind an amount: its code, what one of it is worth, and where it ends."""
    if _PENCE.match(text, at) and not _LINES.search(text, max(0, at - 5), at):
        return "GBP", Decimal("0.01"), at + 1
    if _CENTS.match(text, at) and _SIGN_NEAR.search(text, max(0, at - _NEAR), at + _NEAR):
        return _HUNDREDTHS["cent"], Decimal("0.01"), at + 1
    if text[at - 1 : at].isalpha() and (of := _OF_CURRENCY.match(text, at)):  # "3 millones de euros"
        return currency_at(text, of.end())
    if not _may_be_currency(text, at) or not (match := _CURRENCY_BEHIND.match(text, at)):
        return None
    word = re.sub(SPACE, " ", match[0]).strip(" -").casefold()
    if word in _HUNDREDTHS:
        return _HUNDREDTHS[word], Decimal("0.01"), match.end()
    return _CURRENCIES[word], Decimal(1), match.end()


def _may_be_currency(text: str, at: int) -> bool:
    """Whether a currency can stand there, by its first two characters."""
    begin = text[at + 1 : at + 3] if text[at : at + 1] in (" ", "-", "\t") else text[at : at + 2]
    return not begin.isascii() or not {begin.casefold(), begin[:1].casefold()}.isdisjoint(_BEGINNINGS)


def money_as(code: str, amount: str) -> str:
    """An amount of money as it is written: by its sign, if that is usual, or else by its code."""
    signs = _MONEY["signs"].get(code, "") if code in _MONEY["by_sign"].split() else ""
    return f"{signs[0]}{amount}" if signs else f"{code} {amount}"


def _known(word: str) -> Unit | None:
    word = word.replace(" ", "") if word.startswith("°") else word
    return _EXACT.get(word) or _ANY_CASE.get(word.casefold()) or _FOREIGN.get(word)


def _rate(unit: Unit, text: str, at: int) -> tuple[Unit, int] | None:
    """A unit over another one: "miles per hour", "mg/dL"."""
    match = _PER.match(text, at)
    other = _known(match["unit"]) if match else None
    if match is None or other is None or {unit.name, other.name} & _NO_RATES:
        return None
    name, dimension = f"{unit.name} / {other.name}", f"{unit.dimension}/{other.dimension}"
    if "/" not in match[0] and dimension not in _RATES:
        return None
    spelt = f"{unit.written}/{other.singular}"
    return UNITS.get(name, Unit(name, dimension, spelt, spelt)), match.end()


def _ideogram(text: str, at: int) -> tuple[Unit, int] | None:
    """A Chinese unit, which follows its number without a space and before any other character."""
    match = _IDEOGRAMS.match(text, at) if text[at : at + 1] >= "\u3400" else None
    return (_EXACT[match[0]], match.end()) if match else None

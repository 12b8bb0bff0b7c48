"""The number words of six languages, and the stop words by which a text's language is told."""

from __future__ import annotations

import re
from functools import cache

from reward.claims.text import words_in

# Words that are numbers in one language, or of one value in several, and no English words.
SURE: dict[str, str] = {
    "de": "zwei zwo drei vier fünf fuenf sechs sieben acht neun zehn zwölf zwoelf dreizehn vierzehn "
    "fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig dreißig dreissig vierzig fünfzig "
    "sechzig siebzig achtzig neunzig drittel viertel achtel millionen milliarde milliarden hälfte",
    "fr": "deux trois quatre cinq huit neuf douze treize quatorze quinze vingt vingts trente quarante "
    "cinquante soixante septante huitante octante nonante milliard milliards moitié",
    "es": "cuatro cinco seis siete ocho nueve diez doce trece catorce dieciséis dieciseis diecisiete "
    "dieciocho diecinueve veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa cien "
    "ciento doscientos doscientas trescientos trescientas cuatrocientos cuatrocientas quinientos "
    "quinientas seiscientos seiscientas setecientos setecientas ochocientos ochocientas "
    "novecientos novecientas millón millones mitad veintiuno veintiún veintiuna veintidós "
    "veintidos veintitrés veintitres veinticuatro veinticinco veintiséis veintiseis veintisiete "
    "veintiocho veintinueve",
    "pt": "dois duas quatro cinco seis sete oito nove dez treze catorze quatorze quinze dezesseis "
    "dezasseis dezessete dezassete dezoito dezenove dezanove vinte trinta quarenta cinquenta "
    "cinqüenta sessenta setenta oitenta noventa cem duzentos duzentas trezentos trezentas "
    "quatrocentos quatrocentas quinhentos quinhentas seiscentos seiscentas setecentos oitocentos "
    "novecentos milhão milhões bilhão bilhões metade",
    "it": "quattro cinque sette nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove quaranta cinquanta sessanta settanta ottanta novanta milione "
    "milioni miliardo miliardi metà",
    "nl": "twee drie vier vijf zes zeven acht negen tien twaalf dertien veertien vijftien zestien "
    "zeventien achttien negentien twintig dertig veertig vijftig zestig zeventig tachtig negentig "
    "honderd duizend miljoen miljard helft",
}
STOP_WORDS: dict[str, str] = {
    "de": "und nicht ist eine einen einem wurde wurden sind wird mit auf für von der das dem den im es "
    "kamen haben hatte waren",
    "fr": "est une dans pour avec sont ont qui les des et sur pas du au aux que il elle le la ce cette été",
    "es": "una para con fueron tiene más por los las del se el la que en y su fue hay son",
    "pt": "não uma são foram com para por os as do da dos das no na em que foi mais há",
    "it": "che sono della nel gli una il di è per con non del alla le la i hanno",
    "nl": "het een zijn niet wordt werd voor de van is dat op met er aan ook waren hebben",
    "en": "the of and to for with that by are from this it at was is in on he she were",
}
# Stop words that English text hardly ever has: a text without them, and without sure words, is not looked at.
_TELLING = (
    "und nicht ist eine wurde sind kamen dans avec sont ont qui une fueron para más hay che sono "
    "della gli não uma são foram het een zijn niet werd waren"
)
HALVES = frozenset(("hälfte", "moitié", "mitad", "metade", "metà", "helft"))
# Behind a number: "zwei Drittel", "trois quarts".
DIVISORS = {
    "drittel": 3, "viertel": 4, "fünftel": 5, "achtel": 8, "zehntel": 10, "tiers": 3, "quart": 4, "quarts": 4,
    "tercio": 3, "tercios": 3, "cuarto": 4, "cuartos": 4, "terzo": 3, "terzi": 3, "quarti": 4, "terço": 3,
    "terços": 3, "quarto": 4, "quartos": 4, "derde": 3, "kwart": 4,
}  # fmt: skip
_STEMS = ("hundert", "tausend", "honderd", "duizend", "cento")  # of any compound
_GERMAN_TENS = "zwanzig dreißig dreissig vierzig fünfzig sechzig siebzig achtzig neunzig"
_DUTCH_TENS = "twintig dertig veertig vijftig zestig zeventig tachtig negentig"
_TENS_AND_UNITS = (  # what joins them, the tens, and the units before them
    ("und", _GERMAN_TENS, "ein zwei drei vier fünf sechs sieben acht neun"),
    ("en", _DUTCH_TENS, "een vier vijf zes zeven acht negen"),
    ("ën", _DUTCH_TENS, "twee drie"),
)
_ITALIAN_TENS = "venti trenta quaranta cinquanta sessanta settanta ottanta novanta"
_ITALIAN_UNITS = "uno due tre tré quattro cinque sei sette otto nove"
_ITALIAN_THOUSANDS = (
    "due tre quattro cinque sei sette otto nove dieci undici dodici venti trenta quaranta cinquanta "
    "sessanta settanta ottanta novanta novecento"
)
# Compounds: "vierhundertsechsundsechzig", "zesentwintig", "duecento", "ventisei".
_PARTS = {
    "de": r"\w*(?:hundert|tausend"
    r"|und(?:zwanzig|drei(?:ß|ss)ig|vierzig|fünfzig|sechzig|siebzig|achtzig|neunzig))\w*",
    "nl": r"\w*(?:honderd|duizend"
    r"|[eë]n(?:twintig|dertig|veertig|vijftig|zestig|zeventig|tachtig|negentig))\w*",
    "it": r"(?:vent|trent|quarant|cinquant|sessant|settant|ottant|novant)"
    r"(?:[ai]?(?:due|tre|tré|quattro|cinque|sei|sette|nove)|uno|otto)"
    r"|(?:due|tre|quattro|cinque|sei|sette|otto|nove)cento\w*|mille\w{3,}|\w+mila",
}
_WORD = re.compile(r"[^\W\d_]+")
_ONLY_LETTERS = {c: " " for c in range(128) if not chr(c).isalpha()}
_COMPOUND = re.compile("|".join(f"(?P<{language}>{part})" for language, part in _PARTS.items()))


def may_hold_some(lowered: str) -> bool:
    """A quick look, for the sake of English text: whether a text in lower case may hold such words."""
    return any(stem in lowered for stem in _STEMS) or not _worth_a_look().isdisjoint(words_in(lowered).all)


def words_of(text: str) -> list[str]:
    """The words of a text, without digits and signs."""
    return text.translate(_ONLY_LETTERS).split() if text.isascii() else _WORD.findall(text)


def compound_of(word: str) -> str:
    """The language that a word in lower case looks like a compound number of; empty for none."""
    match = _COMPOUND.fullmatch(word)
    return match.lastgroup or "" if match else ""


@cache
def languages_of() -> dict[str, tuple[str, ...]]:
    """Of each sure word the languages that it is one of."""
    languages: dict[str, tuple[str, ...]] = {}
    for language, words in SURE.items():
        for word in words.split():
            languages[word] = (*languages.get(word, ()), language)
    return languages


@cache
def _worth_a_look() -> frozenset[str]:
    """Words of which English text has next to none: numbers, stop words, tens with units ("ventisei")."""
    words = {*languages_of(), *_TELLING.split()}
    for joint, tens, units in _TENS_AND_UNITS:
        words |= {unit + joint + ten for ten in tens.split() for unit in units.split()}
    for ten in _ITALIAN_TENS.split():
        words |= {ten + unit for unit in _ITALIAN_UNITS.split()} | {ten[:-1] + "uno", ten[:-1] + "otto"}
    for count in _ITALIAN_THOUSANDS.split():
        words |= {count + "mila", "mille" + count}
    return frozenset(words)

"""The vocabulary of measured units: how a text writes them, their names in pint, and what they measure.

The table gives each unit's usual spelling first (the one that `canonical` writes), then its others; plurals
in "s", "metre", "litre" and "gramme" follow by rule. Spellings that differ from another unit's in case only
(mW and MW, Gb and GB), and single letters, are matched to the letter; all others in any case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from reward.claims.numbers.digits import SPACE


@dataclass(frozen=True)
class Unit:
    """A unit, and what it measures."""

    name: str  # as pint reads it
    dimension: str
    written: str  # its usual spelling
    singular: str  # the same behind a 1


_TABLE: dict[str, dict[str, str]] = {
    "time": {
        "millisecond": "ms|millisecond|msec", "microsecond": "µs|microsecond", "nanosecond": "ns|nanosecond",
        "second": "seconds|second|secs|sec|s", "minute": "minutes|minute|mins|min",
        "hour": "hours|hour|hrs|hr|h|小时", "day": "days|day|天", "week": "weeks|week|wks|wk",
        "fortnight": "fortnights|fortnight", "month": "months|month|mos", "year": "years|year|yrs|yr",
        "10 * year": "decades|decade", "century": "centuries|century", "millennium": "millennia|millennium",
    },
    "length": {
        "nanometer": "nm|nanometer", "micrometer": "µm|micrometer|micron", "millimeter": "mm|millimeter",
        "centimeter": "cm|cms|centimeter|厘米", "meter": "m|meter|米",
        "kilometer": "km|kms|kilometer|公里|千米", "inch": "inches|inch",
        "foot": "feet|foot|ft", "yard": "yards|yard|yds|yd", "mile": "miles|mile|mi",
        "nautical_mile": "nautical miles|nautical mile|nmi",
        "light_year": "light-years|light year|light years",
    },
    "area": {
        "meter ** 2": "m²|m2|m^2|sq m|square meter|平方米",
        "kilometer ** 2": "km²|km2|km^2|sq km|square kilometer",
        "centimeter ** 2": "cm²|cm2|sq cm|square centimeter",
        "inch ** 2": "in²|sq in|square inch|square inches",
        "foot ** 2": "ft²|ft2|sq ft|sqft|square feet|square foot", "yard ** 2": "yd²|sq yd|square yard",
        "mile ** 2": "mi²|sq mi|square mile", "hectare": "ha|hectare", "4840 * yard ** 2": "acres|acre",
    },
    "volume": {
        "milliliter": "ml|milliliter|cc|毫升", "centiliter": "cl|centiliter", "deciliter": "dl|deciliter",
        "liter": "L|l|liter|升", "teaspoon": "tsp|tsps|teaspoon", "tablespoon": "tbsp|tbsps|tbs|tablespoon",
        "fluid_ounce": "fl oz|fluid ounce", "cup": "cups|cup", "pint": "pints|pint",
        "quart": "quarts|quart|qt", "gallon": "gallons|gallon|gal", "oil_barrel": "barrels|barrel|bbl",
        "meter ** 3": "m³|m3|m^3|cubic meter",
        "centimeter ** 3": "cm³|cm3|cubic centimeter", "kilometer ** 3": "km³|km3|cubic kilometer",
        "foot ** 3": "ft³|ft3|cu ft|cubic feet|cubic foot", "inch ** 3": "in³|cu in|cubic inch|cubic inches",
    },
    "mass": {
        "microgram": "µg|mcg|ug|microgram", "milligram": "mg|milligram|毫克", "gram": "g|gram|克",
        "kilogram": "kg|kgs|kilogram|kilo|公斤|千克", "metric_ton": "tonnes|tonne|t|metric ton|吨",
        "ton": "tons|ton|short ton", "long_ton": "long tons|long ton", "ounce": "oz|ounce",
        "pound": "lb|lbs|pound", "stone": "stone", "carat": "carats|carat",
    },
    "temperature": {
        "degree_Celsius": "°C|℃|degrees C|degree C|degrees Celsius|degree Celsius|degrees centigrade|Celsius",
        "degree_Fahrenheit": "°F|℉|degrees F|degree F|degrees Fahrenheit|degree Fahrenheit|Fahrenheit",
        "kelvin": "kelvins|kelvin",
        # Celsius or Fahrenheit, or an angle: the text leaves it open.
        "degree": "degrees|degree|°",
    },
    "length/time": {
        "mile / hour": "mph|miles an hour", "kilometer / hour": "km/h|kph|kmh|kmph|kilometers an hour",
        "meter / second": "m/s|mps", "knot": "knots|knot",
    },
    "length/volume": {"mile / gallon": "mpg"},
    "data": {
        "byte": "bytes|byte", "kilobyte": "KB|kB|kilobyte", "megabyte": "MB|megabyte",
        "gigabyte": "GB|gigabyte",
        "terabyte": "TB|terabyte", "petabyte": "PB|petabyte", "kibibyte": "KiB|kibibyte",
        "mebibyte": "MiB|mebibyte", "gibibyte": "GiB|gibibyte", "tebibyte": "TiB|tebibyte", "bit": "bits|bit",
        "kilobit": "Kb|kb|kilobit", "megabit": "Mb|megabit", "gigabit": "Gb|gigabit", "terabit": "Tb|terabit",
    },
    "data/time": {
        "kilobit / second": "kbps|kbit/s", "megabit / second": "Mbps|Mbit/s",
        "gigabit / second": "Gbps|Gbit/s",
    },
    "power": {
        "milliwatt": "mW|milliwatt", "watt": "W|watt", "kilowatt": "kW|kilowatt", "megawatt": "MW|megawatt",
        "gigawatt": "GW|gigawatt", "terawatt": "TW|terawatt", "horsepower": "hp|horsepower",
    },
    "energy": {
        "joule": "J|joule", "kilojoule": "kJ|kilojoule", "megajoule": "MJ|megajoule",
        "watt_hour": "Wh|watt-hour|watt hour", "kilowatt_hour": "kWh|kilowatt-hour|kilowatt hour",
        "megawatt_hour": "MWh|megawatt-hour|megawatt hour",
        "gigawatt_hour": "GWh|gigawatt-hour|gigawatt hour",
        "terawatt_hour": "TWh|terawatt-hour|terawatt hour", "calorie": "calories|calorie|cal",
        "kilocalorie": "kcal|kilocalorie",
    },
    "frequency": {
        "hertz": "Hz|hertz", "kilohertz": "kHz|kilohertz", "megahertz": "MHz|megahertz",
        "gigahertz": "GHz|gigahertz", "revolutions_per_minute": "rpm|revolutions per minute",
    },
    "pressure": {
        "pascal": "Pa|pascal", "hectopascal": "hPa|hectopascal", "kilopascal": "kPa|kilopascal",
        "megapascal": "MPa|megapascal", "psi": "psi|pounds per square inch", "millimeter_Hg": "mmHg|mm Hg",
        "atmosphere": "atmospheres|atmosphere|atm",
    },
    "voltage": {"millivolt": "mV|millivolt", "volt": "V|volt", "kilovolt": "kV|kilovolt"},
    "current": {"milliampere": "mA|milliamp", "ampere": "amps|amp|ampere"},
    "sound level": {"decibel": "dB|decibel"},
    "multiple": {"times": "times"},
}  # fmt: skip
# Read only right after a digit: alone they are words or grades more often than units.
_ATTACHED = {"in": "inch", "C": "degree_Celsius", "F": "degree_Fahrenheit", "x": "times", "fold": "times"}
_HYPHENATED = {"fold": "times", "time": "times"}  # "three-fold", "a three-time champion"
_SPACED = frozenset({"s"})  # "90s" is a decade


def _spellings(written: str) -> set[str]:
    """All spellings of a unit: plurals, the British ones, and the Greek letter beside the micro sign."""
    words = set(written.split("|"))
    words |= {w + "s" for w in words if len(w.rpartition(" ")[2]) > 3 and w.islower() and w[-1] not in "sh"}
    for american, british in (("meter", "metre"), ("liter", "litre"), ("gram", "gramme"), ("µ", "μ")):
        words |= {w.replace(american, british) for w in words}
    return words


def _spelt(written: str) -> tuple[str, str]:
    usual, *others = written.split("|")
    return usual, others[0] if others and usual.endswith(("s", "feet", "ies", "a")) and len(
        usual
    ) > 3 else usual


UNITS = {
    name: Unit(name, dimension, *_spelt(written))
    for dimension, units in _TABLE.items()
    for name, written in units.items()
}
_EXACT = {
    w: UNITS[n] for units in _TABLE.values() for n, written in units.items() for w in _spellings(written)
}
_CASES = [w.casefold() for w in _EXACT]
_ANY_CASE = {
    w.casefold(): unit for w, unit in _EXACT.items() if len(w) > 1 and _CASES.count(w.casefold()) == 1
}
_PHRASES = sorted((w for w in _EXACT if " " in w or "-" in w), key=len, reverse=True)
_PHRASE_STARTS = frozenset(re.split("[ -]", w)[0].casefold() for w in _PHRASES)
_PHRASE = re.compile(
    "(?:"
    + "|".join(re.escape(w).replace(r"\ ", rf"\.?{SPACE}|".rstrip("|")) for w in _PHRASES)
    + r")(?![^\W_])",
    re.IGNORECASE,
)
_IDEOGRAMS = re.compile("|".join(sorted((w for w in _EXACT if w[0] >= "\u3400"), key=len, reverse=True)))
_WORD = r"[^\W\d_]{1,20}(?:[²³]|\^?[23](?![\d,.]))?"
_FIRST = re.compile(rf"(?P<gap>{SPACE}|-)?(?P<unit>°{SPACE}?[CF](?![^\W_])|[°℃℉]|{_WORD}(?![^\W_]))")
# The first words of all spellings, in small letters.
UNIT_WORDS = frozenset(
    match[0].lower()
    for word in (*_EXACT, *_ATTACHED, *_HYPHENATED)
    if (match := re.match(r"[^\W\d_]+", word))
)
_PER = re.compile(rf"(?:{SPACE}per{SPACE}|{SPACE}?/{SPACE}?)(?P<unit>{_WORD})(?![^\W_])")
_NO_RATES = frozenset(
    {"decibel", "degree", "times", *_TABLE["temperature"]} | {n for n in UNITS if " * " in n}
)
_RATES = frozenset({("length", "time"), ("length", "volume"), ("data", "time")})


def unit_at(text: str, at: int) -> tuple[Unit, int] | None:
    """The unit right behind a number, after a space or a hyphen at most, and where it ends."""
    first = _FIRST.match(text, at)
    if first is None:
        return _ideogram(text, at)
    word, start, end = first["unit"], first.start("unit"), first.end()
    if word.casefold() in _PHRASE_STARTS and (phrase := _PHRASE.match(text, start)):
        return _unit(" ".join(re.sub(rf"\.|{SPACE}", " ", phrase[0]).split())), phrase.end()
    unit = _attached(word) if first["gap"] is None else None
    if unit is None and not (first["gap"] is None and word in _SPACED) and not _is_initial(word, text, end):
        unit = _known(word)
    if unit is None and first["gap"] == "-" and word in _HYPHENATED:
        unit = UNITS[_HYPHENATED[word]]
    if unit is None:
        return _ideogram(text, at)
    return _rate(unit, text, end) or (unit, end)


def written_as(name: str, *, singular: bool) -> str:
    """The usual spelling of a unit."""
    if name not in UNITS:
        return "/".join(written_as(part, singular=True) for part in name.split(" / "))
    return UNITS[name].singular if singular else UNITS[name].written


def _known(word: str) -> Unit | None:
    word = word.replace(" ", "") if word.startswith("°") else word
    return _EXACT.get(word) or _ANY_CASE.get(word.casefold())


def _unit(phrase: str) -> Unit:
    unit = _known(phrase)
    assert unit is not None, f"not in the table: {phrase!r}"
    return unit


def _is_initial(word: str, text: str, end: int) -> bool:
    """Whether a capital belongs to the name behind it ("14 W Figueroa St")."""
    return (
        len(word) == 1
        and word.isupper()
        and text[end : end + 1] in " ."
        and text[end + 1 : end + 2].isupper()
    )


def _attached(word: str) -> Unit | None:
    return UNITS[_ATTACHED[word]] if word in _ATTACHED else None


def _rate(unit: Unit, text: str, at: int) -> tuple[Unit, int] | None:
    """A unit over another one: "miles per hour", "mg/dL"."""
    match = _PER.match(text, at)
    other = _known(match["unit"]) if match else None
    if match is None or other is None or {unit.name, other.name} & _NO_RATES:
        return None
    spelt_out = "per" in match[0]
    if spelt_out and (unit.dimension, other.dimension) not in _RATES:
        return None
    name = f"{unit.name} / {other.name}"
    spelt = f"{unit.written}/{other.singular}"
    return UNITS.get(name, Unit(name, f"{unit.dimension}/{other.dimension}", spelt, spelt)), match.end()


def _ideogram(text: str, at: int) -> tuple[Unit, int] | None:
    """A Chinese unit, which stands behind its number without a space and before any other character."""
    match = _IDEOGRAMS.match(text, at)
    return (_EXACT[match[0]], match.end()) if match else None

"""Times of day: "5:30 pm", "17:30", "5 p.m.", "9 o'clock", "noon", and the opening hours "9:0-17:0".

The value is minutes since midnight. "9:30" without am or pm has two readings, the morning first, unless
it is written as a 24-hour clock writes it: "09:30", "0:30", "17:30". Minutes of one digit come from data
sets, which write 24 hours: "17:0" is a time alone, "8:5" only within opening hours (elsewhere it is a
ratio).
"""

import re
from decimal import Decimal

from reward.claims.numbers.cardinal import CARDINALS
from reward.claims.numbers.digits import EXACT, fraction
from reward.claims.numbers.model import Kind, Number, span_of
from reward.claims.numbers.vocabulary import BEGIN, END, SPACE
from reward.claims.text import lowered

_HOURS = {word: hour for word, hour in CARDINALS.items() if 1 <= hour <= 12}
_AM_PM = rf"{SPACE}?(?P<half>[aApP])(?:\.{SPACE}?[mM]\b\.?|[mM]{END})"
_ON_THAT = rf"(?:in{SPACE}the|on{SPACE}the|that|this|the{SPACE}(?:next|following)){SPACE}"
_PART_OF_DAY = rf"{SPACE}(?:{_ON_THAT}(?P<part>morning|afternoon|evening)|at{SPACE}(?P<night>night))(?!\w)"
_CLOCKS = (
    re.compile(
        r"(?P<hour>\d{1,2}):(?P<minute>\d{2}|0(?!\d))(?::(?P<second>\d{2}))?(?![\d:])"
        rf"(?:{_AM_PM}|{_PART_OF_DAY})?"
    ),
    re.compile(rf"(?P<hour>\d{{1,2}})(?:\.(?P<minute>\d{{2}}))?(?:{_AM_PM}|{_PART_OF_DAY})"),
    re.compile(
        rf"(?P<hour>\d{{1,2}})\.(?P<minute>\d{{2}})(?:(?={SPACE}(?:UTC?|GMT)\b)"
        r"|(?:(?<=until \d\d\.\d\d)|(?<=\btill \d\d\.\d\d))(?=[.,;:)]|$| (?:on|in|and|but)\b))"
    ),
    re.compile(rf"(?P<hour>\d{{1,2}}){SPACE}?o['\u2019]?{SPACE}?clock(?!\w)(?:{_PART_OF_DAY})?"),
    re.compile(r"(?P<hour>\d{1,2})(?:[hH]|[ ]h[ ])(?P<minute>\d{2})(?![^\W_]|[ ]?min)"),
)
_O_CLOCK = re.compile(
    rf"(?P<hour>\d{{1,2}})(?:[.:](?P<minute>\d{{2}}))?{SPACE}(?:(?P<uhr>Uhr)|uur|heures|horas|h(?! ?\d)){END}"
    r"(?:[ ](?:(?P<early>(?:morgens|früh|vormittags|['\u2019]s (?:ochtends|morgens)|du matin|de la mañana)\b)"
    r"|(?P<late>(?:abends|nachmittags|['\u2019]s (?:avonds|middags)|du soir|de l['\u2019]après-midi"
    r"|de la (?:tarde|noche))\b)))?"
)
_AT_AN_HOUR = re.compile(
    r"\b(?:om|tot|vanaf|v[oó]{2}r|rond|à|vers|dès|avant|après|jusqu['\u2019]à|a las|las|às)[ ]$",
    re.IGNORECASE,
)
_TO_AN_HOUR = re.compile(r" (?:à|a) \d{1,2}(?:[.:]\d\d)? ?(?:h|heures|horas)\b")
_FROM = re.compile(r"\b(?:de|das) $", re.IGNORECASE)
_LASTING = re.compile(r" (?:de \w|d['\u2019]|(?:par|per|mee|lang)\b)")
_MILITARY = re.compile(
    rf"(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d){SPACE}?(?:hours|hrs|UTC|GMT)(?![^\W_]|[ ]of\b)"
)
_TWELVE = re.compile(rf"12{SPACE}(noon|midnight){END}")
_UNITS = {word: value for word, value in CARDINALS.items() if value < 20}
_TENS = {f"twenty-{word}": 20 + value for word, value in _UNITS.items() if 0 < value < 10}
_MINUTES = {**_UNITS, **_TENS, "twenty": 20, "quarter": 15, "half": 30}
_RACE = re.compile(r"(\d{1,2}):([0-5]\d)(\.\d{1,3})(?![\d:])")  # minutes, seconds and their parts
_OF_NAMED = rf"{SPACE}(?:before|after){SPACE}(?:noon|midday|midnight)"
_PAST = re.compile(
    rf"(?:(?P<half_hour>half(?:{SPACE}an{SPACE}hour(?={_OF_NAMED}))?)"
    rf"|(?:a{SPACE})?quarter(?:{SPACE}of{SPACE}an{SPACE}hour(?={_OF_NAMED}))?|(?P<minutes>five|ten|twenty(?:-five)?)(?:{SPACE}minutes)?"
    rf"|(?P<counted>{'|'.join(sorted(_TENS | _UNITS, key=len, reverse=True))}){SPACE}minutes?)"
    rf"{SPACE}(?P<past>past|after|to|before(?={SPACE}(?:noon|midday|midnight))){SPACE}"
    rf"(?:(?P<hour>\d{{1,2}}|{'|'.join(_HOURS)})(?![^\W_aApP]|\d)(?:{_AM_PM}|{_PART_OF_DAY})?"
    rf"|(?P<named>noon|midday|midnight)){END}",
    re.IGNORECASE,
)
_CLOCK_BEFORE = re.compile(rf"{BEGIN}(?:at|by|from|until|till|before|since|around|about)[ ]$", re.IGNORECASE)
_AT = re.compile(rf"{BEGIN}(?:at|by|until|till|before|after)[ ]$", re.IGNORECASE)
_AS_TIME = re.compile(rf"[ ](?:on|in the|that|this|yesterday|today|and|but){END}|[.,;:!?)]|$")
_OPENING = re.compile(
    rf"((\d{{1,2}}):(\d{{1,2}})){SPACE}?[-\u2010-\u2015\u2212~]{SPACE}?((\d{{1,2}}):(\d{{1,2}}))(?![\d:])(?!{_AM_PM})"
)
_HALF = re.compile(rf"{_AM_PM}|{SPACE}o['\u2019]?clock(?!\w)(?:{_PART_OF_DAY})?")
_LONE_PART_OF_DAY = re.compile(_PART_OF_DAY)
_NAMED = {"noon": 720, "midday": 720, "midnight": 0}
MINUTES_A_DAY = 1440
HALF_A_DAY = 720


def time_at(text: str, at: int) -> Number | None:
    """The time of day, or the opening hours, whose digits begin at `at`."""
    if race := _RACE.match(text, at):
        seconds = EXACT.add(Decimal(60 * int(race[1])), Decimal(race[2] + race[3]))
        step = Decimal(1).scaleb(1 - len(race[3]))
        return Number(((seconds,),), Kind.DURATION, "second", "time", step=step, start=at, end=race.end())
    if (opening := _OPENING.match(text, at)) and (hours := _opening_hours(opening)):
        return hours
    if twelve := _TWELVE.match(text, at):
        return named_time(twelve[1], at, twelve.end())
    if (military := _MILITARY.match(text, at)) and (text[at] == "0" or _is_clock_before(text, at)):
        return _time(military)
    clock = _O_CLOCK.match(text, at)
    if clock and _is_clock(text, at, clock):
        return _time(clock)
    for pattern in _CLOCKS:
        if (match := pattern.match(text, at)) and (time := _time(match)):
            return time
    return None


def _is_clock(text: str, at: int, match: re.Match[str]) -> bool:
    """Whether hours of another language are a time: "um 10 Uhr", "om 10 uur", "à 7 heures du soir".

    But not "10 uur lang" and "après 3 heures de travail".
    """
    is_at = match["uhr"] or match["minute"] or _AT_AN_HOUR.search(text, max(0, at - 8), at)
    if not is_at and _TO_AN_HOUR.match(text, match.end()):  # "de 10 h à 17 h"
        is_at = _FROM.search(text, max(0, at - 4), at)
    return bool(is_at and (match["early"] or match["late"] or not _LASTING.match(text, match.end())))


def named_time(word: str, start: int, end: int) -> Number:
    """Noon or midnight."""
    return of_clock((_NAMED[word.casefold()],), start, end)


def time_past(text: str, at: int) -> Number | None:
    """A time as it is said: "half past five", "a quarter to 9 am"."""
    match = _PAST.match(text, at)
    if match is None:
        return None
    named = _NAMED.get(lowered(match["named"] or ""))
    hour = 12 if named is not None else _HOURS.get(lowered(match["hour"])) or int(match["hour"])
    if not 1 <= hour <= 12:
        return None
    if match["minutes"] and match["past"].lower() != "past" and not match["named"]:
        is_time = any(map(match.group, ("half", "part", "night"))) or _AS_TIME.match(text, match.end())
        if not is_time or not _AT.search(text, max(0, at - 8), at):
            return None  # "five to six people", but "at ten to nine that morning"
    if match["counted"] and match["past"].lower() == "after" and not (match["half"] or match["part"]):
        return None  # "ten minutes after two goals"
    said = (match["minutes"] or match["counted"] or match["half_hour"] or "quarter").lower()
    shift = _MINUTES[said.split()[0]] * (-1 if match["past"].lower() in ("to", "before") else 1)
    half = _half_day(match, hour)
    readings = _readings(hour, 0, half) if half or hour < 12 else (0, 720)
    readings = readings if named is None else (named,)
    return of_clock(tuple(sorted((r + shift) % MINUTES_A_DAY for r in readings)), at, match.end())


def half_day_at(text: str, number: Number) -> Number:
    """A number in words as a time, where "pm" or "o'clock" follows it ("five pm")."""
    match = _HALF.match(text, number.end)
    if match is None and _is_clock_before(text, number.start):  # "take two in the morning" is no time
        match = _LONE_PART_OF_DAY.match(text, number.end)
    if match is None or not (1 <= number.value <= 12 and number.value == int(number.value)):
        return number
    hour = int(number.value)
    return of_clock(_readings(hour, 0, _half_day(match, hour)), number.start, match.end())


def as_time(number: Number) -> Number | None:
    """A bare hour ("5") as a time of day; None when it cannot be one."""
    hour = number.value
    if len(number.values) > 1 or hour != int(hour) or not 0 <= hour <= 24:
        return None
    return of_clock(_readings(int(hour), 0), number.start, number.end)


def _is_clock_before(text: str, at: int) -> bool:
    return _CLOCK_BEFORE.search(text, max(0, at - 8), at) is not None


def _time(match: re.Match[str]) -> Number | None:
    groups = match.groupdict()
    hour, minute, second = (int(groups.get(name) or 0) for name in ("hour", "minute", "second"))
    if hour > 24 or minute > 59 or second > 59 or (hour == 24 and minute):
        return None
    is_of_24 = match["hour"].startswith("0") or groups.get("minute") == "0"
    readings = _readings(hour, minute, _half_day(match, hour), is_of_24=is_of_24)
    return of_clock(tuple(reading + fraction(second, 60) for reading in readings), match.start(), match.end())


def _half_day(match: re.Match[str], hour: int) -> str | None:
    """Whether the text says the morning ("a") or the evening ("p"), by am and pm or in words."""
    groups = match.groupdict()
    if groups.get("night"):
        return "p" if 5 <= hour < 12 else "a"
    if groups.get("early") or groups.get("late"):
        return "a" if groups["early"] else "p"
    if groups.get("part"):
        return "a" if groups["part"].lower() == "morning" else "p"
    return groups.get("half")


def _readings(hour: int, minute: int, half: str | None = None, *, is_of_24: bool = False) -> tuple[int, ...]:
    """Minutes since midnight; two readings when nothing tells the morning from the evening."""
    if half is not None and 1 <= hour <= 12:
        return (hour % 12 * 60 + minute + 720 * (half in "pP"),)
    first = (hour * 60 + minute) % MINUTES_A_DAY
    return (first, first + 720) if 1 <= hour <= 11 and not is_of_24 else (first,)


def _opening_hours(match: re.Match[str]) -> Number | None:
    """Both ends on a 24-hour clock if one of them shows it; "9:00-5:00" leaves morning and evening open."""
    hour, minute, last_hour, last_minute = (int(match[group]) for group in (2, 3, 5, 6))
    if max(hour, last_hour) > 24 or max(minute, last_minute) > 59:
        return None
    of_data = len(match[3]) == 1 or len(match[6]) == 1
    if of_data and not (max(hour, last_hour) > 4 or "0" in (match[3], match[6])):
        return None  # "3:1-2:1" is no pair of times
    low = _readings(hour, minute, is_of_24=of_data or match[2].startswith("0"))
    high = _readings(last_hour, last_minute, is_of_24=of_data or match[5].startswith("0"))
    if len(high) == 1:  # "8:30-17:30": both on the same clock of 24 hours
        low = low[:1]
    return span_of(of_clock(low, *match.span(1)), of_clock(high, *match.span(4)), *match.span())


def of_clock(minutes: tuple[int, ...] | tuple[Decimal, ...], start: int, end: int) -> Number:
    """A time of day by its readings, in minutes since midnight."""
    readings = tuple((Decimal(m),) for m in minutes)
    return Number(readings, Kind.TIME, step=Decimal(1), start=start, end=end)

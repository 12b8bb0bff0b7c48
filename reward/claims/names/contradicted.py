"""Small words that the documents contradict: "in the north" where they only speak of the south.

Directions, how often something happens ("weekly"), seasons, parts of a day, colours, a man or a woman, a rise
or a fall are names of nothing, and most of them tell little. Such a word is a claim only where the documents
use another one of its row and never this one, or what implies it: a date in March implies spring, a time of
day all parts of the day. A rise or a fall with an amount is none, as a reader may have worked it out.

"Ash is north of Elm" and "Elm is south of Ash" are both true, so the side of something is none.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from reward.claims.names.model import Name
from reward.claims.text import lowered, words_in

_OPPOSITES = {"north": "south", "south": "north", "east": "west", "west": "east"}
_ANYTHING = ""  # what a side is of, whatever it is
_ANY_DIRECTION = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})")
_WORD = re.compile(
    r"(?<![^\W_])(north|south)?(?:(?<=th)[- ]?)?(east|west)?(?:(?<=th)|(?<=st))"
    r"(?:ern(?:most|er|ers)?|erly|wards?|bound)?(?![^\W_])",
    re.IGNORECASE,
)
_SIDE = re.compile(r" of\b")
_OF_WHAT = re.compile(r" of (?:the |its |their )?\w+")
_THE = re.compile(r"\bthe (?:far |extreme |very )?$", re.IGNORECASE)


_DETERMINERS = "(?:the|an?|each|every|any|your|their|its|his|her) "
_UNITS = "minute|hour|day|week|month|year"
_UNITS_OF_TIME = frozenset(f"{unit}{s}" for unit in _UNITS.split("|") for s in ("", "s"))
_SIDE_AND_WHAT = rf"(?P<side>before|after) (?:{_DETERMINERS})?(?P<what>[a-z]{{3,}})\b"
_BESIDE = re.compile(rf"\b{_SIDE_AND_WHAT}")
_TIME_BESIDE = re.compile(rf"\b(?:{_UNITS})s? {_SIDE_AND_WHAT}")
_KEY = re.compile(r"\b[A-G](?:[- ](?:flat|sharp)|[\u266d\u266f])?[- ](?:major|minor)\b")


class _Member(NamedTuple):
    """One of the words of a row, of which only one can be right."""

    said: re.Pattern[str]  # how a response or a document says it, in small letters
    implied: re.Pattern[str]  # what in a document says it, too


def _member(said: str, implied: str) -> _Member:
    return _Member(re.compile(rf"\b(?:{said})\b"), re.compile(rf"\b(?:{implied})", re.IGNORECASE))


class _Row(NamedTuple):
    telling: frozenset[str]  # a response must hold one of these words to say one of the row
    members: tuple[_Member, ...]
    is_move: bool


def _row(telling: str, *members: _Member, is_move: bool = False) -> _Row:
    return _Row(frozenset(telling.split()), members, is_move)


def _every(unit: str, adjectives: str) -> _Member:
    """How often something happens; any word for its unit of time implies it."""
    return _member(
        rf"{adjectives}|every {unit}|each {unit}|once an? {unit}|once per {unit}", f"{unit}|{adjectives}"
    )


_CLOCK = r"\d[:.]\d\d|\d ?[ap]\.?m\b|o['\u2019]clock|noon|midnight|hours\b"
_SIDES = (
    "hand|wing|side|engine|arm|leg|foot|knee|eye|ear|lung|bank|shoulder|ankle|hip|wrist|elbow|thigh|breast|kidney"
    "|winger|lane|temple|atrium|ventricle"
)
_IN = "(?:in|next|last|this|the|until|since|every|by)"
_MUSICIANS = "(?:[a-z]+ )?(?:musicians|players|members|m[ea]n|wom[ea]n|people|singers|friends|artists)"
_GROUPS = {
    "duo": "two",
    "trio": "three",
    "quartet": "four",
    "quintet": "five",
    "sextet": "six",
    "septet": "seven",
    "octet": "eight",
}
_COLOURS = ("red", "green", "blue", "yellow", "white", "black", "gr[ea]y", "brown", "orange", "purple")
_NO_COLOUR = (  # what such a word says of else than a colour
    r"(?!-| ?(?:light|energy|power|paper|market|people|men|women|americans?|community|collar|tape|spaces?"
    r"|belt|box|list|spot|card|juice|wine|meat|pepper|hole|sheep|mail|eye|cross|flag|tea|bean|carpet|zone))"
)
_MALE = (
    r"m[ae]n\b|males?\b|he\b|him\b|his\b|boys?\b|\w*father|husband|sons?\b|brother|mr\b|king|people|person"
)
_FEMALE = (
    r"\w*wom[ae]n\b|females?\b|she\b|her\b|girl|\w*mother|wi[fv]e|daughter|sister|mrs\b|ms\b|queen|people"
    r"|person"
)
_DOWN = (
    r"f[ae]ll(?:s|en|ing)?\b|drop|declin|decreas|down\b|reduc|cut|less\b|few|lower|shr[aiu]n|los[est]|slump|slip|sank"
    r"|sink|eas|slow|halv|worse|minus|contract|plung|tumbl|slash|trim|narrow|smaller|cheaper|dip|slid|weak|shed"
)
_UP = (
    r"r[io]se|rising|climb|increas|up\b|gr[eo]w|jump|gain|higher|more\b|soar|surg|doubl|tripl|rais|lift|boost|add"
    r"|expan|improv|accelerat|bett?er|wide|larger|dearer|recover|rall|strong|hik|advanc|extra|additional|another"
)
_AMOUNT = re.compile(r",? (?:\w+ )?(?:from|to|by|\d|\w+fold\b)")
_ROWS = (
    _row(
        "every each once hourly daily weekly monthly quarterly yearly annual annually",
        _every("hour", "hourly"),
        _every("day", "daily"),
        _every("week", "weekly"),
        _every("month", "monthly"),
        _every("quarter", "quarterly"),
        _every("year", "yearly|annual|annually"),
    ),
    _row(
        "spring summer autumn winter",
        _member(f"{_IN} spring", "spring|mar|apr|may"),
        _member(f"{_IN} summer", "summer|jun|jul|aug"),
        _member(f"{_IN} autumn", "autumn|fall|sep|oct|nov"),
        _member(f"{_IN} winter", "winter|dec|jan|feb"),
    ),
    _row(
        "morning afternoon evening",
        _member("morning", f"morning|breakfast|{_CLOCK}"),
        _member("afternoon", f"afternoon|lunch|{_CLOCK}"),
        _member("evening", f"evening|dinner|night|{_CLOCK}"),
    ),
    _row(
        "gold silver bronze",
        _member("gold", r"gold|first|won\b|win|champion|1st"),
        _member("silver", "silver|second|runner|2nd"),
        _member("bronze", "bronze|third|3rd"),
    ),
    _row(
        "duo trio quartet quintet sextet septet octet",
        *(_member(f"{one}s?", rf"{one}|{count} {_MUSICIANS}") for one, count in _GROUPS.items()),
    ),
    _row(
        "final finals semifinal semifinals",
        _member("quarter-finals?", "quarter-?final|last eight"),
        _member("semi-?finals?", "semi-?final|last four"),
    ),
    _row(
        "port starboard",
        _member("port (?:side|engine|bow|quarter)", "port"),
        _member("starboard", "starboard"),
    ),
    _row(
        "red green blue yellow white black grey gray brown orange purple",
        *(_member(rf"{one}\b{_NO_COLOUR}", one) for one in _COLOURS),
    ),
    _row("man woman", _member("man", _MALE), _member("woman", _FEMALE)),
    _row(
        "fall fell fallen drop dropped decline declined decrease decreased shrunk down rise rose risen"
        " increase increased climbed grown up",
        _member(
            "fell|fallen|an? (?:fall|drop|decline|decrease) in|has shrunk|(?:gone|went) down|down (?:from|on)"
            "|ha[ds] (?:dropped|declined|decreased)",
            _DOWN,
        ),
        _member(
            "rose|risen|an? (?:increase|rise) in|has grown|(?:gone|went) up|ha[ds] (?:increased|climbed)"
            "|up (?:from|on)",
            _UP,
        ),
        is_move=True,
    ),
    _row(
        "half",
        _member("first[- ]half", "first[- ]half|h1\\b|1h\\b|half-time|minute|jan|feb|mar|apr|may|jun"),
        _member(
            "(?:second|latter)[- ]half",
            "second[- ]half|latter|h2\\b|2h\\b|half-time|minute|jul|aug|sep|oct|nov|dec",
        ),
    ),
    _row("upstream downstream", _member("upstream", "upstream"), _member("downstream", "downstream")),
    _row(
        "left right",
        _member(f"left[- ](?:{_SIDES})", f"left[- ](?:{_SIDES})|left[- ]?hand"),
        _member(f"right[- ](?:{_SIDES})", f"right[- ](?:{_SIDES})|right[- ]?hand"),
    ),
)


def contradicted(response: str, documents: Iterable[str]) -> Iterator[Name]:
    """The words of a response that no document says or implies, while one says another of their row."""
    texts, words = tuple(documents), words_in(lowered(response)).all
    if _ANY_DIRECTION.search(response):
        yield from _directions(response, texts)
    if not _UNITS_OF_TIME.isdisjoint(words):
        yield from _sides_of_times(response, texts)
    if "major" in words or "minor" in words:
        yield from _keys(response, texts)
    for row in _ROWS:
        if row.telling.isdisjoint(words):
            continue
        found = [(member, match) for member in row.members for match in member.said.finditer(response)]
        for member, match in found:
            if row.is_move and _AMOUNT.match(response, match.end()):
                continue
            others = (one for one in row.members if one is not member)
            if not _says(member.implied, texts) and any(_says(one.said, texts) for one in others):
                yield Name(*match.span(), match[0], (match[0],))


def _sides_of_times(response: str, documents: tuple[str, ...]) -> Iterator[Name]:
    """ "30 minutes after a meal" where the documents only say so long before a meal."""
    for match in _TIME_BESIDE.finditer(response):
        said = _sides_of_events(documents).get(match["what"], set())
        if said and match["side"] not in said:
            yield Name(*match.span(), match[0], (match[0],))


@lru_cache(maxsize=64)
def _sides_of_events(documents: tuple[str, ...]) -> dict[str, set[str]]:
    """Whether documents say "before" or "after" of something, by its word."""
    sides: dict[str, set[str]] = {}
    for document in documents:
        for side, what in _BESIDE.findall(document):
            sides.setdefault(what, set()).add(side)
    return sides


def _keys(response: str, documents: tuple[str, ...]) -> Iterator[Name]:
    """Keys of music that no document holds, while one holds another: "B minor" for E minor."""
    held = {_folded(key) for document in documents for key in _KEY.finditer(document)}
    for key in _KEY.finditer(response) if held else ():
        if _folded(key) not in held:
            yield Name(*key.span(), key[0], (key[0],))


def _folded(key: re.Match[str]) -> str:
    return key[0].replace("-", " ").replace("\u266d", " flat").replace("\u266f", " sharp")


@lru_cache(maxsize=256)
def _says(pattern: re.Pattern[str], documents: tuple[str, ...]) -> bool:
    return any(pattern.search(document) for document in documents)


def _directions(response: str, documents: tuple[str, ...]) -> Iterator[Name]:
    """Directions in small letters that no document holds, while one has the opposite in small letters."""
    words = [match for match in _WORD.finditer(response) if match[0].islower()]
    found = [match for match in words if not _is_side(match)]
    yield from (Name(*one.span(), one[0], (one[0],)) for one in words if _is_other_side(one, documents))
    if not found:
        return
    in_documents = [match for document in documents for match in _WORD.finditer(document)]
    held = {part.lower() for match in in_documents for part in match.groups("")}
    held_small = {part for match in in_documents if match[0].islower() for part in match.groups("")}
    for match in found:
        parts = list(filter(None, match.groups()))
        if any(part not in held and _OPPOSITES[part] in held_small for part in parts):
            yield Name(*match.span(), match[0], (match[0],))


def _is_other_side(match: re.Match[str], documents: tuple[str, ...]) -> bool:
    """Whether documents say "north of the pass", and none "south of the pass", as the response does.

    "East of the city" can also be east of what they call by its name.
    """
    of_what = _OF_WHAT.match(match.string, match.end())
    sides = _sides_of(documents)
    given = sides.get(of_what[0], set()) if of_what else set()
    if given and of_what is not None and of_what[0].islower() and match.groups() in sides[_ANYTHING]:
        return False
    return bool(given) and match.groups() not in given


@lru_cache(maxsize=64)
def _sides_of(documents: tuple[str, ...]) -> dict[str, set[tuple[str | None, ...]]]:
    """The sides that documents name, by what they are of; and those of anything."""
    sides: dict[str, set[tuple[str | None, ...]]] = {}
    for text in documents:
        for match in _WORD.finditer(text):
            if match[0].islower() and (of_what := _OF_WHAT.match(text, match.end())):
                for of in (of_what[0], _ANYTHING):
                    sides.setdefault(of, set()).add(match.groups())
    return sides


def _is_side(match: re.Match[str]) -> bool:
    """Whether it says on which side of something else a thing is: "12 km north of the city"."""
    if not _SIDE.match(match.string, match.end()):
        return False
    return not _THE.search(match.string, max(0, match.start() - 16), match.start())

"""What a number is of, by its sentence, and what a question asks for.

"274 families lived there" states families, "the population was 274" a population, "She died in 1942" a
death. "How many people lived there?" asks for people. Where a text names nothing, nothing is said against it.

Coverage asks `is_other` whether a question and a number's sentence name two things, or two events. Only those
that `vocabulary.toml` knows ([things.same], [things.events]) are distinguished: of others a question may use
another word for the same ("participants" for patients), and a right answer would be refused. Of a query, an
answer and its documents `counted_things` and `stated_things` tell it (`reward.judging.query`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from reward.claims.numbers.model import Kind, Number
from reward.claims.numbers.vocabulary import TABLES, by_word, either
from reward.claims.text import sentence_span

_TABLE = TABLES["things"]
_CLASSES = by_word(_TABLE["same"])
_EVENTS = by_word(_TABLE["events"])
_GENERIC = frozenset(_TABLE["generic"].split())
_PLURALS = frozenset(_TABLE["plurals"].split())
_NO_THINGS = frozenset(
    [*_TABLE["none"].split(), *_TABLE["around"].split(), *TABLES["stop_words"]["en"].split()]
)
_MEASURED = (Kind.QUANTITY, Kind.DURATION, Kind.MONEY)
_MOST_WORDS = 3  # of a thing: "registered married couples"
_WORD = re.compile(r"[^\W\d_]{2,}")
_DIGIT = re.compile(r"\d")
_OPENS = re.compile(r"(?:(?:in|on|by|am|im|en|le|el|il|op)\s)?", re.IGNORECASE)  # "In 1942 she died"
_OF = r"(?:of|von|di|van|du|des|del|de)"
_BEHIND = re.compile(
    r"[ \u00a0-](?:of (?:the|its|his|her|their|our|all|these|those) )?((?:[^\W\d_]{2,}[ -]?){1,4})"
)
_JOINED = re.compile(
    rf"(?:\b(?:{_OF}|was|is|were|are|be|been|numbered|totall?ed|reached|stood at"
    r"|war|ist|betrug|était|est|fue|era)|[:=(])\s*(?:about |around |only |just )?$",
    re.IGNORECASE,
)


def _opposites(rows: list[list[str]]) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Of each word the words of its cell of a row, and those of the other cells."""
    found = {}
    for row in rows:
        cells = [frozenset(cell.split("|")) for cell in row]
        for own in cells:
            others = frozenset().union(*cells) - own
            found.update(dict.fromkeys(own, (own, others)))
    return found


def _cells(rows: list[list[str]]) -> dict[str, tuple[int, int]]:
    """Of each word its row, and its cell of that row."""
    places = ((row, cell, words) for row, cells in enumerate(rows) for cell, words in enumerate(cells))
    return {word: (row, cell) for row, cell, words in places for word in words.split("|")}


_EXTREMES = _opposites(TABLES["extremes"]["opposed"])
_DEEDS = _EXTREMES | _opposites(TABLES["extremes"]["deeds"])
_DATED = _EXTREMES | _opposites(TABLES["extremes"]["dated"])
_CELLS = _cells(_TABLE["apart"])
_RIVALS = _cells(TABLES["extremes"]["rivals"])
_GREATER, _SMALLER = (TABLES["relations"][name].split() for name in ("greater", "smaller"))
_RIVAL = re.compile(rf"\b(\w+) (?:[a-z]+ly )?({either(_RIVALS)})\b", re.IGNORECASE)
_THAN = re.compile(
    rf" (?:[a-z]+ )?({either([*_GREATER, *_SMALLER])}) than (?:(?:the|an?|its|his|her|their) )?(\w+)"
)
_ALL_OR_NONE = re.compile(r"\b(?:all|(?P<none>none))(?: of)?(?: the)? $", re.IGNORECASE)
_WIDE = frozenset(_TABLE["wide"].split())
_VERBS = frozenset(_TABLE["verbs"].split())
_ALIKE: dict[str, frozenset[int]] = {}
for _place, _line in enumerate(_TABLE["alike"].strip().splitlines()):
    for _word in _line.split():
        _ALIKE[_word] = _ALIKE.get(_word, frozenset()) | {_place}
_CLAUSE_END = re.compile(r"[.,;:!?()\n]|\b(?:while|whereas|but|and)\b")
_CLAUSE = 80  # characters
_THAT_TIME = re.compile(r"\b(?:that|same) (?:year|month|day|week)\b")  # "joined in 2015 and left that year"
_AGED = re.compile(r"\baged?:?\s$", re.IGNORECASE)
_OF_NEXT = re.compile(rf"([^\W\d_]{{2,}}) {_OF}(?= (?:the |its |all )?([^\W\d_]{{2,}})?)", re.IGNORECASE)
_LAST = re.compile(r"([a-z]{2,})[^\w]*$")
_HOW_MANY = re.compile(
    r"\b(?:how many|(?:number|count|total) of|wie viele|combien (?:de|d['\u2019])|cu[aá]nt[oa]s"
    r"|quant[aeio]s?|hoeveel)\s"
    r"(?:of )?(?:the |its |these |those )?((?:[^\W\d_]{2,}[ -]?){1,4})",
    re.IGNORECASE,
)
_WHAT_IS = re.compile(
    r"\b(?:what|which|how (?:large|big|high|great|small|low)) (?:is|was|were|are) "
    r"(?:(?:the|its|their|his|her|a|an) |[^?]{0,60}?['\u2019]s? )?((?:[^\W\d_]{2,}[ -]?){1,4})",
    re.IGNORECASE,
)
_WHAT = re.compile(r"\bwhat ((?:[a-z]{2,} ){1,3})(?:did|does|do|has|had|was|is)\b", re.IGNORECASE)
_HOW_OLD = re.compile(r"\bhow old\b", re.IGNORECASE)


class Thing(NamedTuple):
    """What is named: words of which the last says most."""

    words: tuple[str, ...]

    @property
    def group(self) -> str:
        """The key of `[things.same]` that has its last word; empty for an unknown one."""
        return _CLASSES.get(self.words[-1], "")

    def is_like(self, other: Thing) -> bool:
        """Whether both may be one: they share a word ("family", "families") or are of one line."""
        is_one = self.group != "" and self.group == other.group
        return is_one or any(_is_same_word(a, b) for a in self.words for b in other.words)

    def excludes(self, other: Thing) -> bool:
        """Whether both are known and of different lines, or cells of one row: "deaths" and "cases"."""
        if self.group and other.group:
            return not self.is_like(other)
        mine, its = (dict(map(_CELLS.__getitem__, _CELLS.keys() & one.words)) for one in (self, other))
        return any(mine[row] != its[row] for row in mine.keys() & its.keys())

    def is_named_by(self, stated: Thing) -> bool:
        """Whether what is stated is just this: "12 career appearances" are no "career goals"."""
        return self.is_like(Thing(stated.words[-1:]))


def is_other(question: str, number: Number, response: str, query: str) -> bool:
    """Whether a question asks for another thing, or another event, than a number's sentence states.

    Args:
        question: The Proposer's.
        number: A number of the response.
        response: What is audited.
        query: What a response that is nothing but numbers answers: it names the thing then.
    """
    bare = _WORD.search(response[: number.start] + response[number.end :]) is None
    if number.is_calendar:
        asked = _events(question)
        stated = _events(query) if bare else _event_of(number, response)
        return bool(asked and stated) and asked.isdisjoint(stated)
    wanted = _asked(question)
    if wanted is None:
        return False
    if number.kind in _MEASURED:
        fits = "age" if number.kind is Kind.DURATION else ""
        return wanted.group not in ("", fits)
    if number.kind is not Kind.COUNT:
        return False
    named = [one for one in [_asked(query)] if one] if bare else stated_things(number, response)
    # Only known ones are distinguished: "participants" may be patients, and "guests" families.
    return bool(named and wanted.group) and all(one.group and not wanted.is_like(one) for one in named)


def _is_same_word(a: str, b: str) -> bool:
    """Whether two words are of one family: "family" and "families", but not "studies" and "students"."""
    length = max(3, min(len(a), len(b)) - 2)
    return a[:length] == b[:length]


def counted_things(question: str) -> list[Thing]:
    """All that a question asks to be counted: behind "how many", or known ("What was the population?")."""
    named = _named(question)
    known = named if named and named.group not in ("", "age") else None
    return [one for one in (*_counted(question), known) if one is not None]


@lru_cache(maxsize=1024)
def _asked(question: str) -> Thing | None:
    """The first thing that a question asks for."""
    if counted := _counted(question):
        return counted[0]
    return Thing(("age",)) if _HOW_OLD.search(question) else _named(question)


def _counted(question: str) -> list[Thing | None]:
    return [_thing(_words(one), is_counted=True) for one in _HOW_MANY.findall(question)]


def _named(question: str) -> Thing | None:
    match = _WHAT_IS.search(question) or _WHAT.search(question)
    return _thing(_words(match[1]), is_counted=False) if match else None


def _thing(words: list[str], *, is_counted: bool) -> Thing | None:
    """The first words up to one that is no thing, or to a known or plural one; None without any."""
    kept: list[str] = []
    for word in words[: _MOST_WORDS + 1]:
        if word in _NO_THINGS:
            break
        kept.append(word)
        if is_counted and (word in _CLASSES or word in _CELLS or _is_plural(word)):
            break
    if not kept or kept[-1] in _GENERIC:
        return None
    return Thing(tuple(kept))


def stated_things(number: Number, text: str) -> list[Thing]:
    """What a count of a text is of: the thing behind it, and the one it is joined to ("a population of")."""
    low, high = sentence_span(text, number.start, number.end)
    named = [_behind(text[number.end : high]), *_before(text[low : number.start])]
    own = _words(text[number.start : number.end])  # "61 families" where the mention holds its things
    if own and own[-1] in _CLASSES:
        named.append(Thing((own[-1],)))
    return [one for one in named if one is not None]


def thing_behind(number: Number, text: str) -> Thing | None:
    """What a count is of, if a known or plural thing follows it; a name or a verb is none."""
    thing = _behind(text[number.end : number.end + _CLAUSE])
    is_named = thing is not None and f" {thing.words[-1]}" not in text[number.end : number.end + _CLAUSE]
    return None if thing is None or is_named or thing.words[-1] in _VERBS else thing


def may_be_one(one: Thing, other: Thing) -> bool:
    """Whether two different words may name one thing: "ships" and "vessels", or "people" and anybody."""
    lines = [frozenset().union(*(_ALIKE.get(word, ()) for word in thing.words)) for thing in (one, other)]
    return not lines[0].isdisjoint(lines[1]) or not _WIDE.isdisjoint((*one.words, *other.words))


def is_of_opposite(number: Number, response: str, places: Sequence[tuple[Number, str]]) -> bool:
    """Whether a number is "the oldest victim's" or of whom a firm hired, and equal ones of texts are not.

    Args:
        number: A mention of the response.
        response: What is audited.
        places: The numbers of documents that support it, each with the text that holds it.
    """
    said = _extremes_beside(number, response)
    rows = [
        (own, others)
        for own, others in map(_opposed_for(number).__getitem__, said)
        if said.isdisjoint(others)
    ]
    beside = [_extremes_beside(*place) for place in places] if rows else []
    if number.is_calendar and any(_THAT_TIME.search(text) for _, text in places):
        return False
    if (sides := _sides_of(number, response)) and all(
        any(sides.get(of, side) != side for of, side in _sides_of(*place).items()) for place in places
    ):
        return True
    return bool(beside) and all(
        any(there.isdisjoint(own) and not there.isdisjoint(others) for own, others in rows)
        for there in beside
    )


def _opposed_for(number: Number) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Which words exclude each other: of dates others, since "open until 5 pm" is "closes at 5 pm"."""
    return _DATED if number.is_calendar or number.kind is Kind.TIME else _DEEDS


def _extremes_beside(number: Number, text: str) -> frozenset[str]:
    """The words such as "oldest" and "hired" in the clause of a number."""
    before = _CLAUSE_END.split(text[max(0, number.start - _CLAUSE) : number.start])[-1]
    behind = _CLAUSE_END.split(text[number.end : number.end + _CLAUSE], maxsplit=1)[0]
    return frozenset(_opposed_for(number).keys() & set(_WORD.findall(f"{before} {behind}".lower())))


def _sides_of(number: Number, text: str) -> dict[object, object]:
    """Who won or lost by a number, than what something is larger or smaller, and what all or none did."""
    before = _CLAUSE_END.split(text[max(0, number.start - _CLAUSE) : number.start])[-1]
    rivals = ((who.lower(), *_RIVALS[side.lower()]) for who, side in _RIVAL.findall(before))
    sides: dict[object, object] = {(row, who): cell for who, row, cell in rivals}
    if than := _THAN.match(text, number.end):
        sides[than[2].lower()] = than[1] in _GREATER
    if of := _ALL_OR_NONE.search(before):
        behind = _CLAUSE_END.split(text[number.end : number.end + _CLAUSE], maxsplit=1)[0]
        sides[frozenset(_words(behind)) - _NO_THINGS] = of["none"] is None
    return sides


def _behind(after: str) -> Thing | None:
    """A known or plural thing directly behind a number; a verb or an adverb is none."""
    match = _BEHIND.match(after)
    thing = _thing(_words(match[1]), is_counted=True) if match else None
    if thing is None:
        return None
    last = thing.words[-1]
    return thing if last in _CLASSES or last in _CELLS or _is_plural(last) else None


def _before(before: str) -> list[Thing]:
    """What a number is joined to: "the population of Ulm was", "a population of", "Families:"."""
    if _AGED.search(before):
        return [Thing(("age",))]
    joined = _JOINED.search(before)
    if joined is None:
        return []
    pairs = (map(str.casefold, pair) for pair in _OF_NEXT.findall(before))
    words = [of_what if word in _GENERIC else word for word, of_what in pairs]
    last = _LAST.search(before[: joined.start()] if not words else "")
    words += [last[1]] if last else []
    if not words and (heading := re.fullmatch(r"\W*([^\W\d_]+)\s?", before[: joined.start()])):
        words = [heading[1].casefold()] if heading[1].casefold() in _CLASSES else []
    return [Thing((word,)) for word in words if word and word not in _NO_THINGS | _GENERIC]


def _event_of(number: Number, response: str) -> frozenset[str]:
    """The events of a date's sentence: those between the number before it and itself, or else behind it."""
    low, high = sentence_span(response, number.start, number.end)
    before = _DIGIT.split(response[low : number.start])[-1]
    is_first = _OPENS.fullmatch(response[low : number.start]) is not None
    return _events(response[number.end : high]) if is_first else _events(before)


def _events(text: str) -> frozenset[str]:
    return frozenset(_EVENTS[word] for word in _words(text) if word in _EVENTS)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _is_plural(word: str) -> bool:
    return word in _PLURALS or (len(word) > 3 and word.endswith("s") and not word.endswith("ss"))

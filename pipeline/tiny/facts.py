"""A fact of the tiny world and its sentence, in both directions: written out, and read back from any text."""

import re
from dataclasses import dataclass

from pipeline.settings.worlds import Kind
from pipeline.tiny.words import FIRST_NAMES, LAST_NAMES, MONTHS, UNITS, VERB_FORMS, verbs_of, where

ABSTENTION = "The documents do not say."
FactKey = tuple[str, str, str, str]  # theme or month, event, place or city, verb
Value = int | str  # a number, a person's first and last name, or a day ("14 March")

_MONTH = "|".join(MONTHS)
_SUBJECT = r"The (?P<theme>\w+) (?P<event>\w+) (?P<where>(?:in|at the) (?P<place>\w+))"
_STATEMENT = re.compile(
    rf"{_SUBJECT} (?:"
    rf"(?P<counts>{'|'.join(verbs_of('number'))}) (?P<number>0|[1-9][0-9]{{0,17}}) (?P<unit>\w+)"
    rf"|(?P<names>{'|'.join(verbs_of('name'))}) (?P<name>[A-Z]\w{{0,30}} [A-Z]\w{{0,30}})"
    rf"|(?P<dates>{'|'.join(verbs_of('date'))}) (?P<date>[1-9]\d? (?:{_MONTH}))"
    r")\."
)  # bounded: a policy may run on
_QUESTION = re.compile(
    rf"{_SUBJECT} (?P<verb>{'|'.join(VERB_FORMS)}) (?:how many \w+|which person|which day)\?"
)
_VALUE_GROUPS = ("number", "name", "date")
_NAME_WORD = f"(?:{'|'.join((*FIRST_NAMES, *LAST_NAMES))})"
_LOOSE_VALUE = re.compile(
    rf"\d+|\b{_NAME_WORD}\b(?: {_NAME_WORD}\b)*|(?:{'|'.join((*verbs_of('name'), *verbs_of('date')))})"
)


@dataclass(frozen=True)
class Fact:
    """One value of the world and what it says.

    Examples: `Fact("July", "picnic", "Kabul", "raised", 466)`,
    `Fact("charity", "picnic", "harbour", "was organised by", "Maria Silva")`.
    """

    theme: str  # or a month
    event: str
    place: str  # or a city
    verb: str
    value: Value

    @property
    def key(self) -> FactKey:
        return (self.theme, self.event, self.place, self.verb)

    @property
    def kind(self) -> Kind:
        return VERB_FORMS[self.verb].kind

    @property
    def _subject(self) -> str:
        return f"The {self.theme} {self.event} {where(self.place)}"

    def statement(self, value: Value | None = None) -> str:
        """The fact as a sentence; with `value`, the sentence that claims that value instead."""
        shown = self.value if value is None else value
        return f"{self._subject} {self.verb} {shown}{VERB_FORMS[self.verb].tail}."

    def question(self) -> str:
        """The question whose answer is the value."""
        return f"{self._subject} {self.verb} {VERB_FORMS[self.verb].asked}?"


@dataclass(frozen=True)
class FoundValue:
    """A value of a text, `text[start:end]`, and the well-formed statement that it is in, if any."""

    start: int
    end: int
    fact: Fact | None


def read_facts(text: str) -> list[Fact]:
    """Returns the well-formed statements of a text, in order, whether true or not."""
    return [_fact(match) for match in _STATEMENT.finditer(text) if _is_whole(match)]


def read_questions(text: str) -> list[FactKey]:
    """Returns what the questions of a text ask for, in order."""
    found = filter(_is_placed, _QUESTION.finditer(text))
    return [(match["theme"], match["event"], match["place"], match["verb"]) for match in found]


def find_values(text: str) -> list[FoundValue]:
    """Returns the numbers, names and days that a text claims, from left to right, wherever they stand.

    In a well-formed statement that is its value alone; outside of one it is all digits, all names of this
    world's people, and each verb that speaks of a person or a day, whatever follows it.
    """
    found: list[FoundValue] = []
    at = 0
    for match in filter(_is_whole, _STATEMENT.finditer(text)):
        found += _loose_values(text, at, match.start())
        group = next(name for name in _VALUE_GROUPS if match[name] is not None)
        found.append(FoundValue(*match.span(group), _fact(match)))
        at = match.end()
    return found + _loose_values(text, at, len(text))


def _loose_values(text: str, start: int, end: int) -> list[FoundValue]:
    return [FoundValue(*match.span(), None) for match in _LOOSE_VALUE.finditer(text, start, end)]


def _is_whole(match: re.Match[str]) -> bool:
    """Whether a number has the unit of its verb, and the place its preposition."""
    return _is_placed(match) and (match["counts"] is None or UNITS[match["counts"]] == match["unit"])


def _is_placed(match: re.Match[str]) -> bool:
    return match["where"] == where(match["place"])


def _fact(match: re.Match[str]) -> Fact:
    verb = match["counts"] or match["names"] or match["dates"]
    value: Value = int(match["number"]) if match["counts"] else match["name"] or match["date"]
    return Fact(match["theme"], match["event"], match["place"], verb, value)

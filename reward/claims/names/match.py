"""When two answers name the same: a question's asked name and what a vote says.

Two relations, on purpose. `key` tells whether two answers are one, so that votes can be grouped in any order.
`says` is wider and looks from an answer to the name that was asked for: a surname alone, an initial, a
nickname or an acronym stands for it. `taken_as` turns every answer that says the asked name into that name.
"""

import re
from collections.abc import Iterator

from reward.claims.names import lexicon
from reward.claims.names.lexicon import fold, is_acronym, is_common, transcribed
from reward.claims.names.model import Name, singulars, tokens_of
from reward.claims.names.places import differ
from reward.claims.names.titles import title_words

_SHORT_OF_PLACE = re.compile(r"([A-Z][^\W\d_]+)[ -](?:upon|under|am|an der|sur|ob der)[ -](?=[A-Z])")
_FAMILY_FIRST = re.compile(r"\w+ \w+-[a-z]\w*")  # "Kim Jong-un"
_NO_PERSONS = lexicon.KINDS | lexicon.PREFIXES | lexicon.COUNTRIES
_MOST_PERSON = 4  # words of a person's name
Key = tuple[tuple[str, ...], tuple[str, ...], frozenset[str]]


def key(name: Name) -> Key:
    """What tells whether two answers are one: "University of Oslo" and "Oslo University" have one key."""
    words = name.tokens
    if len(words) > 1 and name.inverted:
        words = turned(name)
    return words, name.place, name.roles


def taken_as(answer: Name, asked: Name) -> Name:
    """The asked name where an answer says it, else the answer.

    Its title is kept only where the asked name has another one, so that the other votes are counted by name.
    """
    if says(answer, asked):
        return asked
    return answer if _is_other_role(answer, asked) else answer._replace(roles=frozenset())


def says(answer: Name, asked: Name) -> bool:
    """Whether an answer names what was asked for, if in another writing."""
    if differ(answer.place, asked.place):
        return False
    if asked.title and title_words(tokens_of(answer.text)) == asked.tokens:
        return True
    if _is_other_role(answer, asked) or {answer.courtesy, asked.courtesy} == {"mr", "mrs"}:
        return False
    if len(asked.tokens) == 1 and (short := _SHORT_OF_PLACE.match(answer.text)):
        return fold(short[1]) == asked.tokens[0]  # "Newcastle" for "Newcastle upon Tyne"
    given, wanted = key(answer)[0], key(asked)[0]
    if len(given) == len(wanted) and all(alike(a, b) for a, b in zip(given, wanted, strict=True)):
        return True
    if len(given) > 1 and numbered(answer) == numbered(asked):
        return True
    if wanted[-1] in lexicon.SUFFIXES and given[-1] not in lexicon.SUFFIXES:
        wanted = wanted[:-1] or wanted  # "Jr." can be left out, and not added
    elif given[-1] in lexicon.SUFFIXES and given[-1] != wanted[-1]:
        return False
    if given == wanted or "".join(given) == "".join(wanted):
        return True
    if _transcribes(answer, asked) or _is_family(answer, asked):
        return True
    if _spells(answer, asked) or _spells(asked, answer):
        return True
    if given == wanted[:1] and _FAMILY_FIRST.fullmatch(asked.text):
        return True
    return is_person(answer, given) and is_person(asked, wanted) and _one_person(given, wanted)


def written(answer: Name, asked: Name) -> str:
    """One text for all answers that are equal: the asked name's own, or one that is made of the words."""
    if says(answer, asked):
        return asked.text
    words, place, _ = key(answer)
    text = " ".join(word.upper() if len(word) == 1 else word.capitalize() for word in words)
    return f"{text}, {' '.join(word.capitalize() for word in place)}" if place else text


def _is_other_role(answer: Name, asked: Name) -> bool:
    """Whether two names have titles that differ: "Senator Brown" and "President Brown"."""
    if not answer.roles or not asked.roles or not lexicon.KINDS.isdisjoint(asked.tokens):
        return False
    return not agree(answer.roles, asked.roles)


def agree(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two titles can be one's own: a vice president is no president."""
    return bool(one & other) and ("vice" in one) is ("vice" in other)


def _transcribes(answer: Name, asked: Name) -> bool:
    """Whether one name has umlauts that the other writes out: "Müller" and "Mueller"."""
    if answer.text.isascii() and asked.text.isascii():
        return False
    return transcribed(answer.text).casefold() == transcribed(asked.text).casefold()


def _is_family(answer: Name, asked: Name) -> bool:
    """Whether one of the names is that of the other's family: "the Hartleys" and "Hartley"."""
    if len(answer.tokens) > 1 or len(asked.tokens) > 1:
        return False
    return (answer.family and asked.tokens[0] in singulars(answer)) or (
        asked.family and answer.tokens[0] in singulars(asked)
    )


def alike(a: str, b: str) -> bool:
    """Whether two words are one in other writings: "St" and "Saint", "Bill" and "William", "CA"."""
    states = lexicon.STATES
    return a == b or b in lexicon.LIKE.get(a, ()) or states.get(a) == (b,) or states.get(b) == (a,)


def turned(name: Name) -> tuple[str, ...]:
    """The words of a name with an "of" in the other order: "Ghent University Hospital"."""
    before, _, _ = name.text.partition(" of ")
    num_before = min(len(before.split()), len(name.tokens) - 1)
    return (*name.tokens[num_before:], *name.tokens[:num_before])


def numbered(name: Name) -> tuple[str, ...]:
    """The words of a name with its number at the end in digits: "Apollo XI" and "Apollo Eleven"."""
    *words, last = name.tokens
    written = name.text.split()[-1]
    roman = lexicon.ROMAN.get(last, "") if written.isupper() else ""
    digits = lexicon.COUNTED.get(last, roman)
    return (*words, digits) if words and digits else name.tokens


def _spells(short: Name, full: Name) -> bool:
    """Whether one name is the acronym of another: "WHO" of "World Health Organization"."""
    if not is_acronym(short.text) or len(full.tokens) < 2:
        return False
    letters = short.text.replace(".", "").lower()
    words = [word for word in full.text.replace("-", " ").split() if word[:1].isalnum()]
    every = "".join(word[0].lower() for word in words)
    capitals = "".join(word[0].lower() for word in words if word.lower() not in lexicon.LINKS)
    whole = "".join(word[0].lower() for word in full.text.split() if word[0].isupper())
    return letters in (every, capitals, whole)


def is_person(name: Name, words: tuple[str, ...]) -> bool:
    """Whether a name can be a person's, so that its last word alone names them."""
    return (
        len(words) <= _MOST_PERSON
        and not name.inverted
        and _NO_PERSONS.isdisjoint(words)
        and not any(map(str.isdigit, words))
        and words[-1] not in lexicon.CITIES
    )


def _one_person(given: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """A surname alone, or first names that agree as far as both give them."""
    if given[-1] != wanted[-1]:
        return False
    short, full = sorted((given[:-1], wanted[:-1]), key=len)
    if not short:
        return not (len(given) == 1 and is_common(given[-1]) and is_common(wanted[0]))
    if not _same_given_name(short[0], full[0]):
        return False
    rest = iter(full[1:])
    return all(_comes_next(name, rest) for name in short[1:])


def _comes_next(name: str, rest: Iterator[str]) -> bool:
    """Whether the next of some middle names is a given one; whole names can be left out, no initials."""
    for other in rest:
        if _same_given_name(name, other):
            return True
        if len(name) == 1 or len(other) == 1:
            return False
    return False


def _same_given_name(a: str, b: str) -> bool:
    return alike(a, b) or ((len(a) == 1 or len(b) == 1) and a[0] == b[0])

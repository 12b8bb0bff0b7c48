"""What the bracket of a claim, or of a vote, says: one name, or none."""

from __future__ import annotations

import re

from reward.claims.names.model import Name, name_of, tokens_of
from reward.claims.names.words import (
    ARTICLES,
    CALENDAR,
    COUNTRIES,
    KINDS,
    LINKS,
    STATES,
    TITLES,
    fold,
    is_common,
    words,
)

_LONGEST = 200  # characters
_MOST_WORDS = 12
_REMARK = re.compile(r"\s*\([^()]*\)\s*\.?$")
_ENDS = " \t\n.,;:!?\"'\u201c\u201d\u2018\u2019*_`[]()"
_QUOTED = re.compile(r"^[\"'\u201c\u2018].*[\"'\u201d\u2019]$")
_SEVERAL = re.compile(r"\s+(?:and|or)\s+|\s*[;/]\s*", re.IGNORECASE)
_NOTHING = words("no_answers")
_AFTER_COMMA = words("after_comma")
_FULL_STATES = frozenset(" ".join(full) for full in STATES.values())


def read_name(answer: str) -> Name | None:
    """The one name that an answer gives; None for several names, a sentence, a number or "yes"."""
    if len(answer) > _LONGEST:
        return None
    quoted = bool(_QUOTED.match(answer.strip()))
    text = _REMARK.sub("", answer.strip()).strip(_ENDS)
    head, comma, tail = text.partition(", ")
    if comma and len(tokens_of(text)) == 1:  # "Washington, D.C."
        head, comma, tail = text, "", ""
    place = _place(tail) if comma else ()
    if comma and place is None and quoted:
        head, place = text, ()  # "Eat, Pray, Love"
    if comma and place is None:
        return None
    body = head if comma else text
    if not quoted and _is_several(body):
        return None
    member = body.removesuffix(" family")
    name = _whole(member)
    if name is None:
        return None
    family = name.family or (len(name.tokens) == 1 and member != body)
    return name._replace(start=0, end=len(answer), place=place or (), family=family)


def _place(tail: str) -> tuple[str, ...] | None:
    """What a comma adds to a name: a country or state; () for "Jr."; None when it is something else."""
    words = tuple(token.word for token in tokens_of(tail))
    if all(word in _AFTER_COMMA for word in words):
        return ()
    words = tuple(word for word in words if word not in ARTICLES)
    if len(words) == 1 and words[0].lower() in STATES:
        return STATES[words[0].lower()]
    if " ".join(words) in _FULL_STATES or (len(words) <= 2 and words and words[-1] in COUNTRIES):
        return words
    return None


def _is_several(text: str) -> bool:
    """Whether a text lists names; "War and Peace" and "Food and Drug Administration" do not."""
    if len(tokens_of(text)) == 1:
        return False
    sides = _SEVERAL.split(text)
    if len(sides) < 2:
        return False
    words = [[token.word for token in tokens_of(side)] for side in sides]
    if any(not side for side in words):
        return False
    return not (any(all(is_common(word) for word in side) for side in words) or words[-1][-1] in KINDS)


def _whole(text: str) -> Name | None:
    tokens = tokens_of(text)
    words = [token.word for token in tokens]
    small = [fold(text[token.start : token.end]) for token in tokens]
    if not words or len(words) > _MOST_WORDS or all(word in _NOTHING or word in LINKS for word in small):
        return None
    if all(word in CALENDAR or word.isdigit() or word in LINKS for word in small):
        return None
    if not any(any(c.isalpha() for c in word) for word in words):
        return None
    capital = any(token.capital for token in tokens)
    if not capital and (all(is_common(word) for word in words) or any(word.isdigit() for word in words)):
        return None
    loose = [
        t for t, w in zip(tokens, small, strict=True) if not t.capital and not w.isdigit() and _is_loose(w)
    ]
    if capital and loose:
        return None
    return name_of(text, 0, len(text))


def _is_loose(word: str) -> bool:
    """Whether a word written small shows that an answer is a sentence, not a name."""
    return (
        is_common(word)
        and word not in LINKS
        and word not in ARTICLES
        and word not in TITLES
        and word not in KINDS
    )

"""What the bracket of a claim, or of a vote, says: one name, or none."""

import re

from reward.claims.names import lexicon
from reward.claims.names.lexicon import fold, is_common, words
from reward.claims.names.model import Name, name_of, tokens_of

_LONGEST = 200  # characters
_MOST_WORDS = 12
_REMARK = re.compile(r"\s*\([^()]*\)\s*\.?$")
_ENDS = " \t\n.,;:!?\"'\u201c\u201d\u2018\u2019*_`[]()"
_QUOTED = re.compile(r"^[\"'\u201c\u2018].*[\"'\u201d\u2019]$")
_SEVERAL = re.compile(r"\s+(?:and|or)\s+|\s*[;/]\s*", re.IGNORECASE)
_NOTHING = words("no_answers") | lexicon.LINKS
_OF_DATES = lexicon.CALENDAR | lexicon.LINKS
_SMALL_INSIDE = lexicon.LINKS | lexicon.ARTICLES | lexicon.TITLES | lexicon.KINDS | {"upon", "am", "sur"}
_AFTER_COMMA = words("after_comma")
_FULL_STATES = frozenset(" ".join(full) for full in lexicon.STATES.values())


def read_name(answer: str) -> Name | None:
    """The one name that an answer gives; None for several names, a sentence, a number or "yes"."""
    if len(answer) > _LONGEST:
        return None
    quoted = bool(_QUOTED.match(answer.strip()))
    text = _REMARK.sub("", answer.strip()).strip(_ENDS)
    body, comma, tail = text.partition(", ")
    if comma and len(tokens_of(text)) == 1:
        body, tail = text, ""  # "Washington, D.C."
    place = _place(tail)
    if place is None and quoted:
        body, place = text, ()  # "Eat, Pray, Love"
    if place is None or (not quoted and _is_several(body)):
        return None
    member = body.removesuffix(" family")
    name = _whole(member)
    if name is None:
        return None
    family = name.family or (len(name.tokens) == 1 and member != body)
    return name._replace(start=0, end=len(answer), place=place, family=family)


def read_inverted(answer: str, asked: Name) -> Name | None:
    """The asked name with its surname first, "Mahfouz, Naguib"; None for anything else, such as two names."""
    surname, comma, given = answer.strip().strip(_ENDS).partition(", ")
    whole = f"{given} {surname}"
    if not comma or len(whole) > _LONGEST or not given[:1].isupper() or not surname[:1].isupper():
        return None
    name = name_of(whole, 0, len(whole))
    return name._replace(start=0, end=len(answer)) if name.tokens == asked.tokens else None


def _place(tail: str) -> tuple[str, ...] | None:
    """What a comma adds to a name: a country or state; () for nothing and "Jr."; None for anything else."""
    words = tuple(token.word for token in tokens_of(tail))
    if all(word in _AFTER_COMMA for word in words):
        return ()
    words = tuple(word for word in words if word not in lexicon.ARTICLES)
    if len(words) == 1 and words[0].lower() in lexicon.STATES:
        return lexicon.STATES[words[0].lower()]
    if " ".join(words) in _FULL_STATES or (len(words) <= 2 and words and words[-1] in lexicon.COUNTRIES):
        return words
    return None


def _is_several(text: str) -> bool:
    """Whether a text lists names; "War and Peace" and "Food and Drug Administration" do not."""
    sides = _SEVERAL.split(text)
    if len(sides) < 2 or len(tokens_of(text)) == 1:
        return False
    words = [[token.word for token in tokens_of(side)] for side in sides]
    if any(not side for side in words):
        return False
    return words[-1][-1] not in lexicon.KINDS and not any(all(map(is_common, side)) for side in words)


def _whole(text: str) -> Name | None:
    tokens = tokens_of(text)
    words = [token.word for token in tokens]
    small = [fold(text[token.start : token.end]) for token in tokens]
    if not words or len(words) > _MOST_WORDS or _NOTHING.issuperset(small):
        return None
    if all(word in _OF_DATES or word.isdigit() for word in small):
        return None
    if not any(c.isalpha() for word in words for c in word):
        return None
    if any(token.capital for token in tokens):  # a common word that is written small makes it a sentence
        # Hyphens join what else would be a sentence: "Newcastle-under-Lyme".
        inside = (
            low
            for token, low in zip(tokens, small, strict=True)
            if not token.capital and text[token.start - 1 : token.start] != "-"
        )
        is_name = not any(is_common(low) and low not in _SMALL_INSIDE for low in inside)
    else:
        is_name = not all(map(is_common, words)) and not any(map(str.isdigit, words))
    return name_of(text, 0, len(text)) if is_name else None

"""Numbers that a response works out from two of its documents: "4,500 more", "twice as many".

No document holds them. Such a number is supported if its sentence says that it is a difference, a ratio or a
sum (`relations`), if two numbers of one document give it, and if the response shows which two, by one of:

1. It states both.
2. It states one, and the other is in the same sentence of the document, or in one that shares words with it.
3. One sentence of the document, or two that follow each other, hold just these two of their sort, and share
   words or a name with the response; or all of the document does, and the sentence of each shares a word.
4. It names whom, or which year, each of the two is of.

It must have the direction right, too: what is "4,500 more" at 84,000 was 79,500 before. `_own` tells which of
the two it speaks of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import combinations, islice, permutations
from typing import NamedTuple

from reward.claims.names import find_names
from reward.claims.names.lexicon import fold, stem
from reward.claims.numbers.cells_apart import cells_apart
from reward.claims.numbers.clock import MINUTES_A_DAY
from reward.claims.numbers.dates import looks_like_year
from reward.claims.numbers.digits import EXACT
from reward.claims.numbers.equality import conversion
from reward.claims.numbers.index import NumberIndex
from reward.claims.numbers.lookup import NumberLookup
from reward.claims.numbers.model import Form, Kind, Number
from reward.claims.numbers.relations import Relation, is_ratio, relation_of
from reward.claims.numbers.things import Thing, may_be_one, thing_behind
from reward.claims.numbers.vocabulary import TABLES
from reward.claims.tables import tables_of
from reward.claims.text import content_words, lowered, sentence_span, words_in

_MOST_OPERANDS = 40  # numbers of a document that are tried
_MOST_DOCUMENTS = 32
_FEWEST_SHARED = 2  # words that a response shares with a part of a document
_CLOSE = Decimal("0.025")  # how far a ratio may be from the one that is written
_NEAR = Decimal("0.15")  # and what is written with "nearly" or "over" from what it is
_FIRST_YEAR = 1000
_ALIKE = 5  # letters that two words of one family share: "automation" and "automated"
_WHEN = (Kind.YEAR, Kind.DATE, Kind.TIME)
_NEVER = (Kind.PERCENT, Kind.ORDINAL, Kind.IDENTIFIER, Kind.RATIO, Kind.PERIOD, Kind.WEEKDAY)
_YEARS = "years"
_BARE = (Kind.COUNT, "")
_LONG = ("day", "week", "month", "year")  # a sentence with one of these counts other things, too
_WITH_UNITS = (Kind.MONEY, Kind.QUANTITY, Kind.DURATION)
_MINUTES = {"second": Decimal(60), "minute": Decimal(1), "hour": EXACT.divide(Decimal(1), Decimal(60))}
_YEAR = re.compile(r"\b(?:1[0-9]|20)[0-9]{2}\b")
_REMAIN = re.compile(
    r"(?: [a-z]+){0,2}? (?:(?:were|was|are|is|did|do|does|have|has|had|could|would) not|n['\u2019]t"
    r"|remain(?:s|ed|ing)?|left|outstanding|missing|others)\b|n['\u2019]t\b"
)
_COMMA = re.compile(r",(?!\d)")
_CONTRAST = re.compile(r"[;:]|,? (?:while|whereas|but|aber|mais|pero|mientras) ")
_JOINT = re.compile(rf"{_CONTRAST.pattern}|,? (?:and|und|et|y) ")
_OLD = re.compile(
    r"\b(?:from|than|von|als|que|di|instead of) [^,;]{1,60}?(?= to | auf | a | à |[,;]|\.$|$)", re.IGNORECASE
)
_BACK = re.compile(
    r"\b(?:from|against|compared with|compared to|versus|after|than|von|nach|gegenüber|contre|frente a)"
    r"(?: [^\W\d_]+){0,3} $",
    re.IGNORECASE,
)
_RANKS = frozenset(TABLES["relations"]["ranks"].split())  # and other words that tell like things apart
_LISTS = re.compile(r"[^.;:()!?\d]{0,60}?(?:: | ?\()")
_FROM_TO = re.compile(
    r"\bfrom ([^ ]*\d[^ ]*(?: (?:thousand|million|billion))?)(?: [a-z]+){0,2} to ([^ ]*\d[^ ]*)"
)
_TIED = re.compile(
    r"[ ,;:(]*(?:(?:or|i\.e\.|that is|an?|increase|rise|gain|growth|drop|decline|fall|decrease|loss|of|by"
    r"|about|around|roughly|some|nearly|almost|equivalent to)[ ,]*)*[ (]*"
)  # between a percentage and what it is the change of
_RISING, _FALLING = (frozenset(TABLES["relations"][name].split()) for name in ("rose", "fell"))
_BETWEEN = re.compile(r"\b(?:between|from) (?:1[0-9]|20)[0-9]{2} (?:and|to) ")
_SECOND_AS = re.compile(r" as [^.;]{1,60}? as ")
_AS_MANY = re.compile(
    r" as (?:many|much) ([a-z]{3,})\b(?! as (?!the |an? |in |at |on |it |they |before )[a-z]+)"
)
_STOP = frozenset((*TABLES["stop_words"]["en"].split(), "one", "ones"))


class _Operand(NamedTuple):
    """A number of the documents that a response may have worked with, and where it is."""

    value: Decimal  # in the unit of what is worked out
    number: Number
    text: str
    sentence: tuple[int, int]
    stated_at: int  # where the sentence of the response states it; -1 if it does not
    unit: tuple[str, str]  # what it must share with the other one
    part: str = ""  # of its sentence, what is of it alone

    def beside(self, other: _Operand) -> str:
        """What is said of it and not of another one: a part of its sentence, or all of it."""
        is_alone = other.sentence != self.sentence and not _keys(self.part)
        return self.text[slice(*self.sentence)] if is_alone else self.part

    @property
    def is_stated(self) -> bool:
        """Whether the response states it."""
        return self.stated_at >= 0


class _Said(NamedTuple):
    """The sentence of a response that holds a number."""

    text: str
    low: int  # where it begins
    number: Number
    relation: Relation
    old_at: tuple[int, int]  # what is compared with, in the response: behind "from", "than", "as"

    @property
    def words(self) -> frozenset[str]:
        """What it says."""
        return _words(self.text)

    @property
    def keys(self) -> frozenset[str]:
        """Its names and years."""
        return _keys(self.text)

    @property
    def old(self) -> frozenset[str]:
        """The words of what is compared with."""
        return _words(self.text[slice(*(place - self.low for place in self.old_at))])


def works_out(number: Number, response: str, numbers: Sequence[Number], lookup: NumberLookup) -> str:
    """How a number follows from two of the documents ("84,000 - 79,500"); empty if it does not.

    Args:
        number: A number of a response that no document holds.
        response: What is audited.
        numbers: All numbers of the response, its dates too.
        lookup: The documents.
    """
    low, high = sentence_span(response, number.start, number.end)
    around = [one for whole in numbers for one in whole.atoms if low <= one.start < high]
    around = [one for one in around if not number.start <= one.start < number.end]
    if parts := _listed_parts(number, response, high, around, lookup):
        return f"the sum of what it lists: {parts}"
    if rest := _rest(number, response, around, lookup) or _change(
        number, response, low, high, around, lookup
    ):
        return f"worked out from the documents: {rest}"
    relation = relation_of(number, response, low, high)
    is_limit = number.is_bound and relation.sign == 0 and not relation.is_sum  # "for no more than 20 minutes"
    if relation.is_none or is_limit or number.kind in _NEVER:
        return ""
    if not relation.is_ratio and lookup.otherwise(number):
        return ""
    first, last = _part(response, number, low, high, _JOINT)
    beside = [one for one in around if first <= one.start < last]
    said = _Said(response[low:high], low, number, relation, _old_at(number, relation, response, low, high))
    thing, can_be_bare = _thing(number, response), number.kind is Kind.COUNT or relation.is_ratio
    for document, index in lookup.texts[:_MOST_DOCUMENTS]:
        operands = _operands(number, thing, document.text, index, beside)
        if not any(one.is_stated for one in operands):
            operands = _operands(number, thing, document.text, index, around)
        stated = {(one.unit, one.value) for one in operands if one.is_stated}
        for one, other in combinations(operands, 2):
            if one.unit != other.unit or (one.unit == _BARE and not can_be_bare):
                continue
            if one.is_stated + other.is_stated < min(2, sum(unit == one.unit for unit, _ in stated)):
                continue  # its clause says with which it works
            how = _how(one, other, said)
            if how and _are_shown(one, other, said, operands):
                return _written(one, other, how)
    apart = cells_apart(number, relation, response, (low, high), numbers, lookup)
    return f"worked out from the documents: {apart}" if apart else ""


def _listed_parts(
    number: Number, response: str, high: int, around: Sequence[Number], lookup: NumberLookup
) -> str:
    """The numbers behind a colon or in parentheses whose sum a number is: "eight (six plants and two shops)".

    At least two of its kind are there, counts with what they count, and one sentence of a document has all.
    """
    opening = _LISTS.match(response, number.end, high)
    if opening is None or number.kind not in (Kind.COUNT, Kind.MONEY) or number.form is not Form.EXACT:
        return ""
    closed = response.find(")", opening.end()) if opening[0].endswith("(") else -1
    end = closed if closed >= 0 else high
    parts = [one for one in around if opening.end() <= one.start < end and one.kind is number.kind]
    if len(parts) < 2 or sum(one.value for one in parts) != number.value:
        return ""
    if any(one.unit != number.unit or (not one.unit and not thing_behind(one, response)) for one in parts):
        return ""
    return " + ".join(response[one.start : one.end] for one in parts) if _are_beside(parts, lookup) else ""


def _rest(number: Number, response: str, around: Sequence[Number], lookup: NumberLookup) -> str:
    """The difference of a whole and a part in the same sentence: "414 of 450 are new, 36 are not"."""
    if number.kind is not Kind.COUNT or not _REMAIN.match(response, number.end):
        return ""
    for part, whole in permutations(around, 2):
        is_rest = part.kind is whole.kind is Kind.COUNT and whole.value - part.value == number.value
        if is_rest and _are_beside((part, whole), lookup):
            return f"{whole.value} - {part.value}"
    return ""


def _change(
    number: Number, response: str, low: int, high: int, around: Sequence[Number], lookup: NumberLookup
) -> str:
    """The two numbers of a sentence between which a percentage is the change: "by 12%, from 50 to 56"."""
    move = _FROM_TO.search(response, low, high) if number.kind is Kind.PERCENT else None
    if move is None or number.form is not Form.EXACT:
        return ""
    between = (number.end, move.start()) if number.end <= move.start() else (move.end(), number.start)
    said = words_in(lowered(response[low:high])).all
    sign = (not said.isdisjoint(_RISING)) - (not said.isdisjoint(_FALLING))
    ends = ([one for one in around if move.start(end) <= one.start <= move.end(end)] for end in (1, 2))
    old, new = (one[0] if one else None for one in ends)
    if not sign or not _TIED.fullmatch(response, *between) or old is None or new is None:
        return ""
    if old.kind is not new.kind or looks_like_year(old) or looks_like_year(new) or not old.value > 0:
        return ""
    percent = EXACT.divide(new.value - old.value, old.value) * 100
    slack = max(number.step, Decimal(1) if number.approximate else Decimal(0)) / 2
    is_right = percent * sign > 0 and abs(abs(percent) - number.value) <= slack
    return f"from {old.value} to {new.value}" if is_right and _are_beside((old, new), lookup) else ""


def _are_beside(numbers: Sequence[Number], lookup: NumberLookup) -> bool:
    """Whether one sentence of a document has all of some numbers, each at a place of its own.

    A row of a table is no sentence: what its numbers are of is in the heads.
    """
    first, *rest = (lookup.places(number) for number in numbers)
    for place in first:
        text, found = place.document.text, {place.mention.start}
        low, high = sentence_span(text, place.mention.start, place.mention.end)
        for places in rest:
            starts = (one.mention.start for one in places if one.document is place.document)
            found.update(islice((one for one in starts if low <= one < high and one not in found), 1))
        if len(found) == len(numbers) and not any(table.at(place.mention.start) for table in tables_of(text)):
            return True
    return False


def _old_at(number: Number, relation: Relation, response: str, low: int, high: int) -> tuple[int, int]:
    """Where a sentence says what a number compares with; an empty span if it does not."""
    if relation.is_ratio and not relation.is_move:
        second = _SECOND_AS.match(response, number.end, high)
        return (second.end() if second else number.end), high
    olds = (match.span() for match in _OLD.finditer(response, low, high))
    return next((span for span in olds if not number.start <= span[0] < number.end), (low, low))


def _how(one: _Operand, other: _Operand, said: _Said) -> str:
    """The sign of the sum that gives a number of two others; empty without one."""
    number, relation = said.number, said.relation
    if relation.is_sum and _is_about(number, one.value + other.value):
        return "+"
    if relation.sign is None:
        return ""
    values = _ratios(one.value, other.value) if relation.is_ratio else [abs(one.value - other.value)]
    begin, end = sorted((one, other), key=lambda operand: operand.number.start)
    if (
        one.unit[0] is Kind.TIME
        and relation.sign == 0
        and number.unit in _MINUTES
        and begin.value > end.value
    ):
        values = [round(_MINUTES[number.unit] * MINUTES_A_DAY, 2) - values[0]]  # from 22:00 to 02:00
    if not any(_is_about(number, value) for value in values):
        return ""
    if relation.sign:
        own = _own(one, other, said)
        sign = relation.sign * (relation.of_times if one.unit[0] is Kind.TIME else 1)
        if own is None or (own.value == max(one.value, other.value)) != (sign > 0):
            return ""
    return "/" if relation.is_ratio else "-"


def _own(one: _Operand, other: _Operand, said: _Said) -> _Operand | None:
    """The one of two numbers that a response speaks of, or that is the later one; None if nothing tells."""
    if one.is_stated or other.is_stated:
        are_old = [said.old_at[0] <= operand.stated_at < said.old_at[1] for operand in (one, other)]
        if one.is_stated != other.is_stated:
            return one if one.is_stated != any(are_old) else other
        if are_old[0] != are_old[1]:
            return other if are_old[0] else one
        return min(one, other, key=lambda operand: operand.stated_at)
    parts = [one.beside(other), other.beside(one)]
    if said.relation.is_move:
        return _later(one, other, parts)
    mine, its = map(_words, parts)
    mine, its = mine - its, its - mine
    years = [{word for word in words & said.words if _YEAR.fullmatch(word)} for words in (mine, its)]
    if all(years) and _BETWEEN.search(said.text):
        return one if max(years[0]) > max(years[1]) else other
    if bool(years[0]) != bool(years[1]):
        own = one if years[0] else other
    else:
        names = [_keys(text) & said.keys for text in parts]
        if names[0] - names[1] and names[1] - names[0]:
            mine, its = names[0] - names[1], names[1] - names[0]
        places = [_first_place(words, said.text) for words in (mine, its)]
        if min(places) == len(said.text):
            return _later(one, other, parts)
        own = one if places[0] < places[1] else other
    ours, theirs = (mine, its) if own is one else (its, mine)
    if not ours.isdisjoint(said.old) and theirs.isdisjoint(said.old):
        return other if own is one else one
    return own


def _later(one: _Operand, other: _Operand, parts: Sequence[str]) -> _Operand | None:
    """The later one of two numbers."""
    years = [set(_YEAR.findall(text)) for text in parts]
    if len(years[0]) == len(years[1]) == 1 and years[0] != years[1]:
        return one if max(years[0]) > max(years[1]) else other
    first, second = sorted((one, other), key=lambda operand: operand.number.start)
    between = first.text[first.number.end : second.number.start]
    return first if _BACK.search(between) else second


def _first_place(words: frozenset[str], text: str) -> int:
    """Where a text has the first of some words, or one of its family; its length if it has none."""
    heads = set(map(_head, words))
    places = (match.start() for match in re.finditer(r"\w{3,}", text) if _head(match[0]) in heads)
    return next(places, len(text))


def _head(word: str) -> str:
    return stem(fold(word))[:_ALIKE]


def _thing(number: Number, response: str) -> Thing | None:
    """What is counted: cars for "60 more cars" and for "twice as many cars"."""
    if many := _AS_MANY.match(response, number.end):
        return Thing((many[1],))
    return thing_behind(number, response) if number.kind is Kind.COUNT else None


def _operands(
    number: Number, thing: Thing | None, document: str, index: NumberIndex, beside: Sequence[Number]
) -> list[_Operand]:
    """The numbers of a document that can be worked with, those first that the response states."""
    found: list[_Operand] = []
    # "2018/19" is of 2018, and "7 minutes 41 seconds" is one length.
    kinds = (Kind.YEAR, Kind.DURATION)
    wholes = (one for one in index.numbers if one.kind in kinds and one.form is not Form.RANGE)
    skipped = {part.start for one in wholes for part in one.parts[one.kind is Kind.YEAR :]}
    for one in index.numbers:
        if one.form is Form.RANGE or (one.start in skipped and not one.parts):
            continue
        value = _in_unit(one, number)
        if value is None or (thing is not None and _counts_others(one, document, thing)):
            continue
        unit = (_YEARS, "") if one.kind in (Kind.YEAR, Kind.DATE) else (one.kind, one.dimension or one.unit)
        sentence = sentence_span(document, one.start, one.end)
        found.append(_Operand(value, one, document, sentence, _stated_at(beside, one), unit))
        if len(found) == _MOST_OPERANDS:
            break
    known = list(_with_units(found))
    return sorted((_with_part(one, known) for one in known), key=lambda operand: not operand.is_stated)


def _with_units(operands: Sequence[_Operand]) -> Iterator[_Operand]:
    """Operands of which a bare one has the unit that others of its sentence have: "412 million euros, up from
    367 million".
    """
    units = {
        one.sentence: one.unit
        for one in operands
        if one.unit[0] in _WITH_UNITS and one.number.unit not in _LONG
    }
    for one in operands:
        number = one.number
        is_bare = one.unit == _BARE and thing_behind(number, one.text) is None
        is_bare = is_bare and not one.text.startswith(" of", number.end)
        yield one._replace(unit=units.get(one.sentence, _BARE)) if is_bare else one


def _with_part(one: _Operand, operands: Sequence[_Operand]) -> _Operand:
    """An operand with the part of its sentence that holds no other one of its unit, as joining words tell."""
    low, high = one.sentence
    others = [
        o.number.start for o in operands if o.sentence == one.sentence and o.unit == one.unit and o is not one
    ]
    for joint in (_CONTRAST, _JOINT, _COMMA):
        if any(low <= start < high for start in others):
            low, high = _part(one.text, one.number, low, high, joint)
    return one._replace(part=one.text[low:high])


def _counts_others(number: Number, text: str, thing: Thing) -> bool:
    found = thing_behind(number, text)
    return found is not None and not found.is_like(thing) and not may_be_one(found, thing)


def _part(text: str, number: Number, low: int, high: int, joint: re.Pattern[str]) -> tuple[int, int]:
    """The part of a text that holds a number, between what joins parts."""
    for match in joint.finditer(text, low, high):
        if match.end() <= number.start:
            low = match.end()
        elif match.start() >= number.end:
            return low, match.start()
    return low, high


def _keys(text: str) -> frozenset[str]:
    names = frozenset(word for name in find_names(text) for word in name.tokens)
    return names | frozenset(_YEAR.findall(text))


def _words(text: str) -> frozenset[str]:
    words = content_words(text) - _STOP
    return frozenset(stem(word) for word in words if not word.isdigit() or _YEAR.fullmatch(word))


def _in_unit(one: Number, number: Number) -> Decimal | None:
    """A number of a document in the unit of the one that is worked out; None if it is of another kind."""
    if one.kind in _NEVER and number.kind is not Kind.PERCENTAGE_POINT:
        return None
    if is_ratio(number):
        return None if one.kind in _WHEN or one.dimension == "time" else one.value
    if number.kind is Kind.DURATION:
        if number.unit == "year" and one.kind in (Kind.YEAR, Kind.DATE):
            return one.value if one.value >= _FIRST_YEAR else None
        if one.kind is Kind.TIME and number.unit in _MINUTES:
            return round(one.value * _MINUTES[number.unit], 2)
    if number.kind is Kind.PERCENTAGE_POINT:
        return one.value if one.kind is Kind.PERCENT else None
    if number.kind is Kind.COUNT:
        return None if one.kind in _WHEN else one.value
    if one.kind is Kind.COUNT:
        return one.value  # it may have the unit of another one
    if one.kind is not number.kind:
        return None
    if number.dimension and one.dimension == number.dimension:
        if one.unit == number.unit:
            return one.value
        factor, offset = conversion(one.unit, number.unit)
        return None if offset else EXACT.multiply(one.value, Decimal(factor.numerator) / factor.denominator)
    return one.value if one.unit == number.unit and one.dimension == number.dimension else None


def _stated_at(numbers: Iterable[Number], operand: Number) -> int:
    """Where a response states a number of a document itself; -1 if it does not."""
    same = (
        one.start
        for one in numbers
        if one.value == operand.value and (one.unit == operand.unit or one.kind is Kind.COUNT)
    )
    return next(same, -1)


def _are_shown(one: _Operand, other: _Operand, said: _Said, operands: Sequence[_Operand]) -> bool:
    """Whether a response shows that it works with two numbers of a document."""
    if one.is_stated and other.is_stated:
        return True
    if one.is_stated or other.is_stated:
        rest = other if one.is_stated else one
        return one.sentence == other.sentence or _shares(rest.text, rest.sentence, said)
    parts = [one.beside(other), other.beside(one)]
    mine, its = (_keys(part) & said.keys for part in parts)
    if mine - its and its - mine:
        return True
    values = {o.value for o in operands if o.unit == one.unit}
    if values == {one.value, other.value} and one.value != other.value:
        sentences = (_words(one.text[slice(*place)]) for place in (one.sentence, other.sentence))
        if not any(map(said.words.isdisjoint, sentences)):
            return True
    first, second = sorted((one.sentence, other.sentence))
    if first != second and one.text[first[1] : second[0]].strip():
        return False
    span = (first[0], second[1])
    clause = _part(one.text, one.number, *span, _CONTRAST)
    if first == second and clause[0] <= other.number.start < clause[1]:
        span = clause
    others = [o for o in operands if o.unit == one.unit and o is not one and o is not other]
    if any(span[0] <= o.number.start < span[1] for o in others):
        return False
    # "Her third restaurant" is neither of the first two, and "Duarte" in the sentence before has a time, too.
    marks = _RANKS & said.words
    if one.unit[0] != _YEARS:
        marks |= frozenset(key for key in said.keys if not key.isdigit())
    marks -= _words(one.text[slice(*span)]) | _keys(one.text[slice(*span)])
    return not any(marks & (_words(o.part) | _keys(o.part)) for o in others) and _shares(one.text, span, said)


def _shares(text: str, span: tuple[int, int], said: _Said) -> bool:
    part = text[slice(*span)]
    return len(_words(part) & said.words) >= _FEWEST_SHARED or not _keys(part).isdisjoint(said.keys)


def _ratios(a: Decimal, b: Decimal) -> list[Decimal]:
    return [EXACT.divide(a, b), EXACT.divide(b, a)] if a and b else []


def _is_about(number: Number, value: Decimal) -> bool:
    """Whether a value that is worked out is the written one."""
    written = number.value
    if number.form in (Form.MORE_THAN, Form.AT_LEAST):
        return written <= value <= written * (1 + _NEAR)
    if number.form in (Form.LESS_THAN, Form.AT_MOST) or number.is_short:
        return written * (1 - _NEAR) <= value <= written
    if number.approximate:
        return abs(value - written) <= written * _NEAR
    if is_ratio(number):
        return abs(value - written) <= written * _CLOSE
    return value == written


def _written(one: _Operand, other: _Operand, sign: str) -> str:
    pair = sorted((one, other), key=lambda operand: operand.value, reverse=True)
    first, second = (operand.text[operand.number.start : operand.number.end] for operand in pair)
    return f"worked out from the documents: {first} {sign} {second}"

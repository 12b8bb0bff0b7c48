"""Judges an answer by what its row asks for, by the audit's own kinds of claims: by meaning, not by letters.

    what the answer says                                             right  faithful
    every asked fact, in any order that names its subjects           yes    yes
    the same, less exactly ("in 1883" for 10 July 1883)              no     yes
    some of the asked facts and nothing else                         no     yes
    the asked facts, and more that the subject's document holds      no     yes
    another value for an asked fact, or one that no document holds   no     no
    a day of birth as that of a death, or the other way round        no     no
    an abstention, where the documents say it / where they do not    no/yes no/yes

Names that the query gives are no values of an answer. Other names that the subject's document holds ("a
British film") change nothing where the query asks for no name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.worlds.world import ALL_KINDS, Asked, Judgement, StatedValue, WorldRow
from reward.claims import kinds_for, targets_of
from reward.claims.kind import ClaimKind, Target
from reward.claims.numbers.dates import looks_like_year
from reward.claims.numbers.trends import Trend
from reward.judging.unjudged import abstains

_CROSSED = (("date of birth", Trend.DEATH), ("date of death", Trend.BIRTH))


@dataclass(frozen=True)
class _Match:
    """An asked fact and where an answer states it."""

    place: int  # among the values
    asked: Asked
    is_exact: bool


def judge(row: WorldRow, response: str) -> Judgement:
    """Judges one answer; reads nothing but the row and the text."""
    kinds = kinds_for(ALL_KINDS, row.query, response)
    values = [one for one in targets_of(response, kinds) if _is_own(one, response)]
    abstained = not values and abstains(response)
    matches = _match(_in_order_of(row.asked, response), values, kinds) if row.is_answerable else []
    if row.is_answerable:
        right, faithful = _is_right(row, values, matches)
    else:
        right = faithful = abstained
    stated = [match.asked for match in matches]
    return Judgement(
        right=right,
        faithful=faithful,
        stated=tuple(one in stated for one in row.asked),
        abstained=abstained,
        answerable=row.is_answerable,
        values=_marked(row, values, matches),
    )


def _is_right(row: WorldRow, values: Sequence[Target], matches: Sequence[_Match]) -> tuple[bool, bool]:
    """Whether an answer is right, and whether it is faithful, where the documents say what is asked."""
    places = {match.place for match in matches}
    beside = [one for place, one in enumerate(values) if place not in places]
    is_whole = len(matches) == len(row.asked)
    holds_beside = all(_is_held(one, row) for one in beside)
    right = is_whole and all(match.is_exact for match in matches) and holds_beside
    right = right and not any(_counts(one, row.asked) for one in beside)
    return right, bool(matches) and (not beside or (is_whole and holds_beside))


def _marked(row: WorldRow, values: Sequence[Target], matches: Sequence[_Match]) -> tuple[StatedValue, ...]:
    """What an answer claims; beside a wrong value is what is missing of its kind."""
    places = {match.place for match in matches}
    missing = [one for one in row.asked if one not in [match.asked for match in matches]]
    marked = []
    for place, one in enumerate(values):
        is_true = place in places or (not missing and _is_held(one, row))
        truth = next((asked for asked in missing if asked.kind == one.kind.name), None)
        if truth is not None and not is_true:
            missing.remove(truth)
        said = None if is_true or truth is None else truth.value
        marked.append(StatedValue(start=one.start, end=one.end, is_true=is_true, truth=said))
    return tuple(marked)


def _is_own(target: Target, response: str) -> bool:
    """Whether a value is the answer's own, and no name that the query gives."""
    return target.kind.name != "name" or target.kind.is_looked_up(response, target.mention)


def _counts(target: Target, asked: Sequence[Asked]) -> bool:
    """Whether a value beside the asked ones makes an answer more than what was asked for."""
    return target.kind.name != "name" or any(one.kind == "name" for one in asked)


def _is_held(target: Target, row: WorldRow) -> bool:
    """Whether a value is in a document that says something that was asked for."""
    homes = {one.document for one in row.asked}
    documents = [document for document in row.query.documents if document.id in homes]
    return target.kind.lookup(documents).find(target.mention) is not None


def _in_order_of(asked: Sequence[Asked], response: str) -> list[Asked]:
    """The asked facts in the order in which the answer names their subjects, if it names all of them."""
    found = [re.search(rf"(?<!\w){re.escape(one.subject)}(?!\w)", response) for one in asked]
    if None in found:
        return list(asked)
    places = {one.question: match.start() for one, match in zip(asked, found, strict=True) if match}
    return sorted(asked, key=lambda one: places[one.question])


def _match(asked: Sequence[Asked], values: Sequence[Target], kinds: dict[str, ClaimKind]) -> list[_Match]:
    """The first value for each asked fact behind the one of the fact before it."""
    matches: list[_Match] = []
    begin = 0
    for one in asked:
        places = range(begin, len(values))
        if found := next(filter(None, (_compare(one, i, values[i], kinds) for i in places)), None):
            matches.append(found)
            begin = found.place + 1
    return matches


def _compare(asked: Asked, place: int, value: Target, kinds: dict[str, ClaimKind]) -> _Match | None:
    assert asked.value is not None
    kind = kinds[asked.kind]
    truth = kind.read(asked.value, of_documents=True)
    # A number may say a year without a word for it: "The founding of the band is 1974."
    is_year = asked.kind == "date" and value.kind.name == "number" and looks_like_year(value.mention)
    if truth is None or not (value.kind.name == asked.kind or is_year):
        return None
    if (asked.relation, value.mention.trend if asked.kind == "date" else "") in _CROSSED:
        return None
    truth = kind.taken_as(truth, value.mention)
    if not kind.bears_out(truth, value.mention):
        return None
    return _Match(place, asked, is_exact=kind.equal(truth, value.mention))

"""The figures of one kind of fact: what the answers state of it, and how the Checker votes on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from pipeline.demo.intervals import Estimate, ratio
from pipeline.demo.votes import CheckedQuestion
from pipeline.worlds.world import Judgement, WorldRow
from reward.types import Record

_Count = Literal["num_asked", "num_stated", "num_votes", "num_votes_right"]


class KindCount(Record):
    """The asked items of one kind in one row."""

    num_asked: int = Field(description="Items that the documents answer.")
    num_stated: int = Field(description="Of these, items that the answer states rightly.")
    num_votes: int
    num_votes_right: int


def count_kinds(
    row: WorldRow, judgement: Judgement, checked: Sequence[CheckedQuestion], num_votes: int
) -> dict[str, KindCount]:
    """Counts what a row asks for by kind; what no document answers is a kind of its own."""
    counts = {}
    for kind in dict.fromkeys(one.kind for one in checked):
        places = [place for place, one in enumerate(checked) if one.kind == kind]
        known = [place for place in places if row.asked[place].value is not None]
        counts[kind] = KindCount(
            num_asked=len(known),
            num_stated=sum(judgement.stated[place] for place in known),
            num_votes=len(places) * num_votes,
            num_votes_right=sum(checked[place].num_right for place in places),
        )
    return counts


def shares_by_kind(
    counts: Sequence[Mapping[str, KindCount]], part: _Count, whole: _Count
) -> dict[str, Estimate]:
    """A ratio of two counts for each kind; rows that do not ask for a kind are left out of its ratio."""
    found = {}
    for kind in sorted({kind for one in counts for kind in one}):
        asked = [one[kind] for one in counts if kind in one]
        share = ratio([getattr(one, part) for one in asked], [getattr(one, whole) for one in asked])
        if share is not None:
            found[kind] = share
    return found

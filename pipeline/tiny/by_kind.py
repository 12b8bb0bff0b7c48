"""The figures of one kind of fact: what the answers state of it, and how the Checker votes on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field

from pipeline.tiny.facts import read_facts
from pipeline.tiny.intervals import Estimate, ratio
from pipeline.tiny.votes import CheckedQuestion
from pipeline.tiny.world import World
from reward.types import Record

_Count = Literal["num_asked", "num_stated", "num_votes", "num_votes_right"]


class KindCount(Record):
    """The asked items of one kind in one world."""

    num_asked: int = Field(description="Items that the documents answer.")
    num_stated: int = Field(description="Of these, items that the answer states rightly.")
    num_votes: int
    num_votes_right: int


def count_kinds(
    world: World, response: str, checked: Sequence[CheckedQuestion], num_voters: int
) -> dict[str, KindCount]:
    """Counts the asked items of a world by kind; those that no document answers are a kind of their own."""
    stated = set(read_facts(response))
    counts = {}
    for kind in dict.fromkeys(one.kind for one in checked):
        pairs = zip(world.asked, checked, strict=True)
        votes = [(fact, one.num_right) for fact, one in pairs if one.kind == kind]
        known = [fact for fact, _ in votes if fact.key in world.truth]
        counts[kind] = KindCount(
            num_asked=len(known),
            num_stated=sum(fact in stated for fact in known),
            num_votes=len(votes) * num_voters,
            num_votes_right=sum(num_right for _, num_right in votes),
        )
    return counts


def shares_by_kind(
    counts: Sequence[Mapping[str, KindCount]], part: _Count, whole: _Count
) -> dict[str, Estimate]:
    """A ratio of two counts for each kind; worlds that do not ask for a kind are left out of its ratio."""
    found = {}
    for kind in sorted({kind for one in counts for kind in one}):
        asked = [one[kind] for one in counts if kind in one]
        share = ratio([getattr(one, part) for one in asked], [getattr(one, whole) for one in asked])
        if share is not None:
            found[kind] = share
    return found

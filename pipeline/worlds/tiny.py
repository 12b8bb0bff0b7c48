"""The made-up world of `pipeline/tiny` behind the same interface as real text."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pipeline.settings.worlds import PLAIN_WORLD, WorldSettings
from pipeline.tiny.facts import Fact, FoundValue, find_values, read_facts, read_questions
from pipeline.tiny.truth import oracle, true_answer, truth_of
from pipeline.tiny.world import World, sample_worlds
from pipeline.worlds.world import Asked, Judgement, Split, StatedValue, WorldRow
from reward.config import Settings


class TinyDraw(Settings):
    """Which rows are drawn; equal draws give equal rows."""

    num_rows: int = Field(default=1000, ge=1)
    seed: int = Field(default=0, ge=0)
    settings: WorldSettings = PLAIN_WORLD


class TinyRows:
    """Rows drawn from the made-up world (`pipeline.worlds.world.World`)."""

    name = "tiny"

    def __init__(self, draw: TinyDraw | None = None) -> None:
        self._draw = draw or TinyDraw()

    def rows(self, split: Split) -> Sequence[WorldRow]:
        """Drawn rows; events and places of one split are in none of the other."""
        draw = self._draw
        return [_row(one) for one in sample_worlds(draw.num_rows, draw.seed, split, draw.settings)]

    def judge(self, row: WorldRow, response: str) -> Judgement:
        """What the documents, which can be read back into facts, say of an answer."""
        found = oracle(row.query, response)
        truth, read = truth_of(row.query), read_facts(response)
        keys = read_questions(row.query.query)
        stated = [any(one.key == key and one.value == truth.get(key) for one in read) for key in keys]
        return Judgement(
            right=found.right,
            faithful=found.faithful,
            stated=tuple(stated),
            abstained=found.abstained,
            answerable=found.answerable,
            values=tuple(_stated(row, value) for value in find_values(response)),
        )


def _stated(row: WorldRow, value: FoundValue) -> StatedValue:
    truth = true_answer(row.query, value.fact.question()) if value.fact else None
    is_true = value.fact is not None and truth == str(value.fact.value)
    return StatedValue(start=value.start, end=value.end, is_true=is_true, truth=truth)


def _row(world: World) -> WorldRow:
    asked = tuple(_asked(fact, world) for fact in world.asked)
    return WorldRow(query=world.query, asked=asked)


def _asked(fact: Fact, world: World) -> Asked:
    homes = (one.id for one in world.query.documents if fact.statement() in one.text)
    return Asked(
        question=fact.question(),
        subject=" ".join(fact.key[:3]),
        kind=fact.kind,
        value=str(fact.value) if world.is_answerable else None,
        relation=fact.key[3],
        document=next(homes, ""),
    )

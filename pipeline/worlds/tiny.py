"""The made-up world of `pipeline/tiny` behind the same interface as real text."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.tiny.facts import Fact
from pipeline.tiny.truth import oracle
from pipeline.tiny.world import PLAIN_WORLD, World, WorldSettings, sample_worlds
from pipeline.worlds.world import Asked, Judgement, Split, WorldRow


class TinyRows:
    """Rows drawn from the made-up world (`pipeline.worlds.world.World`)."""

    name = "tiny"

    def __init__(self, settings: WorldSettings = PLAIN_WORLD, *, num_rows: int = 1000, seed: int = 0) -> None:
        self._settings, self._num_rows, self._seed = settings, num_rows, seed

    def rows(self, split: Split) -> Sequence[WorldRow]:
        """Drawn rows; events and places of one split are in none of the other."""
        return [_row(one) for one in sample_worlds(self._num_rows, self._seed, split, self._settings)]

    def judge(self, row: WorldRow, response: str) -> Judgement:
        """What the documents, which can be read back into facts, say of an answer."""
        found = oracle(row.query, response)
        is_whole = found.coverage == 1 and found.num_values == len(row.asked)
        return Judgement(
            right=found.faithful and (is_whole or found.abstained),
            faithful=found.faithful,
            coverage=found.coverage if found.faithful else 0.0,
            abstained=found.abstained,
            answerable=found.answerable,
            num_values=found.num_values,
        )


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

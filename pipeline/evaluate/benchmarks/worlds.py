"""Worlds whose truth is known: an answer is right or wrong by rule, and no judge is asked.

There is nothing to fetch. A file says what is asked, and the same file asks the same:

    tiny    {"num_worlds": 240, "seed": 20260301}
    wiki    {"num_rows": 400, "wiki": {"kinds": ["number", "date"], "unanswerable_share": 0.2}}

`tiny` is for policies that can do nothing else: held-out worlds are drawn, and are the answer's numbers true
(`pipeline.tiny.truth`)? Its licence is Apache-2.0, as this repository's. `wiki` are held-out rows of real
text, which come with the package or from 2WikiMultihopQA's official files (Apache-2.0): does an answer state
what was asked, and nothing wrong (`pipeline.worlds.judge`, by the audit's own kinds of claims)?

The policy is asked by the compact prompt that it was trained on. A slice is how many facts are asked for. No
two worlds of `tiny` share a document, so each is a cluster; of `wiki` those about one paragraph are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError

from pipeline.evaluate.benchmark import Benchmark, Item, Prompt, PromptStyle
from pipeline.evaluate.majority import Judgement
from pipeline.settings.worlds import PLAIN_WORLD, WikiSettings, WorldSettings
from pipeline.tiny.truth import oracle
from pipeline.tiny.world import sample_worlds
from pipeline.worlds.judge import judge
from pipeline.worlds.world import Asked, WorldRow
from reward.config import Settings
from reward.offline.rows import explain

_S = TypeVar("_S", bound=Settings)


class WorldsFile(Settings):
    """Which worlds of `tiny` are drawn."""

    num_worlds: int = Field(ge=1, le=100_000)
    seed: int = Field(ge=0, description="Of no training's seed: the split is another one anyway.")
    world: WorldSettings = PLAIN_WORLD


class RowsFile(Settings):
    """Which rows of `wiki` are asked."""

    num_rows: int = Field(default=400, ge=1, le=100_000, description="The first of the held-out rows.")
    wiki: WikiSettings = WikiSettings()


class TinyWorld(Benchmark):
    """The benchmark `tiny`."""

    name, title, licence = "tiny", "Tiny worlds", "Apache-2.0"
    url = "pipeline/tiny/world.py"
    primary, scored_by = "faithful", "rule: every number of the answer is in a sentence of the documents"
    styles = (PromptStyle.PLAIN,)
    prompt_set = "compact"

    def items(self, source: Path) -> Iterator[Item]:
        """Draws the worlds; see `Benchmark.items`."""
        asked = _read(source, WorldsFile, '{"num_worlds": 240, "seed": 0}')
        for world in sample_worlds(asked.num_worlds, asked.seed, "held_out", asked.world):
            yield Item(
                id=world.query.id,
                slice=f"{len(world.asked)} asked",
                cluster=world.query.id,
                query=world.query,
                references=tuple(str(fact.value) for fact in world.asked),
            )

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement:
        """What the oracle says of an answer."""
        passed = oracle(item.query, reply).faithful
        return Judgement(passed=passed, label="faithful" if passed else "unfaithful")

    def measured(self, item: Item, prompt: str, generation: str) -> Mapping[str, float | None]:
        """The share of the asked facts that an answer states."""
        return {"coverage": oracle(item.query, generation).coverage}


class WikiWorldRows(Benchmark):
    """The benchmark `wiki`."""

    name, title, licence = "wiki", "Wikipedia facts", "Apache-2.0"
    url = "https://github.com/Alab-NII/2wikimultihop"
    primary = "right"
    scored_by = "rule: every asked fact is stated and nothing wrong beside it; or a right abstention"
    styles = (PromptStyle.PLAIN,)
    prompt_set = "compact"

    def items(self, source: Path) -> Iterator[Item]:
        """The rows, in their order; see `Benchmark.items`."""
        from pipeline.worlds.wiki.world import WikiWorld

        asked = _read(source, RowsFile, '{"num_rows": 400}')
        for row in WikiWorld(asked.wiki).rows("held_out")[: asked.num_rows]:
            yield Item(
                id=row.query.id,
                slice=f"{len(row.asked)} asked" if row.is_answerable else "no document answers",
                cluster=row.asked[0].subject,
                # Without its mark, which would decide what an audit says of the answers.
                query=row.query.model_copy(update={"unanswerable": False}),
                references=tuple(asked.model_dump_json() for asked in row.asked),
            )

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement:
        """What the truth says of an answer."""
        passed = judge(_row(item), reply).right
        return Judgement(passed=passed, label="right" if passed else "wrong")

    def measured(self, item: Item, prompt: str, generation: str) -> Mapping[str, float | None]:
        """Whether nothing in an answer is wrong, and the share of the asked facts that it states."""
        found = judge(_row(item), generation)
        coverage = found.coverage if found.answerable else None
        return {"faithful": float(found.faithful), "coverage": coverage}


def _read(source: Path, model: type[_S], example: str) -> _S:
    if not source.is_file():
        raise FileNotFoundError(f"{source}: no such file; write {example} into it")
    try:
        return model.model_validate_json(source.read_bytes())
    except ValidationError as error:
        raise ValueError(f"{source}: {explain(error)}; see {__name__}") from None


def _row(item: Item) -> WorldRow:
    return WorldRow(query=item.query, asked=tuple(Asked.model_validate_json(one) for one in item.references))

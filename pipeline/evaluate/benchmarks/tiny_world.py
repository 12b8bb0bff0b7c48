"""Held-out worlds of the tiny task, for policies that can do nothing else: are the answer's numbers true?

There is nothing to fetch. The file says which worlds are drawn, and the same file draws the same ones:

    {"num_worlds": 240, "seed": 20260301}

Licence: Apache-2.0, as this repository. The oracle of `pipeline.tiny.truth` scores; the policy is asked
by the compact prompt that it was trained on. A slice is how many numbers are asked for; no two worlds share a
document, so each is a cluster of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from pipeline.evaluate.benchmark import Benchmark, BenchmarkCard, Item, Prompt, PromptStyle
from pipeline.evaluate.majority import Judgement
from pipeline.tiny.truth import oracle
from pipeline.tiny.world import PLAIN_WORLD, WorldSettings, sample_worlds
from reward.config import Settings
from reward.offline.rows import explain
from reward.roles.prompts import load_prompts

_PROMPTS = load_prompts("compact")


class WorldsFile(Settings):
    """Which worlds are drawn."""

    num_worlds: int = Field(ge=1, le=100_000)
    seed: int = Field(ge=0, description="Of no training's seed: the split is another one anyway.")
    world: WorldSettings = PLAIN_WORLD


class TinyWorld(Benchmark):
    """The benchmark `tiny`."""

    card = BenchmarkCard(
        name="tiny",
        title="Tiny worlds",
        url="pipeline/tiny/world.py",
        licence="Apache-2.0",
        primary="faithful",
        scored_by="rule: every number of the answer stands in a sentence of the documents",
        styles=(PromptStyle.PLAIN,),
        prompt_digest=_PROMPTS.digest,
    )

    def items(self, source: Path) -> Iterator[Item]:
        """Draws the worlds; see `Benchmark.items`."""
        if not source.is_file():
            raise FileNotFoundError(f'{source}: no such file; write {{"num_worlds": 240, "seed": 0}} into it')
        try:
            asked = WorldsFile.model_validate_json(source.read_bytes())
        except ValidationError as error:
            raise ValueError(f"{source}: {explain(error)}; see {__name__}") from None
        for world in sample_worlds(asked.num_worlds, asked.seed, "held_out", asked.world):
            yield Item(
                id=world.query.id,
                slice=f"{len(world.asked)} asked",
                cluster=world.query.id,
                query=world.query,
                references=tuple(str(fact.value) for fact in world.asked),
            )

    def prompts(self, item: Item, style: PromptStyle) -> tuple[Prompt, ...]:
        """The Solver's chat, as in training."""
        return (Prompt(name=style.value, messages=tuple(_PROMPTS.solver(item.query))),)

    def read_judgement(self, item: Item, prompt: Prompt, reply: str) -> Judgement:
        """What the oracle says of an answer."""
        passed = oracle(item.query, reply).faithful
        return Judgement(passed=passed, label="faithful" if passed else "unfaithful")

    def measured(self, item: Item, prompt: str, generation: str) -> Mapping[str, float | None]:
        """The share of the asked facts that an answer states."""
        return {"coverage": oracle(item.query, generation).coverage}

"""How a start errs: eight answers to each held-out world, and in how many of the eight all numbers are true.

Chance spreads its errors over all worlds. What a model misreads is wrong in every try, and no reward can
favour an answer that is never sampled. `python -m bench.ablations --starts` asks those that were not asked
yet, a minute each; the counts lie in `bench/results/ablations/starts.jsonl`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import Field

from bench.ablations.plan import Cell, Plan, json_digest
from bench.ablations.results import FOLDER
from pipeline.record.checkpoints import write_atomically
from pipeline.settings.recipe import load_recipe
from pipeline.tiny.evaluate import ENVIRONMENT, EvaluationSetup, evaluation_arguments, setup_for
from pipeline.tiny.world import oracle, sample_worlds
from reward.config import LocalSamplerConfig
from reward.roles.prompts import load_prompts
from reward.samplers import make_sampler
from reward.types import Record

NUM_TRIES = 8


class Tries(Record):
    """What one start said of one kind of worlds."""

    start: str
    world: str = Field(description="The arm's setting of the worlds; empty for those of the recipe.")
    settings: str = Field(description="Digest of the start, the worlds and the sampling.")
    date: str
    right: tuple[int, ...] = Field(description="Worlds with 0, 1, ... `NUM_TRIES` faithful answers.")

    @property
    def shares(self) -> tuple[float, float, float]:
        """Of the worlds: right in every try, in some, in none."""
        always, never, of_all = self.right[-1], self.right[0], sum(self.right)
        return always / of_all, (of_all - always - never) / of_all, never / of_all

    @property
    def errors_in_worlds_never_right(self) -> float:
        """Share of the wrong answers that stand in worlds without a right one; 0 where none is wrong."""
        most = len(self.right) - 1
        num_wrong = sum((most - right) * num_worlds for right, num_worlds in enumerate(self.right))
        return most * self.right[0] / num_wrong if num_wrong else 0.0


def wanted(plan: Plan) -> dict[str, Cell]:
    """One cell of each start and kind of worlds in the plan, by the digest of what it is asked."""
    cells = [Cell(plan=plan, arm=arm, seed=plan.seeds[0]) for arm in plan.arms]
    return {
        json_digest([cell.start.digest, cell.evaluation, str(NUM_TRIES)]): cell for cell in reversed(cells)
    }


def measure_missing(plan: Plan, scratch: Path) -> None:
    """Asks every start that was not asked with today's settings, and writes the counts."""
    from bench.ablations.cell import run_module, start_model

    found = {one.settings: one for one in read(plan)}
    missing = {settings: cell for settings, cell in wanted(plan).items() if settings not in found}
    for place, (settings, cell) in enumerate(missing.items(), 1):
        print(f"[{place}/{len(missing)}] {plan.arms[cell.arm].start} {cell.world}", flush=True)
        out = scratch / "starts" / f"tries-{settings}.json"
        model = str(start_model(cell.start, scratch))
        run_module(["bench.ablations.tries", model, str(out), *cell.evaluation], out.with_suffix(".log"))
        found[settings] = tries_of(cell, settings, json.loads(out.read_text()))
        write(found.values())


def read(plan: Plan, *, file: Path = FOLDER / "starts.jsonl") -> list[Tries]:
    """The committed counts whose settings are still the plan's."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    found = [Tries.model_validate_json(line) for line in lines]
    today = wanted(plan)
    return [one for one in found if one.settings in today]


def write(tries: Iterable[Tries], *, file: Path = FOLDER / "starts.jsonl") -> None:
    """Writes all counts, by rename."""
    lines = [one.model_dump_json() for one in sorted(tries, key=lambda one: (one.start, one.world))]
    write_atomically(file, "".join(f"{line}\n" for line in lines))


def tries_of(cell: Cell, settings: str, right: Sequence[int]) -> Tries:
    """Counts how many worlds have how many faithful answers."""
    counts = Counter(right)
    return Tries(
        start=cell.plan.arms[cell.arm].start,
        world=cell.world,
        settings=settings,
        date=datetime.now(UTC).date().isoformat(),
        right=tuple(counts[number] for number in range(NUM_TRIES + 1)),
    )


async def count_right(setup: EvaluationSetup) -> list[int]:
    """Starts vLLM in this process; returns how many of each world's tries are faithful."""
    sampler = make_sampler(LocalSamplerConfig(model=setup.model, seed=setup.seed))
    prompts = load_prompts(setup.audit.prompts)
    worlds = sample_worlds(setup.num_worlds, setup.seed, "held_out", setup.world)
    try:
        await sampler.ready()
        asked = (
            sampler.sample(prompts.solver(world.query), n=NUM_TRIES, settings=setup.solver)
            for world in worlds
        )
        groups = await asyncio.gather(*asked)
    finally:
        await sampler.close()
    return [
        sum(oracle(world.query, sample.text).faithful for sample in group.samples)
        for world, group in zip(worlds, groups, strict=True)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """What a process of its own does, as vLLM wants one: it writes one number a world, in JSON."""
    options = evaluation_arguments(arguments)
    os.environ.update(ENVIRONMENT)
    recipe = load_recipe(options.recipe, options.set)
    setup = setup_for(recipe, options.model, num_worlds=options.worlds, seed=options.seed)
    write_atomically(options.out, json.dumps(asyncio.run(count_right(setup))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

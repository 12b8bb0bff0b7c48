"""The rows of a training on a world: made when it starts, written like prepared ones."""

from __future__ import annotations

import random
from pathlib import Path

from pipeline.settings.recipe import Recipe
from reward.types import RagQuery


def num_made(recipe: Recipe) -> int:
    """How many rows a run on a world reads: those of its steps, or all that the world has."""
    if recipe.data.max_steps is not None:
        return recipe.data.max_steps * recipe.rollout.batch_size
    return len(_of_wiki(recipe))


def write_made(recipe: Recipe, folder: Path, num_rows: int) -> int:
    """Writes a world's rows, one batch more than asked for, since twins are left out; returns how many."""
    from pipeline.data.prepare import write_rows
    from reward.roles.prompts import load_prompts

    wanted = num_rows + recipe.rollout.batch_size
    if recipe.data.source == "tiny":
        from pipeline.tiny.world import worlds

        queries, source = worlds(wanted, recipe.seed, "train", recipe.data.world), "tiny worlds"
    else:
        queries, source = _of_wiki(recipe)[:wanted], "2WikiMultihopQA, facts"
    manifest = write_rows(
        queries,
        folder,
        prompts=load_prompts(recipe.audit.prompts),
        tokenizer_path=recipe.model_path,
        max_prompt_tokens=recipe.rollout.max_prompt_tokens,
        source=f"{source}, seed {recipe.seed}",
    )
    return manifest.num_rows


def _of_wiki(recipe: Recipe) -> list[RagQuery]:
    """The rows that no warm-up shows, in an order that the seed decides."""
    from pipeline.worlds.wiki.world import WikiWorld

    queries = [row.query for row in WikiWorld(recipe.data.wiki).part("training")]
    random.Random(recipe.seed).shuffle(queries)
    return queries

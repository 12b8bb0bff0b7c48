"""The rows of a run: where they are, how many rows and steps, and whether the recipe takes them as they are.

Rows of a world are made when the run starts, and written like prepared ones.
"""

import random
import shlex
from collections.abc import Iterable
from pathlib import Path

from pipeline.data.prepare import MANIFEST_FILE, ROWS_FILE, Manifest, read_manifest, write_rows
from pipeline.data.tokenizer_digest import tokenizer_sha256
from pipeline.settings.recipe import Recipe
from reward.types import RagQuery


def rows_file(recipe: Recipe, folder: Path) -> Path:
    """Returns the JSONL that a run in `folder` reads: the rows of a world are written there."""
    if recipe.data.is_made:
        return folder / "data" / ROWS_FILE
    assert recipe.data.path is not None
    return recipe.data.path.resolve() / ROWS_FILE


def rows_manifest(recipe: Recipe) -> Manifest | None:
    """Returns the manifest of the prepared rows, if they are there.

    Raises:
        ValueError: a row's prompt is longer than the recipe allows, which would end the run in a rollout, or
            may be, since prompts were not counted, or by another tokenizer than the model's.
    """
    if recipe.data.is_made:
        return None
    manifest = read_manifest(recipe.data.path)
    problem = _problem(manifest, recipe) if manifest else None
    if problem is not None:
        raise ValueError(
            f"{recipe.data.path}/{MANIFEST_FILE}: {problem}; prepare the rows again: `{_command(recipe)}`"
        )
    return manifest


def planned_rows(recipe: Recipe) -> int:
    """Returns how many rows a run reads; FileNotFoundError where there are none, else as `rows_manifest`."""
    if recipe.data.is_made:
        return num_made(recipe)
    manifest = rows_manifest(recipe)
    if manifest is None:
        raise FileNotFoundError(
            f"data.path: {recipe.data.path} has no {MANIFEST_FILE}; write it with `march prepare` "
            "(it comes last, so a folder without one is not whole)"
        )
    return manifest.num_rows


def num_steps(recipe: Recipe, num_rows: int) -> int:
    """Returns the PPO steps of a run: whole batches only, since a ragged last batch could hang or lose rows.

    Raises:
        ValueError: fewer rows than one batch, or than `data.max_steps` batches.
    """
    batches = num_rows // recipe.rollout.batch_size
    wanted = recipe.data.max_steps
    if batches < (wanted or 1):
        raise ValueError(
            f"data: {num_rows} rows make {batches} batches of {recipe.rollout.batch_size}, fewer than the "
            f"{wanted or 1} steps asked for; prepare more rows or lower data.max_steps or rollout.batch_size"
        )
    return wanted or batches


def num_made(recipe: Recipe) -> int:
    """How many rows a run on a world reads: those of its steps, or all that the world has."""
    if recipe.data.max_steps is not None:
        return recipe.data.max_steps * recipe.rollout.batch_size
    return len(_of_wiki(recipe))


def write_made(recipe: Recipe, folder: Path, num_rows: int) -> int:
    """Writes a world's rows, one batch more than asked for, since twins are left out; returns how many."""
    wanted = num_rows + recipe.rollout.batch_size
    if recipe.data.source == "tiny":
        from pipeline.tiny.world import worlds

        queries, source = worlds(wanted, recipe.seed, "train", recipe.data.world), "tiny worlds"
    else:
        queries, source = _of_wiki(recipe)[:wanted], "2WikiMultihopQA, facts"
    return write_queries(recipe, queries, folder, source=f"{source}, seed {recipe.seed}").num_rows


def write_queries(recipe: Recipe, queries: Iterable[RagQuery], folder: Path, *, source: str) -> Manifest:
    """Writes rows with the prompts and for the tokenizer of a recipe, those that fit into its limit."""
    from reward.roles.prompts import load_prompts

    return write_rows(
        queries,
        folder,
        prompts=load_prompts(recipe.audit.prompts),
        tokenizer_path=recipe.model_path,
        max_prompt_tokens=recipe.rollout.max_prompt_tokens,
        source=source,
    )


def _problem(manifest: Manifest, recipe: Recipe) -> str | None:
    """Why rows are not the recipe's: other prompts, or a prompt may be longer than it allows; or None."""
    from reward.roles.prompts import load_prompts

    limit = f"rollout.max_prompt_tokens {recipe.rollout.max_prompt_tokens}"
    if manifest.tokenizer is None:
        return f"tokenizer is null: no prompt was counted, and one above {limit} would end the run"
    if difference := _difference(manifest, manifest.tokenizer, recipe.model_path):
        return f"tokenizer {manifest.tokenizer!r} {difference} model {recipe.model!r}"
    field = "max_prompt_tokens" if manifest.longest_prompt_tokens is None else "longest_prompt_tokens"
    longest = getattr(manifest, field)
    if longest is None or longest > recipe.rollout.max_prompt_tokens:
        return f"{field} {longest} exceeds {limit}"
    if manifest.prompt_digest != load_prompts(recipe.audit.prompts).digest:
        return (
            f"prompts {manifest.prompt_digest[:12]} are not those of audit.prompts {recipe.audit.prompts!r}"
        )
    return None


def _difference(manifest: Manifest, name: str, model: str) -> str | None:
    """How the tokenizer that counted is not the model's: by content, or by name where one is not here."""
    counted, own = manifest.tokenizer_sha256 or tokenizer_sha256(name), tokenizer_sha256(model)
    if counted is not None and own is not None:
        return None if counted == own else "has another vocabulary or chat template than"
    return None if name == model else "has another name (it cannot be compared by content here) than"


def _command(recipe: Recipe) -> str:
    """The preparation whose rows the recipe takes, but for what they are made from."""
    prompts = [] if recipe.audit.prompts == "full" else ["--prompts", recipe.audit.prompts]
    limit = ["--max-prompt-tokens", str(recipe.rollout.max_prompt_tokens)]
    options = [*prompts, "--tokenizer", recipe.model, *limit, "--out", str(recipe.data.path)]
    return f"march prepare DATASET --input FILE {shlex.join(options)}"


def _of_wiki(recipe: Recipe) -> list[RagQuery]:
    """The rows that no warm-up shows, in an order that the seed decides."""
    from pipeline.worlds.wiki.world import WikiWorld

    queries = [row.query for row in WikiWorld(recipe.data.wiki).part("training")]
    random.Random(recipe.seed).shuffle(queries)
    return queries

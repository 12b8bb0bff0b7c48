"""The rows of a run: where they lie, how many there are, and whether the recipe takes them as they are."""

from __future__ import annotations

from pathlib import Path

from pipeline.data.prepare import MANIFEST_FILE, ROWS_FILE, Manifest, read_manifest
from pipeline.settings.recipe import Recipe


def rows_file(recipe: Recipe, folder: Path) -> Path:
    """Returns the JSONL that a run in `folder` reads: worlds of the tiny task are written there."""
    if recipe.data.source == "tiny":
        return folder / "data" / ROWS_FILE
    assert recipe.data.path is not None
    return recipe.data.path.resolve() / ROWS_FILE


def rows_manifest(recipe: Recipe) -> Manifest | None:
    """Returns the manifest of the prepared rows, if they are there.

    Raises:
        ValueError: a row's prompt is longer than the recipe allows, which would end the run in a rollout.
    """
    manifest, limit = read_manifest(recipe.data.path), recipe.rollout.max_prompt_tokens
    longest = (manifest.longest_prompt_tokens if manifest else None) or 0
    if longest > limit:
        raise ValueError(
            f"{recipe.data.path}/{MANIFEST_FILE}: longest_prompt_tokens {longest} exceeds "
            f"rollout.max_prompt_tokens {limit}; `march prepare --max-prompt-tokens {limit}` leaves such "
            "rows out"
        )
    return manifest


def planned_rows(recipe: Recipe) -> int:
    """Returns how many rows a run reads.

    Raises:
        FileNotFoundError: they are not prepared.
        ValueError: as `rows_manifest` does.
    """
    if recipe.data.source == "tiny":
        assert recipe.data.max_steps is not None
        return recipe.data.max_steps * recipe.rollout.batch_size
    manifest = rows_manifest(recipe)
    if manifest is None:
        raise FileNotFoundError(
            f"data.path: {recipe.data.path} has no {MANIFEST_FILE}; write it with `march prepare` "
            "(it comes last, so a folder without one is not whole)"
        )
    return manifest.num_rows

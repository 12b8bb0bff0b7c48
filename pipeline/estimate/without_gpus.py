"""What runs without a GPU, on the CPU layer (`pipeline/cpu/`), and what it takes."""

from __future__ import annotations

from pathlib import Path

from pipeline.estimate.memory import GIB
from pipeline.settings.recipe import TINY_KINDS_POLICY, TINY_POLICY, Recipe

TINY_BYTES = 8 * GIB  # host memory of a training of the tiny policy, measured (Makefile)


def needs_no_gpu(recipe: Recipe) -> bool:
    """Whether the CPU layer stands in where no GPU is: for the tiny policy alone."""
    return Path(recipe.model_path) in (TINY_POLICY, TINY_KINDS_POLICY)

"""The items of a benchmark's files, checked before anything is asked of a model."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

from pipeline.evaluate.benchmark import Benchmark, BenchmarkCard, Item, PromptStyle


def read_items(benchmark: Benchmark, path: Path, limit: int | None = None) -> list[Item]:
    """Reads the first items of a benchmark.

    Args:
        benchmark: Whose files they are.
        path: Its file or folder.
        limit: How many; None for all that the benchmark takes.

    Raises:
        FileNotFoundError: a file is not there.
        ValueError: there is no item, one stands twice, or a row is not of the format.
    """
    items = list(islice(benchmark.items(path), limit))
    if not items:
        raise ValueError(f"{path}: holds no item of {benchmark.card.name}; give its official files")
    twice = [name for name, count in Counter(item.id for item in items).items() if count > 1]
    if twice:
        raise ValueError(f"{path}: item {twice[0]!r} stands twice; remove one of the rows")
    return items


def style_of(card: BenchmarkCard, asked: PromptStyle) -> PromptStyle:
    """The asked style, or the only one of a benchmark that has one.

    Raises:
        ValueError: the benchmark is not asked in this style.
    """
    style = card.styles[0] if len(card.styles) == 1 else asked
    if style not in card.styles:
        raise ValueError(f"--style {style}: {card.name} is asked as {', '.join(card.styles)}; choose one")
    return style

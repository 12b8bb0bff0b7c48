"""Two models on the same items, and the best checkpoint of several.

Only evaluations that asked alike are held against each other: the same judge with the same prompts and
settings. Another judge is another yardstick, and the difference would be its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from pipeline.evaluate.averages import Choice, MacroAverage, best_checkpoint, macro_difference
from pipeline.evaluate.manifest import Manifest, read_all_results, read_manifest
from pipeline.evaluate.results import ItemResult
from pipeline.evaluate.statistics import OVERALL, PairedDifference, group_by_slice, paired_difference
from reward.types import Record


class Comparison(Record):
    """How a model differs from another one; positive: this one scores higher."""

    name: str = Field(description="The other evaluation's folder.")
    model: str
    benchmarks: dict[str, dict[str, PairedDifference]] = Field(description="Of the primary scores, by slice.")
    average: MacroAverage | None = Field(description="Over the benchmarks that both have.")


def compare(manifest: Manifest, found: Mapping[str, Sequence[ItemResult]], other: Path) -> Comparison:
    """Compares an evaluation with another one, on the items that both have.

    Raises:
        FileNotFoundError: the other one is not there, or not whole.
        ValueError: it was judged otherwise, or has no benchmark in common.
    """
    before = read_manifest(other)
    require_alike(manifest, before, str(other))
    earlier = read_all_results(other, before)
    common = [name for name in manifest.measured if name in before.measured]
    if not common:
        raise ValueError(
            f"--compare: {other} has none of {', '.join(manifest.measured)}; evaluate both on one"
        )
    primary = {name: manifest.benchmarks[name].card.primary for name in common}
    return Comparison(
        name=str(other),
        model=before.model,
        benchmarks={name: _by_slice(earlier[name], found[name], primary[name]) for name in common},
        average=macro_difference(
            {name: earlier[name] for name in common}, {name: found[name] for name in common}, primary
        ),
    )


def choose_best(folders: Sequence[Path]) -> Choice:
    """The checkpoint with the best average over the benchmarks, and those that cannot be told from it.

    Args:
        folders: Whole evaluations, from the earliest checkpoint to the latest.

    Raises:
        FileNotFoundError: an evaluation is not there, or not whole.
        ValueError: they were judged otherwise, or not on the same benchmarks and items.
    """
    manifests = {str(folder): read_manifest(folder) for folder in folders}
    first_name, first = next(iter(manifests.items()))
    for name, manifest in manifests.items():
        require_alike(first, manifest, name)
        if manifest.measured.keys() != first.measured.keys():
            apart = ", ".join(sorted(manifest.measured.keys() ^ first.measured.keys()))
            raise ValueError(f"{name}: only one of it and {first_name} has {apart}; evaluate both alike")
    primary = {name: one.card.primary for name, one in first.measured.items()}
    scored = {
        name: {key: read_all_results(Path(name), manifest)[key] for key in primary}
        for name, manifest in manifests.items()
    }
    return best_checkpoint(scored, primary)


def require_alike(one: Manifest, other: Manifest, name: str) -> None:
    """Raises `ValueError` when two evaluations have no common yardstick."""
    for key in ("judge", "num_generations", "generation"):
        if one.settings[key] != other.settings[key]:
            raise ValueError(
                f"{name}: has another {key} ({other.settings[key]}); evaluate both with the same"
            )
    for benchmark in one.benchmarks.keys() & other.benchmarks.keys():
        here, there = one.benchmarks[benchmark], other.benchmarks[benchmark]
        if (here.card.prompt_digest, here.style) != (there.card.prompt_digest, there.style):
            raise ValueError(
                f"{name}: {benchmark} has other prompts; evaluate both with the same version and style"
            )


def _by_slice(
    before: Sequence[ItemResult], after: Sequence[ItemResult], score: str
) -> dict[str, PairedDifference]:
    slices = {name: {one.item for one in part} for name, part in group_by_slice(after).items()}
    found = {OVERALL: paired_difference(before, after, score)}
    for name, ids in slices.items() if len(slices) > 1 else ():
        old, new = ([one for one in side if one.item in ids] for side in (before, after))
        if old and new:
            found[name] = paired_difference(old, new, score)
    return found

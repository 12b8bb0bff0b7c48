"""All figures of an evaluation, two models on the same items, and the best checkpoint of several.

Only evaluations that asked alike are held against each other: the same judge with the same prompts and
settings. With another judge the difference would be the judges'.

The best of several checkpoints is partly the luckiest: its average is too high, the more so the more there
were to choose from. So the choice also says which others cannot be distinguished from it, by their paired
difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from pipeline.evaluate.results import Manifest, read_all_results, read_manifest
from pipeline.evaluate.statistics import (
    OVERALL,
    Figure,
    ItemScores,
    MacroAverage,
    PairedDifference,
    group_by_slice,
    macro_average,
    paired_difference,
)
from reward.types import Record


class Comparison(Record):
    """How a model differs from another one; positive: this one scores higher."""

    name: str = Field(description="The other evaluation's folder.")
    model: str
    benchmarks: dict[str, dict[str, PairedDifference]] = Field(description="Of the primary scores, by slice.")
    average: MacroAverage = Field(description="Over the benchmarks that both have.")


class Choice(Record):
    """The best checkpoint, and what speaks for it."""

    best: str
    averages: dict[str, MacroAverage] = Field(description="Of all checkpoints.")
    behind: dict[str, MacroAverage] = Field(description="The best minus each other one, on the same items.")
    not_told_apart: tuple[str, ...] = Field(description="Others whose difference's interval reaches 0.")


@dataclass(frozen=True)
class Line:
    """One figure of an evaluation, and how it differs from another evaluation's."""

    benchmark: str  # or the average over all
    title: str
    slice: str
    score: str
    figure: Figure
    change: Figure | None = None
    is_shown: bool = True  # in the table; others are details

    @property
    def is_overall(self) -> bool:
        return self.slice == OVERALL


def figure_lines(manifest: Manifest, comparison: Comparison | None = None) -> Iterator[Line]:
    """Every score of every benchmark overall, then of its slices, and last the average.

    Shown are primary scores: overall alone, where there is but one slice.
    """
    for name, one in manifest.benchmarks.items():
        changes = comparison.benchmarks.get(name, {}) if comparison else {}
        for part, scores in one.estimates.items():
            for score, figure in scores.items():
                shown = score == one.card.primary and (part == OVERALL or len(one.estimates) > 2)
                change = changes.get(part) if shown else None
                yield Line(name, one.card.title, part, score, figure, change, shown)
            if part in one.agreement:
                kappa = one.agreement[part].cohens_kappa
                yield Line(name, one.card.title, part, "cohens_kappa", kappa, is_shown=False)
    if manifest.average is not None:
        gap, shown = comparison.average if comparison else None, len(manifest.measured) > 1
        yield Line("average", "Average", OVERALL, "", manifest.average, gap, shown)


def compare(folder: Path, other: Path) -> Comparison:
    """Compares an evaluation with another one, on the benchmarks and items that both have.

    Raises:
        FileNotFoundError: one of them is not there, or not whole.
        ValueError: they were judged otherwise, or have no benchmark in common.
    """
    manifest, before = read_manifest(folder), read_manifest(other)
    require_alike(manifest, before, str(other))
    found, earlier = read_all_results(folder, manifest), read_all_results(other, before)
    measured = {name: one for name, one in manifest.measured.items() if name in before.measured}
    if not measured:
        names = ", ".join(manifest.measured)
        raise ValueError(f"--compare: {other} has none of {names}; evaluate both on one")
    changes = {
        name: _by_slice(earlier[name], found[name], one.card.primary) for name, one in measured.items()
    }
    return Comparison(
        name=str(other),
        model=before.model,
        benchmarks=changes,
        average=macro_average({name: slices[OVERALL] for name, slices in changes.items()}),
    )


def choose_best(folders: Sequence[Path]) -> Choice:
    """The checkpoint with the best average over the benchmarks, the earlier one of equals, and its equals.

    Args:
        folders: Whole evaluations, from the earliest checkpoint to the latest.

    Raises:
        FileNotFoundError: an evaluation is not there, or not whole.
        ValueError: they were judged otherwise, or not on the same benchmarks and items, or none has an
            average.
    """
    manifests = {str(folder): read_manifest(folder) for folder in folders}
    first_name, first = next(iter(manifests.items()))
    for name, manifest in manifests.items():
        require_alike(first, manifest, name)
        if apart := manifest.measured.keys() ^ first.measured.keys():
            said = ", ".join(sorted(apart))
            raise ValueError(f"{name}: only one of it and {first_name} has {said}; evaluate both alike")
    averages = {name: one.average for name, one in manifests.items() if one.average is not None}
    values = {name: one.value for name, one in averages.items() if one.value is not None}
    if not values:
        raise ValueError("checkpoints: none has an average; each benchmark must have scored items")
    best = max(values, key=lambda name: values[name])
    behind = {name: compare(Path(best), Path(name)).average for name in values if name != best}
    near = [name for name, gap in behind.items() if gap.interval is None or gap.interval.low <= 0]
    return Choice(best=best, averages=averages, behind=behind, not_told_apart=tuple(near))


def require_alike(one: Manifest, other: Manifest, name: str) -> None:
    """Raises `ValueError` when two evaluations were not made alike."""
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
    before: Sequence[ItemScores], after: Sequence[ItemScores], score: str
) -> dict[str, PairedDifference]:
    found = {}
    for name, part in {OVERALL: after, **group_by_slice(after)}.items():
        ids = {one.item for one in part}
        old = before if name == OVERALL else [one for one in before if one.item in ids]
        if old:
            found[name] = paired_difference(old, part, score)
    return found

"""All figures of an evaluation, two models on the same items, and the best checkpoint of several.

Only evaluations that asked alike are held against each other: with another judge, other prompts or settings
the difference would be theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from pipeline.evaluate.results import Manifest, read_all_results, read_manifest
from pipeline.settings.tree import flatten
from pipeline.statistics import (
    KAPPA,
    OVERALL,
    Estimate,
    Figure,
    ItemScores,
    MacroAverage,
    PairedDifference,
    by_slice,
    estimates,
    macro_average,
    paired_difference,
)

if TYPE_CHECKING:
    from pipeline.evaluate.benchmark import PromptStyle
    from pipeline.evaluate.plan import PlannedBenchmark

MAX_MISSING = 0.05  # of a checkpoint that may be the best, as of the gate `scored`
_PRIMARY = "primary"
Scored = dict[str, dict[str, ItemScores]]  # by benchmark, then by item


@dataclass(frozen=True)
class Conditions:
    """What two evaluations must share to be held against each other: all but seeds, which are chance."""

    sampled: Mapping[str, JsonValue]  # by dotted names
    prompts: Mapping[str, tuple[str, PromptStyle]]  # digest and style by benchmark

    @classmethod
    def planned(cls, planned: Sequence[PlannedBenchmark]) -> Conditions:
        settings = planned[0].job.settings(is_judged=any(one.is_judged for one in planned))
        return cls._of(settings, {one.name: (one.benchmark.card.prompt_digest, one.style) for one in planned})

    @classmethod
    def measured(cls, manifest: Manifest) -> Conditions:
        prompts = {name: (one.card.prompt_digest, one.style) for name, one in manifest.benchmarks.items()}
        return cls._of(manifest.settings, prompts)

    @classmethod
    def _of(
        cls, settings: Mapping[str, JsonValue], prompts: Mapping[str, tuple[str, PromptStyle]]
    ) -> Conditions:
        sampled = flatten({key: settings[key] for key in ("judge", "num_generations", "generation")})
        return cls({key: value for key, value in sampled.items() if not key.endswith(".seed")}, prompts)


@dataclass(frozen=True)
class Comparison:
    """How a model differs from another one; positive: this one scores higher."""

    name: str  # the other evaluation's folder
    model: str
    benchmarks: Mapping[str, Mapping[str, PairedDifference]]  # of the primary scores, by slice
    average: MacroAverage  # over the benchmarks that both have


@dataclass(frozen=True)
class Choice:
    """The best checkpoint.

    It is partly the luckiest: its average is too high, the more so the more there were to choose from.
    """

    best: str
    averages: Mapping[str, MacroAverage]  # of all checkpoints, on what those with little missing have
    behind: Mapping[str, MacroAverage]  # the best minus each other one, on the items that both have
    missing: Mapping[str, float]  # of all checkpoints: the largest share of a benchmark in no figure


@dataclass(frozen=True)
class Line:
    """One figure of an evaluation, and how it differs from another evaluation's."""

    benchmark: str  # or the average over all
    title: str
    slice: str
    score: str
    figure: Figure
    change: Figure | None
    is_shown: bool  # in the table; others are details

    @property
    def is_overall(self) -> bool:
        return self.slice == OVERALL


def figure_lines(manifest: Manifest, comparison: Comparison | None = None) -> Iterator[Line]:
    """Every score of every benchmark overall, then of its slices, and last the average.

    Shown are primary scores, overall alone where there is but one slice; and a judge's kappa.
    """
    for name, one in manifest.benchmarks.items():
        changes = comparison.benchmarks.get(name, {}) if comparison else {}
        for part, scores in one.estimates.items():
            is_told = part == OVERALL or len(one.estimates) > 2
            for score, figure in scores.items():
                change = changes.get(part) if score == one.card.primary else None
                shown = is_told and score in (one.card.primary, KAPPA)
                yield Line(name, one.card.title, part, score, figure, change, shown)
    if manifest.average is not None:
        gap, shown = comparison.average if comparison else None, len(manifest.measured) > 1
        yield Line("average", "Average", OVERALL, "", manifest.average, gap, shown)


def compare(folder: Path, other: Path) -> Comparison:
    """Compares an evaluation with another one, on the benchmarks and items that both have.

    Raises:
        FileNotFoundError: one of them is not there, or not whole.
        ValueError: they were judged otherwise, an item differs, or they have no benchmark in common.
    """
    manifest, before = read_manifest(folder), read_manifest(other)
    require_alike(Conditions.measured(manifest), Conditions.measured(before), str(other))
    found, earlier = read_all_results(folder, manifest), read_all_results(other, before)
    changes: dict[str, dict[str, PairedDifference]] = {}
    for name in (name for name in manifest.measured if name in before.measured):
        asked = {one.item: one.sha256 for one in earlier[name]}
        if other_one := next((i.item for i in found[name] if asked.get(i.item, i.sha256) != i.sha256), None):
            where = f"item {other_one!r} of {name} is another one"
            raise ValueError(f"--compare: {where} in {other}; evaluate both on the same files")
        score, old = manifest.measured[name].card.primary, by_slice(earlier[name])
        new = {part: items for part, items in by_slice(found[name]).items() if part in old}
        changes[name] = {part: paired_difference(old[part], items, score) for part, items in new.items()}
    if not changes:
        names = ", ".join(manifest.measured)
        raise ValueError(f"--compare: {other} has none of {names}; evaluate both on one")
    average = macro_average({name: slices[OVERALL] for name, slices in changes.items()})
    return Comparison(str(other), before.model, changes, average)


def choose_best(folders: Sequence[Path]) -> Choice:
    """The checkpoint with the best average over the benchmarks, the earlier one of equals.

    What is missing is seldom missing by chance: a checkpoint that lacks more than `MAX_MISSING` is not
    chosen, and the others are compared on the items that all of them have.

    Args:
        folders: Whole evaluations, from the earliest checkpoint to the latest.

    Raises:
        FileNotFoundError: an evaluation is not there, or not whole.
        ValueError: they were judged otherwise, or not on the same benchmarks and items, or none has an
            average of nearly all items.
    """
    manifests = {str(folder): read_manifest(folder) for folder in folders}
    _require_same_items(manifests)
    scored = {name: _scored(Path(name), manifest) for name, manifest in manifests.items()}
    missing = {name: _missing(manifest, scored[name]) for name, manifest in manifests.items()}
    eligible = [name for name, share in missing.items() if share <= MAX_MISSING]
    _keep_common([scored[name] for name in eligible])
    averages = {
        name: macro_average({benchmark: _mean_of(items) for benchmark, items in found.items()})
        for name, found in scored.items()
    }
    values = {name: value for name in eligible if (value := averages[name].value) is not None}
    if not values:
        shares = ", ".join(f"{name}: {share:.1%}" for name, share in missing.items())
        fix = "evaluate again for what failed, or raise generation.max_tokens"
        raise ValueError(
            f"checkpoints: none has an average with at most {MAX_MISSING:.0%} missing ({shares}); {fix}"
        )
    best = max(values, key=lambda name: values[name])
    behind = {name: _lead(scored[best], scored[name]) for name in manifests if name != best}
    return Choice(best, averages, behind, missing)


def _require_same_items(manifests: Mapping[str, Manifest]) -> None:
    first_name, first = next(iter(manifests.items()))
    for name, manifest in manifests.items():
        require_alike(Conditions.measured(first), Conditions.measured(manifest), name)
        if apart := manifest.measured.keys() ^ first.measured.keys():
            said = ", ".join(sorted(apart))
            raise ValueError(f"{name}: only one of it and {first_name} has {said}; evaluate both alike")
        for benchmark, one in manifest.measured.items():
            if one.items_sha256 != first.measured[benchmark].items_sha256:
                fix = "evaluate both on the same ones"
                raise ValueError(f"{name}: {benchmark} has other items than in {first_name}; {fix}")


def _scored(folder: Path, manifest: Manifest) -> Scored:
    """By benchmark the items that have its primary score, which alone is kept."""
    found = read_all_results(folder, manifest)
    return {
        name: {
            item.item: ItemScores(
                item=item.item, slice=item.slice, cluster=item.cluster, scores={_PRIMARY: score}
            )
            for item in found[name]
            if (score := item.scores.get(one.card.primary)) is not None
        }
        for name, one in manifest.measured.items()
    }


def _missing(manifest: Manifest, scored: Scored) -> float:
    """The largest share of items, answers or judgements of a benchmark that is in no figure."""
    shares = [0.0]
    for name, one in manifest.measured.items():
        without = 1 - len(scored[name]) / max(one.counts.num_items, 1)
        shares += [without, one.missing["answers"], one.missing["judgements"]]
    return max(shares)


def _keep_common(every: Sequence[Scored]) -> None:
    """Leaves the items that all have."""
    for benchmark in every[0] if every else ():
        common = set.intersection(*(set(one[benchmark]) for one in every))
        for one in every:
            one[benchmark] = {name: item for name, item in one[benchmark].items() if name in common}


def _mean_of(items: Mapping[str, ItemScores]) -> Estimate | None:
    return estimates(items.values()).get(_PRIMARY)


def _lead(best: Scored, other: Scored) -> MacroAverage:
    """How far a checkpoint is ahead of another one, on the items that both have."""
    return macro_average(
        {
            name: paired_difference(other[name].values(), items.values(), _PRIMARY)
            if items.keys() & other[name].keys()
            else None
            for name, items in best.items()
        }
    )


def require_alike(one: Conditions, other: Conditions, name: str) -> None:
    """Raises `ValueError` when two evaluations were not made alike; `name` is of the other one."""
    here, there = one.sampled, other.sampled
    for key in sorted(here.keys() | there.keys()):
        if here.get(key) != there.get(key):
            values = f"{key} is {there.get(key)!s:.60} there and {here.get(key)!s:.60} here"
            raise ValueError(f"{name}: {values}; evaluate both with the same")
    for benchmark in one.prompts.keys() & other.prompts.keys():
        if one.prompts[benchmark] != other.prompts[benchmark]:
            raise ValueError(
                f"{name}: {benchmark} has other prompts; evaluate both with the same version and style"
            )

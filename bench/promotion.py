"""How often the gates promote: candidates that are no better, and those that are, over drawn evaluations.

Each document has a difficulty of its own (champion's pass rate 0.75, correlation 1/5 within a document); on
70% of the items the candidate answers as the champion does, on the others independently, and it is better by
a given number of points. The decision is that of `primary_gate` and `slices_gate` with the default policy, on
two slices: the resamples are those of `reward.offline.bootstrap` and the weights those of
`pipeline.statistics` (same seeds), all evaluations at once.

    python -m bench promotion        writes results/promotion.json and docs/images/promotion-power.svg
"""

import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.measure import write_result
from orchestration.promotion.policy import GatePolicy
from reward.offline.bootstrap import num_resamples

Array = NDArray[Any]
DOCUMENTS = (30, 50, 75, 100, 150, 200, 300, 500, 800)
GAINS = (0.0, 0.02, 0.05, 0.1)
NUM_EVALUATIONS = 2_000
NUM_SLICES = 2
_PASS_RATE, _CONCENTRATION, _SHARED = 0.75, 4.0, 0.7  # a beta of this concentration: correlation 1/5
_CHUNK = 250  # evaluations at once, for memory
_PICTURE = Path(__file__).parents[1] / "docs" / "images" / "promotion-power.svg"


@dataclass(frozen=True)
class Drawn:
    """Evaluations of one kind: sums of differences (E, D) and whether anything differs (E, D)."""

    sums: Array
    changed: Array
    num_items: int  # a document


def draw(
    num: int,
    documents: int,
    gains: tuple[float, float],
    *,
    num_items: int = 2,
    shared: float = _SHARED,
    seed: int = 0,
) -> Drawn:
    """Draws paired evaluations.

    Args:
        num: E, evaluations.
        documents: D; slices take turns.
        gains: How much better the candidate is on each slice, as a difference of pass rates.
        num_items: Items a document.
        shared: Items on which the two answer alike but for the gain; 1: all changes are in its direction.
        seed: Of numpy's generator.
    """
    generator = np.random.default_rng(seed)
    shape = (num, documents, num_items)
    a, b = _PASS_RATE * _CONCENTRATION, (1 - _PASS_RATE) * _CONCENTRATION
    rate = generator.beta(a, b, (num, documents, 1))
    before = generator.random(shape) < rate
    after = np.where(generator.random(shape) < shared, before, generator.random(shape) < rate)
    # Wrong answers are fixed, or right ones spoilt, at the rate that moves the mean by the gain.
    gain = np.resize(np.array(gains), documents)[None, :, None]
    fixed = ~after & (generator.random(shape) < np.maximum(gain, 0) / (1 - _PASS_RATE))
    spoilt = after & (generator.random(shape) < np.maximum(-gain, 0) / _PASS_RATE)
    after = (after | fixed) & ~spoilt
    differences = after.astype(np.int8) - before.astype(np.int8)
    return Drawn(differences.sum(axis=2), (differences != 0).any(axis=2), num_items)


def bounds(sums: Array, num_items: int, *, level: float) -> tuple[Array, Array]:
    """Ends of the interval of each evaluation's mean difference, as `paired_difference` gives them."""
    documents = sums.shape[1]
    source = random.Random(0)
    counts = np.zeros((num_resamples(level), documents), dtype=np.float32)
    for row in counts:
        np.add.at(row, source.choices(range(documents), k=documents), 1)
    found = []
    for start in range(0, len(sums), _CHUNK):
        means = counts @ sums[start : start + _CHUNK].T.astype(np.float32) / (documents * num_items)
        found.append(np.quantile(means, [(1 - level) / 2, 1 - (1 - level) / 2], axis=0))
    low, high = np.concatenate(found, axis=1)
    return low, high


def cautious_bounds(sums: Array, num_items: int, *, level: float) -> tuple[Array, Array]:
    """The same, of `paired_difference(is_cautious=True)`."""
    source, tail = np.random.default_rng(0), (1 - level) / 2
    weights = source.standard_exponential((4 * num_resamples(level), sums.shape[1] + 1)).astype(np.float32)
    weights /= weights.sum(axis=1, keepdims=True)
    found = []
    for start in range(0, len(sums), _CHUNK):
        means = weights[:, :-1] @ sums[start : start + _CHUNK].T.astype(np.float32) / num_items
        lows = np.quantile(means - weights[:, -1:], tail, axis=0)
        found.append((lows, np.quantile(means + weights[:, -1:], 1 - tail, axis=0)))
    low, high = np.concatenate(found, axis=1)
    return low, high


def promoted(drawn: Drawn, policy: GatePolicy) -> dict[str, Array]:
    """Which evaluations pass the gate of the primary score, those of the slices, and both."""
    primary, slices = policy.primary, policy.slices
    documents = drawn.sums.shape[1]
    low, _ = bounds(drawn.sums, drawn.num_items, level=1 - 2 * primary.alpha)
    better = low > primary.min_difference + 1e-6  # float32
    better &= drawn.changed.sum(axis=1) >= primary.min_changed
    better &= documents >= primary.min_documents
    unharmed = np.ones(len(better), dtype=bool)
    level = 1 - 2 * slices.alpha / NUM_SLICES
    for place in range(NUM_SLICES):
        part = drawn.sums[:, place::NUM_SLICES]
        low, _ = cautious_bounds(part, drawn.num_items, level=level)
        unharmed &= (low > -slices.margin) & (part.shape[1] >= slices.min_documents)
    return {"primary": better, "slices": unharmed, "both": better & unharmed}


def run() -> None:
    policy, start = GatePolicy(), time.perf_counter()
    rates = {
        f"{gain:g}": [_rate(documents, (gain, gain), policy) for documents in DOCUMENTS] for gain in GAINS
    }
    margin = policy.slices.margin
    harm = (3 * margin / 2, -margin)
    harmed = [_rate(documents, harm, policy) for documents in DOCUMENTS]
    one_way = [_rate(documents, harm, policy, shared=1.0) for documents in DOCUMENTS]
    figures = {
        "evaluations": NUM_EVALUATIONS,
        "documents": DOCUMENTS,
        "items_a_document": 2,
        "alpha": policy.primary.alpha,
        "alpha_slices": policy.slices.alpha,
        "promoted_by_gain": rates,
        "promoted_with_one_slice_worse_by_the_margin": harmed,
        "the_same_and_nothing_else_changed": one_way,
    }
    write_result("promotion", samples_s={"all": [time.perf_counter() - start]}, figures=figures)
    _plot(rates, policy)


def _rate(
    documents: int, gains: tuple[float, float], policy: GatePolicy, shared: float = _SHARED
) -> dict[str, float]:
    found = promoted(draw(NUM_EVALUATIONS, documents, gains, shared=shared, seed=documents), policy)
    return {name: float(np.mean(value)) for name, value in found.items()}


def _plot(rates: dict[str, list[dict[str, float]]], policy: GatePolicy) -> None:
    from bench.ablations.plot import GRID, INK, STYLE, plt, save

    colours = ("#C44E00", "#6B7280", "#0072B2", "#00805A")
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
        for colour, (gain, found) in zip(colours, rates.items(), strict=True):
            label = "no better" if gain == "0" else f"better by {100 * float(gain):g} points"
            axes.plot(DOCUMENTS, [100 * one["both"] for one in found], "o-", color=colour, label=label)
            axes.plot(DOCUMENTS, [100 * one["primary"] for one in found], ":", color=colour)
        axes.axhline(100 * policy.primary.alpha, color=INK, linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xticks(DOCUMENTS, [str(one) for one in DOCUMENTS])
        axes.minorticks_off()
        axes.set_xlabel("documents, two items each (dotted: the primary score alone; line: alpha)")
        axes.set_ylabel("promoted, %")
        axes.spines[["right", "top"]].set_visible(False)
        axes.grid(color=GRID, linewidth=0.7)
        axes.legend(frameon=False)
        save(figure, _PICTURE)

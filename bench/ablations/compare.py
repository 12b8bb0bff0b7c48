"""What the rows say: differences paired by seed with t intervals, and verdicts by a rule; pure.

The rule: with every planned seed there, the claimed direction holds ("yes") where the 95% interval of the
mean difference lies on its side of 0, does not ("no") where it lies on the other side, and is "undecided"
where the interval includes 0. Nothing corrects for the number of comparisons: of twenty true zeros one is
expected to be decided.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, pstdev

from scipy.stats import binomtest, ttest_1samp

from bench.ablations.plan import Comparison, FigureName, Plan
from bench.ablations.results import Figures, Row

Rows = Mapping[str, Mapping[int, Row]]  # by arm and seed
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    comparison: Comparison
    differences: tuple[float, ...]  # one a seed that has both rows
    interval: Interval | None  # None below two seeds
    verdict: str  # "yes", "no", "undecided" or "n of 5 seeds run"


def value_of(figures: Figures, name: FigureName) -> float:
    """Returns a figure as a share, or claims an answer."""
    if name == "faithful":
        return figures.faithful_rate
    if name == "false_accept":
        return figures.false_accept / figures.num_worlds
    return figures.checker if name == "checker" else figures.claims


def find(comparison: Comparison, rows: Rows, plan: Plan) -> Finding:
    """Compares two arms, or an arm with its own start, over the seeds that both have.

    Two arms are a pair only where they began with the same weights: a start is trained again on each machine,
    and sums that round otherwise make another model of the same recipe.
    """
    differences = tuple(_differences(comparison, rows, plan.seeds))
    interval = mean_interval(differences) if len(differences) > 1 else None
    if interval is None or len(differences) < len(plan.seeds):
        verdict = f"{len(differences)} of {len(plan.seeds)} seeds run"
    else:
        verdict = decide(interval, comparison)
    return Finding(comparison, differences, interval, verdict)


def decide(interval: Interval, comparison: Comparison) -> str:
    if interval.low <= 0 <= interval.high:
        return "undecided"
    return "yes" if (interval.low > 0) == (comparison.claim == "higher") else "no"


def mean_interval(values: Sequence[float]) -> Interval:
    """Returns the mean with Student's t interval; equal values have an interval without width."""
    if pstdev(values) == 0:
        return Interval(values[0], values[0], values[0])
    found = ttest_1samp(values, 0.0).confidence_interval(_CONFIDENCE)
    return Interval(mean(values), float(found.low), float(found.high))


def pooled_rate(counts: Sequence[int], totals: Sequence[int]) -> Interval:
    """Returns the rate over all worlds of all seeds, with the wider of Wilson's and Student's intervals.

    Answers of one seed are one model's, so they are not independent; but of a rate that is 0 in all seeds
    Student's has no width.
    """
    wilson = binomtest(sum(counts), sum(totals)).proportion_ci(_CONFIDENCE, method="wilson")
    student = mean_interval([count / total for count, total in zip(counts, totals, strict=True)])
    low, high = min(float(wilson.low), student.low), max(float(wilson.high), student.high)
    return Interval(sum(counts) / sum(totals), max(0.0, low), min(1.0, high))


def finished(rows: Mapping[int, Row]) -> list[Row]:
    """The rows with figures, by seed."""
    return [rows[seed] for seed in sorted(rows) if rows[seed].failure is None]


def _differences(comparison: Comparison, rows: Rows, seeds: Sequence[int]) -> Iterator[float]:
    for seed in seeds:
        row = rows.get(comparison.arm, {}).get(seed)
        other = rows.get(comparison.against or comparison.arm, {}).get(seed)
        if not (row and row.after and other and other.before and other.after) or row.start != other.start:
            continue
        base = other.before if comparison.against is None else other.after
        yield value_of(row.after, comparison.figure) - value_of(base, comparison.figure)

"""What a person reads in the terminal: what an evaluation will take, what it found, what is best."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text

from pipeline.evaluate.averages import Choice
from pipeline.evaluate.compare import Comparison
from pipeline.evaluate.cost import Expected, Prices
from pipeline.evaluate.judge_agreement import JudgeAgreement
from pipeline.evaluate.manifest import BenchmarkFigures, Manifest
from pipeline.evaluate.statistics import OVERALL
from reward.offline.bootstrap import Interval
from reward.offline.terminal import plain_table
from reward.types import TokenUse


def print_expected(expected: Sequence[Expected], prices: Prices, console: Console) -> None:
    """Prints what is still to be asked, and what it will cost."""
    names = ("items", "answers", "tokens", "verdicts", "judge tokens")
    table = plain_table("Still to be asked", "benchmark", *names)
    for one in expected:
        table.add_row(
            one.name,
            f"{one.num_items:,}",
            f"{one.num_answers:,}",
            _tokens(one.model),
            f"{one.num_judgements:,}",
            _tokens(one.judge),
        )
    counted = all(one.are_counted for one in expected)
    how = "counted by the servers" if counted else "four characters each, as not every server answers"
    lines = [
        f"Prompt + written tokens. Prompts are {how}; answers and verdicts as long as so far, or assumed."
    ]
    if prices.are_given:
        money = sum(prices.of(one.model, one.judge) for one in expected)
        lines.append(f"About {money:,.2f} by the given prices; retries of the judge come on top.")
    console.print(Group(table, *(Text(line, style="dim") for line in lines)))


def print_manifest(manifest: Manifest, console: Console) -> None:
    """Prints the primary figure of every benchmark and slice, the average, and what to hold against them."""
    table = plain_table("Figures", "benchmark", "score", "value", "95% interval", "n", "unscored")
    for name, one in manifest.benchmarks.items():
        for slice_name in slices_of(one):
            found = one.estimates[slice_name].get(one.card.primary)
            if found is not None:
                table.add_row(
                    _label(name, slice_name),
                    one.card.primary if slice_name == OVERALL else "",
                    percent(found.value),
                    reach(found.interval),
                    f"{found.num_items:,}",
                    f"{found.num_unscored:,}",
                )
    parts: list[RenderableType] = [table]
    if manifest.average is not None and len(manifest.measured) > 1:
        value, interval = percent(manifest.average.value), reach(manifest.average.interval)
        parts.append(Text(f"Average over the benchmarks: {value} {interval}".rstrip()))
    for name, one in manifest.benchmarks.items():
        if OVERALL in one.agreement:
            parts.append(Text(f"{name}: {agreement_in_words(one.agreement[OVERALL])}"))
    parts += [Text(warning, style="yellow") for warning in manifest.warnings]
    console.print(Group(*parts))


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Prints the paired differences."""
    title = f"Compared with {comparison.name} ({comparison.model})"
    table = plain_table(title, "benchmark", "before", "now", "difference", "95% interval", "n")
    for name, slices in comparison.benchmarks.items():
        for slice_name, found in slices.items():
            table.add_row(
                _label(name, slice_name),
                percent(found.baseline),
                percent(found.candidate),
                signed(found.difference),
                reach(found.interval),
                f"{found.num_items:,}",
            )
    parts: list[RenderableType] = [Text(), table]
    if comparison.average is not None and len(comparison.benchmarks) > 1:
        average = comparison.average
        parts.append(Text(f"Average difference: {signed(average.value)} {reach(average.interval)}".rstrip()))
    console.print(Group(*parts))


def print_choice(choice: Choice, console: Console) -> None:
    """Prints the averages of all checkpoints, the best one, and how far the others are behind."""
    table = plain_table(
        "Average over the benchmarks", "checkpoint", "average", "95% interval", "behind", "95%"
    )
    for name, average in choice.averages.items():
        gap = choice.behind.get(name)
        table.add_row(
            Text(name, style="bold" if name == choice.best else ""),
            percent(average.value),
            reach(average.interval),
            percent(gap.value) if gap else "",
            reach(gap.interval) if gap else "",
        )
    lines = [f"Best: {choice.best}"]
    if choice.not_told_apart:
        lines.append(f"Cannot be told from it: {', '.join(choice.not_told_apart)}")
    lines.append("The best of several is partly the luckiest: measure it again before you report its figure.")
    warning = choice.averages[choice.best].warning
    parts = [Text(line) for line in lines] + ([Text(warning, style="yellow")] if warning else [])
    console.print(Group(table, *parts))


def agreement_in_words(found: JudgeAgreement) -> str:
    """How the judge agrees with people."""
    kappa = found.cohens_kappa
    value = "-" if kappa.value is None else f"{kappa.value:.2f}"
    near = f" ({kappa.interval.low:.2f} to {kappa.interval.high:.2f})" if kappa.interval else ""
    return f"Cohen's kappa of judge and people {value}{near}, on {found.num_pairs:,} labelled answers"


def percent(value: float | None) -> str:
    """A share in percent, or a dash."""
    return "-" if value is None else f"{100 * value:.1f}"


def signed(value: float | None) -> str:
    """A difference in points, or a dash."""
    return "-" if value is None else f"{100 * value:+.1f}"


def reach(interval: Interval | None) -> str:
    """An interval in percent."""
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}" if interval else ""


def slices_of(one: BenchmarkFigures) -> list[str]:
    """What tables show: overall alone, where there is but one slice."""
    return list(one.estimates) if len(one.estimates) > 2 else [OVERALL]


def _label(name: str, slice_name: str) -> str:
    return name if slice_name == OVERALL else f"  {slice_name}"


def _tokens(use: TokenUse) -> str:
    return f"{_short(use.num_prompt)} + {_short(use.num_completion)}"


def _short(number: int) -> str:
    """With three digits at least: 640, 22.7k, 1.25M."""
    for unit, size, digits in (("M", 1_000_000, 2), ("k", 1_000, 1)):
        if number >= size:
            return f"{number / size:,.{digits}f}{unit}"
    return str(number)

"""What a person reads of an evaluation in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.evaluate.compare import Choice, Comparison, figure_lines
from pipeline.evaluate.cost import Expected, Prices
from pipeline.evaluate.judge_agreement import JudgeAgreement
from pipeline.evaluate.results import Manifest
from pipeline.evaluate.statistics import OVERALL, Figure, PairedDifference
from reward.offline.bootstrap import Interval
from reward.offline.terminal import plain_table
from reward.types import TokenUse


def print_expected(expected: Sequence[Expected], prices: Prices, console: Console) -> None:
    """Prints what is still to be asked, and what it will cost."""
    header = ("benchmark", "items", "answers", "tokens", "verdicts", "judge tokens")
    rows = [
        (one.name, one.num_items, one.num_answers, one.model, one.num_judgements, one.judge)
        for one in expected
    ]
    counted = all(one.are_counted for one in expected)
    how = "counted by the servers" if counted else "four characters each, as not every server answers"
    said = [f"Tokens: prompts, {how}, + what is written, as long as so far or assumed."]
    if prices.are_given:
        money = sum(prices.of(one.model, one.judge) for one in expected)
        said.append(f"About {money:,.2f} by the given prices; retries of the judge come on top.")
    console.print(_table("Still to be asked", header, rows), *_texts(said, "dim"), sep="\n")


def print_manifest(manifest: Manifest, comparison: Comparison | None, console: Console) -> None:
    """Prints the figures, what changed since another evaluation, and what to hold against them."""
    lines = [line for line in figure_lines(manifest, comparison) if line.is_shown]
    header = ("benchmark", "score", "value", "95% interval", "n", "unscored")
    table = _table("Figures", header, [(one.label, one.shown_score, *_cells(one.figure)) for one in lines])
    said = [
        f"{name}: {agreement_in_words(one.agreement[OVERALL])}"
        for name, one in manifest.benchmarks.items()
        if one.agreement
    ]
    console.print(table, *_texts(said), *_texts(manifest.warnings, "yellow"), sep="\n")
    if comparison is not None:
        title = f"Compared with {comparison.name} ({comparison.model})"
        header = ("benchmark", "before", "now", "difference", "95% interval", "n")
        changes = [(one.label, one.change) for one in lines if one.change]
        rows = [(label, *_sides(change), *_cells(change, "+")[:3]) for label, change in changes]
        console.print("", _table(title, header, rows), sep="\n")


def print_choice(choice: Choice, console: Console) -> None:
    """Prints the averages of all checkpoints, the best one, and how far the others are behind."""
    header = ("checkpoint", "average", "95% interval", "behind", "95%")
    rows: list[tuple[object, ...]] = []
    for name, one in choice.averages.items():
        label = Text(name, style="bold" if name == choice.best else "")
        rows.append((label, *_cells(one)[:2], *_cells(choice.behind.get(name))[:2]))
    said = [f"Best: {choice.best}"]
    if choice.not_told_apart:
        said.append(f"Cannot be distinguished from it: {', '.join(choice.not_told_apart)}")
    said.append("The best of several is partly the luckiest: measure it again before you report its figure.")
    warning = _texts(filter(None, [choice.averages[choice.best].warning]), "yellow")
    console.print(_table("Average over the benchmarks", header, rows), *_texts(said), *warning, sep="\n")


def agreement_in_words(found: JudgeAgreement) -> str:
    """How the judge agrees with people."""
    kappa = found.cohens_kappa
    value = "-" if kappa.value is None else f"{kappa.value:.2f}"
    near = f" ({kappa.interval.low:.2f} to {kappa.interval.high:.2f})" if kappa.interval else ""
    return f"Cohen's kappa of judge and people {value}{near}, on {found.num_pairs:,} labelled answers"


def percent(value: float | None, sign: str = "") -> str:
    """A share in percent, or a difference in points where `sign` is "+"; a dash where there is none."""
    return "-" if value is None else f"{100 * value:{sign}.1f}"


def reach(interval: Interval | None) -> str:
    """An interval in percent."""
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}" if interval else ""


def _cells(figure: Figure | None, sign: str = "") -> tuple[object, ...]:
    """A figure, its interval, and how many items have it and have it not; an average is not over items."""
    if figure is None:
        return ("",) * 4
    counts = (getattr(figure, name, "") for name in ("num_items", "num_unscored"))
    return (percent(figure.value, sign), reach(figure.interval), *counts)


def _sides(change: Figure) -> tuple[str, str]:
    """Both means of a paired difference."""
    if not isinstance(change, PairedDifference):
        return "", ""
    return percent(change.baseline), percent(change.candidate)


def _table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    table = plain_table(title, *header)
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def _cell(value: object) -> str | Text:
    if isinstance(value, TokenUse):
        return f"{_short(value.num_prompt)} + {_short(value.num_completion)}"
    if isinstance(value, Text):
        return value
    return f"{value:,}" if isinstance(value, int) else str(value)


def _short(number: int) -> str:
    """With three digits at least: 640, 22.7k, 1.25M."""
    for unit, size, digits in (("M", 1_000_000, 2), ("k", 1_000, 1)):
        if number >= size:
            return f"{number / size:,.{digits}f}{unit}"
    return str(number)


def _texts(lines: Iterable[str], style: str = "") -> list[Text]:
    """Lines, which are never read as markup."""
    return [Text(line, style=style) for line in lines]

"""What `march inspect` shows in a terminal: the run by steps, and single answers with their claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestration.inspect.choice import Totals
from orchestration.inspect.run import Run, as_audited, truth_in_words, turn_in_words
from orchestration.inspect.steps import held_out_in_words, in_words, known_columns
from pipeline.record.rollout_rows import RolloutRow
from pipeline.record.tracking import KEPT
from reward.offline.excerpt import printable
from reward.offline.explain import explanation
from reward.offline.terminal import plain_table, spoken

_MOST_STEPS = 25


def print_overview(run: Run, console: Console) -> None:
    """Prints the figures of a run's last steps, and how many answers can be looked at."""
    found = run.steps[-_MOST_STEPS:]
    parts: list[RenderableType] = [Text(printable(run.note), style="dim")] if run.note else []
    if not found:
        parts.append(Text(f"{run.folder}: no step is finished yet", style="yellow"))
    else:
        parts.append(_steps_table(run, found))
        parts += [Text(line, style="dim") for line in _remarks(run, found)]
    console.print(Group(*parts))


def print_answers(run: Run, rows: Sequence[RolloutRow], found: Totals, console: Console) -> None:
    """Prints answers, each with its claims, and how many more fit or were never kept."""
    for row in rows:
        console.print(_answer(row))
        console.print()
    counts = ", ".join(f"{count:,} {spoken(outcome)}" for outcome, count in found.outcomes.items() if count)
    line = f"{len(rows):,} of {found.num_rows:,} answers that fit are shown ({counts or 'none'})"
    more = "; --limit shows more, --html FILE a page of them" if found.num_rows > len(rows) else ""
    console.print(Text(line + more))
    if not run.num_kept:
        console.print(Text(kept_in_words(run), style="yellow"))


def kept_in_words(run: Run) -> str:
    """How many answers are on disk."""
    plural = "" if len(run.steps) == 1 else "s"
    return f"{run.num_kept:,} answers of {len(run.steps):,} step{plural} kept"


def _steps_table(run: Run, steps: Sequence[Mapping[str, float]]) -> Table:
    """One line a step, narrow enough for 80 columns; zeros stay quiet."""
    columns = known_columns(steps)
    table = plain_table(printable(run.name), "step", *(column.short for column in columns), "kept")
    table.padding = (0, 0)
    for step in steps:
        values = [(column, step.get(column.key)) for column in columns]
        cells = [Text(in_words(column, value), "" if value else "dim") for column, value in values]
        table.add_row(f"{step['step']:.0f}", *cells, f"{step.get(KEPT, 0):,.0f}")
    return table


def _remarks(run: Run, steps: Sequence[Mapping[str, float]]) -> list[str]:
    columns = known_columns(steps)
    legend = [f"{column.short} = {column.name}" for column in columns if column.short != column.name]
    lines = [*filter(None, [", ".join(legend), held_out_in_words(run.steps)]), kept_in_words(run)]
    if len(steps) < len(run.steps):
        lines.append(f"the last {len(steps)} of {len(run.steps):,} steps; --html FILE and MLflow have all")
    if run.num_kept:
        lines.append("--step N, --worst or --outcome REFUTED shows answers; --html FILE writes a page")
    return lines


def _answer(row: RolloutRow) -> Group:
    truth = truth_in_words(row)
    said = [f"step {row.step}, answer {row.place}", *([f"truth: {truth}"] if truth else [])]
    facts = [Text(line, style="dim") for line in ("; ".join(said), *map(turn_in_words, row.turns))]
    if row.documents is None:
        facts.append(Text("the documents' texts were not kept", style="yellow"))
    return explanation(as_audited(row), row.verdict, facts)

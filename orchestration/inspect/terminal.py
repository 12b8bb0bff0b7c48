"""What `march inspect` shows in a terminal: the run by steps, and single answers with their claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestration.inspect.run import Run, Totals, as_audited, truth_in_words, turn_in_words
from pipeline.record.rollout_rows import RolloutRow
from pipeline.record.tracking import KEPT
from pipeline.training.held_out import SCORE
from reward.offline.excerpt import printable
from reward.offline.explain import explanation
from reward.offline.terminal import plain_table, spoken

_MOST_STEPS = 25


@dataclass(frozen=True)
class Column:
    """One figure of a step."""

    key: str  # as in steps.jsonl
    short: str  # for a narrow terminal
    name: str
    percent: bool = False


COLUMNS = (
    Column("audit/reward", "reward", "reward"),
    Column("audit/supported_rate", "supp", "supported", percent=True),
    Column("audit/refuted_rate", "ref", "refuted", percent=True),
    Column("audit/no_claims_rate", "none", "no claims", percent=True),
    Column("audit/unscored_rate", "unsc", "unscored", percent=True),
    Column("audit/claims_per_answer", "claims", "claims"),
    Column("audit/vote_agreement", "agree", "voters agree", percent=True),
    Column("canary/support_gap", "gap", "canary gap", percent=True),
    Column("oracle/faithful_rate", "true", "faithful", percent=True),
    Column("oracle/false_accept_rate", "f.acc", "false accepts", percent=True),
    Column("oracle/consensus_accuracy", "right", "consensus right", percent=True),
)


def known_columns(steps: Sequence[Mapping[str, float]]) -> list[Column]:
    """The columns that any step has a figure for."""
    return [column for column in COLUMNS if any(column.key in step for step in steps)]


def in_words(column: Column, value: float | None) -> str:
    """A figure for people; a dash where there is none."""
    if value is None:
        return "\u2013"
    return f"{value:.0%}" if column.percent else f"{value:.2f}"


def held_out_in_words(steps: Sequence[Mapping[str, float]]) -> str:
    """What the best and the last look at the held-out rows say; nothing where there was none."""
    looks = [step for step in steps if "held_out/num_answers" in step]
    scored = [step for step in looks if SCORE in step]
    shown = {"best": max(scored, key=lambda step: step[SCORE])} if scored else {}
    shown |= {"last": looks[-1]} if looks else {}
    return "; ".join(
        f"held out, {name}, step {int(step['step'])}: {_rates(step)}" for name, step in shown.items()
    )


def _rates(step: Mapping[str, float]) -> str:
    rates = {name: step.get(f"held_out/{name}_rate") for name in ("supported", "right", "unscored")}
    return ", ".join(f"{value:.0%} {name}" for name, value in rates.items() if value is not None)


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

"""What a person reads after an offline audit: a summary in the terminal and one HTML page.

The page is self-contained (no script, no font, no address outside it), everything in it is escaped, and it
depends on the audit alone, so the same audit gives the same bytes. It shows the worst rows first and says how
many it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from reward.offline.figures import Agreement, Figures
from reward.offline.rows import AuditRow
from reward.offline.run import Summary
from reward.types import ClaimState, Outcome, RagQuery, Verdict

TEMPLATE = Path(__file__).parent / "templates" / "report.html"
MOST_ROWS = 200
WORST_FIRST = (Outcome.REFUTED, Outcome.UNSCORED, Outcome.NO_CLAIMS, Outcome.SUPPORTED)
_STYLES = {
    Outcome.SUPPORTED: "green",
    Outcome.REFUTED: "red",
    Outcome.NO_CLAIMS: "yellow",
    Outcome.UNSCORED: "magenta",
}
TARGET_NOTE = (
    "Marked: people marked a passage with a digit in it. Refuted: the audit's outcome. "
    "UNSCORED rows are no prediction and are in no other column."
)


@dataclass(frozen=True)
class Segment:
    """A piece of a response and everything that was said about it."""

    text: str
    marks: tuple[str, ...]  # states of claims, "uncovered", "human"


@dataclass(frozen=True)
class ReportRow:
    """One row of the page."""

    query: RagQuery
    segments: Sequence[Segment]
    verdict: Verdict
    task_type: str | None
    human_refuted: bool | None


def print_summary(summary: Summary, console: Console) -> None:
    """Prints the figures of an audit: outcomes, claims and, with human labels, the agreement."""
    figures = summary.figures
    parts: list[Table | Text] = [_outcomes(figures), _claims(figures), Text(coverage(figures), style="dim")]
    if figures.agreement:
        parts += [_agreement(figures.agreement), Text(TARGET_NOTE, style="dim")]
    excluded = ", ".join(f"{n} ({reason})" for reason, n in summary.num_excluded.items())
    parts += [Text(f"Left out of the input: {excluded}", style="dim")] if excluded else []
    console.print(Group(*parts))


def coverage(figures: Figures) -> str:
    """How many numbers of the responses the claims cover, as one sentence."""
    return (
        f"{figures.num_numbers:,} numbers in the responses; {figures.num_uncovered:,} uncovered by any "
        f"claim, in {figures.num_rows_with_uncovered:,} rows; {figures.num_dropped_claims:,} claims dropped"
    )


def render_report(summary: Summary, rows: Iterable[tuple[AuditRow, Verdict]]) -> str:
    """Returns the page; of more than `MOST_ROWS` rows it shows the worst."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["ratio"] = ratio
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    shown = [_report_row(row, verdict) for row, verdict in _worst(rows, summary.figures)]
    return template.render(
        summary=summary,
        figures=summary.figures,
        rows=shown,
        tiles=list(Outcome),
        outcomes=list(WORST_FIRST),
        states=list(ClaimState),
        coverage=coverage(summary.figures),
        target_note=TARGET_NOTE,
    )


def ratio(value: float | None) -> str:
    """A share with three digits, or a dash where it is not defined."""
    return "-" if value is None else f"{value:.3f}"


def segment(text: str, marks: Iterable[tuple[int, int, str]]) -> list[Segment]:
    """Cuts a text wherever a mark (start, end, name) starts or ends; the pieces joined are the text."""
    inside = [(max(0, start), min(len(text), end), name) for start, end, name in marks]
    cuts = sorted(
        {0, len(text), *(place for start, end, _ in inside if start < end for place in (start, end))}
    )
    return [
        Segment(text[low:high], tuple(sorted({name for a, b, name in inside if a <= low and high <= b})))
        for low, high in pairwise(cuts)
    ]


def _worst(rows: Iterable[tuple[AuditRow, Verdict]], figures: Figures) -> list[tuple[AuditRow, Verdict]]:
    room, quota = MOST_ROWS, {}
    for outcome in WORST_FIRST:
        quota[outcome] = min(room, figures.outcomes[outcome])
        room -= quota[outcome]
    chosen: dict[Outcome, list[tuple[AuditRow, Verdict]]] = {outcome: [] for outcome in WORST_FIRST}
    for row, verdict in rows:
        if len(chosen[verdict.outcome]) < quota[verdict.outcome]:
            chosen[verdict.outcome].append((row, verdict))
    return [pair for outcome in WORST_FIRST for pair in chosen[outcome]]


def _report_row(row: AuditRow, verdict: Verdict) -> ReportRow:
    marks = [(c.claim.span.start, c.claim.span.end, c.state.value) for c in verdict.claims if c.claim.span]
    marks += [(span.start, span.end, "uncovered") for span in verdict.uncovered]
    marks += [(span.start, span.end, "human") for span in row.human_spans or ()]
    segments = segment(row.response, marks)
    return ReportRow(row.query, segments, verdict, row.task_type, row.human_refuted)


def _outcomes(figures: Figures) -> Table:
    table = _table("Outcomes", "outcome", "rows", "share")
    for outcome in Outcome:
        count, share = f"{figures.outcomes[outcome]:,}", f"{figures.rates[outcome]:.1%}"
        table.add_row(Text(outcome, style=_STYLES[outcome]), count, share)
    table.add_section()
    table.add_row("all", f"{figures.num_rows:,}", "")
    return table


def _claims(figures: Figures) -> Table:
    table = _table("Claims", "state", "claims", "share")
    for state, count in figures.claim_states.items():
        if count:
            table.add_row(state.replace("_", " "), f"{count:,}", f"{count / figures.num_claims:.1%}")
    table.add_section()
    table.add_row("all", f"{figures.num_claims:,}", "")
    return table


def _agreement(agreement: dict[str, Agreement]) -> Table:
    columns = ("n", "marked", "refuted", "precision", "recall", "F1", "unscored")
    table = _table("Agreement with people", "rows", *columns)
    for name, found in agreement.items():
        marked = found.true_positives + found.false_negatives
        refuted = found.true_positives + found.false_positives
        counts = [f"{count:,}" for count in (found.n, marked, refuted)]
        ratios = [ratio(value) for value in (found.precision, found.recall, found.f1)]
        table.add_row(name, *counts, *ratios, f"{found.num_unscored:,}")
    return table


def _table(title: str, first: str, *numeric: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column(first)
    for name in numeric:
        table.add_column(name, justify="right")
    return table

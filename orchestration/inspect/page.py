"""The page of `march inspect RUN --html`: figures by step, filters, and answers with their claims.

It is made of the parts of the audit's page (`reward/offline/page.py`) and as safe to open. It shows a part of
a large run only, and says how many answers it leaves out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestration.inspect.choice import Totals
from orchestration.inspect.run import Run, as_audited, truth_in_words, turn_in_words
from orchestration.inspect.steps import bins, in_words, known_columns
from orchestration.inspect.terminal import MOST_BINS, kept_in_words
from pipeline.record.rollout_rows import RolloutRow
from reward.offline.page import render_page, stacked_bar
from reward.offline.report import ReportRow, report_row, script_data
from reward.types import ClaimState, Outcome

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Shown:
    """One answer of the page."""

    one: ReportRow
    row: RolloutRow
    truth: str
    turns: Sequence[str]


def render_run(run: Run, rows: Sequence[RolloutRow], found: Totals) -> str:
    """Returns the page.

    Args:
        run: Whose figures are shown.
        rows: The answers to show, in order.
        found: Counts over all answers that fit, shown or not.
    """
    grouped = bins(run.steps, MOST_BINS)
    columns = known_columns(grouped)
    shown = [_shown(row) for row in rows]
    return render_page(
        "run.html",
        folder=_TEMPLATES,
        style=(_TEMPLATES / "run.css").read_text(encoding="utf-8"),
        run=run,
        kept=kept_in_words(run),
        columns=[column.name for column in columns],
        table=[
            (one.label, [in_words(column, one.figures.get(column.key)) for column in columns])
            for one in grouped
        ],
        figures=found,
        rows=shown,
        steps=sorted({row.step for row in rows}),
        truths=list(dict.fromkeys(one.truth for one in shown if one.truth)),
        outcomes=list(Outcome),
        states=list(ClaimState),
        outcome_bar=stacked_bar(found.outcomes),
        state_bar=stacked_bar(found.claim_states),
        without_documents=any(row.documents is None for row in rows),
        data=script_data(one.one for one in shown),
    )


def _shown(row: RolloutRow) -> Shown:
    one = report_row(as_audited(row), row.verdict, None)
    return Shown(
        one=dataclasses.replace(one, anchor=f"row-{row.step}-{row.place}"),
        row=row,
        truth=truth_in_words(row),
        turns=[turn_in_words(turn) for turn in row.turns],
    )

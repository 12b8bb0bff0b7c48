"""The page of `march inspect RUN --html`: charts over the steps, filters, and answers with their claims.

It is made of the parts of the audit's page (`reward/offline/page.py`) and as safe to open. It shows a part of
a large run only, and says how many answers it leaves out; a click on a step in a chart filters by it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestration.inspect.charts import HEIGHT, WIDTH, charts, columns_of, outcome_stacks
from orchestration.inspect.choice import Totals
from orchestration.inspect.run import Run, as_audited, truth_in_words, turn_in_words
from orchestration.inspect.steps import bins
from orchestration.inspect.terminal import kept_in_words
from pipeline.record.rollout_rows import RolloutRow
from reward.offline.page import render_page, stacked_bar
from reward.offline.report import ReportRow, report_row, script_data
from reward.types import ClaimState, Outcome

_TEMPLATES = Path(__file__).parent / "templates"
_MOST_BINS = 150


@dataclass(frozen=True)
class Shown:
    """One answer of the page."""

    one: ReportRow
    row: RolloutRow
    steps: str  # the bin of its step
    truth: str
    turns: Sequence[str]


def render_run(run: Run, rows: Sequence[RolloutRow], found: Totals) -> str:
    """Returns the page.

    Args:
        run: Whose charts are drawn.
        rows: The answers to show, in order.
        found: Counts over all answers that fit, shown or not.
    """
    drawn = bins(run.steps, _MOST_BINS)
    labels = {step: one.label for one in drawn for step in range(one.first, one.last + 1)}
    shown = [_shown(row, labels) for row in rows]
    held = {one.steps for one in shown}
    return render_page(
        "run.html",
        folder=_TEMPLATES,
        style=(_TEMPLATES / "run.css").read_text(encoding="utf-8"),
        run=run,
        kept=kept_in_words(run),
        bins=drawn,
        charts=charts(drawn),
        stacks=outcome_stacks(drawn),
        columns=columns_of(len(drawn)),
        width=WIDTH,
        height=HEIGHT,
        figures=found,
        rows=shown,
        steps=[one.label for one in drawn if one.label in held],
        truths=list(dict.fromkeys(one.truth for one in shown if one.truth)),
        outcomes=list(Outcome),
        states=list(ClaimState),
        outcome_bar=stacked_bar(found.outcomes),
        state_bar=stacked_bar(found.claim_states),
        without_documents=any(row.documents is None for row in rows),
        data=script_data(one.one for one in shown),
    )


def _shown(row: RolloutRow, labels: Mapping[int, str]) -> Shown:
    one = report_row(as_audited(row), row.verdict)
    return Shown(
        one=dataclasses.replace(one, anchor=f"row-{row.step}-{row.place}"),
        row=row,
        steps=labels[row.step],
        truth=truth_in_words(row),
        turns=[turn_in_words(turn) for turn in row.turns],
    )

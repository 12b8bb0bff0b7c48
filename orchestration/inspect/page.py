"""The page of `march inspect RUN --html`: figures by step, filters, and answers with their claims.

It is made of the parts of the audit's page (`reward/offline/page.py`) and as safe to open. It shows a part of
a large run only, and says how many answers it leaves out.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from orchestration.inspect.run import Run, Totals, as_audited, truth_in_words, turn_in_words
from orchestration.inspect.terminal import in_words, kept_in_words, known_columns
from pipeline.record.rollout_rows import RolloutRow
from reward.offline.page import render_page, stacked_bar
from reward.offline.report import report_row, script_data
from reward.types import ClaimState, Outcome

_TEMPLATES = Path(__file__).parent / "templates"


def render_run(run: Run, rows: Sequence[RolloutRow], found: Totals) -> str:
    """The page of some answers, with counts over all that fit, shown or not."""
    columns = known_columns(run.steps)
    views = [report_row(as_audited(row), row.verdict) for row in rows]
    views = [replace(one, anchor=f"row-{row.step}-{row.place}") for one, row in zip(views, rows, strict=True)]
    truths = [truth_in_words(row) for row in rows]
    return render_page(
        "run.html",
        folder=_TEMPLATES,
        style=(_TEMPLATES / "run.css").read_text(encoding="utf-8"),
        run=run,
        kept=kept_in_words(run),
        columns=[column.name for column in columns],
        table=[
            (int(step["step"]), [in_words(column, step.get(column.key)) for column in columns])
            for step in run.steps
        ],
        figures=found,
        rows=list(zip(views, rows, truths, strict=True)),
        in_words=turn_in_words,
        steps=sorted({row.step for row in rows}),
        truths=list(dict.fromkeys(filter(None, truths))),
        outcomes=list(Outcome),
        states=list(ClaimState),
        outcome_bar=stacked_bar(found.outcomes),
        state_bar=stacked_bar(found.claim_states),
        without_documents=any(row.documents is None for row in rows),
        data=script_data(views),
    )

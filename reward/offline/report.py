"""The page that a person reads after an audit: one HTML file that works from a disk, with no network.

Totals, agreement with people, what changed since another audit, filters, and each answer with its numbers
coloured; a click on a number opens its claim with the votes and the evidence marked in its document.

The page is safe to open (`reward/offline/page.py`) and depends on the audit alone, so the same audit gives
the same bytes. It shows the rows that turned and the worst rows first, and says how many it leaves out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from reward.offline.agreement import OVERALL
from reward.offline.compare import Comparison, Turn
from reward.offline.figures import Figures
from reward.offline.page import render_page, stacked_bar
from reward.offline.report_rows import report_row, script_data
from reward.offline.rows import AuditRow
from reward.offline.run import Summary
from reward.offline.targets import Target
from reward.offline.terminal import TARGET_NOTE, paired_sentence, remarks, rows_sentence
from reward.types import ClaimState, Outcome, Verdict

MOST_ROWS = 500
WORST_FIRST = (Outcome.REFUTED, Outcome.UNSCORED, Outcome.NO_CLAIMS, Outcome.SUPPORTED)
_MOST_TURNED = 200


def render_report(
    summary: Summary, rows: Iterable[tuple[AuditRow, Verdict]], comparison: Comparison | None = None
) -> str:
    """Returns the page; of more than `MOST_ROWS` rows it shows those that turned, then the worst."""
    turns = {turn.id: turn for turn in comparison.turned} if comparison else {}
    shown = [
        report_row(row, verdict, turns.get(verdict.id)) for row, verdict in _chosen(rows, summary, turns)
    ]
    return render_page(
        "report.html",
        summary=summary,
        name=Path(summary.input).name,
        figures=summary.figures,
        remarks=remarks(summary.figures),
        rows=shown,
        groups=sorted({one.group for one in shown}),
        human_groups=sorted(summary.figures.human, key=lambda name: (name == OVERALL, name)),
        targets=list(Target),
        target_note=TARGET_NOTE,
        outcomes=list(Outcome),
        states=list(ClaimState),
        outcome_bar=stacked_bar(summary.figures.outcomes),
        state_bar=stacked_bar(summary.figures.claim_states),
        comparison=comparison,
        comparison_sentences=_sentences(comparison),
        most_turned=_MOST_TURNED,
        shown_ids={one.verdict.id for one in shown},
        data=script_data(shown),
        settings=json.dumps(summary.settings, indent=2, sort_keys=True, ensure_ascii=False),
    )


def _chosen(
    rows: Iterable[tuple[AuditRow, Verdict]], summary: Summary, turns: Mapping[str, Turn]
) -> list[tuple[AuditRow, Verdict]]:
    """The rows to show in the order to show them, without holding any other."""
    quota = _quota(summary.figures, turns.values())
    turned: list[tuple[AuditRow, Verdict]] = []
    others: dict[Outcome, list[tuple[AuditRow, Verdict]]] = {outcome: [] for outcome in WORST_FIRST}
    for row, verdict in rows:
        if verdict.id in turns:
            turned += [(row, verdict)] if len(turned) < MOST_ROWS else []
        elif len(others[verdict.outcome]) < quota[verdict.outcome]:
            others[verdict.outcome].append((row, verdict))
    return [*turned, *(pair for outcome in WORST_FIRST for pair in others[outcome])]


def _quota(figures: Figures, turns: Iterable[Turn]) -> dict[Outcome, int]:
    """How many rows of each outcome find room beside those that turned."""
    turned = Counter(turn.after for turn in turns)
    room = max(0, MOST_ROWS - turned.total())
    quota = {}
    for outcome in WORST_FIRST:
        quota[outcome] = min(room, figures.outcomes[outcome] - turned[outcome])
        room -= quota[outcome]
    return quota


def _sentences(comparison: Comparison | None) -> list[str]:
    if comparison is None:
        return []
    if comparison.refuted is None:
        return ["Only the other audit's summary is there, so rows cannot be compared one by one."]
    return [paired_sentence(comparison.refuted), rows_sentence(comparison)]

"""The page that a person reads after an audit: one HTML file that works from a disk, with no network.

Totals, agreement with people, filters, and each answer with its numbers coloured; a click on a number opens
its claim with the votes and the evidence marked in its document.

Documents are shared by the answers about them, so each is in the page once. They and the claims are JSON for
the page's script, which writes it as text and never as HTML. Places are in code points, as everywhere in the
audit.

The page is safe to open (`reward/offline/page.py`) and depends on the audit alone, so the same audit gives
the same bytes. It shows the worst rows first, and says how many it leaves out.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path

from pydantic import JsonValue

from reward.offline.agreement import OVERALL, Target, marked
from reward.offline.excerpt import Segment, response_marks, segment, windows
from reward.offline.page import anchor, inert, render_page, stacked_bar
from reward.offline.rows import AuditRow
from reward.offline.run import Summary
from reward.offline.terminal import TARGET_NOTE, remarks
from reward.types import ClaimState, Document, Outcome, Verdict

MOST_ROWS = 500
WORST_FIRST = (Outcome.REFUTED, Outcome.UNSCORED, Outcome.NO_CLAIMS, Outcome.SUPPORTED)
MOST_DOCUMENT_CHARS = 20_000


@dataclass(frozen=True)
class ReportRow:
    """One answer of the page."""

    anchor: str
    row: AuditRow
    verdict: Verdict
    pieces: Sequence[Segment]
    marked: bool | None

    @property
    def group(self) -> str:
        return self.row.task_type or OVERALL

    @property
    def kinds(self) -> str:
        return " ".join(dict.fromkeys(found.claim.kind for found in self.verdict.claims))

    @property
    def states(self) -> str:
        """The states of the claims, each once, and "uncovered"."""
        states = [found.state.value for found in self.verdict.claims]
        return " ".join(dict.fromkeys([*states, *(["uncovered"] if self.verdict.uncovered else [])]))


def render_report(summary: Summary, rows: Iterable[tuple[AuditRow, Verdict]]) -> str:
    """Returns the page; of more than `MOST_ROWS` rows it shows the worst."""
    chosen = nsmallest(MOST_ROWS, rows, key=lambda pair: WORST_FIRST.index(pair[1].outcome))
    shown = [report_row(row, verdict) for row, verdict in chosen]
    return render_page(
        "report.html",
        summary=summary,
        name=Path(summary.input).name,
        figures=summary.figures,
        remarks=remarks(summary.figures),
        rows=shown,
        groups=sorted({one.group for one in shown}),
        target_note=TARGET_NOTE,
        outcomes=list(Outcome),
        states=list(ClaimState),
        outcome_bar=stacked_bar(summary.figures.outcomes),
        state_bar=stacked_bar(summary.figures.claim_states),
        data=script_data(shown),
        settings=json.dumps(summary.settings, indent=2, sort_keys=True, ensure_ascii=False),
    )


def report_row(row: AuditRow, verdict: Verdict) -> ReportRow:
    pieces = segment(row.response, response_marks(row, verdict))
    return ReportRow(anchor(verdict.id), row, verdict, pieces, marked(row, Target.PLAIN))


def script_data(rows: Iterable[ReportRow]) -> str:
    """Claims and documents of the rows as JSON that is safe inside a script element.

    {"documents": [{"id", "title", "size", "parts": [{"start", "text"}]}],
     "rows": {ANCHOR: {"documents": [place in documents], "claims": [`ClaimVerdict`]}}}
    """
    places: dict[Document, int] = {}
    spans: dict[Document, set[tuple[int, int]]] = {}
    entries: dict[str, JsonValue] = {}
    for one in rows:
        documents = one.row.query.documents
        for document in documents:
            places.setdefault(document, len(places))
            spans.setdefault(document, set()).update(_evidence_in(document, one.verdict))
        entries[one.anchor] = {
            "documents": [places[document] for document in documents],
            "claims": [found.model_dump(mode="json") for found in one.verdict.claims],
        }
    texts: list[JsonValue] = [_document(document, sorted(spans[document])) for document in places]
    return inert(json.dumps({"documents": texts, "rows": entries}, ensure_ascii=False, separators=(",", ":")))


def _evidence_in(document: Document, verdict: Verdict) -> set[tuple[int, int]]:
    found = (vote.evidence_at for claim in verdict.claims for vote in claim.votes if vote is not None)
    return {(at.start, at.end) for at in found if at is not None and at.document == document.id}


def _document(document: Document, spans: Sequence[tuple[int, int]]) -> JsonValue:
    text = document.text
    parts = windows(len(text), spans, most=MOST_DOCUMENT_CHARS)
    return {
        "id": document.id,
        "title": document.title,
        "size": len(text),
        "parts": [{"start": low, "text": text[low:high]} for low, high in parts],
    }

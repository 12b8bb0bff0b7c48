"""The page that a person reads after an audit: one HTML file that works from a disk, with no network.

Totals, agreement with people, what changed since another audit, filters, and each answer with its numbers
coloured; a click on a number opens its claim with the votes and the evidence marked in its document.

Documents are shared by the answers about them, so each is in the page once. They and the claims are JSON for
the page's script, which writes it as text and never as HTML. Places are in code points, as everywhere in the
audit.

The page is safe to open (`reward/offline/page.py`) and depends on the audit alone, so the same audit gives
the same bytes. It shows the rows that turned and the worst rows first, and says how many it leaves out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from reward.offline.agreement import OVERALL, Target, kind_of, marked
from reward.offline.compare import Comparison, Turn
from reward.offline.excerpt import response_marks, segment, windows
from reward.offline.figures import Figures
from reward.offline.page import anchor, inert, render_page, stacked_bar
from reward.offline.rows import AuditRow
from reward.offline.run import Summary
from reward.offline.terminal import TARGET_NOTE, paired_sentence, remarks, rows_sentence
from reward.types import Answer, ClaimState, ClaimVerdict, Document, Outcome, Verdict

MOST_ROWS = 500
WORST_FIRST = (Outcome.REFUTED, Outcome.UNSCORED, Outcome.NO_CLAIMS, Outcome.SUPPORTED)
_MOST_TURNED = 200
MOST_DOCUMENT_CHARS = 20_000


@dataclass(frozen=True)
class Piece:
    """A piece of a response: what was said about it, and the claim that it belongs to."""

    text: str
    marks: Sequence[str]  # its state, "human", and "unended" where its number goes on in the next piece
    state: str  # the claim's state, "uncovered" or nothing
    claim: int | None


@dataclass(frozen=True)
class ReportRow:
    """One answer of the page."""

    anchor: str
    row: AuditRow
    verdict: Verdict
    pieces: Sequence[Piece]
    marked: bool | None
    turn: Turn | None

    @property
    def group(self) -> str:
        """The task type that the page filters by."""
        return self.row.task_type or OVERALL

    @property
    def kinds(self) -> str:
        """The kinds of the claims, each once."""
        return " ".join(dict.fromkeys(map(kind_of, self.verdict.claims)))

    @property
    def states(self) -> str:
        """The states of the claims, each once, and "uncovered"."""
        states = [found.state.value for found in self.verdict.claims]
        return " ".join(dict.fromkeys([*states, *(["uncovered"] if self.verdict.uncovered else [])]))


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


def report_row(row: AuditRow, verdict: Verdict, turn: Turn | None) -> ReportRow:
    """Prepares one answer."""
    return ReportRow(anchor(verdict.id), row, verdict, _pieces(row, verdict), marked(row, Target.PLAIN), turn)


def script_data(rows: Iterable[ReportRow]) -> str:
    """Claims and documents of the rows as JSON that is safe inside a script element.

    {"documents": [{"id", "title", "size", "parts": [{"start", "text"}]}],
     "rows": {ANCHOR: {"documents": [place in documents], "voters": n, "claims": [...]}}}
    """
    shown = list(rows)
    places: dict[Document, int] = {}
    spans: dict[Document, set[tuple[int, int]]] = {}
    entries: dict[str, JsonValue] = {}
    for one in shown:
        documents = one.row.query.documents
        for document in documents:
            places.setdefault(document, len(places))
            spans.setdefault(document, set()).update(_evidence_in(document, one.verdict))
        entries[one.anchor] = {
            "id": one.verdict.id,
            "documents": [places[document] for document in documents],
            "claims": [_claim(found) for found in one.verdict.claims],
        }
    texts: list[JsonValue] = [_document(document, sorted(spans[document])) for document in places]
    text = json.dumps({"documents": texts, "rows": entries}, ensure_ascii=False, separators=(",", ":"))
    return inert(text)


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


def _pieces(row: AuditRow, verdict: Verdict) -> list[Piece]:
    """The response cut where a number or a mark of people starts or ends."""
    states = {f"claim-{found.claim.index}": found for found in verdict.claims}
    marks = [(a, b, name) for a, b, name in response_marks(row, verdict) if name in ("uncovered", "human")]
    marks += [
        (found.claim.span.start, found.claim.span.end, name)
        for name, found in states.items()
        if found.claim.span is not None
    ]
    cuts = segment(row.response, marks)
    owners = [next((states[mark] for mark in cut.marks if mark in states), None) for cut in cuts]
    pieces = []
    for cut, found, after in zip(cuts, owners, [*owners, None][1:], strict=True):
        state = found.state.value if found else "uncovered" if "uncovered" in cut.marks else ""
        names = [
            state,
            "human" if "human" in cut.marks else "",
            "unended" if found and found is after else "",
        ]
        claim = found.claim.index if found else None
        pieces.append(Piece(cut.text, [name for name in names if name], state, claim))
    return pieces


def _claim(found: ClaimVerdict) -> dict[str, JsonValue]:
    return {
        "index": found.claim.index,
        "kind": kind_of(found),
        "question": found.claim.question,
        "source": found.claim.source.value,
        "said": found.claim.answer,
        "state": found.state.value,
        "found": found.consensus,
        "holds": found.evidence_holds_consensus,
        "note": found.note,
        "entropy": round(found.entropy, 4),
        "tally": [[option, count] for option, count in found.tally.items()],
        "votes": [_vote(answer) for answer in found.votes],
    }


def _vote(answer: Answer | None) -> JsonValue:
    if answer is None:
        return None
    at = answer.evidence_at
    place: JsonValue = [at.document, at.start, at.end] if at else None
    return {"value": answer.value, "evidence": answer.evidence, "at": place}


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

"""What the page shows of each answer: its text in coloured pieces, and its claims and documents as data.

Documents are shared by the answers about them, so each stands in the page once. The data is JSON for the
page's script, which writes it as text and never as HTML. Places are in code points, as everywhere in the
audit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from pydantic import JsonValue

from reward.offline.agreement import OVERALL
from reward.offline.compare import Turn
from reward.offline.excerpt import response_marks, segment, windows
from reward.offline.rows import AuditRow
from reward.offline.targets import Target
from reward.types import Answer, ClaimVerdict, Document, Verdict

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
    def states(self) -> str:
        """The states of the claims, each once, and "uncovered"."""
        states = [found.state.value for found in self.verdict.claims]
        return " ".join(dict.fromkeys([*states, *(["uncovered"] if self.verdict.uncovered else [])]))


def report_row(row: AuditRow, verdict: Verdict, turn: Turn | None) -> ReportRow:
    """Prepares one answer."""
    return ReportRow(anchor(verdict.id), row, verdict, _pieces(row, verdict), row.marked(Target.PLAIN), turn)


def anchor(row_id: str) -> str:
    """The address of an answer within the page, as it stands after the #."""
    return f"row-{quote(row_id, safe=':@!$,;=~')}"


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


def inert(text: str) -> str:
    """JSON in which nothing can end or open an element."""
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text

"""One answer's whole path through an audit, for the terminal: `march audit IN --explain ID`.

The response with its numbers coloured, then each claim with its question, votes, consensus and evidence where
it is in its document, then what no claim covers, what was not read, the judgement, and what made it.
"""

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.text import Text

from reward.offline.excerpt import printable, response_marks, segment, sentence
from reward.offline.inputs import read_rows
from reward.offline.resume import read_verdicts
from reward.offline.rows import AuditRow
from reward.offline.run import AuditJob
from reward.offline.terminal import STYLES, indented, spoken, styled
from reward.types import Answer, ClaimVerdict, DocumentSpan, Verdict

_SURROUNDINGS = 160  # characters of a document shown on each side of the evidence
_MARK_STYLES = {
    **{str(state): f"bold {style}" for state, style in STYLES.items()},
    "uncovered": "bold black on yellow",
    "human": "underline",
}


def find_row(job: AuditJob, row_id: str) -> AuditRow:
    """The row of a job's input that has an id.

    Raises:
        ValueError: no row has it, and the ids that look most like it are named, or it takes no part.
    """
    ids = []
    for row in read_rows(job.input, job.input_format):  # those beyond a limit, too
        if row.query.id == row_id and row.excluded:
            raise ValueError(f"{row.place}: row {row_id!r} takes no part in an audit: {row.excluded}")
        if row.query.id == row_id:
            return row
        ids.append(row.query.id)
    close = ", ".join(repr(one) for one in difflib.get_close_matches(row_id, ids, n=3))
    fix = f"did you mean {close}?" if close else "give the id of a row"
    raise ValueError(f"{job.input}: no row has the id {row_id!r}; {fix}")


def find_verdict(output: Path, row: AuditRow) -> Verdict | None:
    """The verdict that an output holds on a row as it is now; None without one.

    Raises:
        ValueError: the output is none.
    """
    if not output.exists():
        return None
    same = [one for one in read_verdicts(output) if (one.id, one.input_sha256) == (row.query.id, row.digest)]
    return same[-1] if same else None  # of an interrupted audit, the last one on a row counts


def explanation(row: AuditRow, verdict: Verdict, facts: Sequence[Text] = ()) -> Group:
    """How an audit came to its verdict on one response, and what else is known of it.

    A document whose text is empty shows the evidence without what is around it.
    """
    return Group(*_parts(row, verdict, facts))


def _parts(row: AuditRow, verdict: Verdict, facts: Sequence[Text]) -> Iterator[RenderableType]:
    outcome = styled(verdict.outcome, "bold")
    yield Rule(Text.assemble(outcome, f" {printable(verdict.id)}"))
    yield from map(indented, facts)
    yield _field("query", row.query.query)
    yield Text("response", style="dim")
    yield from _response(row, verdict)
    for found in verdict.claims:
        yield Text()
        yield from _claim(row, verdict, found)
    yield Text()
    yield from _left_out(row, verdict)
    reward = "no reward" if verdict.reward is None else f"reward {verdict.reward:g}"
    reason = f", {spoken(verdict.reason)}" if verdict.reason else ""
    detail = f": {printable(verdict.detail)}" if verdict.detail else ""
    yield Text.assemble(("judgement  ", "dim"), outcome, f", {reward}{reason}{detail}")
    yield Text(f"made by    {printable(_made_by(verdict))}", style="dim")


def _response(row: AuditRow, verdict: Verdict) -> Iterator[RenderableType]:
    """The response with its marks coloured, and what the colours mean."""
    marks = response_marks(row, verdict)
    text = Text()
    for piece in segment(printable(row.response), marks):
        text.append(piece.text, " ".join(_MARK_STYLES[name] for name in piece.names))
    yield indented(text)
    words = {"uncovered": "covered by no claim", "human": "marked by people"}
    legend = Text("  ")
    for name in dict.fromkeys(mark.name for mark in marks):
        legend.append(words.get(name, spoken(name)), _MARK_STYLES[name]).append("  ")
    yield legend


def _claim(row: AuditRow, verdict: Verdict, found: ClaimVerdict) -> Iterator[RenderableType]:
    claim, kind = found.claim, found.claim.kind
    yield Text.assemble(
        f"claim {claim.index} of {len(verdict.claims)}: ",
        (printable(claim.answer), "bold"),
        ": ",
        styled(found.state, "bold"),
        (f"  ({kind}, asked by {claim.source})", "dim"),
    )
    yield _field("question", claim.question)
    tally = ", ".join(f"{option} ({count})" for option, count in found.tally.items()) or "no readable vote"
    yield _field("votes", f"{tally}; entropy {found.entropy:.2f} nats")
    yield _field("consensus", found.consensus if found.consensus is not None else f"no {kind}")
    if found.evidence_holds_consensus is False:
        yield _field("evidence", f"does not hold the {kind} of the consensus", style="yellow")
    if found.note:
        yield _field("note", found.note)
    for number, answer in enumerate(found.votes, start=1):
        yield from _vote(row, number, answer)


def _vote(row: AuditRow, number: int, answer: Answer | None) -> Iterator[RenderableType]:
    if answer is None:
        yield _field(f"vote {number}", "could not be read", style="dim")
        return
    yield _field(f"vote {number}", answer.value if answer.value is not None else "cannot answer")
    if answer.evidence_at is not None:
        yield indented(_in_document(row, answer.evidence_at, answer.evidence), 6)
    elif answer.evidence:
        said = f"{answer.evidence}\n(is in no document verbatim)"
        yield indented(Text(printable(said), style="yellow"), 6)


def _in_document(row: AuditRow, at: DocumentSpan, evidence: str) -> Text:
    document = next((one for one in row.query.documents if one.id == at.document), None)
    if document is None:
        return Text(f"document {at.document!r} is not among the documents", style="yellow")
    text, low = document.text, max(0, at.start - _SURROUNDINGS)
    high = min(len(text), at.end + _SURROUNDINGS)
    head = f"{document.id}, {document.title}" if document.title else document.id
    place = (f"{printable(head)}, characters {at.start} to {at.end}\n", "dim")
    if at.end > len(text):
        return Text.assemble(place, (printable(evidence), "bold black on green"))
    return Text.assemble(
        place,
        ("\u2026" if low else "") + printable(text[low : at.start]),
        (printable(text[at.start : at.end]), "bold black on green"),
        printable(text[at.end : high]) + ("\u2026" if high < len(text) else ""),
    )


def _left_out(row: AuditRow, verdict: Verdict) -> Iterator[RenderableType]:
    for span in verdict.uncovered:
        number = row.response[span.start : span.end]
        around = sentence(row.response, span.start, span.end)
        yield _field("uncovered", f"{number} in: {around}", style="yellow")
    for part in verdict.unread:
        yield _field("not read", f"{part.document}, characters {part.start} to {part.end}", style="yellow")
    for count, words in (
        (verdict.num_dropped_claims, "claims about what the response does not hold"),
        (verdict.num_malformed_claims, "lines of the Proposer that could not be used"),
    ):
        if count:
            yield _field("dropped", f"{words}: {count}", style="yellow")


def _made_by(verdict: Verdict) -> str:
    made = verdict.provenance
    if made is None:
        return "unknown"
    said = [f"{made.auditor} auditor", made.model, f"version {made.version}"]
    said += [f"settings {made.config_digest[:12]}"]
    said += [f"prompts {made.prompt_digest[:12]}"] if made.prompt_digest else []
    said += [f"seed {made.seed}"] if made.seed is not None else []
    said += [f"weights {verdict.weights_version}"] if verdict.weights_version is not None else []
    return ", ".join(filter(None, said))


def _field(name: str, value: str, style: str = "") -> RenderableType:
    return indented(Text.assemble((f"{name:<10}", "dim"), (printable(value), style)))

"""Shared by the tests of `march audit`: small jobs, who watches them, and what they leave."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reward.config import AuditConfig
from reward.offline.resume import AuditedRow, read_verdicts
from reward.offline.rows import AuditRow
from reward.offline.run import AuditJob, Summary, audited_rows, run_audit
from reward.samplers import Sampler
from reward.types import (
    Answer,
    Claim,
    ClaimState,
    ClaimVerdict,
    Document,
    DocumentSpan,
    Outcome,
    RagQuery,
    Span,
    Verdict,
)

RAGTRUTH = Path(__file__).parent / "data" / "ragtruth"


class Watch:
    """A progress that remembers what it was told."""

    def __init__(self) -> None:
        self.started: tuple[int, int] | None = None
        self.audited: list[str] = []

    def start(self, total: int, done: int) -> None:
        self.started = (total, done)

    def advance(self, verdict: Verdict) -> None:
        self.audited.append(verdict.id)


def shop_row(price: int, said: int | None = None) -> dict[str, Any]:
    """A row about a price; `said` is what the response says in its place."""
    document = {"id": "d", "title": "", "text": f"It costs {price} euros."}
    response = f"It is {price if said is None else said} euros."
    return {"id": f"r{price}", "query": "How much?", "documents": [document], "response": response}


def shop_rows(num_rows: int) -> list[dict[str, Any]]:
    """Rows r100, r101 and so on, of which every fourth is wrong."""
    return [shop_row(100 + i, said=7 if i % 4 == 3 else None) for i in range(num_rows)]


def shop_file(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Writes rows to `in.jsonl` of a folder."""
    path = folder / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def shop_job(folder: Path, num_rows: int = 12, **changes: Any) -> AuditJob:
    """A job on `shop_rows`."""
    given: dict[str, Any] = {"output": folder / "out.jsonl", "audit": AuditConfig(prompts="compact")}
    if "input" not in changes:
        given["input"] = shop_file(folder, shop_rows(num_rows))
    return AuditJob.model_validate(given | changes)


def ragtruth_job(folder: Path, **changes: Any) -> AuditJob:
    """A job on the tests' RAGTruth answers."""
    return AuditJob.model_validate({"input": RAGTRUTH, "output": folder / "out.jsonl"} | changes)


def run(job: AuditJob, sampler: Sampler | None = None) -> tuple[Summary, bool, Watch]:
    """Runs a job; returns its summary, whether anything changed, and who watched."""
    watch = Watch()
    summary, changed = run_audit(job, watch, sampler=sampler)
    return summary, changed, watch


def verdicts(job: AuditJob) -> list[AuditedRow]:
    """What a job wrote."""
    return list(read_verdicts(job.output))


def pairs(job: AuditJob) -> list[tuple[AuditRow, AuditedRow]]:
    """What a job wrote beside what it was made from."""
    return list(audited_rows(job))


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Content and time of change of each file in a folder."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


JULY = "In July the picnic in Kabul raised 466 euros \U0001f600. It drew 50 people."
MAY = "The May picnic in Kabul raised 120 euros."


def quoted(value: str, evidence: str) -> Answer:
    """A vote whose evidence stands in one of the picnic's documents."""
    document, text = ("july", JULY) if evidence in JULY else ("may", MAY)
    start = text.index(evidence)
    at = DocumentSpan(document=document, start=start, end=start + len(evidence))
    return Answer(value=value, evidence=evidence, evidence_at=at)


def picnic_pair(
    outcome: Outcome = Outcome.REFUTED, *, row_id: str = "p1", **row: Any
) -> tuple[AuditRow, AuditedRow]:
    """An answer with one claim of each state, as three voters of a model would leave it, and its verdict."""
    response = "It raised 500 euros, drew 50 people and 17 children, took 3 hours and 9 cars, and 2 dogs."
    documents = (Document(id="july", title="Summer", text=JULY), Document(id="may", text=MAY))
    query = RagQuery(id=row_id, query="How was the July picnic?", documents=documents)
    audited = AuditRow.model_validate({"place": "in.jsonl:1", "query": query, "response": response, **row})

    def claim(index: int, number: str, state: ClaimState, found: str | None, **more: Any) -> ClaimVerdict:
        start = response.index(f" {number} ") + 1
        span = Span(start=start, end=start + len(number))
        asked = Claim(index=index, question=f"How many, {index}?", answer=number, span=span)
        return ClaimVerdict(claim=asked, state=state, consensus=found, **more)

    guess, silent = Answer(value="600", evidence="they got 600"), Answer(value=None)
    claims = (
        claim(
            1,
            "500",
            ClaimState.CONTRADICTED,
            "466",
            votes=(quoted("466", "raised 466 euros"), quoted("466", "raised 466 euros"), guess),
            tally={"466": 2, "600": 1},
            entropy=0.6365,
        ),
        claim(
            2,
            "50",
            ClaimState.SUPPORTED,
            "50",
            votes=(quoted("50", "It drew 50 people"),) * 3,
            tally={"50": 3},
            evidence_holds_consensus=True,
        ),
        claim(
            3,
            "17",
            ClaimState.NOT_IN_DOCUMENTS,
            None,
            votes=(silent, silent, None),
            tally={"Cannot answer": 2},
        ),
        claim(
            4,
            "3",
            ClaimState.NO_CONSENSUS,
            None,
            votes=(quoted("120", "raised 120 euros"), guess, silent),
            tally={"120": 1, "600": 1, "Cannot answer": 1},
            entropy=1.0986,
        ),
        claim(5, "9", ClaimState.FAILED, None, votes=(None,) * 3),
    )
    dogs = response.index("2 dogs")
    verdict = AuditedRow(
        id=row_id,
        outcome=outcome,
        reward=None if outcome is Outcome.UNSCORED else -1.0,
        reason="contradicted",
        claims=claims,
        num_mentions=6,
        uncovered=(Span(start=dogs, end=dogs + 1),),
        num_malformed_claims=1,
        num_voters=3,
        input_sha256=audited.digest,
        settings_sha256="0" * 64,
    )
    return audited, verdict

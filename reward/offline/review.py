"""A spreadsheet for people to check an audit's claims, and what their answers say of the audit.

    march audit IN --out OUT.jsonl --review REVIEW.csv     one line a claim, with an empty column `human`
    march review REVIEW.csv OUT.jsonl                      agreement, Cohen's kappa, where they differ

Of a filled file only `key` and `human` are read; spreadsheets rewrite ids ("0012" becomes 12) and numbers,
but leave a key alone. No cell can run as a formula: one that begins with a sign that spreadsheets take for a
formula begins with an apostrophe instead (OWASP, "CSV Injection"). What follows a semicolon, a tab or a new
line within it does, too, since a spreadsheet may take these for the end of a cell.
"""

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from pydantic import Field

from reward.offline.bootstrap import Interval, share, summed
from reward.offline.excerpt import sentence
from reward.offline.inputs import read_csv
from reward.offline.resume import AuditedRow, read_verdicts
from reward.offline.rows import AuditRow
from reward.types import ClaimState, ClaimVerdict, Record

COLUMNS = (
    *("key", "row", "claim", "number", "sentence", "question", "state", "consensus"),
    *("evidence", "document", "human", "comment"),
)
_CHOICES = "supported, unsupported or unclear"
_CELLS = ("both", "only_audit", "only_human", "neither")  # call a claim supported
_FORMULA_SIGNS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_BEFORE_A_SIGN = re.compile(r"""(?<![\s;"'])[\s;"']++(?=[=+\-@\uff1d\uff0b\uff0d\uff20])""")
_SEPARATORS = frozenset(";\t\r\n")


class HumanAnswer(StrEnum):
    """What a person says of a claim."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    UNCLEAR = "unclear"


class Difference(Record):
    """A claim that the audit and the person judge differently."""

    id: str
    claim: ClaimVerdict
    human: HumanAnswer


class ReviewFigures(Record):
    """How an audit agrees with a person, claim by claim."""

    num_claims: int = Field(description="Claims of the audit.")
    num_reviewed: int = Field(description="Claims with an answer in the column `human`.")
    num_unclear: int = Field(description="Of them, claims that the person could not decide.")
    num_failed: int = Field(description="Of the decided ones, claims that the audit could not decide.")
    n: int = Field(description="Claims that both decided; agreement and kappa are over these.")
    confusion: dict[ClaimState, dict[HumanAnswer, int]] = Field(description="Reviewed claims, by both.")
    agreement: float | None = Field(description="Share of the n claims on which both say the same.")
    agreement_interval: Interval | None = Field(description="By row.")
    kappa: float | None = Field(description="Cohen's kappa; None where chance alone would agree always.")
    kappa_interval: Interval | None = Field(description="By row.")
    differences: tuple[Difference, ...]


def review_csv(rows: Iterable[tuple[AuditRow, AuditedRow]]) -> Iterator[str]:
    """Yields the lines of the file to fill in: a byte order mark and a header, then one record a claim."""
    yield "\ufeff" + _record(COLUMNS)
    for row, verdict in rows:
        for found in verdict.claims:
            quoted = next((vote for vote in found.votes if vote is not None and vote.evidence), None)
            at = found.claim.span
            cells = {
                "key": claim_key(verdict, found),
                "row": verdict.id,
                "claim": str(found.claim.index),
                "number": found.claim.answer,
                "sentence": sentence(row.response, at.start, at.end) if at else "",
                "question": found.claim.question,
                "state": found.state.value,
                "consensus": found.consensus or "",
                "evidence": quoted.evidence if quoted else "",
                "document": quoted.evidence_at.document if quoted and quoted.evidence_at else "",
            }
            yield _record(_safe(cells.get(column, "")) for column in COLUMNS)


def claim_key(verdict: AuditedRow, found: ClaimVerdict) -> str:
    """Names a claim of one audit of one row; no spreadsheet takes it for a number."""
    claim = found.claim
    said = [verdict.id, verdict.input_sha256, str(claim.index), claim.question, claim.answer]
    return f"claim-{hashlib.sha256(chr(0).join(said).encode()).hexdigest()[:16]}"


def refuse_filled(path: Path) -> None:
    """Raises `ValueError` when a file holds answers or comments of people: nobody's work is written over."""
    if not path.exists():
        return
    keys = {key for _, key, _ in _answers(path)}
    header, records = read_csv(path)
    lines = (dict(zip(header, record.cells, strict=True)) for record in records)
    num_filled = len(keys | {line["key"].strip() for line in lines if line.get("comment", "").strip()})
    if num_filled:
        raise ValueError(
            f"{path}: holds {num_filled} reviewed claims; score it with `march review`, or write elsewhere"
        )


def score_review(path: Path, output: Path) -> ReviewFigures:
    """Scores a filled review against the audit that it was made from.

    Lines without an answer count as not reviewed.

    Raises:
        FileNotFoundError: one of the files is not there.
        ValueError: a line's answer is none, its key is not the audit's or is used twice, no line is filled
            in, or the output is none.
    """
    answers: dict[str, tuple[str, HumanAnswer]] = {}
    for place, key, human in _answers(path):
        if key in answers:
            raise ValueError(
                f"{place}: key: {key!r} is at {answers[key][0]} already; remove one of the lines"
            )
        answers[key] = (place, human)
    if not answers:
        raise ValueError(f"{path}: human: no line is filled in; write {_CHOICES} in that column")
    claims = [(row, found) for row in read_verdicts(output) for found in row.claims]
    judged = [
        Difference(id=row.id, claim=found, human=answers.pop(key)[1])
        for row, found in claims
        if (key := claim_key(row, found)) in answers
    ]
    if answers:
        key, (place, _) = next(iter(answers.items()))
        raise ValueError(f"{place}: key: {key!r} is no claim of {output}; give the audit it was made from")
    return _figures(judged, num_claims=len(claims))


def cohens_kappa(both: int, only_audit: int, only_human: int, neither: int) -> float | None:
    """Agreement beyond chance, (p_o - p_e) / (1 - p_e) (Cohen 1960); None where it is not defined.

    The numbers are of the claims that both, one alone, or neither calls supported.
    """
    n = both + only_audit + only_human + neither
    if not n:
        return None
    observed = (both + neither) / n
    audit, human = (both + only_audit) / n, (both + only_human) / n
    chance = audit * human + (1 - audit) * (1 - human)
    return (observed - chance) / (1 - chance) if chance < 1 else None


def _figures(judged: list[Difference], *, num_claims: int) -> ReviewFigures:
    confusion = {state: dict.fromkeys(HumanAnswer, 0) for state in ClaimState}
    rows: dict[str, Counter[str]] = {}
    differences = []
    for one in judged:
        confusion[one.claim.state][one.human] += 1
        if one.human is HumanAnswer.UNCLEAR or one.claim.state is ClaimState.FAILED:
            continue
        audit, human = one.claim.state is ClaimState.SUPPORTED, one.human is HumanAnswer.SUPPORTED
        rows.setdefault(one.id, Counter())[_CELLS[2 * (not audit) + (not human)]] += 1
        if audit != human:
            differences.append(one)
    sums, values, intervals = summed(rows.values(), _statistics)
    num_unclear = sum(humans[HumanAnswer.UNCLEAR] for humans in confusion.values())
    return ReviewFigures(
        num_claims=num_claims,
        num_reviewed=len(judged),
        num_unclear=num_unclear,
        num_failed=len(judged) - num_unclear - sums.total(),
        n=sums.total(),
        confusion=confusion,
        agreement=values["agreement"],
        agreement_interval=intervals["agreement"],
        kappa=values["kappa"],
        kappa_interval=intervals["kappa"],
        differences=tuple(differences),
    )


def _statistics(sums: Mapping[str, int]) -> Mapping[str, float | None]:
    both, _, _, neither = cells = [sums[cell] for cell in _CELLS]
    return {"agreement": share(both + neither, sum(cells)), "kappa": cohens_kappa(*cells)}


def _answers(path: Path) -> Iterator[tuple[str, str, HumanAnswer]]:
    """Place, key and answer of each line that a person filled in."""
    header, records = read_csv(path)
    for column in ("key", "human"):
        if column not in header:
            raise ValueError(f"{path}:1: {column}: no such column; keep the columns that --review wrote")
    for record in records:
        cells = dict(zip(header, record.cells, strict=True))
        human = cells["human"].strip().lower()
        if human and human not in list(HumanAnswer):
            raise ValueError(f"{record.place}: human: {human!r:.60} is no answer; write {_CHOICES}")
        if human:
            yield record.place, cells["key"].strip(), HumanAnswer(human)


def _safe(text: str) -> str:
    inside = _BEFORE_A_SIGN.sub(lambda run: run[0] + "'" * (not _SEPARATORS.isdisjoint(run[0])), text)
    return f"'{inside}" if text.lstrip(" ").startswith(_FORMULA_SIGNS) else inside


def _record(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue()

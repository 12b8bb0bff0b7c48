"""What is not audited: the bounds of an audit, and the verdicts on responses that no claim decides.

Every auditor, with a model or without one, refuses by these and ends in these.
"""

from __future__ import annotations

import re
from typing import Protocol

from reward.config import AuditConfig
from reward.judging.vote import Reason
from reward.types import Outcome, Provenance, RagQuery, Verdict

_DIGIT_RUN = re.compile(r"\d+")
_MOST_RUNS_A_CLAIM = 16  # a date with a time has seven; more than this is refused before numbers are read


class Failure(Protocol):
    """An error that an audit ends with; an `AuditFailure` or a `SamplerError`."""

    @property
    def reason(self) -> str: ...

    @property
    def detail(self) -> str: ...


class AuditFailure(Exception):
    """The audit could not be carried through, by no fault of the sampler; becomes an UNSCORED verdict."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def check_bounds(query: RagQuery, response: str, config: AuditConfig) -> None:
    """Refuses what is too long to audit, holds far too many numbers, or is no text; nothing is cut to fit.

    Raises:
        AuditFailure: with `response_too_long`, `documents_too_long`, `too_many_claims` or `invalid_text`.
    """
    if len(response) > config.max_response_chars:
        detail = f"{len(response)} characters exceed max_response_chars: {config.max_response_chars}"
        raise AuditFailure(Reason.RESPONSE_TOO_LONG, detail)
    num_chars = sum(len(document.title) + len(document.text) for document in query.documents)
    if num_chars > config.max_documents_chars:
        detail = f"{num_chars} characters exceed max_documents_chars: {config.max_documents_chars}"
        raise AuditFailure(Reason.DOCUMENTS_TOO_LONG, detail)
    num_digit_runs = sum(1 for _ in _DIGIT_RUN.finditer(response))
    if num_digit_runs > config.max_claims * _MOST_RUNS_A_CLAIM:
        detail = f"{num_digit_runs} runs of digits are far over max_claims: {config.max_claims}"
        raise AuditFailure(Reason.TOO_MANY_CLAIMS, detail)
    _check_text("response", response)
    _check_text("query", query.query)
    for document in query.documents:
        _check_text("document", document.title, document.id)
        _check_text("document", document.text, document.id)


def _check_text(where: str, text: str, name: str = "") -> None:
    if text.isascii():  # costs nothing to know
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        place = f"{where} {name!r}" if name else where
        detail = f"{place}: {text[error.start]!r} is half of a surrogate pair, which is no text"
        raise AuditFailure(Reason.INVALID_TEXT, detail) from error


def no_claims(query: RagQuery, config: AuditConfig, *, provenance: Provenance | None = None) -> Verdict:
    """The verdict on a response that holds no number to check."""
    return Verdict(
        id=query.id,
        outcome=Outcome.NO_CLAIMS,
        reward=config.reward_no_claims,
        reason=Reason.NO_NUMBERS,
        provenance=provenance,
    )


def unscored(
    query: RagQuery,
    error: Failure,
    *,
    num_numbers: int = 0,
    provenance: Provenance | None = None,
) -> Verdict:
    """The verdict where the audit itself failed."""
    return Verdict(
        id=query.id,
        outcome=Outcome.UNSCORED,
        reward=None,
        reason=error.reason,
        detail=error.detail,
        num_numbers=num_numbers,
        provenance=provenance,
    )

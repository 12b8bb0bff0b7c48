"""What a client is told of a failure: a status, and one line; never a number.

422   no retry can change it: a malformed request, or an audit whose content fails again (`runner.RETRIES`)
429   this caller has used up its quota     with Retry-After
503   there is no audit now                 with Retry-After
"""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError

from reward.serving.access import Overloaded
from reward.serving.config import OverrideRefused
from reward.serving.logs import note_refusal
from reward.serving.runner import RETRIES, Retry
from reward.serving.wire import ErrorReply, UnreadableSample, one_line
from reward.types import Verdict

_ERRORS = {
    400: "The body's length or the nonce is unclear.",
    401: "The token is missing or wrong.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    415: "The body is not said to be JSON.",
    422: "The request cannot be audited, now or later: do not retry.",
    429: "The caller's quota is used up: retry after Retry-After.",
    431: "The headers are too large.",
    500: "A bug; the server's log tells more.",
    503: "No audit now: retry after Retry-After.",
}
DECLARED: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorReply, "description": text} for status, text in _ERRORS.items()
}

logger = logging.getLogger(__name__)


class Unscored(RuntimeError):
    """A sample of `/get_reward` has no reward."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"UNSCORED: {verdict.reason}: {verdict.detail}")
        self.verdict = verdict

    @property
    def is_final(self) -> bool:
        """Whether no retry can change it."""
        return RETRIES.get(self.verdict.reason) is Retry.NEVER


def add_error_answers(app: FastAPI) -> None:
    """Every failure is an `ErrorReply`; none of them is a number."""

    async def told(_: Request, error: Exception) -> JSONResponse:
        failure = _failure_of(error)
        assert failure is not None and failure.status is not None
        headers = {} if failure.retry_after_s is None else {"Retry-After": str(failure.retry_after_s)}
        if isinstance(error, Overloaded):
            note_refusal(error.reason)
            headers |= {"Connection": "close"} if error.reason in ("memory", "stopping") else {}
        body = failure.model_dump(exclude_none=True, exclude={"status", "retry_after_s"})
        return JSONResponse(body, status_code=failure.status, headers=headers)

    for kind in (Unscored, Overloaded, RequestValidationError, UnreadableSample, OverrideRefused):
        app.add_exception_handler(kind, told)


def entry_error(error: Exception) -> ErrorReply:
    """The same of one entry of a batch; a bug is logged and costs its own entry alone."""
    if isinstance(error, ValidationError):
        return ErrorReply(detail=one_line(problems_of(error)), status=422)
    if (failure := _failure_of(error)) is None:
        logger.error("an audit of a batch failed", exc_info=error)
        return ErrorReply(detail="internal error; see the server's log", reason="internal", status=500)
    if isinstance(error, Overloaded):
        note_refusal(error.reason)
    return failure


def _failure_of(error: Exception) -> ErrorReply | None:
    """What an error tells a client; None for a bug."""
    if isinstance(error, Overloaded):
        reason, wait_s = error.reason, error.retry_after_s
        return ErrorReply(detail=str(error), reason=reason, status=error.status, retry_after_s=wait_s)
    if isinstance(error, Unscored):
        told = ErrorReply(detail=str(error), reason=error.verdict.reason, id=error.verdict.id, status=422)
        return told if error.is_final else told.model_copy(update={"status": 503, "retry_after_s": 1})
    if isinstance(error, RequestValidationError):
        return ErrorReply(detail=one_line(error.errors()), status=422)
    if isinstance(error, UnreadableSample | OverrideRefused):
        return ErrorReply(detail=str(error), status=422)
    return None


def problems_of(error: ValidationError) -> list[Any]:
    """Pydantic's problems without the input, which may be large."""
    return error.errors(include_url=False, include_input=False, include_context=False)

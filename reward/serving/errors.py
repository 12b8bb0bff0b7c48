"""Every failure of a request: its status and one line; never a number.

    422   no retry can change it: a malformed request, or an audit whose content fails again (`FINAL`)
    429   this caller has used up its quota     with Retry-After
    503   there is no audit now                 with Retry-After

Code raises `Refused`, `Unscored` or `InvalidRequest`; `reply_of` turns them into answers, in one place for
requests (middleware.py) and for entries of a batch (routes.py).
"""

import logging
from typing import Any

from reward.judging.vote import Reason
from reward.serving.config import InvalidRequest
from reward.serving.logs import Refusal, current_caller
from reward.serving.wire import ErrorReply
from reward.types import Verdict

logger = logging.getLogger(__name__)

_ERRORS = {
    400: "The body's length or the nonce is unclear.",
    401: "The token is missing or wrong.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    415: "The content type is not JSON.",
    422: "The request cannot be audited, now or later: do not retry.",
    429: "The caller's quota is used up: retry after Retry-After.",
    431: "The headers are too large.",
    500: "A bug; the server's log has the details.",
    503: "No audit now: retry after Retry-After.",
}
# For the description of the API.
DECLARED: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorReply, "description": text} for status, text in _ERRORS.items()
}


# The same content fails again: 422.
FINAL = (
    Reason.INVALID_TEXT,
    Reason.RESPONSE_TOO_LONG,
    Reason.QUERY_TOO_LONG,
    Reason.DOCUMENTS_TOO_LONG,
    Reason.TOO_MANY_CLAIMS,
    Reason.PROMPT_TOO_LONG,
)
# The server tries these once more, at once. All others a caller may try later: 503 with Retry-After.
TRIED_AGAIN = (Reason.TIMEOUT, Reason.CONNECTION, Reason.ENGINE, Reason.BAD_RESPONSE)


class Refused(Exception):
    """The server does not begin what it is asked for; `reason` is one word for the client and the metrics."""

    def __init__(
        self, status: int, detail: str, *, reason: Refusal | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.reason: Refusal | None = reason
        self.retry_after_s = retry_after_s


class Unscored(Exception):
    """A sample of `/get_reward` has no reward."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"UNSCORED: {verdict.reason}: {verdict.detail}")
        self.verdict = verdict
        self.is_final = verdict.reason in FINAL


def reply_of(error: Exception) -> ErrorReply:
    """The answer to a request that failed; a bug is logged, and its words are not sent."""
    if isinstance(error, Refused):
        current_caller().refusal = error.reason
        return ErrorReply(
            detail=str(error), reason=error.reason, status=error.status, retry_after_s=error.retry_after_s
        )
    if isinstance(error, Unscored):
        reply = ErrorReply(detail=str(error), reason=error.verdict.reason, id=error.verdict.id, status=422)
        return reply if error.is_final else reply.model_copy(update={"status": 503, "retry_after_s": 1})
    if isinstance(error, InvalidRequest):
        return ErrorReply(detail=str(error), status=422)
    logger.error("a request failed", exc_info=error)
    current_caller().refusal = "internal"
    return ErrorReply(detail="internal error; see the server's log", reason="internal", status=500)

"""How a reward server fails, as its client tells it: one line with the address, what happened, the mend."""

from __future__ import annotations

import httpx

_PASSING_STATUSES = (502, 503, 504)
MEND_UNREACHED = "start the server or mend the address"
MEND_STRANGER = "see what answers at this address"
_MENDS = {
    401: "give the client the server's token",
    413: "send less or raise the server's max_body_bytes",
    422: "mend the request",
    503: "give the server time, or raise its max_in_flight or max_waiting",
}


class RewardServerError(RuntimeError):
    """The reward server gave no verdict; one line with the address, what happened and how to mend it."""


class UntrustedAnswer(RewardServerError):
    """An answer came that the server did not give to this request: unsigned, altered or replayed."""


class PassingError(RewardServerError):
    """A failure that may be gone at the next attempt."""

    retry_after_s = 0.0  # as the server asks


class Unreached(PassingError):
    """No answer came."""


class OutOfTime(Unreached):
    """No answer in `timeout_s`: another server may have one, the same one is not asked again."""


def failed(
    base_url: str, failure: str, mend: str, *, kind: type[RewardServerError] = RewardServerError
) -> RewardServerError:
    """The error of one server, to be risen."""
    return kind(f"reward server {base_url} {failure}; {mend}")


def refusal(base_url: str, answer: httpx.Response) -> RewardServerError:
    """The error that an answer other than 200 tells."""
    passes = answer.status_code in _PASSING_STATUSES
    mend = _MENDS.get(answer.status_code, "see the server's log")
    failure = f"answered {answer.status_code}: {detail_of(answer)}"
    error = failed(base_url, failure, mend, kind=PassingError if passes else RewardServerError)
    if isinstance(error, PassingError):
        error.retry_after_s = _seconds(answer.headers.get("retry-after", ""))
    return error


def _seconds(retry_after: str) -> float:
    """Retry-After in seconds, at most 30; a date is not read."""
    return min(float(retry_after), 30.0) if retry_after.isascii() and retry_after.isdecimal() else 0.0


def text_of(error: Exception) -> str:
    """What an error says, or else its kind."""
    return str(error) or type(error).__name__


def detail_of(answer: httpx.Response) -> str:
    """What the server says went wrong, in one line; a proxy's page is cut."""
    try:
        body = answer.json()
    except ValueError:
        return " ".join(answer.text[:200].split())
    told = (body.get("detail") or body.get("reason")) if isinstance(body, dict) else None
    return str(told or body)[:500]

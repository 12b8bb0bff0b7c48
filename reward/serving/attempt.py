"""One attempt at a reward server: ask, read within limits, accept only what it signed.

Every failure is one line with the address, what happened and the fix, and says by its class what may help:

    429, 502, 503, 504                 PassingError       another server now, or the same one later
    no connection                      PassingError       the same
    no answer in time                  OutOfTime          another server, the same one no more
    any other status, no verdict       RewardServerError  nothing
    not what this server signed for
    this very request (signing.py)     UntrustedAnswer    nothing
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass, field

import httpx
from opentelemetry.trace import SpanKind
from pydantic import ValidationError

from reward import telemetry
from reward.serving.logs import REQUEST_ID_HEADER, new_request_id
from reward.serving.signing import (
    NONCE_HEADER,
    SIGNATURE_HEADER,
    BadSignature,
    Exchange,
    new_nonce,
    verify,
)
from reward.types import AuditResult

_MAX_ANSWER_BYTES = 128 * 1024**2
_MAX_RETRY_AFTER_S = 30
_PASSING_STATUSES = (429, 502, 503, 504)
_FIXES = {
    401: "give the client the server's token",
    413: "send less or raise the server's max_body_bytes",
    422: "no retry can change it: fix the request",
    429: "ask for less at once, or raise this caller's quota",
    503: "give the server time, or raise its max_in_flight or max_waiting",
}
UNREACHED_FIX = "start the server or fix the address"
_STRANGER_FIX = "see what answers at this address"
_VERSION_FIX = "run the same version on both sides"


class RewardServerError(RuntimeError):
    """The reward server gave no verdict; one line with the address, what happened and the fix."""


class UntrustedAnswer(RewardServerError):
    """An answer came that the server did not give to this request: unsigned, altered or replayed."""


class PassingError(RewardServerError):
    """A failure that may be gone at the next attempt."""

    retry_after_s = 0  # as the server asks


class OutOfTime(PassingError):
    """No answer in `timeout_s`."""


@dataclass(frozen=True)
class Post:
    """One request; all its attempts have its id."""

    path: str
    body: bytes
    request_id: str = field(default_factory=new_request_id)


@dataclass(frozen=True)
class Answer:
    """What a server sent."""

    status: int
    headers: httpx.Headers
    body: bytes

    @property
    def detail(self) -> str:
        """What the server says went wrong, in one line; a proxy's page is cut."""
        try:
            body = json.loads(self.body)
        except ValueError:
            return " ".join(self.body[:200].decode(errors="replace").split())
        detail = (body.get("detail") or body.get("reason")) if isinstance(body, dict) else None
        return str(detail or body)[:500]

    def error(self, line: str) -> RewardServerError:
        """The error of a status other than 200; a Retry-After that is a date is not read."""
        if self.status not in _PASSING_STATUSES:
            return RewardServerError(line)
        error, asked = PassingError(line), self.headers.get("retry-after", "")
        if asked.isascii() and asked.isdecimal():
            error.retry_after_s = min(int(asked), _MAX_RETRY_AFTER_S)
        return error


async def attempt(
    http: httpx.AsyncClient,
    base_url: str,
    post: Post,
    *,
    timeout_s: float,
    signing_key: str | None,
) -> AuditResult:
    """What a server answers.

    Raises:
        RewardServerError: it gave no verdict; the class says what may help, the line names the request's id.
    """
    nonce = new_nonce()
    try:
        answer = await _exchanged(http, base_url, post, nonce, timeout_s)
        if answer.status != 200:
            fix = _FIXES.get(answer.status, "see the server's log")
            line = f"answered {answer.status}: {answer.detail}; {fix}"
            raise answer.error(line)
        if signing_key is not None:
            _verify(post, answer, nonce, signing_key)
        return AuditResult.model_validate_json(answer.body)
    except ValidationError as error:
        failure = RewardServerError(
            f"its answer is no verdict ({error.error_count()} problems); {_VERSION_FIX}"
        )
        raise _named(failure, base_url, post) from error
    except RewardServerError as error:
        raise _named(error, base_url, post) from error.__cause__


def _named(error: RewardServerError, base_url: str, post: Post) -> RewardServerError:
    error.args = (f"reward server {base_url} {error} (request {post.request_id})",)
    return error


async def _exchanged(
    http: httpx.AsyncClient, base_url: str, post: Post, nonce: str, timeout_s: float
) -> Answer:
    """Posts in a span of its own, which the server continues."""
    attributes = {"http.request.method": "POST", "march.request_id": post.request_id}
    try:
        with telemetry.span(
            "POST", {**attributes, **telemetry.address_of(base_url)}, kind=SpanKind.CLIENT
        ) as span:
            async with asyncio.timeout(timeout_s):
                answer = await _read(http, base_url, post, nonce)
            span.set_attribute("http.response.status_code", answer.status)
            if answer.status >= 400:
                telemetry.fail(span, str(answer.status))
        return answer
    except TimeoutError as error:
        fix = "raise timeout_s above the server's deadline_s"
        raise OutOfTime(f"did not answer in {timeout_s:g} s; {fix}") from error
    except httpx.TransportError as error:
        raise PassingError(f"cannot be reached ({text_of(error)}); {UNREACHED_FIX}") from error


async def _read(http: httpx.AsyncClient, base_url: str, post: Post, nonce: str) -> Answer:
    """The answer, undecoded: a small one that swells would pass the limit on what is read."""
    headers = {
        "Content-Type": "application/json",
        REQUEST_ID_HEADER: post.request_id,
        NONCE_HEADER: nonce,
    }
    headers = dict(telemetry.inject(headers))
    async with http.stream("POST", f"{base_url}{post.path}", content=post.body, headers=headers) as answer:
        body = bytearray()
        async for part in answer.aiter_raw():
            body += part
            if len(body) > _MAX_ANSWER_BYTES:
                raise RewardServerError(f"sends an answer over {_MAX_ANSWER_BYTES} bytes; {_STRANGER_FIX}")
    return Answer(answer.status_code, answer.headers, bytes(body))


def _verify(post: Post, answer: Answer, nonce: str, key: str) -> None:
    exchange = Exchange(
        method="POST",
        path=post.path,
        request_sha256=hashlib.sha256(post.body).hexdigest(),
        answer_sha256=hashlib.sha256(answer.body).hexdigest(),
        nonce=nonce,
    )
    try:
        verify(answer.headers.get(SIGNATURE_HEADER), exchange, key)
    except BadSignature as error:
        fix = f"give both sides the same signing key, and {_STRANGER_FIX}"
        raise UntrustedAnswer(f"cannot be trusted: {error}; {fix}") from error


def text_of(error: Exception) -> str:
    """What an error says, or else its kind."""
    return str(error) or type(error).__name__

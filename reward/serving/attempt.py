"""Which reward server is asked, and one attempt at it: ask, read within limits, believe only what it signed.

With the server's signing key no answer is believed that the server did not give to this very request
(signing.py). Every failure is one line with the address, what happened and the fix.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from typing import TypeVar

import httpx
from opentelemetry.trace import SpanKind
from pydantic import ValidationError

from reward import telemetry
from reward.serving.signing import (
    NONCE_HEADER,
    SIGNATURE_HEADER,
    WEIGHTS_HEADER,
    BadSignature,
    Exchange,
    new_nonce,
    verify,
)
from reward.serving.wire import ErrorReply, Post
from reward.types import Record

logger = logging.getLogger(__name__)

_R = TypeVar("_R", bound=Record)
_PASSING_STATUSES = (429, 502, 503, 504)
MEND_UNREACHED = "start the server or mend the address"
MEND_STRANGER = "see what answers at this address"
_MENDS = {
    401: "give the client the server's token",
    413: "send less or raise the server's max_body_bytes",
    422: "no retry can change it: fix the request",
    429: "ask for less at once, or raise this caller's quota",
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


def entry_failure(error: ErrorReply, request_id: str) -> RewardServerError:
    """The error of one entry of a batch."""
    kind = PassingError if error.status in _PASSING_STATUSES else RewardServerError
    failure = kind(f"entry of a batch: {error.status}: {error.detail} (request {request_id})")
    if isinstance(failure, PassingError):
        failure.retry_after_s = float(error.retry_after_s or 0)
    return failure


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


_COOL_DOWN_S = 10.0
_MAX_ANSWER_BYTES = 128 * 1024**2


class Servers:
    """The servers' addresses, and which of them could not be reached lately.

    Raises:
        ValueError: there is none, or one twice.
    """

    def __init__(self, base_urls: Sequence[str]) -> None:
        self.base_urls = tuple(url.rstrip("/") for url in base_urls)
        self._avoided_until: dict[str, float] = {}  # on the monotonic clock, seconds
        if not self.base_urls:
            raise ValueError("base_url: no address; give the reward server's")
        if len(set(self.base_urls)) < len(self.base_urls):
            raise ValueError(f"base_url: {list(self.base_urls)} names a server twice; leave it out once")

    def in_turn(self, content: bytes) -> list[str]:
        """All servers, in the order in which they are asked for a content; those avoided come last."""
        now = time.monotonic()

        def place(url: str) -> tuple[bool, bytes]:
            return self._avoided_until.get(url, 0.0) > now, hashlib.sha256(url.encode() + content).digest()

        return sorted(self.base_urls, key=place)

    def note(self, base_url: str, *, why: Exception | None = None) -> None:
        """Remembers that a server answered, or `why` it did not."""
        if why is None:
            self._avoided_until.pop(base_url, None)
            return
        if base_url not in self._avoided_until and len(self.base_urls) > 1:
            logger.warning("%s; another server is asked", why)
        self._avoided_until[base_url] = time.monotonic() + _COOL_DOWN_S


async def attempt(
    http: httpx.AsyncClient,
    base_url: str,
    post: Post,
    kind: type[_R],
    *,
    timeout_s: float,
    signing_key: str | None,
) -> _R:
    """What a server answers, as a record of that kind.

    Raises:
        Unreached: it gave no answer at all.
        UntrustedAnswer: what came is not its answer to this request.
        RewardServerError: it gave no verdict. Each of them names the request's id.
    """
    nonce = new_nonce()
    try:
        answer = await _answer(http, base_url, post, nonce, timeout_s)
        if answer.status_code != 200:
            raise refusal(base_url, answer)
        if signing_key is not None:
            _verify(base_url, post, answer, nonce, signing_key)
        return _result(base_url, answer, kind)
    except RewardServerError as error:
        error.args = (f"{error} (request {post.request_id})",)
        raise


async def _answer(
    http: httpx.AsyncClient, base_url: str, post: Post, nonce: str, timeout_s: float
) -> httpx.Response:
    try:
        async with asyncio.timeout(timeout_s):
            return await _traced(http, base_url, post, nonce)
    except (TimeoutError, httpx.ReadTimeout, httpx.WriteTimeout, httpx.PoolTimeout) as error:
        mend = "raise timeout_s above the server's deadline_s"
        raise failed(base_url, f"did not answer in {timeout_s:g} s", mend, kind=OutOfTime) from error
    except httpx.TransportError as error:
        failure = f"cannot be reached ({text_of(error)})"
        raise failed(base_url, failure, MEND_UNREACHED, kind=Unreached) from error


async def _traced(http: httpx.AsyncClient, base_url: str, post: Post, nonce: str) -> httpx.Response:
    """Has a span of its own, which the server goes on with."""
    named = {"http.request.method": "POST", "march.request_id": post.request_id}
    attributes = {**named, **telemetry.address_of(base_url)}
    with telemetry.span("POST", attributes, kind=SpanKind.CLIENT) as span:
        headers = telemetry.inject({**post.headers, NONCE_HEADER: nonce})
        answer = await _read(http, base_url, post, headers)
        span.set_attribute("http.response.status_code", answer.status_code)
        if answer.status_code >= 400:
            telemetry.fail(span, str(answer.status_code))
    return answer


async def _read(
    http: httpx.AsyncClient, base_url: str, post: Post, headers: Mapping[str, str]
) -> httpx.Response:
    """Posts and reads the answer, as far as one can be long."""
    async with http.stream("POST", f"{base_url}{post.path}", content=post.body, headers=headers) as answer:
        if "content-encoding" in answer.headers:
            raise failed(base_url, "compresses its answer unasked", MEND_STRANGER)
        content = bytearray()
        async for part in answer.aiter_raw():
            content += part
            if len(content) > _MAX_ANSWER_BYTES:
                raise failed(base_url, f"sends an answer over {_MAX_ANSWER_BYTES} bytes", MEND_STRANGER)
    return httpx.Response(answer.status_code, headers=answer.headers, content=bytes(content))


def _verify(base_url: str, post: Post, answer: httpx.Response, nonce: str, key: str) -> None:
    exchange = Exchange(
        method="POST",
        path=post.path,
        request_sha256=hashlib.sha256(post.body).hexdigest(),
        answer_sha256=hashlib.sha256(answer.content).hexdigest(),
        weights=answer.headers.get(WEIGHTS_HEADER, ""),
        nonce=nonce,
    )
    try:
        # The nonce is this attempt's own, so no clock is asked: theirs or ours may have jumped.
        verify(answer.headers.get(SIGNATURE_HEADER), exchange, key, now=None)
    except BadSignature as error:
        mend = f"give both sides the same signing key, and {MEND_STRANGER}"
        raise failed(base_url, f"is not to be believed: {error}", mend, kind=UntrustedAnswer) from error


def _result(base_url: str, answer: httpx.Response, kind: type[_R]) -> _R:
    try:
        return kind.model_validate_json(answer.content)
    except ValidationError as error:
        failure = f"its answer is no verdict ({error.error_count()} problems)"
        raise failed(base_url, failure, "run the same version on both sides") from error

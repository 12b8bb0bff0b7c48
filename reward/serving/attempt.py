"""One attempt at one reward server: ask, read within limits, believe only what it signed.

With the server's signing key no answer is believed that the server did not give to this very request
(signing.py).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping

import httpx
from opentelemetry.trace import SpanKind
from pydantic import ValidationError

from reward import telemetry
from reward.serving.failures import (
    MEND_STRANGER,
    MEND_UNREACHED,
    OutOfTime,
    RewardServerError,
    Unreached,
    UntrustedAnswer,
    failed,
    refusal,
    text_of,
)
from reward.serving.signing import (
    NONCE_HEADER,
    SIGNATURE_HEADER,
    WEIGHTS_HEADER,
    BadSignature,
    Exchange,
    new_nonce,
    verify,
)
from reward.serving.wire import Post
from reward.types import AuditResult

_MAX_ANSWER_BYTES = 128 * 1024**2


async def attempt(
    http: httpx.AsyncClient, base_url: str, post: Post, *, timeout_s: float, signing_key: str | None
) -> AuditResult:
    """The verdict that a server gives.

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
        return _result(base_url, answer)
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


def _result(base_url: str, answer: httpx.Response) -> AuditResult:
    try:
        return AuditResult.model_validate_json(answer.content)
    except ValidationError as error:
        failure = f"its answer is no verdict ({error.error_count()} problems)"
        raise failed(base_url, failure, "run the same version on both sides") from error

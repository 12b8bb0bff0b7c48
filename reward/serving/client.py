"""The reward server's client, for the trainer and for anyone else.

It tries again after what passes by itself: a refused or broken connection and the answers 502, 503 and 504,
a few times and with jitter. It never makes up a verdict: what still fails is a `RewardServerError`, which
the caller records as UNSCORED. With the server's signing key it believes no answer that the server did not
give to this very request (signing.py): an unsigned, altered or replayed one is an `UntrustedAnswer`, which is
not asked for again. Each request has an id, which errors name and the server logs.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import httpx
from opentelemetry.trace import SpanKind
from pydantic import ValidationError
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    wait_exponential,
    wait_random,
)

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
from reward.serving.tls import ClientTls, client_context
from reward.serving.wire import AuditRequest, Post
from reward.types import AuditResult, RagQuery

_CONNECT_TIMEOUT_S = 10.0
_READY_TIMEOUT_S = 10.0
_FIRST_WAIT_S = 0.5
_READY_PAUSE_S = 0.5
_MAX_ANSWER_BYTES = 128 * 1024**2
_PASSING_STATUSES = (502, 503, 504)
_MEND_UNREACHED = "start the server or mend the address"
_MEND_STRANGER = "see what answers at this address"
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


class _PassingError(RewardServerError):
    """A failure that may be gone at the next attempt."""

    retry_after_s = 0.0  # as the server asks


class RewardClient:
    """Asks one reward server (or one address before several) for audits."""

    def __init__(
        self,
        base_url: str,
        token: str,
        timeout_s: float = 170.0,
        attempts: int = 3,
        *,
        patience_s: float = 0.0,
        signing_key: str | None = None,
        tls: ClientTls | None = None,
    ) -> None:
        """Opens no connection yet.

        Args:
            base_url: Address of the server, e.g. http://127.0.0.1:5001
            token: The server's token.
            timeout_s: For one attempt; above the server's `deadline_s`, so that its own answer comes first.
            attempts: Attempts at least; an attempt that ran out of time is not repeated.
            patience_s: What passes by itself (a restart, a full server) is tried again for at least so long.
            signing_key: The server's; with it no unsigned answer is believed.
            tls: For a server on https: whom to trust and what to show; the system's authorities by default.

        Raises:
            ValueError: a certificate or key cannot be used.
        """
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s
        self._attempts = attempts
        self._patience_s = patience_s
        self._signing_key = signing_key
        self._address = telemetry.address_of(self._base_url)
        self._http = httpx.AsyncClient(
            base_url=self._base_url,
            # Nothing is decompressed: a small answer that swells would pass the limit on what is read.
            headers={"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"},
            verify=_verification(self._base_url, tls),
            timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_TIMEOUT_S)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=False,  # a proxy or a .netrc of the machine must not come between
        )

    async def audit(
        self, query: RagQuery, response: str, *, include_trajectories: bool = False
    ) -> AuditResult:
        """Returns the verdict, UNSCORED ones too, and the trajectories when asked for.

        Raises:
            UntrustedAnswer: what came is not the server's answer to this request.
            RewardServerError: no verdict came after all attempts.
        """
        request = AuditRequest(query=query, response=response, include_trajectories=include_trajectories)
        post = Post("/v1/audit", request.model_dump_json().encode())
        answer = await self._post(post)
        try:
            return AuditResult.model_validate_json(answer.content)
        except ValidationError as error:
            failure = f"its answer is no verdict ({error.error_count()} problems)"
            raise self._error(failure, "run the same version on both sides", post) from error

    async def ready(self) -> None:
        """Returns when the server and its sampler are ready.

        Raises:
            RewardServerError: they are not, or the server cannot be reached.
        """
        try:
            answer = await self._http.get("/readyz", timeout=_READY_TIMEOUT_S)
        except httpx.HTTPError as error:
            raise self._error(f"cannot be reached ({_text(error)})", _MEND_UNREACHED) from error
        if answer.status_code != 200:
            raise self._error(f"is not ready: {_detail(answer)}", "see the server's log")

    async def wait_ready(self, timeout_s: float) -> None:
        """Asks `ready()` again until it returns; after `timeout_s` its last `RewardServerError` is raised."""
        end = time.monotonic() + timeout_s
        while True:
            try:
                return await self.ready()
            except RewardServerError:
                if time.monotonic() + _READY_PAUSE_S >= end:
                    raise
            await asyncio.sleep(_READY_PAUSE_S)

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _post(self, post: Post) -> httpx.Response:
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(_PassingError),
            stop=stop_after_attempt(self._attempts) & stop_after_delay(self._patience_s),
            wait=_pause_s,
            reraise=True,
        )
        answer: httpx.Response = await retrying(self._post_once, post)
        return answer

    async def _post_once(self, post: Post) -> httpx.Response:
        nonce = new_nonce()
        try:
            answer = await self._traced(post, nonce)
        except (TimeoutError, httpx.ReadTimeout, httpx.WriteTimeout, httpx.PoolTimeout) as error:
            mend = "raise timeout_s above the server's deadline_s"
            raise self._error(f"did not answer in {self._timeout_s:g} s", mend, post) from error
        except httpx.TransportError as error:
            failure = f"cannot be reached ({_text(error)})"
            raise self._error(failure, _MEND_UNREACHED, post, kind=_PassingError) from error
        if answer.status_code == 200:
            self._verify(answer, post, nonce)
            return answer
        kind = _PassingError if answer.status_code in _PASSING_STATUSES else RewardServerError
        mend = _MENDS.get(answer.status_code, "see the server's log")
        refusal = self._error(f"answered {answer.status_code}: {_detail(answer)}", mend, post, kind=kind)
        if isinstance(refusal, _PassingError):
            refusal.retry_after_s = _seconds(answer.headers.get("retry-after", ""))
        raise refusal

    async def _traced(self, post: Post, nonce: str) -> httpx.Response:
        """One attempt with a span of its own, which the server goes on with."""
        attributes = {"http.request.method": "POST", "march.request_id": post.request_id, **self._address}
        with telemetry.span("POST", attributes, kind=SpanKind.CLIENT) as span:
            headers = telemetry.inject({**post.headers, NONCE_HEADER: nonce})
            answer = await self._exchange(post, headers)
            span.set_attribute("http.response.status_code", answer.status_code)
            if answer.status_code >= 400:
                telemetry.fail(span, str(answer.status_code))
        return answer

    async def _exchange(self, post: Post, headers: Mapping[str, str]) -> httpx.Response:
        """Posts and reads the answer: within the time, however it drips, and as far as one can be long."""
        async with (
            asyncio.timeout(self._timeout_s),
            self._http.stream("POST", post.path, content=post.body, headers=headers) as answer,
        ):
            if "content-encoding" in answer.headers:
                raise self._error("compresses its answer unasked", _MEND_STRANGER, post)
            content = bytearray()
            async for part in answer.aiter_raw():
                content += part
                if len(content) > _MAX_ANSWER_BYTES:
                    failure = f"sends an answer over {_MAX_ANSWER_BYTES} bytes"
                    raise self._error(failure, _MEND_STRANGER, post)
        return httpx.Response(answer.status_code, headers=answer.headers, content=bytes(content))

    def _verify(self, answer: httpx.Response, post: Post, nonce: str) -> None:
        if self._signing_key is None:
            return
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
            verify(answer.headers.get(SIGNATURE_HEADER), exchange, self._signing_key, now=None)
        except BadSignature as error:
            mend = f"give both sides the same signing key, and {_MEND_STRANGER}"
            raise self._error(f"is not to be believed: {error}", mend, post, kind=UntrustedAnswer) from error

    def _error(
        self,
        failure: str,
        mend: str,
        post: Post | None = None,
        *,
        kind: type[RewardServerError] = RewardServerError,
    ) -> RewardServerError:
        named = "" if post is None else f" (request {post.request_id})"
        return kind(f"reward server {self._base_url} {failure}; {mend}{named}")


def _pause_s(state: RetryCallState) -> float:
    """A growing pause, or a longer one that the server asked for; with jitter, lest all come at once."""
    error = state.outcome.exception() if state.outcome else None
    asked_s = error.retry_after_s if isinstance(error, _PassingError) else 0.0
    growing_s = wait_exponential(multiplier=_FIRST_WAIT_S, max=10)(state)
    return max(growing_s, asked_s) + wait_random(0, max(_FIRST_WAIT_S, asked_s / 2))(state)


def _seconds(retry_after: str) -> float:
    """Retry-After in seconds, at most 30; a date is not read."""
    return min(float(retry_after), 30.0) if retry_after.isascii() and retry_after.isdecimal() else 0.0


def _verification(base_url: str, tls: ClientTls | None) -> ssl.SSLContext | bool:
    if httpx.URL(base_url).scheme == "https":
        return client_context(tls or ClientTls())
    if tls is not None:
        raise ValueError(f"tls: given for {base_url}, which is not https; mend the address")
    return False  # there is nothing to verify


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _detail(answer: httpx.Response) -> str:
    """What the server says went wrong, in one line; a proxy's page is cut."""
    try:
        body = answer.json()
    except ValueError:
        return " ".join(answer.text[:200].split())
    told = (body.get("detail") or body.get("reason")) if isinstance(body, dict) else None
    return str(told or body)[:500]

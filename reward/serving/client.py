"""The reward server's client, for the trainer and for anyone else: `RewardClient`, or `SyncRewardClient`.

What may pass by itself is tried again, at another server at once and then in further rounds, after a random,
growing pause or the server's Retry-After. It never makes up a verdict: what still fails is a
`RewardServerError`, which the caller records as UNSCORED: one line with the address, what happened and the
fix, whose class says what may help:

    429, 502, 503, 504                 PassingError       another server now, or the same one later
    no connection                      PassingError       the same
    no answer in time                  OutOfTime          another server, the same one no more
    any other status, no verdict       RewardServerError  nothing
    not what this server signed for
    this very request (signing.py)     UntrustedAnswer    nothing

With several servers each content has its own, so equal contents that are asked at once meet at one server,
which gives them one audit (service.py).
"""

import asyncio
import contextlib
import hashlib
import logging
import re
import ssl
from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import httpx
import tenacity
from anyio.from_thread import BlockingPortal, start_blocking_portal
from opentelemetry.trace import SpanKind
from pydantic import ValidationError
from pydantic_core import from_json

from reward import telemetry
from reward.config import bare_url
from reward.serving.logs import REQUEST_ID_HEADER, new_request_id
from reward.serving.signing import (
    NONCE_HEADER,
    SIGNATURE_HEADER,
    fault_of,
    new_nonce,
    read_signing_key,
    signature,
)
from reward.serving.wire import AuditRequest
from reward.types import AuditResult, RagQuery

logger = logging.getLogger(__name__)

_PATH = "/v1/audit"
_CONNECT_TIMEOUT_S = 10.0
_READY_TIMEOUT_S = 10.0
_FIRST_WAIT_S = 0.5
_READY_PAUSE_S = 0.5
_MAX_ANSWER_BYTES = 128 * 1024**2
_MAX_ERROR_BYTES = 16_384  # of an error's page; its `detail` is far shorter
_MAX_RETRY_AFTER_S = 30
_PASSING_STATUSES = (429, 502, 503, 504)
_FIXES = {
    401: "give the client the server's token",
    413: "send less or raise the server's max_body_bytes",
    422: "no retry can change it: fix the request",
    429: "ask for less at once, or raise this caller's quota",
    503: "give the server time, or raise its max_in_flight or max_waiting",
}
_TOKEN = re.compile(r"[!-~](?:[ -~]*[!-~])?")  # what a header can hold
_OTHER_FIX = "see the server's log"
_UNREACHED_FIX = "start the server or fix the address"
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


class RewardClient:
    """Asks one reward server, or several that share the work, for audits.

    An attempt whose answer was lost is audited again. The caller gets one answer, so the trajectories of the
    others are never trained on.
    """

    def __init__(
        self,
        base_url: str | Sequence[str],
        token: str,
        timeout_s: float = 170.0,
        attempts: int = 3,
        *,
        patience_s: float = 0.0,
        signing_key: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Opens no connection yet.

        Args:
            base_url: Address of the server, e.g. http://127.0.0.1:5001, or those of several.
            token: The server's token.
            timeout_s: For one attempt; above the server's `deadline_s`, so that its own answer comes first.
            attempts: Attempts at least, of all servers; one that ran out of time is not repeated.
            patience_s: What passes by itself (a restart, a full server) is tried again for at least so long.
            signing_key: The server's, else MARCH_SIGNING_KEY; with one no unsigned answer is believed.
            tls: For a server on https: `ssl.create_default_context(cafile=...)`, and for one that asks for a
                certificate `load_cert_chain` on it; by default the system's authorities are trusted.

        Raises:
            ValueError: an address, the token or the environment's signing key cannot be used.
        """
        urls = [base_url] if isinstance(base_url, str) else base_url
        self._base_urls = tuple(url.rstrip("/") for url in urls)
        if not self._base_urls:
            raise ValueError("base_url: no address; give the reward server's")
        if any(bare_url(url) != url for url in self._base_urls):
            shown = [bare_url(url) for url in self._base_urls]
            raise ValueError(
                f"base_url: {shown} came with a user, a password or a query; give `token` instead"
            )
        if len(set(self._base_urls)) < len(self._base_urls):
            raise ValueError(f"base_url: {list(self._base_urls)} names a server twice; leave it out once")
        for url in self._base_urls:
            if not _is_address(url):
                raise ValueError(f"base_url: {url!r} is no address; write http://host:port")
        if not _TOKEN.fullmatch(token or ""):  # None, too: a variable that is not set
            raise ValueError(
                "token: is empty or cannot be in a header (ASCII, no space at its ends); give the server's"
            )
        self._timeout_s, self._attempts, self._patience_s = timeout_s, attempts, patience_s
        self._signing_key = signing_key if signing_key is not None else read_signing_key()
        self._http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"},
            verify=_verification(self._base_urls, tls),
            timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),  # `timeout_s` bounds the whole
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
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(PassingError)
            & tenacity.retry_if_not_exception_type(OutOfTime),
            stop=tenacity.stop_after_attempt(self._attempts) & tenacity.stop_after_delay(self._patience_s),
            wait=_pause_s,
            reraise=True,
        )
        return await retrying(self._round, request.model_dump_json().encode(), new_request_id())

    async def wait_ready(self, timeout_s: float = 0.0) -> None:
        """Returns when every server and its sampler are ready.

        Raises:
            RewardServerError: one is not ready, or cannot be reached, after `timeout_s`.
        """
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(RewardServerError),
            stop=tenacity.stop_before_delay(timeout_s),
            wait=tenacity.wait_fixed(_READY_PAUSE_S),
            reraise=True,
        )
        await asyncio.gather(*(retrying(self._ready, base_url) for base_url in self._base_urls))

    async def _ready(self, base_url: str) -> None:
        try:
            found = await self._http.get(f"{base_url}/readyz", timeout=_READY_TIMEOUT_S)
        except httpx.HTTPError as error:
            line = f"reward server {base_url} cannot be reached ({_text_of(error)}); {_UNREACHED_FIX}"
            raise RewardServerError(line) from error
        if found.status_code != 200:
            line = f"reward server {base_url} is not ready: {_detail_of(found)}; {_OTHER_FIX}"
            raise RewardServerError(line)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _round(self, body: bytes, request_id: str) -> AuditResult:
        """Asks one server after the other, until one does not fail in passing."""
        *firsts, last = ranked(self._base_urls, body)
        for base_url in firsts:
            try:
                return await self._attempt(base_url, body, request_id)
            except PassingError as error:
                logger.info("%s; another server is asked", error)
        return await self._attempt(last, body, request_id)

    async def _attempt(self, base_url: str, body: bytes, request_id: str) -> AuditResult:
        """What a server answers; its errors name it and the request."""
        nonce = new_nonce()
        headers = {"Content-Type": "application/json", REQUEST_ID_HEADER: request_id, NONCE_HEADER: nonce}
        try:
            answer = await self._traced(base_url, body, headers)
            if answer.status_code != 200:
                raise _error_of(answer)
            if self._signing_key is not None:
                _verify(self._signing_key, body, answer, nonce)
            try:
                return AuditResult.model_validate_json(answer.content)
            except ValidationError as error:
                line = f"its answer is no verdict ({error.error_count()} problems); {_VERSION_FIX}"
                raise RewardServerError(line) from error
        except RewardServerError as error:
            error.args = (f"reward server {base_url} {error} (request {request_id})",)
            raise

    async def _traced(self, base_url: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
        """Posts in a span of its own, which the server continues."""
        attributes: dict[str, str | int] = {
            "http.request.method": "POST",
            "march.request_id": headers[REQUEST_ID_HEADER],
            **telemetry.address_of(base_url),
        }
        try:
            with telemetry.span("POST", attributes, kind=SpanKind.CLIENT) as span:
                telemetry.inject(headers)
                async with asyncio.timeout(self._timeout_s):
                    answer = await self._read(base_url, body, headers)
                span.set_attribute("http.response.status_code", answer.status_code)
                if answer.status_code >= 400:
                    telemetry.fail(span, str(answer.status_code))
            return answer
        except TimeoutError as error:
            fix = "raise timeout_s above the server's deadline_s"
            raise OutOfTime(f"did not answer in {self._timeout_s:g} s; {fix}") from error
        except httpx.TransportError as error:
            raise PassingError(f"cannot be reached ({_text_of(error)}); {_UNREACHED_FIX}") from error

    async def _read(self, base_url: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
        """The answer, undecoded: a small one that swells would pass the limit on what is read."""
        url, read = f"{base_url}{_PATH}", bytearray()
        async with self._http.stream("POST", url, content=body, headers=headers) as answer:
            async for part in answer.aiter_raw():
                read += part
                if len(read) > _MAX_ANSWER_BYTES:
                    line = f"sends an answer over {_MAX_ANSWER_BYTES} bytes; {_STRANGER_FIX}"
                    raise RewardServerError(line)
        answer.headers.pop("content-encoding", None)
        return httpx.Response(answer.status_code, headers=answer.headers, content=bytes(read))


class SyncRewardClient:
    """`RewardClient` for code without an event loop, or in one that must not be left (a notebook).

    The same client in a thread of its own, so retries, signatures and patience are the same; several threads
    may share one. Not to be carried through a fork.
    """

    def __init__(self, base_url: str | Sequence[str], token: str, **options: Any) -> None:
        """Takes what `RewardClient` does and raises what it does."""
        self._client = RewardClient(base_url, token, **options)
        self._stack = contextlib.ExitStack()
        self._portal = self._stack.enter_context(start_blocking_portal())
        self._stack.callback(self._portal.call, self._client.close)
        self._is_closed = False

    def audit(self, query: RagQuery, response: str, *, include_trajectories: bool = False) -> AuditResult:
        asked = partial(self._client.audit, include_trajectories=include_trajectories)
        return self._open_portal().call(asked, query, response)

    def wait_ready(self, timeout_s: float) -> None:
        self._open_portal().call(self._client.wait_ready, timeout_s)

    def close(self) -> None:
        self._is_closed = True
        self._stack.close()

    def _open_portal(self) -> BlockingPortal:
        if self._is_closed:
            raise RuntimeError("the client is closed; make another one")
        return self._portal

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ranked(base_urls: Sequence[str], content: bytes) -> list[str]:
    """All servers, in the order in which they are asked for a content (rendezvous hashing).

    All clients agree on it, and a server that goes takes only its own contents to others.
    """
    return sorted(base_urls, key=lambda url: hashlib.sha256(url.encode() + content).digest())


def _pause_s(state: tenacity.RetryCallState) -> float:
    """A growing pause, or a longer one that the server asked for; random, so that not all come at once."""
    error = state.outcome.exception() if state.outcome else None
    asked_s = error.retry_after_s if isinstance(error, PassingError) else 0
    growing_s = tenacity.wait_exponential(multiplier=_FIRST_WAIT_S, max=10)(state)
    return max(growing_s, asked_s) + tenacity.wait_random(0, max(_FIRST_WAIT_S, asked_s / 2))(state)


def _is_address(url: str) -> bool:
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return parts.scheme in ("http", "https") and bool(parts.host)


def _verification(base_urls: Sequence[str], tls: ssl.SSLContext | None) -> ssl.SSLContext | bool:
    plain = [url for url in base_urls if httpx.URL(url).scheme != "https"]
    if len(plain) < len(base_urls):
        return tls or ssl.create_default_context()
    if tls is not None:
        raise ValueError(f"tls: given for {plain[0]}, which is not https; fix the address")
    return False  # there is nothing to verify


def _detail_of(answer: httpx.Response) -> str:
    """What a server says went wrong, in one line; a proxy's page, which may be anything, is cut."""
    try:
        body = from_json(answer.content[:_MAX_ERROR_BYTES])
    except ValueError:
        return " ".join(answer.content[:200].decode(errors="replace").split())
    detail = (body.get("detail") or body.get("reason")) if isinstance(body, dict) else None
    return str(detail or body)[:500]


def _error_of(answer: httpx.Response) -> RewardServerError:
    """The error of a status other than 200; a Retry-After that is a date is not read."""
    status, asked = answer.status_code, answer.headers.get("retry-after", "")
    line = f"answered {status}: {_detail_of(answer)}; {_FIXES.get(status, _OTHER_FIX)}"
    if status not in _PASSING_STATUSES:
        return RewardServerError(line)
    error = PassingError(line)
    if asked.isascii() and asked.isdecimal():
        error.retry_after_s = min(int(asked), _MAX_RETRY_AFTER_S)
    return error


def _verify(key: str, body: bytes, answer: httpx.Response, nonce: str) -> None:
    expected = signature(key, f"POST {_PATH}", hashlib.sha256(body).hexdigest(), answer.content, nonce)
    if fault := fault_of(answer.headers.get(SIGNATURE_HEADER), expected):
        fix = f"give both sides the same signing key, and {_STRANGER_FIX}"
        raise UntrustedAnswer(f"cannot be trusted: {fault}; {fix}")


def _text_of(error: Exception) -> str:
    return str(error) or type(error).__name__

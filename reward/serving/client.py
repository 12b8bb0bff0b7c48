"""The reward server's client, for the trainer and for anyone else: `RewardClient`, or `SyncRewardClient`.

What may pass by itself (attempt.py) is tried again, at another server at once and then in further rounds,
after a random, growing pause or the server's Retry-After. It never makes up a verdict: what still fails is a
`RewardServerError`, which the caller records as UNSCORED.

With several servers each content has its own, so equal contents that are asked at once meet at one server,
which gives them one audit (service.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import ssl
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

import httpx
from anyio.from_thread import start_blocking_portal
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    retry_if_not_exception_type,
    stop_after_attempt,
    stop_after_delay,
    stop_before_delay,
    wait_exponential,
    wait_fixed,
    wait_random,
)

from reward.serving.attempt import (
    UNREACHED_FIX,
    Answer,
    OutOfTime,
    PassingError,
    Post,
    RewardServerError,
    UntrustedAnswer,
    attempt,
    text_of,
)
from reward.serving.wire import AuditRequest
from reward.types import AuditResult, RagQuery

__all__ = ["RewardClient", "RewardServerError", "SyncRewardClient", "UntrustedAnswer"]

logger = logging.getLogger(__name__)

_CONNECT_TIMEOUT_S = 10.0
_READY_TIMEOUT_S = 10.0
_FIRST_WAIT_S = 0.5
_READY_PAUSE_S = 0.5


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
            signing_key: The server's; with it no unsigned answer is believed.
            tls: For a server on https: `ssl.create_default_context(cafile=...)`, and for one that asks for a
                certificate `load_cert_chain` on it; by default the system's authorities are trusted.

        Raises:
            ValueError: an address cannot be used.
        """
        urls = [base_url] if isinstance(base_url, str) else base_url
        self._base_urls = tuple(url.rstrip("/") for url in urls)
        if not self._base_urls:
            raise ValueError("base_url: no address; give the reward server's")
        if len(set(self._base_urls)) < len(self._base_urls):
            raise ValueError(f"base_url: {list(self._base_urls)} names a server twice; leave it out once")
        self._timeout_s, self._attempts, self._patience_s = timeout_s, attempts, patience_s
        self._signing_key = signing_key
        self._http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"},
            verify=_verification(self._base_urls, tls),
            timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),  # `attempt` bounds the whole
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
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(PassingError) & retry_if_not_exception_type(OutOfTime),
            stop=stop_after_attempt(self._attempts) & stop_after_delay(self._patience_s),
            wait=_pause_s,
            reraise=True,
        )
        return await retrying(self._round, Post("/v1/audit", request.model_dump_json().encode()))

    async def wait_ready(self, timeout_s: float = 0.0) -> None:
        """Returns when every server and its sampler are ready.

        Raises:
            RewardServerError: one is not ready, or cannot be reached, after `timeout_s`.
        """
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(RewardServerError),
            stop=stop_before_delay(timeout_s),
            wait=wait_fixed(_READY_PAUSE_S),
            reraise=True,
        )
        await asyncio.gather(*(retrying(self._ready, base_url) for base_url in self._base_urls))

    async def _ready(self, base_url: str) -> None:
        try:
            found = await self._http.get(f"{base_url}/readyz", timeout=_READY_TIMEOUT_S)
        except httpx.HTTPError as error:
            line = f"reward server {base_url} cannot be reached ({text_of(error)}); {UNREACHED_FIX}"
            raise RewardServerError(line) from error
        if found.status_code != 200:
            detail = Answer(found.status_code, found.headers, found.content).detail
            raise RewardServerError(f"reward server {base_url} is not ready: {detail}; see the server's log")

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _round(self, post: Post) -> AuditResult:
        """Asks one server after the other, until one does not fail in passing."""
        ask = partial(attempt, self._http, timeout_s=self._timeout_s, signing_key=self._signing_key)
        *firsts, last = ranked(self._base_urls, post.body)
        for base_url in firsts:
            try:
                return await ask(base_url, post)
            except PassingError as error:
                logger.info("%s; another server is asked", error)
        return await ask(last, post)


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

    def audit(self, query: RagQuery, response: str, *, include_trajectories: bool = False) -> AuditResult:
        """As `RewardClient.audit`."""
        asked = partial(self._client.audit, include_trajectories=include_trajectories)
        return self._portal.call(asked, query, response)

    def wait_ready(self, timeout_s: float) -> None:
        """As `RewardClient.wait_ready`."""
        self._portal.call(self._client.wait_ready, timeout_s)

    def close(self) -> None:
        """Closes the connections and ends the thread."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def ranked(base_urls: Sequence[str], content: bytes) -> list[str]:
    """All servers, in the order in which they are asked for a content (rendezvous hashing).

    All clients agree on it, and a server that goes takes only its own contents to others.
    """
    return sorted(base_urls, key=lambda url: hashlib.sha256(url.encode() + content).digest())


def _pause_s(state: RetryCallState) -> float:
    """A growing pause, or a longer one that the server asked for; random, so that not all come at once."""
    error = state.outcome.exception() if state.outcome else None
    asked_s = error.retry_after_s if isinstance(error, PassingError) else 0
    growing_s = wait_exponential(multiplier=_FIRST_WAIT_S, max=10)(state)
    return max(growing_s, asked_s) + wait_random(0, max(_FIRST_WAIT_S, asked_s / 2))(state)


def _verification(base_urls: Sequence[str], tls: ssl.SSLContext | None) -> ssl.SSLContext | bool:
    plain = [url for url in base_urls if httpx.URL(url).scheme != "https"]
    if len(plain) < len(base_urls):
        return tls or ssl.create_default_context()
    if tls is not None:
        raise ValueError(f"tls: given for {plain[0]}, which is not https; fix the address")
    return False  # there is nothing to verify

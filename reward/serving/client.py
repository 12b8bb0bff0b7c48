"""The reward server's client, for the trainer and for anyone else.

It tries again after what passes by itself: a refused or broken connection and the answers 502, 503 and 504,
a few times and with jitter. It never makes up a verdict: what still fails is a `RewardServerError`, which
the caller records as UNSCORED.
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Self

import httpx
from pydantic import ValidationError
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential, wait_random

from reward.serving.wire import AuditRequest
from reward.types import AuditResult, RagQuery

_CONNECT_TIMEOUT_S = 10.0
_READY_TIMEOUT_S = 10.0
_FIRST_WAIT_S = 0.5
_READY_PAUSE_S = 0.5
_PASSING_STATUSES = (502, 503, 504)
_MEND_UNREACHED = "start the server or mend the address"
_MENDS = {
    401: "give the client the server's token",
    413: "send less or raise the server's max_body_bytes",
    422: "mend the request",
    503: "give the server time, or raise its max_in_flight",
}


class RewardServerError(RuntimeError):
    """The reward server gave no verdict; one line with the address, what happened and how to mend it."""


class _PassingError(RewardServerError):
    """A failure that may be gone at the next attempt."""


class RewardClient:
    """Asks one reward server (or one address before several) for audits."""

    def __init__(self, base_url: str, token: str, timeout_s: float = 170.0, attempts: int = 3) -> None:
        """Opens no connection yet.

        Args:
            base_url: Address of the server, e.g. http://127.0.0.1:5001
            token: The server's token.
            timeout_s: For one attempt; above the server's `deadline_s`, so that its own answer comes first.
            attempts: Attempts in all; an attempt that ran out of time is not repeated.
        """
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s
        self._attempts = attempts
        self._http = httpx.AsyncClient(
            base_url=self._base_url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_TIMEOUT_S)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
            trust_env=False,  # a proxy or a .netrc of the machine must not come between
        )

    async def audit(
        self, query: RagQuery, response: str, *, include_trajectories: bool = False
    ) -> AuditResult:
        """Returns the verdict, UNSCORED ones too, and the trajectories when asked for.

        Raises:
            RewardServerError: no verdict came after all attempts.
        """
        request = AuditRequest(query=query, response=response, include_trajectories=include_trajectories)
        answer = await self._post("/v1/audit", request.model_dump_json())
        try:
            return AuditResult.model_validate_json(answer.content)
        except ValidationError as error:
            raise self._error(
                f"its answer is no verdict ({error.error_count()} problems)",
                "run the same version on both sides",
            ) from error

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

    async def _post(self, path: str, body: str) -> httpx.Response:
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(_PassingError),
            stop=stop_after_attempt(self._attempts),
            wait=wait_exponential(multiplier=_FIRST_WAIT_S, max=10) + wait_random(0, _FIRST_WAIT_S),
            reraise=True,
        )
        answer: httpx.Response = await retrying(self._post_once, path, body)
        return answer

    async def _post_once(self, path: str, body: str) -> httpx.Response:
        try:
            answer = await self._http.post(path, content=body, headers={"Content-Type": "application/json"})
        except (httpx.ReadTimeout, httpx.WriteTimeout, httpx.PoolTimeout) as error:
            mend = "raise timeout_s above the server's deadline_s"
            raise self._error(f"did not answer in {self._timeout_s:g} s", mend) from error
        except httpx.TransportError as error:
            failure = f"cannot be reached ({_text(error)})"
            raise self._error(failure, _MEND_UNREACHED, kind=_PassingError) from error
        if answer.status_code == 200:
            return answer
        kind = _PassingError if answer.status_code in _PASSING_STATUSES else RewardServerError
        mend = _MENDS.get(answer.status_code, "see the server's log")
        raise self._error(f"answered {answer.status_code}: {_detail(answer)}", mend, kind=kind)

    def _error(
        self, failure: str, mend: str, *, kind: type[RewardServerError] = RewardServerError
    ) -> RewardServerError:
        return kind(f"reward server {self._base_url} {failure}; {mend}")


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

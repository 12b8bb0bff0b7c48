"""What a request must pass before it is read: its headers' size, the token, its body's size and pace.

Plain ASGI, because FastAPI reads a whole body before it asks any dependency. The token travels as
`Authorization: Bearer TOKEN`, or as the password of Basic: so OpenRLHF's stock client, which knows only a
URL, can carry it in `http://march:TOKEN@host:port/get_reward`. It is compared in constant time and never
logged; its name is what the logs know. Connections that never send a
request are ended one storey below, in connections.py.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Collection

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reward.serving.caller import Refusal, caller, note_refusal
from reward.serving.tokens import TokenBook

_MOST_DIGITS = 20  # of a length; no reader of numbers behind this door meets more
_NO_TOKEN = "token missing or wrong; send it as Authorization: Bearer, or as Basic's password"


class TokenGate:
    """Answers 401 to every request without a token, but for the open paths, and says who asks.

    A request whose headers and path are too long together is answered 431, before its token is looked at.
    """

    def __init__(
        self, app: ASGIApp, *, tokens: TokenBook, open_paths: Collection[str], max_header_bytes: int
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._open_paths = frozenset(open_paths)
        self._max_header_bytes = max_header_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":  # a websocket: nothing here speaks it
            return await send({"type": "websocket.close", "code": 1008})
        if _num_header_bytes(scope) > self._max_header_bytes:
            detail = f"headers over max_header_bytes {self._max_header_bytes}; send less"
            return await refuse(scope, receive, send, status=431, reason="headers_too_large", detail=detail)
        if scope["path"] in self._open_paths:
            return await self._app(scope, receive, send)
        authorization = Headers(scope=scope).get("authorization", "")
        given = presented_token(authorization)
        name = None if given is None else self._tokens.name_of(given)
        if name is None:
            reason: Refusal = "token_wrong" if authorization else "token_missing"
            challenge = {"WWW-Authenticate": "Bearer"}
            return await refuse(
                scope, receive, send, status=401, reason=reason, detail=_NO_TOKEN, headers=challenge
            )
        if (asked := caller.get()) is not None:
            asked.name = name
        await self._app(scope, receive, send)


class BodyGate:
    """Answers 413 to a body over the limit, by its declared length or as soon as more has come in, and 408 to
    one that has not come in whole in time."""

    def __init__(self, app: ASGIApp, *, max_body_bytes: int, body_timeout_s: float) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._body_timeout_s = body_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            detail = "content-length and transfer-encoding: send one, so that all agree where the body ends"
            return await refuse(scope, receive, send, status=400, reason="body_length_unclear", detail=detail)
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and (len(declared) > _MOST_DIGITS or int(declared) > self._max_body_bytes):
            detail = self._too_large()
            return await refuse(scope, receive, send, status=413, reason="body_too_large", detail=detail)
        await self._app(scope, self._bounded(receive), send)

    def _bounded(self, receive: Receive) -> Receive:
        deadline = asyncio.get_running_loop().time() + self._body_timeout_s
        num_bytes = 0
        is_whole = False

        async def bounded() -> Message:
            nonlocal num_bytes, is_whole
            if is_whole:  # what comes now is the client's leaving, for which nobody need hurry
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                note_refusal("body_slow")
                detail = f"body not whole in body_timeout_s {self._body_timeout_s:g}; send it faster"
                raise HTTPException(408, detail, headers={"Connection": "close"}) from None
            num_bytes += len(message.get("body", b""))
            if num_bytes > self._max_body_bytes:
                note_refusal("body_too_large")
                raise HTTPException(413, self._too_large(), headers={"Connection": "close"})
            is_whole = not message.get("more_body", False)
            return message

        return bounded

    def _too_large(self) -> str:
        return f"body over max_body_bytes {self._max_body_bytes}; send less or raise max_body_bytes"


async def refuse(
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    status: int,
    reason: Refusal,
    detail: str,
    headers: dict[str, str] | None = None,
) -> None:
    """Answers with one line under `detail` and ends the connection, whose body is not read.

    Args:
        scope: ASGI's, as the next two.
        receive: Is not called.
        send: Gets the answer.
        status: HTTP's.
        reason: For the count of refusals.
        detail: What is wrong and how to mend it.
        headers: Further ones.
    """
    note_refusal(reason)
    answer = JSONResponse(
        {"detail": detail}, status_code=status, headers={"Connection": "close", **(headers or {})}
    )
    await answer(scope, receive, send)


def presented_token(authorization: str) -> str | None:
    """The token in an `Authorization` header: a Bearer's value or a Basic's password, or None."""
    scheme, _, value = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):  # no base64, not ASCII, or no UTF-8
        return None


def _num_header_bytes(scope: Scope) -> int:
    target = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    return target + sum(len(name) + len(value) for name, value in scope["headers"])

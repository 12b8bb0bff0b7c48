"""What a request must pass before it is read: the token, and the size of its body.

Plain ASGI, because FastAPI reads a whole body before it asks any dependency. The token travels as
`Authorization: Bearer TOKEN`, or as the password of Basic: so OpenRLHF's stock client, which knows only a
URL, can carry it in `http://march:TOKEN@host:port/get_reward`. It is compared in constant time and never
logged.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from collections.abc import Collection

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MIN_TOKEN_CHARS = 16


def read_token(variable: str) -> str:
    """The server's token from the environment.

    Raises:
        ValueError: it is missing or too short.
    """
    token = os.environ.get(variable, "").strip()
    if len(token) < MIN_TOKEN_CHARS:
        found = f"has {len(token)} characters" if token else "is not set"
        mend = f'set at least {MIN_TOKEN_CHARS}, e.g. export {variable}="$(openssl rand -hex 24)"'
        raise ValueError(f"token_env: the environment variable {variable} {found}; {mend}")
    return token


class TokenGate:
    """Answers 401 to every request without the token, but for the open paths."""

    def __init__(self, app: ASGIApp, *, token: str, open_paths: Collection[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._open_paths = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._open_paths:
            return await self._app(scope, receive, send)
        given = presented_token(Headers(scope=scope).get("authorization", ""))
        if given is not None and hmac.compare_digest(given.encode(), self._token):
            return await self._app(scope, receive, send)
        refusal = JSONResponse(
            {"detail": "token missing or wrong; send it as Authorization: Bearer, or as Basic's password"},
            status_code=401,
            headers={"WWW-Authenticate": "Bearer", "Connection": "close"},
        )
        await refusal(scope, receive, send)


class SizeGate:
    """Answers 413 to a body over the limit: by its declared length, or as soon as more has come in."""

    def __init__(self, app: ASGIApp, *, max_body_bytes: int) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdecimal() and int(declared) > self._max_body_bytes:
            refusal = JSONResponse(
                {"detail": self._detail()}, status_code=413, headers={"Connection": "close"}
            )
            return await refusal(scope, receive, send)
        await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        num_bytes = 0

        async def counted() -> Message:
            nonlocal num_bytes
            message = await receive()
            num_bytes += len(message.get("body", b""))
            if num_bytes > self._max_body_bytes:
                raise HTTPException(413, self._detail(), headers={"Connection": "close"})
            return message

        return counted

    def _detail(self) -> str:
        return f"body over max_body_bytes {self._max_body_bytes}; send less or raise max_body_bytes"


def presented_token(authorization: str) -> str | None:
    """The token in an `Authorization` header: a Bearer's value or a Basic's password, or None."""
    scheme, _, value = authorization.strip().partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return None

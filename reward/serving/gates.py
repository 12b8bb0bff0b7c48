"""What a request must pass before it is read, and what is seen of every request.

Plain ASGI, because FastAPI reads a whole body before it asks any dependency. In order:

    RequestGate   names the request (`X-Request-ID`, or a new id) and writes its line in the log; it comes
                  first, so that the refusals of the others are seen, too
    TokenGate     the headers' size, the token, the caller's quota
    TraceGate     a span in the trace of the request's W3C `traceparent`; behind the token, so that strangers
                  write no traces
    BodyGate      the body's size and pace

The token travels as `Authorization: Bearer TOKEN`, or as the password of Basic: so OpenRLHF's stock client,
which knows only a URL, can carry it in `http://march:TOKEN@host:port/get_reward`. It is compared in constant
time and never logged; its name is what the logs know.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import time
from collections.abc import Collection

from fastapi.responses import JSONResponse
from opentelemetry.trace import Span, SpanKind
from prometheus_client import Counter
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reward import telemetry
from reward.serving.access import TokenBook
from reward.serving.logs import REQUEST_ID_HEADER, Caller, Refusal, caller, note_refusal, request_id_of

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
    closing = {"Connection": "close", **(headers or {})}
    answer = JSONResponse({"detail": detail, "reason": reason}, status_code=status, headers=closing)
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


logger = logging.getLogger(__name__)

_INTERNAL = "internal error; see the server's log"
_MOST_PATH_CHARS = 200
_ID_NAME = REQUEST_ID_HEADER.lower().encode()


class RequestGate:
    """Names each request, and writes a line when it has been answered.

    Args:
        app: What answers.
        quiet_paths: Have a line only when something was wrong.
        logs_access: Whether there are lines at all.
        refused: Counts the requests that were refused; its label is `reason`.
    """

    def __init__(
        self, app: ASGIApp, *, quiet_paths: Collection[str], logs_access: bool, refused: Counter
    ) -> None:
        self._app = app
        self._quiet_paths = frozenset(quiet_paths)
        self._logs_access = logs_access
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        asked = Caller(request_id_of(Headers(scope=scope).get(REQUEST_ID_HEADER)))
        caller.set(asked)
        status, start = 0, time.perf_counter()

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (_ID_NAME, asked.request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, named)
        except Exception:
            if status:  # the answer is under way: uvicorn cuts it off
                raise
            logger.exception("%s %s failed", scope["method"], scope["path"])
            await refuse(scope, receive, named, status=500, reason="internal", detail=_INTERNAL)
        finally:
            if asked.refusal is not None:
                self._refused.labels(asked.refusal).inc()
            if self._logs_access and (status >= 400 or scope["path"] not in self._quiet_paths):
                _log_access(scope, asked, status=status, seconds=time.perf_counter() - start)


class TraceGate:
    """Opens a span for each request; there is none of these gates when nothing is traced."""

    def __init__(self, app: ASGIApp, *, quiet_paths: Collection[str]) -> None:
        self._app = app
        self._quiet_paths = frozenset(quiet_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._quiet_paths:
            return await self._app(scope, receive, send)
        asked = caller.get()
        attributes = {"http.request.method": scope["method"], "url.path": scope["path"]}
        if asked is not None:
            attributes |= {"march.request_id": asked.request_id, "march.caller": asked.name or ""}
        parent = telemetry.extract(Headers(scope=scope))
        with telemetry.span(scope["method"], attributes, kind=SpanKind.SERVER, context=parent) as span:
            if asked is not None and span.get_span_context().is_valid:
                asked.trace_id = f"{span.get_span_context().trace_id:032x}"
            await self._app(scope, receive, _with_status(send, span))
            if (route := scope.get("route")) is not None:  # known only after the routing
                span.update_name(f"{scope['method']} {route.path}")
                span.set_attribute("http.route", route.path)


def _with_status(send: Send, span: Span) -> Send:
    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            span.set_attribute("http.response.status_code", message["status"])
            if message["status"] >= 500:  # a client's error is none of the server's
                telemetry.fail(span, str(message["status"]))
        await send(message)

    return told


def _log_access(scope: Scope, asked: Caller, *, status: int, seconds: float) -> None:
    outcome = ",".join(asked.outcomes) or asked.refusal
    fields = {
        "method": scope["method"],
        "path": scope["path"][:_MOST_PATH_CHARS],
        "status": status,
        "ms": round(1000 * seconds, 1),
        "client": scope["client"][0] if scope.get("client") else None,  # its address
        "caller": asked.name,
        "outcome": outcome,
    }
    line = "%s %s %d %.1f ms caller=%s outcome=%s"
    shown = (fields["method"], fields["path"], status, fields["ms"], asked.name or "-", outcome or "-")
    logger.info(line, *shown, extra=fields)

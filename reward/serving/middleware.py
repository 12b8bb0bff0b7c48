"""What every request passes before it is read, and what is seen of every answer.

Plain ASGI, because FastAPI reads a whole body before it asks any dependency. In order:

    name        `X-Request-ID`, or a new id; in the answer and in each line of the log
    headers     their size
    token       who asks (tokens.py); the health paths are open
    trace       a span in the trace of the request's W3C `traceparent`; strangers write no traces
    body        its size and pace, while it is read
    application the paths (routes.py); errors of all kinds become answers here (errors.py)
    signature   of the 200 answers of the audit's paths to a nonce (signing.py)
    count       of refusals
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from fastapi.responses import JSONResponse
from opentelemetry.trace import SpanKind
from prometheus_client import Counter
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reward import telemetry
from reward.serving.config import ServerConfig
from reward.serving.errors import Refused, reply_of
from reward.serving.logs import REQUEST_ID_HEADER, Caller, caller, request_id_of
from reward.serving.signing import NONCE_HEADER, SIGNATURE_HEADER, SIGNED_PATHS, is_nonce, signature
from reward.serving.tokens import TokenBook

_OPEN_PATHS = ("/healthz", "/readyz")
_QUIET_PATHS = (*_OPEN_PATHS, "/metrics")  # asked every few seconds
_ID_NAME = REQUEST_ID_HEADER.lower().encode()
_MOST_DIGITS = 20  # of a length; int() of endless ones is slow


class RequestMiddleware:
    """One middleware for all that surrounds a path.

    Without a `signing_key` answers are unsigned; `refused` counts refused requests by `reason`.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        config: ServerConfig,
        tokens: TokenBook,
        signing_key: str | None,
        refused: Counter,
    ) -> None:
        self._app, self._config, self._tokens = app, config, tokens
        self._signing_key = signing_key
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":  # a websocket: nothing here speaks it
            return await send({"type": "websocket.close", "code": 1008})
        asked = Caller(request_id_of(Headers(scope=scope).get(REQUEST_ID_HEADER)))
        caller.set(asked)
        exchange = _Exchange(scope, receive, send, asked, self._config, self._signing_key)
        try:
            await self._answer(scope, exchange, asked)
        finally:
            if asked.refusal is not None:
                self._refused.labels(asked.refusal).inc()

    async def _answer(self, scope: Scope, exchange: _Exchange, asked: Caller) -> None:
        denied = self._denial(scope, asked)
        is_traced = telemetry.is_on() and denied is None and scope["path"] not in _QUIET_PATHS
        with _span(scope, asked, exchange) if is_traced else nullcontext():
            try:
                if denied is not None:
                    raise denied
                exchange.check_headers()
                await self._app(scope, exchange.receive, exchange.send)
            except Exception as error:
                if exchange.status:  # the answer is under way: uvicorn cuts it off
                    raise
                await exchange.send_error(error)

    def _denial(self, scope: Scope, asked: Caller) -> Refused | None:
        """Why a request is not let in; else notes who asks."""
        most = self._config.limits.max_header_bytes
        if _num_header_bytes(scope) > most:
            detail = f"headers over max_header_bytes {most}; send less"
            return Refused(431, detail, reason="headers_too_large")
        if scope["path"] in _OPEN_PATHS:
            return None
        authorization = Headers(scope=scope).get("authorization", "")
        asked.name = self._tokens.owner_of(authorization)
        if asked.name is None:
            detail = "token missing or wrong; send it as Authorization: Bearer, or as Basic's password"
            return Refused(401, detail, reason="token_wrong" if authorization else "token_missing")
        return None


class _Exchange:
    """One request and its answer: `receive` bounds the body, `send` names and signs the answer."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        asked: Caller,
        config: ServerConfig,
        signing_key: str | None,
    ) -> None:
        self.status = 0  # of the answer, once it has begun
        self._scope, self._receive, self._send = scope, receive, send
        self._headers = Headers(scope=scope)
        self._asked = asked
        self._nonce = self._headers.get(NONCE_HEADER, "")
        self._key = signing_key if self._nonce and scope["path"] in SIGNED_PATHS else None
        self._max_body_bytes, self._body_timeout_s = config.max_body_bytes, config.limits.body_timeout_s
        self._deadline = asyncio.get_running_loop().time() + self._body_timeout_s
        self._num_bytes = 0
        self._is_whole = False  # the body has been read to its end
        self._request_sha256 = hashlib.sha256()
        self._start: Message | None = None  # of an answer that is held until it is whole and signed
        self._body = b""

    def check_headers(self) -> None:
        """Raises `Refused` where the body's length or the nonce makes the request unusable."""
        if "content-length" in self._headers and "transfer-encoding" in self._headers:
            detail = "content-length and transfer-encoding: send one, so that all agree where the body ends"
            raise Refused(400, detail, reason="body_length_unclear")
        declared = self._headers.get("content-length", "0")
        if declared.isdecimal() and (len(declared) > _MOST_DIGITS or int(declared) > self._max_body_bytes):
            raise self._too_large()
        if self._key is not None and not is_nonce(self._nonce):
            detail = f"{NONCE_HEADER}: send 16 to 128 letters, digits, _ and -"
            raise Refused(400, detail, reason="nonce_malformed")

    async def receive(self) -> Message:
        """ASGI's, within the limits."""
        if self._is_whole:  # only the client's leaving can come now, and that has no limit
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            detail = f"body not whole in body_timeout_s {self._body_timeout_s:g}; send it faster"
            raise Refused(408, detail, reason="body_slow") from None
        body = message.get("body", b"")
        self._num_bytes += len(body)
        if self._num_bytes > self._max_body_bytes:
            raise self._too_large()
        if self._key is not None:
            self._request_sha256.update(body)
        self._is_whole = not message.get("more_body", False)
        return message

    def _too_large(self) -> Refused:
        detail = f"body over max_body_bytes {self._max_body_bytes}; send less or raise max_body_bytes"
        return Refused(413, detail, reason="body_too_large")

    async def send(self, message: Message) -> None:
        """ASGI's; the 200 answers of signed paths are held until they are whole."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], (_ID_NAME, self._asked.request_id.encode())]
            if self._key is not None and self.status == 200:
                self._start = message
                return
        elif self._start is not None and self._key is not None:
            self._body += message.get("body", b"")
            if message.get("more_body", False):
                return
            start, self._start = self._start, None
            request = f"{self._scope['method']} {self._scope['path']}"
            digest = self._request_sha256.hexdigest()
            signed = signature(self._key, request, digest, self._body, self._nonce)
            MutableHeaders(raw=start["headers"])[SIGNATURE_HEADER] = signed
            await self._send(start)
            message = {"type": "http.response.body", "body": self._body}
        await self._send(message)

    async def send_error(self, error: Exception) -> None:
        """Answers with an error; the connection ends where the body was not read to its end."""
        reply = reply_of(error)
        headers = {} if self._is_whole else {"Connection": "close"}
        if reply.retry_after_s is not None:
            headers["Retry-After"] = str(reply.retry_after_s)
        if reply.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        body = reply.model_dump(exclude_none=True, exclude={"status", "retry_after_s"})
        answer = JSONResponse(body, status_code=reply.status or 500, headers=headers)
        await answer(self._scope, self._receive, self.send)


@contextmanager
def _span(scope: Scope, asked: Caller, exchange: _Exchange) -> Iterator[None]:
    """A span around a request; it learns the route and the status at the end."""
    attributes = {
        "http.request.method": scope["method"],
        "url.path": scope["path"],
        "march.request_id": asked.request_id,
        "march.caller": asked.name or "",
    }
    parent = telemetry.extract(Headers(scope=scope))
    with telemetry.span(scope["method"], attributes, kind=SpanKind.SERVER, context=parent) as span:
        if span.get_span_context().is_valid:
            asked.trace_id = f"{span.get_span_context().trace_id:032x}"
        yield
        if (route := scope.get("route")) is not None:  # known only after the routing
            span.update_name(f"{scope['method']} {route.path}")
            span.set_attribute("http.route", route.path)
        span.set_attribute("http.response.status_code", exchange.status)
        if exchange.status >= 500:  # a client's error is none of the server's
            telemetry.fail(span, str(exchange.status))


def _num_header_bytes(scope: Scope) -> int:
    target = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    return target + sum(len(name) + len(value) for name, value in scope["headers"])

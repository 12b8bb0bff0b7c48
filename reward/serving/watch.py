"""What is seen of every request: its id, its line in the log, its span.

`RequestGate` stands before all other gates, so that their refusals are seen, too. A client may name its
request by `X-Request-ID` (1 to 64 letters, digits, `.`, `_` and `-`), else it gets an id; the answer carries
it, and every line that is logged meanwhile. `TraceGate` stands behind the token, lest strangers write traces:
it goes on with the trace that the request's W3C `traceparent` names.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

from opentelemetry.trace import Span, SpanKind
from prometheus_client import Counter
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reward import telemetry
from reward.serving.caller import REQUEST_ID_HEADER, Caller, caller, request_id_of
from reward.serving.gate import refuse

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

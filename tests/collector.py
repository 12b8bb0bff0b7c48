"""Shared by the tests: an OpenTelemetry collector over real HTTP that keeps every span it is sent."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """Takes OTLP over HTTP, as protobuf."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.bodies = b""
        self.services: set[str] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(self.path, body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def take(self, path: str, body: bytes) -> None:
        assert path == "/v1/traces"
        self.bodies += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = {one.key: one.value.string_value for one in resource.resource.attributes}
            self.services.add(names["service.name"])
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Span]:
        return sorted(
            (span for span in self.spans if span.name == name), key=lambda span: span.start_time_unix_nano
        )

    def parent_of(self, span: Span) -> str:
        """The name of the span that a span is in; "" for none."""
        found = [one for one in self.spans if one.span_id == span.parent_span_id]
        return found[0].name if found else ""

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def attributes(span: Span) -> dict[str, object]:
    """A span's attributes as plain values."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}

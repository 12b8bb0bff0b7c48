"""Where spans go: batched in the background to an OTLP collector over HTTP, or to the console.

Loaded by `reward.telemetry.start` alone, for it needs the extra `[otel]`. Endpoint, headers, timeouts,
batches and sampling are set by OpenTelemetry's own variables, which its packages read. A span that cannot be
sent is lost and an audit never waits for one: the queue is bounded, and the log says once when sending begins
to fail and once when it works again. `reward.span_counts` says how many were sent.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SpanExporter,
    SpanExportResult,
)

from reward.provenance import package_version
from reward.span_counts import counts

logger = logging.getLogger(__name__)

_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_LAST_EXPORT_S = 2.0
# They report every batch, every retry and a full queue; what matters of it is logged once, here.
_NOISY = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal")

_provider: TracerProvider | None = None
_exporters: list[LoggingExporter] = []


class LoggingExporter(SpanExporter):
    """Counts what another exporter sends and says once that it cannot."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._is_failing = False
        self._is_shut = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Sends spans; in the processor's own thread."""
        result = SpanExportResult.FAILURE if self._is_shut else self._inner.export(spans)
        failed = result is not SpanExportResult.SUCCESS
        counts.exported += 0 if failed else len(spans)
        if failed != self._is_failing:
            self._is_failing = failed
            if failed:
                logger.error("traces cannot be exported; audits go on, their spans are lost")
            else:
                logger.warning("traces can be exported again")
        return result

    def shutdown(self) -> None:
        """Sends nothing more; a retry that waits is given up."""
        if not self._is_shut:
            self._is_shut = True
            self._inner.shutdown()


class CountingProcessor(BatchSpanProcessor):
    """Counts the spans that ended, those for which the queue has no place included."""

    def on_end(self, span: ReadableSpan) -> None:
        """Queues a span, or drops the oldest; waits for nothing."""
        if span.context is not None and span.context.trace_flags.sampled:
            counts.ended += 1
        super().on_end(span)


def start(service: str, exporters: Sequence[str]) -> TracerProvider:
    """What makes spans and sends them, counted; a second call in a process gives the same again.

    Raises:
        ValueError: the environment asks for another protocol than HTTP.
    """
    global _provider
    if _provider is not None:
        return _provider
    made = [LoggingExporter(_exporter(name)) for name in exporters]
    own = Resource.create({"service.name": service, "service.version": package_version()})
    provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    for exporter in made:
        provider.add_span_processor(CountingProcessor(exporter))
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    _provider, _exporters[:] = provider, made
    return provider


def stop() -> None:
    """Sends what is left, for two seconds and not longer by a collector that is gone."""
    global _provider
    if _provider is None:
        return
    provider, _provider = _provider, None
    timer = threading.Timer(_LAST_EXPORT_S, _give_up)
    timer.daemon = True
    timer.start()
    provider.shutdown()
    timer.cancel()


def _give_up() -> None:
    for exporter in _exporters:
        exporter.shutdown()


def _exporter(name: str) -> SpanExporter:
    if name == "console":
        return ConsoleSpanExporter()
    protocol = next((os.environ[variable] for variable in _PROTOCOLS if os.environ.get(variable)), "")
    if protocol not in ("", "http/protobuf"):
        raise ValueError(f"{_PROTOCOLS[1]}: {protocol!r} is not spoken here; set http/protobuf or unset it")
    return OTLPSpanExporter()

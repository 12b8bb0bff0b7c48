"""Spans: what one answer goes through, from its rollout to its reward, as one OpenTelemetry trace.

    march.rollout                     the trainer's agent
      solver.generate
      audit
        POST                CLIENT    one an attempt of `RewardClient`
          POST /v1/audit    SERVER
            march.audit               one a sample; linked to the audit that it joined
              queue
              proposer, checker
                chat MODEL  CLIENT    one a request to a role
                  engine.request      one an engine that is asked for it
              vote

Off until `start`, which does what the environment asks for; until then a span costs microseconds.
Attributes follow OpenTelemetry's conventions (`http.*`, `gen_ai.*`, `error.type`), ours begin with `march.`.
Prompts, completions and the messages of errors are in no span.
"""

import atexit
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NoOpTracer, Span, SpanContext, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from reward.config import SamplingSettings
from reward.provenance import package_version
from reward.types import Outcome, Role, SampleGroup, Verdict

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_LAST_EXPORT_S = 2.0

Attributes = Mapping[str, str | int | float | bool]
_W3C = TraceContextTextMapPropagator()
_OFF = NoOpTracer()
_tracer: Tracer = _OFF
_end_export: Callable[[], None] | None = None


def is_asked_for() -> bool:
    """Whether the environment names a collector.

    Raises:
        ValueError: it asks for another protocol than HTTP.
    """
    is_off = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if is_off or os.environ.get("OTEL_TRACES_EXPORTER") == "none" or not any(map(os.environ.get, ENDPOINTS)):
        return False
    protocol = next((os.environ[variable] for variable in _PROTOCOLS if os.environ.get(variable)), "")
    if protocol not in ("", "http/protobuf"):
        raise ValueError(f"{_PROTOCOLS[1]}: {protocol!r} is not spoken here; set http/protobuf or unset it")
    return True


def start(service: str) -> None:
    """Sends spans to the collector that the environment names, until the process ends or `stop`.

    They are batched in the background in a bounded queue; one that cannot be sent is lost, and no audit
    waits for it. Headers, timeouts, batches and sampling are set by OpenTelemetry's own variables.

    OTEL_SERVICE_NAME, where it is set, is used in place of `service`.

    Raises:
        ValueError: it asks for what is not installed or not known; one line.
    """
    global _tracer, _end_export
    if not is_asked_for() or _end_export is not None:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        fix = "pip install '.[otel]', or unset OTEL_EXPORTER_OTLP_ENDPOINT"
        raise ValueError(f"traces are asked for, but {error.name} is not installed; {fix}") from error
    own = Resource.create({"service.name": service, "service.version": package_version()})
    provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    exporter = OTLPSpanExporter()
    logging.getLogger(OTLPSpanExporter.__module__).setLevel(logging.ERROR)  # not each retry
    provider.add_span_processor(BatchSpanProcessor(exporter))
    _tracer = provider.get_tracer("march")

    def end() -> None:
        timer = threading.Timer(_LAST_EXPORT_S, exporter.shutdown)  # which gives up a retry that waits
        timer.daemon = True
        timer.start()
        provider.shutdown()
        timer.cancel()

    _end_export = end
    atexit.register(stop)


def stop() -> None:
    """Makes no more spans and sends what is left, for two seconds at most."""
    global _tracer, _end_export
    _tracer = _OFF
    end, _end_export = _end_export, None
    if end is not None:
        end()
        atexit.unregister(stop)


def is_on() -> bool:
    return _tracer is not _OFF


@contextmanager
def span(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    context: Context | None = None,
) -> Iterator[Span]:
    """A span around a block; an error that leaves the block gives it its status.

    It continues `context`, by default the span around it.
    """
    begun = _tracer.start_as_current_span(
        name,
        context,
        kind,
        attributes,
        record_exception=False,  # its message may quote a text
        set_status_on_exception=False,
    )
    with begun as recorded:
        try:
            yield recorded
        except BaseException as error:  # cancellation, too
            reason = getattr(error, "reason", "")
            is_word = isinstance(reason, str) and reason.isidentifier()
            fail(recorded, reason if is_word else type(error).__name__)
            raise


def chat(
    model: str, settings: SamplingSettings, *, n: int, role: Role, attempt: int
) -> AbstractContextManager[Span]:
    """A span around one request to a model, by OpenTelemetry's conventions for generative models."""
    attributes: dict[str, str | int | float] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model,
        "gen_ai.request.choice.count": n,
        "gen_ai.request.temperature": settings.temperature,
        "gen_ai.request.top_p": settings.top_p,
        "gen_ai.request.max_tokens": settings.max_tokens,
        "march.role": role.value,
        "march.attempt": attempt,
    }
    if settings.seed is not None:
        attributes["gen_ai.request.seed"] = settings.seed
    return span(f"chat {model}", attributes, kind=SpanKind.CLIENT)


def fail(span: Span, error: str) -> None:
    """Gives a span the status of an error, by one word."""
    span.set_status(StatusCode.ERROR, error)
    span.set_attribute("error.type", error)


def address_of(url: str) -> dict[str, str | int]:
    """A server's attributes; nothing of what else its URL may hold."""
    parts = urlsplit(url)
    default_port = 443 if parts.scheme == "https" else 80
    return {"server.address": parts.hostname or "", "server.port": parts.port or default_port}


def current() -> SpanContext | None:
    """The span around the caller, to be linked to from another trace."""
    found = trace.get_current_span().get_span_context()
    return found if found.is_valid else None


def link(other: SpanContext | None) -> None:
    if other is not None:
        trace.get_current_span().add_link(other)


def inject(headers: MutableMapping[str, str]) -> MutableMapping[str, str]:
    """The headers, with the W3C `traceparent` of the span around the caller."""
    _W3C.inject(headers)
    return headers


def extract(headers: Mapping[str, str]) -> Context:
    """What a request's headers continue; a malformed `traceparent` continues nothing."""
    return _W3C.extract(headers, Context())


def record_verdict(span: Span, verdict: Verdict) -> None:
    """Writes a verdict on a span; an UNSCORED one is an error."""
    if not span.is_recording():
        return
    span.set_attribute("march.outcome", verdict.outcome.value)
    span.set_attribute("march.reason", verdict.reason)
    span.set_attribute("march.num_claims", len(verdict.claims))
    if verdict.reward is not None:
        span.set_attribute("march.reward", verdict.reward)
    if verdict.weights_version is not None:
        span.set_attribute("march.weights_version", verdict.weights_version)
    if verdict.outcome is Outcome.UNSCORED:
        fail(span, verdict.reason)


def record_group(span: Span, group: SampleGroup) -> None:
    """Writes on a span what a sampler gave: tokens, where it gives them, and how its samples ended."""
    if not span.is_recording():
        return
    samples = {id(sample): sample for sample in group.samples}.values()  # a greedy one is listed n times
    if group.use is not None:
        span.set_attribute("gen_ai.usage.input_tokens", group.use.num_prompt)
        span.set_attribute("gen_ai.usage.output_tokens", group.use.num_completion)
    span.set_attribute("gen_ai.response.finish_reasons", [sample.finish_reason for sample in samples])
    if group.weights_version is not None:
        span.set_attribute("march.weights_version", group.weights_version)

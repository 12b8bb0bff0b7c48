"""The service's health and figures over HTTP, on loopback unless told: /healthz and /metrics.

The label of a job is `retrain_job`: Prometheus has a label `job` of its own, which would hide it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from orchestration.schedule.job_watch import JobWatch
from orchestration.schedule.journal import Cause
from orchestration.schedule.options import HOST

_JOB = "retrain_job"


class ScheduleFigures(Collector):
    """Figures of all jobs, read from their journals when they are asked for."""

    def __init__(self, watches: Sequence[JobWatch], next_s: Callable[[str], float | None]) -> None:
        """Args:
        watches: The jobs.
        next_s: When the clock triggers a job next, in seconds since 1970.
        """
        self._watches, self._next_s = watches, next_s

    def collect(self) -> Iterator[Metric]:
        """One sample a job, but where a figure has no value."""
        running = GaugeMetricFamily("march_retraining_running", "A retraining is running", labels=[_JOB])
        failures = GaugeMetricFamily("march_retraining_failures", "Failures in a row", labels=[_JOB])
        following = GaugeMetricFamily(
            "march_retraining_next_seconds", "Next time by the clock, since 1970", labels=[_JOB]
        )
        due = GaugeMetricFamily("march_retraining_due", "A trigger is not settled", labels=[_JOB, "cause"])
        blind = GaugeMetricFamily(
            "march_trigger_unreadable", "What a trigger looks at cannot be read", labels=[_JOB, "cause"]
        )
        rate = GaugeMetricFamily("march_drift_refuted_rate", "Of the last look's answers", labels=[_JOB])
        low = GaugeMetricFamily("march_drift_refuted_low", "Lower bound of that rate", labels=[_JOB])
        ended = CounterMetricFamily("march_retrainings", "Retrainings that ended", labels=[_JOB, "result"])
        for watch in self._watches:
            state, name = watch.state(), watch.job.name
            running.add_metric([name], state.running is not None)
            failures.add_metric([name], state.num_failures)
            ended.add_metric([name, "ended"], state.num_well)
            ended.add_metric([name, "failed"], state.num_failed)
            for cause in Cause:
                due.add_metric([name, cause], cause in state.due)
                blind.add_metric([name, cause], cause in watch.problems)
            for family, value in (
                (following, self._next_s(name)),
                (rate, None if state.drift is None else state.drift.rate),
                (low, None if state.drift is None else state.drift.low),
            ):
                if value is not None:
                    family.add_metric([name], value)
        yield from (running, failures, following, due, blind, rate, low, ended)


@contextmanager
def monitoring(
    figures: Collector, is_well: Callable[[], bool], port: int, *, host: str = HOST
) -> Iterator[int]:
    """Answers over HTTP meanwhile; gives the port.

    Args:
        figures: For /metrics.
        is_well: For /healthz: 200 or 503.
        port: To listen on; 0: any.
        host: Address to listen on.

    Raises:
        ValueError: another process listens there, or the address is not this machine's.
    """
    registry = CollectorRegistry()
    registry.register(figures)

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._send(200, CONTENT_TYPE_LATEST, generate_latest(registry))
            elif self.path == "/healthz":
                well = is_well()
                self._send(200 if well else 503, "text/plain", b"ok\n" if well else b"no sign of life\n")
            else:
                self._send(404, "text/plain", b"/healthz or /metrics\n")

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            with suppress(ConnectionError):  # who asked has gone
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Requests are not logged."""

    try:
        server = ThreadingHTTPServer((host, port), Answers)
    except OSError as error:
        where = port if host == HOST else f"{host}:{port}"
        raise ValueError(f"--port: {where} cannot be listened on ({error.strerror}); use another") from error
    threading.Thread(target=server.serve_forever, name="monitor", daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()

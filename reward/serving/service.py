"""The audits of one server: joined, bounded, timed, counted and written down.

Identical requests that are under way at once join one piece of work, because OpenRLHF's client gives up
after 180 s and asks again while the first audit still runs; the work therefore outlives the request that
began it. Nothing is cached: the policy changes, and a second look must be one. An audit that fails by
accident is tried once more inside the same deadline; what still fails is UNSCORED, never a number.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from datetime import UTC, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reward.auditor import AuditFailure, audit, unscored
from reward.config import AuditConfig, ServerConfig
from reward.judging.vote import Reason
from reward.provenance import config_digest, provenance_of
from reward.roles.prompts import PromptSet
from reward.samplers import Sampler
from reward.types import AuditResult, Outcome, RagQuery, Verdict

logger = logging.getLogger(__name__)

TRANSIENT_REASONS = frozenset({Reason.TIMEOUT, Reason.CONNECTION, Reason.ENGINE, Reason.BAD_RESPONSE})
_RETRY_PAUSE_S = 0.5
_LATENCY_BUCKETS_S = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 120, 180)


class Overloaded(RuntimeError):
    """As many audits as allowed are under way; nothing was begun."""


class AuditMetrics:
    """The server's figures, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.audits = Counter(
            "march_audits",
            "Audits ended, by outcome and reason",
            ["outcome", "reason"],
            registry=self.registry,
        )
        self.claims = Counter("march_claims", "Claims judged, by state", ["state"], registry=self.registry)
        self.numbers = Counter(
            "march_numbers", "Numbers of audited responses that need a check", registry=self.registry
        )
        self.uncovered = Counter(
            "march_numbers_uncovered", "Those of them that no claim covers", registry=self.registry
        )
        self.seconds = Histogram(
            "march_audit_seconds", "Time of an audit", buckets=_LATENCY_BUCKETS_S, registry=self.registry
        )
        self.in_flight = Gauge("march_audits_in_flight", "Audits under way", registry=self.registry)
        self.joined = Counter(
            "march_audits_joined", "Requests that joined an audit under way", registry=self.registry
        )
        self.retried = Counter("march_audits_retried", "Audits tried a second time", registry=self.registry)
        self.refused = Counter(
            "march_requests_refused", "Requests refused at the limit", registry=self.registry
        )

    def count(self, verdict: Verdict, *, seconds: float) -> None:
        """Counts an audit that ended."""
        self.audits.labels(verdict.outcome.value, verdict.reason).inc()
        self.seconds.observe(seconds)
        self.numbers.inc(verdict.num_numbers)
        self.uncovered.inc(len(verdict.uncovered))
        for claim in verdict.claims:
            self.claims.labels(claim.state.value).inc()


class AuditService:
    """Runs audits for the server's endpoints.

    Raises:
        ValueError: the audit log cannot be written.
    """

    def __init__(self, config: ServerConfig, *, sampler: Sampler, prompts: PromptSet) -> None:
        self.metrics = AuditMetrics()
        self._config = config
        self._sampler = sampler
        self._prompts = prompts
        self._running: dict[str, asyncio.Task[AuditResult]] = {}
        if config.audit_log is not None:
            _check_writable(config.audit_log)

    async def audit(
        self, query: RagQuery, response: str, *, config: AuditConfig | None = None
    ) -> AuditResult:
        """Audits a response, or joins the audit of the same content and settings that is under way.

        Args:
            query: The query and its documents.
            response: What is audited.
            config: Settings for this audit; the server's own by default.

        Raises:
            Overloaded: `max_in_flight` audits are under way and this is none of them.
        """
        config = config or self._config.audit
        key = _content_key(query, response, config)
        work = self._running.get(key)
        if work is not None:
            self.metrics.joined.inc()
        elif len(self._running) >= self._config.max_in_flight:
            self.metrics.refused.inc()
            raise Overloaded(f"{len(self._running)} audits are under way")
        else:
            work = self._running[key] = asyncio.create_task(self._measured(query, response, config))
            work.add_done_callback(lambda _: self._running.pop(key))
        return await asyncio.shield(work)

    async def close(self) -> None:
        """Ends what still runs."""
        running = list(self._running.values())
        for work in running:
            work.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _measured(self, query: RagQuery, response: str, config: AuditConfig) -> AuditResult:
        start = time.perf_counter()
        with self.metrics.in_flight.track_inprogress():
            result = await self._bounded(query, response, config)
        seconds = time.perf_counter() - start
        verdict = result.verdict
        self.metrics.count(verdict, seconds=seconds)
        if verdict.outcome is Outcome.UNSCORED:
            logger.warning("audit of %s is UNSCORED: %s: %s", verdict.id, verdict.reason, verdict.detail)
        if self._config.audit_log is not None:
            _append(self._config.audit_log, verdict, response=response, seconds=seconds)
        return result

    async def _bounded(self, query: RagQuery, response: str, config: AuditConfig) -> AuditResult:
        try:
            async with asyncio.timeout(self._config.deadline_s) as deadline:
                return await self._tried(query, response, config)
        except Exception as error:  # a bug must not end as a number either, and must be seen
            if isinstance(error, TimeoutError) and deadline.expired():
                return self._unscored(
                    query, config, Reason.DEADLINE, f"not done in {self._config.deadline_s:g} s"
                )
            logger.exception("audit of %s failed", query.id)
            return self._unscored(query, config, Reason.INTERNAL, f"{type(error).__name__}: {error}")

    async def _tried(self, query: RagQuery, response: str, config: AuditConfig) -> AuditResult:
        result = await self._audit_once(query, response, config)
        if result.verdict.outcome is Outcome.UNSCORED and result.verdict.reason in TRANSIENT_REASONS:
            self.metrics.retried.inc()
            await asyncio.sleep(_RETRY_PAUSE_S)
            result = await self._audit_once(query, response, config)
        return result

    async def _audit_once(self, query: RagQuery, response: str, config: AuditConfig) -> AuditResult:
        return await audit(query, response, sampler=self._sampler, prompts=self._prompts, config=config)

    def _unscored(self, query: RagQuery, config: AuditConfig, reason: Reason, detail: str) -> AuditResult:
        provenance = provenance_of(
            config, auditor="model", prompt_digest=self._prompts.digest, model=self._sampler.model
        )
        failure = AuditFailure(reason, detail)
        return AuditResult(verdict=unscored(query, failure, provenance=provenance))


def _content_key(query: RagQuery, response: str, config: AuditConfig) -> str:
    content = json.dumps([query.model_dump(mode="json"), response, config_digest(config)])
    return hashlib.sha256(content.encode()).hexdigest()


def _check_writable(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError as error:
        raise ValueError(f"audit_log: cannot write {path} ({error.strerror}); give another file") from error


def _append(path: Path, verdict: Verdict, *, response: str, seconds: float) -> None:
    """Writes one line; the response is named by its digest, since a verdict quotes only its claims."""
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "seconds": round(seconds, 3),
        "response_sha256": hashlib.sha256(response.encode(errors="surrogatepass")).hexdigest(),
        "verdict": verdict.model_dump(mode="json"),
    }
    with path.open("a", encoding="utf-8") as log:
        log.write(json.dumps(line, ensure_ascii=False) + "\n")

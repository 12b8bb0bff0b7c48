"""One audit in the server: shared, bounded, timed, tried again, counted and written down.

What is known of a request is its content and, in training, the weights of now. The same content under the
same weights gets one verdict: requests that are under way at once share one audit, and a retry of one that
was answered gets the same verdict (OpenRLHF's client asks again when a connection broke). With a frozen model
every later request does, too (`cache.py`). A trajectory is trained on once: of the requests that share an
audit in training, the one that began it gets the trajectories, the others the verdict alone, and
`Served.source` says which is which.

An audit waits for its place (`admission.py`), all within one deadline. One that fails by accident is tried
once more; what still fails is UNSCORED, never a number. It goes on for `linger_s` after the last client that
waited for it has gone, and is then cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum

from opentelemetry.trace import SpanContext

from reward import telemetry
from reward.auditor import audit, audit_by_lookup
from reward.config import AuditConfig
from reward.judging.unjudged import AuditFailure, unscored
from reward.judging.vote import Reason
from reward.provenance import config_digest, provenance_of
from reward.roles.prompts import PromptSet
from reward.samplers import Sampler, SamplerError, TrainedSampler, Weights
from reward.samplers.special import count_special
from reward.serving.admission import Admission
from reward.serving.cache import VerdictCache, content_key
from reward.serving.config import ServerConfig
from reward.serving.errors import RETRIES, Refused, Retry
from reward.serving.logs import AuditLog, current_caller
from reward.serving.metrics import AuditMetrics
from reward.types import AuditResult, Outcome, Provenance, RagQuery

logger = logging.getLogger(__name__)

_WEIGHTS_TIMEOUT_S = 10.0
_UNKNOWN = Weights(run="unknown", version=-1)
_RETRY_PAUSE_S = 0.5
_STOPPING_RETRY_S = 2  # until another server, or this one again, is there
_NUM_THREADS = 2


class Source(StrEnum):
    """Where an answer comes from."""

    FRESH = "fresh"  # an audit that this request began
    JOINED = "joined"  # one that was under way
    CACHED = "cached"  # one that had ended


@dataclass(frozen=True)
class Served:
    """An answer to one request."""

    result: AuditResult
    source: Source


@dataclass(frozen=True)
class _Asked:
    """What is audited for a request, and how."""

    query: RagQuery
    response: str
    config: AuditConfig
    weights: Weights | None  # of the policy in training; None for a frozen model
    asker: str  # the request's idempotency key; "" for none
    ends: float  # the deadline, in seconds on the loop's clock

    @property
    def key(self) -> bytes:
        """What all requests for this audit have in common."""
        digest = config_digest(self.config)
        return content_key(self.query, self.response, settings=digest, weights=self.weights)


@dataclass(eq=False)
class _Work:
    """An audit under way, and the request that began it."""

    task: asyncio.Task[AuditResult]
    owner: _Asked
    begun_in: SpanContext | None  # the owner's span of it
    askers: set[str] = field(default_factory=set)
    num_waiting: int = 0

    def share_of(self, asker: str, result: AuditResult) -> AuditResult:
        """What a request gets; in training the trajectories are for the one that began the audit alone."""
        is_owner = self.owner.weights is None or (asker != "" and asker == self.owner.asker)
        return result if is_owner else AuditResult(verdict=result.verdict)


class AuditService:
    """Runs audits for the server's endpoints.

    Raises:
        ValueError: the audit log cannot be written.
    """

    def __init__(self, config: ServerConfig, *, sampler: Sampler | None, prompts: PromptSet) -> None:
        self.metrics = AuditMetrics(checker_temperature=config.audit.checker.temperature)
        self.admission = Admission(config)
        self.num_requests = 0  # that wait for their answer
        self.is_draining = False
        self._config = config
        self._sampler = sampler  # None: the audit without a model
        self._prompts = prompts
        self._log = AuditLog(config.audit_log, self.metrics.registry)
        self._cache = VerdictCache(config.cache_bytes)
        self._running: dict[bytes, _Work] = {}
        # Threads, so that the event loop goes on answering; more would only take its turns away.
        self._threads = ThreadPoolExecutor(_NUM_THREADS, "lexical")
        self.metrics.in_flight.set_function(lambda: self.admission.num_running)
        self.metrics.waiting.set_function(lambda: self.admission.num_waiting)
        self.metrics.cache_bytes.set_function(lambda: self._cache.num_bytes)

    async def audit(
        self, query: RagQuery, response: str, *, config: AuditConfig | None = None, asker: str = ""
    ) -> Served:
        """Audits a response, joins the audit of the same content that is under way, or gives one again.

        Args:
            query: The query and its documents.
            response: What is audited.
            config: Settings for this audit; the server's own by default.
            asker: The request's idempotency key, the same for each of its attempts; "" for none.

        Raises:
            Refused: there is no place for another audit, of all or of this caller, or the server is stopping.
        """
        start = time.perf_counter()
        self.refuse_when_draining()
        caller = current_caller()
        self.admission.spend(caller.name or "")
        self.num_requests += 1
        try:
            with telemetry.span("march.audit", {"march.query_id": query.id}) as span:
                ends = asyncio.get_running_loop().time() + self._config.deadline_s
                settings, weights = config or self._config.audit, await self._weights()
                served = await self._served(_Asked(query, response, settings, weights, asker, ends))
                span.set_attribute("march.source", served.source)
                telemetry.record_verdict(span, served.result.verdict)
        finally:
            self.num_requests -= 1
        verdict = served.result.verdict
        caller.outcomes.append(verdict.outcome)
        self.metrics.special_tokens.inc(count_special(response))
        self._log.write(
            verdict,
            response=response,
            documents=query.documents,
            seconds=time.perf_counter() - start,
            shared=served.source is not Source.FRESH,
        )
        return served

    async def _served(self, asked: _Asked) -> Served:
        key, asker = asked.key, asked.asker
        kept = self._cache.get(key, None if asked.weights is None else asker)
        if kept is not None:
            self.metrics.cached.inc()
            return Served(kept, Source.CACHED)
        work = self._running.get(key)
        if work is None:
            work = self._begin(key, asked)
            return Served(await self._awaited(key, work, asker), Source.FRESH)
        self.metrics.joined.inc()
        telemetry.link(work.begun_in)
        return Served(work.share_of(asker, await self._awaited(key, work, asker)), Source.JOINED)

    async def _weights(self) -> Weights | None:
        """The weights of now; `_UNKNOWN` when they cannot be asked for, and then the audit will say why."""
        weights = None
        if isinstance(self._sampler, TrainedSampler):
            try:
                async with asyncio.timeout(min(_WEIGHTS_TIMEOUT_S, self._config.deadline_s / 2)):
                    weights = await self._sampler.weights()
            except (SamplerError, TimeoutError):
                return _UNKNOWN
            self.metrics.weights_version.set(weights.version)
        self._cache.seen(weights)
        return weights

    def _begin(self, key: bytes, asked: _Asked) -> _Work:
        self.refuse_when_draining()
        who = current_caller().name or ""
        self.admission.admit(who)
        task = asyncio.create_task(self._run(asked))
        work = self._running[key] = _Work(task, asked, telemetry.current())

        def ended(task: asyncio.Task[AuditResult]) -> None:
            self.admission.release(who)
            if self._running.get(key) is work:
                del self._running[key]
            if not task.cancelled() and not task.exception():
                self._keep(key, work, task.result())

        task.add_done_callback(ended)
        return work

    def _keep(self, key: bytes, work: _Work, result: AuditResult) -> None:
        """Remembers a result for every request, or in training for a retry of those that shared it."""
        weights = work.owner.weights
        for asker in work.askers if weights is not None else (None,):
            self._cache.keep(key, asker, work.share_of(asker or "", result), weights=weights)

    async def _awaited(self, key: bytes, work: _Work, asker: str) -> AuditResult:
        """The work's result; the last request that stops waiting for it ends it, after a while."""
        work.num_waiting += 1
        work.askers.add(asker)
        try:
            return await asyncio.shield(work.task)
        except asyncio.CancelledError:
            this = asyncio.current_task()
            if not work.task.cancelled() or (this is not None and this.cancelling()):
                raise  # it is this request that is cancelled, not the audit
            raise self._stopping("the server stopped before this audit ended") from None
        finally:
            work.num_waiting -= 1
            if not work.num_waiting and not work.task.done():
                asyncio.get_running_loop().call_later(self._config.linger_s, self._abandon, key, work)

    def _abandon(self, key: bytes, work: _Work) -> None:
        if work.num_waiting or work.task.done() or self._running.get(key) is not work:
            return
        del self._running[key]  # at once: a request that comes now begins again
        work.task.cancel()
        self.metrics.cancelled.inc()

    async def _run(self, asked: _Asked) -> AuditResult:
        """Audits until the deadline; a failure is an UNSCORED verdict."""
        start = time.perf_counter()
        try:
            async with asyncio.timeout_at(asked.ends) as deadline, self.admission.slot():
                self.metrics.wait.observe(time.perf_counter() - start)
                result = await self._audit(asked)
                if RETRIES.get(result.verdict.reason) is Retry.AT_ONCE:
                    self.metrics.retried.inc()
                    await asyncio.sleep(_RETRY_PAUSE_S)
                    result = await self._audit(asked)
        except Exception as error:  # a bug must not end as a number either, and must be seen
            if isinstance(error, TimeoutError) and deadline.expired():
                failure = AuditFailure(Reason.DEADLINE, f"not done in {self._config.deadline_s:g} s")
            else:
                logger.exception("audit of %s failed", asked.query.id)
                detail = f"{type(error).__name__}; see the server's log"  # its words are not for callers
                failure = AuditFailure(Reason.INTERNAL, detail)
            provenance = self._provenance(asked.config)
            result = AuditResult(verdict=unscored(asked.query, failure, provenance=provenance))
        verdict = result.verdict
        self.metrics.audit_ended(verdict, seconds=time.perf_counter() - start)
        if verdict.outcome is Outcome.UNSCORED:
            logger.warning("audit of %s is UNSCORED: %s: %s", verdict.id, verdict.reason, verdict.detail)
        return result

    async def _audit(self, asked: _Asked) -> AuditResult:
        query, response, config = asked.query, asked.response, asked.config
        if self._sampler is None:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._threads, audit_by_lookup, query, response, config)
            return AuditResult(verdict=found)
        sampler, prompts, observer = self._sampler, self._prompts, self.metrics.turn_ended
        return await audit(
            query, response, sampler=sampler, prompts=prompts, config=config, observer=observer
        )

    def _provenance(self, config: AuditConfig) -> Provenance:
        if self._sampler is None:
            return provenance_of(config, auditor="lexical")
        digest, model = self._prompts.digest, self._sampler.model
        return provenance_of(config, auditor="model", prompt_digest=digest, model=model)

    def refuse_when_draining(self) -> None:
        """Raises `Refused` once `drain` was called."""
        if self.is_draining:
            raise self._stopping("the server is about to stop")

    def _stopping(self, detail: str) -> Refused:
        return Refused(503, detail, reason="stopping", retry_after_s=_STOPPING_RETRY_S)

    def drain(self) -> None:
        """Admits nothing more; what is under way goes on."""
        self.is_draining = True

    async def close(self) -> None:
        """Ends what still runs; requests that wait for it are answered 503."""
        self.drain()
        running = [work.task for work in self._running.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

"""The audits of one server: joined, remembered, bounded, timed, counted and written down.

What is known of a request is its content and, in training, the weights of now. The same content under the
same weights gets one verdict: requests that are under way at once share one audit, and a retry of one that
was answered gets the same verdict (OpenRLHF's client asks again when a connection broke). With a frozen model
every later request does, too. In training no other does: a second look at the same words must be one, so
there a verdict is kept only under the idempotency key of its request, or, for OpenRLHF's wire, which has
none, under the content alone. A trajectory is trained on once: of the requests that share an audit in
training, the one that began it gets the trajectories, the others the verdict alone, and `Served.source`
tells them apart.

An audit goes on for `linger_s` after the last client that waited for it has gone, and is then cancelled.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, field
from enum import StrEnum

from opentelemetry.trace import SpanContext

from reward import telemetry
from reward.config import AuditConfig
from reward.provenance import config_digest
from reward.roles.prompts import PromptSet
from reward.samplers import Sampler, SamplerError, TrainedSampler, Weights
from reward.samplers.special import count_special
from reward.serving.access import Overloaded, Quotas
from reward.serving.cache import VerdictCache, content_key
from reward.serving.config import ServerConfig
from reward.serving.logs import AuditLog, caller_name, note_outcome
from reward.serving.metrics import AuditMetrics
from reward.serving.runner import AuditRunner, Room
from reward.types import AuditResult, RagQuery

_WEIGHTS_TIMEOUT_S = 10.0
_SHARE = 0.75  # of the room, for one of several callers
_STOPPING_RETRY_S = 2  # until another server, or this one again, is there
_UNKNOWN = Weights(run="unknown", version=-1)


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


@dataclass(eq=False)
class _Work:
    """An audit under way."""

    task: asyncio.Task[AuditResult]
    owner: str  # idempotency key of the request that began it; "" for none
    begun_in: SpanContext | None  # that request's span of it
    askers: set[str] = field(default_factory=set)
    num_waiting: int = 0


class AuditService:
    """Runs audits for the server's endpoints.

    Raises:
        ValueError: the audit log cannot be written.
    """

    def __init__(self, config: ServerConfig, *, sampler: Sampler | None, prompts: PromptSet) -> None:
        self.metrics = AuditMetrics(checker_temperature=config.audit.checker.temperature)
        num_places = config.max_in_flight + config.max_waiting
        most = num_places if config.tokens_file is None else math.ceil(_SHARE * num_places)
        self._quotas = Quotas(config.quota, config.quotas, most_in_flight=most)
        self.room = Room(config.max_in_flight, config.max_waiting, self._quotas)
        self.num_requests = 0  # that wait for their answer
        self.is_draining = False
        self._config = config
        self._sampler = sampler
        self._runner = AuditRunner(
            config.deadline_s, sampler=sampler, prompts=prompts, room=self.room, metrics=self.metrics
        )
        self._log = AuditLog(config.audit_log, self.metrics.registry)
        self._cache = VerdictCache(config.cache_bytes)
        self._running: dict[bytes, _Work] = {}
        self.metrics.in_flight.set_function(lambda: self.room.num_inside)
        self.metrics.waiting.set_function(lambda: self.room.num_waiting)
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
            Overloaded: there is no room for another audit, of all or of this caller, or the server is about
                to stop.
        """
        start = time.perf_counter()
        self.refuse_when_draining()
        self._quotas.spend(caller_name())
        self.num_requests += 1
        try:
            with telemetry.span("march.audit", {"march.query_id": query.id}) as span:
                served = await self._served(query, response, config or self._config.audit, asker)
                span.set_attribute("march.source", served.source)
                telemetry.tell_verdict(span, served.result.verdict)
        finally:
            self.num_requests -= 1
        seconds = time.perf_counter() - start
        note_outcome(served.result.verdict.outcome)
        self.metrics.special_tokens.inc(count_special(response))
        shared = served.source is not Source.FRESH
        documents = query.documents
        self._log.write(
            served.result.verdict, response=response, documents=documents, seconds=seconds, shared=shared
        )
        return served

    def refuse_when_draining(self) -> None:
        """Raises `Overloaded` once `drain` was called."""
        if self.is_draining:
            raise Overloaded("stopping", "the server is about to stop", retry_after_s=_STOPPING_RETRY_S)

    def drain(self) -> None:
        """Lets nobody in any more; what is under way goes on."""
        self.is_draining = True

    async def close(self) -> None:
        """Ends what still runs; who waits for it is told to ask again."""
        self.drain()
        running = list(self._running.values())
        for work in running:
            work.task.cancel()
        await asyncio.gather(*(work.task for work in running), return_exceptions=True)

    async def _served(self, query: RagQuery, response: str, config: AuditConfig, asker: str) -> Served:
        ends = asyncio.get_running_loop().time() + self._config.deadline_s
        weights = await self._weights()
        key = content_key(query, response, settings=config_digest(config), weights=weights)
        if weights is not _UNKNOWN:
            self._cache.seen(weights)
        if weights is not None and weights is not _UNKNOWN:
            self.metrics.weights_version.set(weights.version)
        kept = self._cache.get(key, None if weights is None else asker)
        if kept is not None:
            self.metrics.cached.inc()
            return Served(kept, Source.CACHED)
        work = self._running.get(key)
        source = Source.JOINED if work else Source.FRESH
        if work is None:
            work = self._begin(key, query, response, config, weights=weights, ends=ends, owner=asker)
        else:
            self.metrics.joined.inc()
            telemetry.link(work.begun_in)
        result = await self._awaited(key, work, asker)
        is_owner = source is Source.FRESH or (asker != "" and asker == work.owner)
        return Served(result if weights is None or is_owner else _bare(result), source)

    async def _weights(self) -> Weights | None:
        """The weights of now; `_UNKNOWN` when they cannot be asked for, and then the audit will say why."""
        if not isinstance(self._sampler, TrainedSampler):
            return None
        try:
            async with asyncio.timeout(min(_WEIGHTS_TIMEOUT_S, self._config.deadline_s / 2)):
                return await self._sampler.weights()
        except (SamplerError, TimeoutError):
            return _UNKNOWN

    def _begin(
        self,
        key: bytes,
        query: RagQuery,
        response: str,
        config: AuditConfig,
        *,
        weights: Weights | None,
        ends: float,
        owner: str,
    ) -> _Work:
        self.refuse_when_draining()
        who = caller_name()
        self.room.enter(who)
        task = asyncio.create_task(self._runner.run(query, response, config, ends=ends))
        work = _Work(task, owner, telemetry.current())
        self._running[key] = work

        def ended(task: asyncio.Task[AuditResult]) -> None:
            self.room.leave(who)
            if self._running.get(key) is work:
                del self._running[key]
            if not task.cancelled() and not task.exception():
                self._keep(key, work, task.result(), weights)

        work.task.add_done_callback(ended)
        return work

    def _keep(self, key: bytes, work: _Work, result: AuditResult, weights: Weights | None) -> None:
        """Remembers a result for every request, or in training for a retry of those that shared it."""
        if weights is None:
            return self._cache.keep(key, None, result, weights=None)
        for asker in work.askers:
            own = result if asker and asker == work.owner else _bare(result)
            self._cache.keep(key, asker, own, weights=weights)

    async def _awaited(self, key: bytes, work: _Work, asker: str) -> AuditResult:
        """The work's result; the last who stops waiting for it ends it, after a while."""
        work.num_waiting += 1
        work.askers.add(asker)
        try:
            return await asyncio.shield(work.task)
        except asyncio.CancelledError:
            if not work.task.cancelled() or _is_cancelled():
                raise
            raise Overloaded(
                "stopping", "the server stopped before this audit ended", retry_after_s=_STOPPING_RETRY_S
            ) from None
        finally:
            work.num_waiting -= 1
            if not work.num_waiting and not work.task.done():
                asyncio.get_running_loop().call_later(self._config.linger_s, self._abandon, key, work)

    def _abandon(self, key: bytes, work: _Work) -> None:
        if work.num_waiting or work.task.done() or self._running.get(key) is not work:
            return
        del self._running[key]  # at once: who asks now begins anew
        work.task.cancel()
        self.metrics.cancelled.inc()


def _bare(result: AuditResult) -> AuditResult:
    """The verdict alone."""
    return AuditResult(verdict=result.verdict)


def _is_cancelled() -> bool:
    """Whether this task itself is being cancelled, and not only what it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0

"""One audit in the server: shared, bounded, timed, tried again, counted and written down.

Requests for the same content, under the same weights, that are under way at once share one audit. A
trajectory is trained on once: of the requests that share an audit in training, the first that is answered
gets the trajectories, the others the verdict alone. The verdicts of a frozen model are kept and given again;
a policy in training is asked again, as a second look at the same words must be a second sample.

An audit waits for its place (`admission.py`), all within one deadline. One that fails by accident is tried
once more; what still fails is UNSCORED, never a number. It is cancelled when the last client that waited for
it has gone.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

from opentelemetry.trace import SpanContext

from reward import telemetry
from reward.auditor import audit, audit_by_lookup
from reward.config import AuditConfig
from reward.judging.unjudged import AuditFailure, unscored
from reward.judging.vote import Reason
from reward.provenance import config_digest, provenance_of
from reward.roles.asking import Means
from reward.roles.prompts import PromptSet
from reward.samplers import Sampler, SamplerError, TrainedSampler, Weights
from reward.samplers.special import count_special
from reward.serving.admission import Admission
from reward.serving.config import ServerConfig
from reward.serving.errors import TRIED_AGAIN, Refused
from reward.serving.logs import AuditLog, current_caller
from reward.serving.metrics import AuditMetrics
from reward.types import AuditResult, Outcome, RagQuery, Verdict

logger = logging.getLogger(__name__)

_WEIGHTS_TIMEOUT_S = 10.0
_UNKNOWN = Weights(run="unknown", version=-1)
_RETRY_PAUSE_S = 0.5
_STOPPING_RETRY_S = 2  # until another server, or this one again, is there
_NUM_THREADS = 2


@dataclass(frozen=True)
class _Asked:
    """What is audited for a request, and how."""

    query: RagQuery
    response: str
    config: AuditConfig
    weights: Weights | None  # of the policy in training; None for a frozen model
    with_turns: bool
    ends: float  # the deadline, in seconds on the loop's clock

    @cached_property
    def key(self) -> bytes:
        """SHA-256 (32 bytes) of what decides the verdict; the query's id, too, since the verdict bears it."""
        asked = [config_digest(self.config), self.weights, self.query.model_dump(), self.response]
        return hashlib.sha256(json.dumps(asked).encode()).digest()


@dataclass(eq=False)
class _Work:
    """An audit under way, for the requests that wait for it."""

    task: asyncio.Task[AuditResult]
    begun_in: SpanContext | None  # the span of the request that began it
    num_waiting: int = 0
    has_given_turns: bool = False


class AuditService:
    """Runs audits for the server's endpoints.

    Raises:
        ValueError: the audit log cannot be written.
    """

    def __init__(self, config: ServerConfig, *, sampler: Sampler | None, prompts: PromptSet) -> None:
        self.metrics = AuditMetrics(checker_temperature=config.audit.checker.temperature)
        self.admission = Admission(config)
        self.sampler = sampler  # None: the audit without a model
        self.prompts = prompts
        self.num_requests = 0  # that wait for their answer
        self.is_draining = False
        self._config = config
        self._log = AuditLog(config.audit_log, self.metrics.registry)
        self._running: dict[bytes, _Work] = {}
        self._kept: OrderedDict[bytes, AuditResult] = OrderedDict()  # the longest unused first
        # Threads, so that the event loop goes on answering; more would only take its turns away.
        self._threads = ThreadPoolExecutor(_NUM_THREADS, "lexical")
        self.metrics.in_flight.set_function(lambda: self.admission.num_running)
        self.metrics.waiting.set_function(lambda: self.admission.num_waiting)

    async def audit(
        self, query: RagQuery, response: str, *, config: AuditConfig | None = None, with_turns: bool = False
    ) -> AuditResult:
        """Audits a response, or joins the audit of the same content that is under way.

        Raises:
            Refused: there is no place for another audit, of all or of this caller, or the server is stopping.
        """
        start = time.perf_counter()
        self.refuse_when_draining()
        self.num_requests += 1
        try:
            with telemetry.span("march.audit", {"march.query_id": query.id}) as span:
                ends = asyncio.get_running_loop().time() + self._config.deadline_s
                settings, weights = config or self._config.audit, await self._weights()
                asked = _Asked(query, response, settings, weights, with_turns, ends)
                result, is_shared = await self._served(asked)
                telemetry.record_verdict(span, result.verdict)
        finally:
            self.num_requests -= 1
        self.metrics.special_tokens.inc(count_special(response))
        seconds = time.perf_counter() - start
        self._log.write(result.verdict, query.documents, response, seconds=seconds, shared=is_shared)
        return result

    async def _served(self, asked: _Asked) -> tuple[AuditResult, bool]:
        """What a request gets, and whether it is another request's audit."""
        key = asked.key
        if not asked.with_turns and key in self._kept:
            self._kept.move_to_end(key)
            self.metrics.cached.inc()
            return self._kept[key], True
        work = self._running.get(key)
        is_shared = work is not None
        if work is None:
            work = self._begin(key, asked)
        else:
            self.metrics.joined.inc()
            telemetry.link(work.begun_in)
        result = await self._awaited(key, work)
        if asked.with_turns and (asked.weights is None or not work.has_given_turns):
            work.has_given_turns = True
            return result, is_shared
        return AuditResult(verdict=result.verdict), is_shared

    async def _weights(self) -> Weights | None:
        """The weights of now; `_UNKNOWN` when they cannot be asked for, and then the audit will say why."""
        weights = None
        if isinstance(self.sampler, TrainedSampler):
            try:
                async with asyncio.timeout(min(_WEIGHTS_TIMEOUT_S, self._config.deadline_s / 2)):
                    weights = await self.sampler.weights()
            except (SamplerError, TimeoutError):
                return _UNKNOWN
            self.metrics.weights_version.set(weights.version)
        return weights

    def _begin(self, key: bytes, asked: _Asked) -> _Work:
        self.refuse_when_draining()
        who = current_caller().name or ""
        self.admission.admit(who)
        task = asyncio.create_task(self._run(asked))
        work = self._running[key] = _Work(task, telemetry.current())

        def ended(task: asyncio.Task[AuditResult]) -> None:
            self.admission.release(who)
            if self._running.get(key) is work:
                del self._running[key]
            if asked.weights is None and not task.cancelled():
                self._keep(key, task.result().verdict)

        task.add_done_callback(ended)
        return work

    def _keep(self, key: bytes, verdict: Verdict) -> None:
        if verdict.outcome is not Outcome.UNSCORED:  # a failure is tried again
            self._kept[key] = AuditResult(verdict=verdict)
            if len(self._kept) > self._config.max_kept:
                self._kept.popitem(last=False)

    async def _awaited(self, key: bytes, work: _Work) -> AuditResult:
        """The work's result; the last request that stops waiting for it ends it."""
        work.num_waiting += 1
        try:
            return await asyncio.shield(work.task)
        except asyncio.CancelledError:
            this = asyncio.current_task()
            if not work.task.cancelled() or (this is not None and this.cancelling()):
                raise  # it is this request that is cancelled, not the audit
            raise self._stopping("the server stopped before this audit ended") from None
        finally:
            work.num_waiting -= 1
            if not work.num_waiting and not work.task.done() and self._running.get(key) is work:
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
                if result.verdict.reason in TRIED_AGAIN:
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
            if self.sampler is None:
                provenance = provenance_of(asked.config, auditor="lexical")
            else:
                provenance = Means(self.sampler, self.prompts, asked.config).provenance
            result = AuditResult(verdict=unscored(asked.query, failure, provenance=provenance))
        verdict = result.verdict
        self.metrics.audit_ended(verdict, seconds=time.perf_counter() - start)
        if verdict.outcome is Outcome.UNSCORED:
            logger.warning("audit of %s is UNSCORED: %s: %s", verdict.id, verdict.reason, verdict.detail)
        return result

    async def _audit(self, asked: _Asked) -> AuditResult:
        query, response, config = asked.query, asked.response, asked.config
        if self.sampler is None:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._threads, audit_by_lookup, query, response, config)
            return AuditResult(verdict=found)
        sampler, prompts, observer = self.sampler, self.prompts, self.metrics.turn_ended
        return await audit(
            query, response, sampler=sampler, prompts=prompts, config=config, observer=observer
        )

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

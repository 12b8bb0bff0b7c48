"""One audit in the server: a place in the room, a deadline, one more try; whatever happens is a result.

An audit that fails by accident is tried once more inside the same deadline; what still fails is UNSCORED,
never a number.
"""

from __future__ import annotations

import asyncio
import logging
import time

from reward.auditor import audit
from reward.config import AuditConfig
from reward.judging.bounds import AuditFailure, unscored
from reward.judging.vote import Reason
from reward.provenance import provenance_of
from reward.roles.prompts import PromptSet
from reward.samplers import Sampler
from reward.serving.metrics import AuditMetrics
from reward.serving.room import Room
from reward.types import AuditResult, Outcome, RagQuery

logger = logging.getLogger(__name__)

TRANSIENT_REASONS = frozenset({Reason.TIMEOUT, Reason.CONNECTION, Reason.ENGINE, Reason.BAD_RESPONSE})
_RETRY_PAUSE_S = 0.5


class AuditRunner:
    """Runs audits to their end.

    Args:
        deadline_s: What is told of an audit that was not done in time.
        sampler: Where completions come from.
        prompts: The roles' prompts.
        room: Where audits wait for a place.
        metrics: Counts what happens.
    """

    def __init__(
        self, deadline_s: float, *, sampler: Sampler, prompts: PromptSet, room: Room, metrics: AuditMetrics
    ) -> None:
        self._deadline_s = deadline_s
        self._sampler = sampler
        self._prompts = prompts
        self._room = room
        self._metrics = metrics

    async def run(self, query: RagQuery, response: str, config: AuditConfig, *, ends: float) -> AuditResult:
        """Audits a response before `ends` (seconds, the loop's clock); a failure is an UNSCORED verdict."""
        start = time.perf_counter()
        result = await self._bounded(query, response, config, ends)
        verdict = result.verdict
        self._metrics.audit_ended(verdict, seconds=time.perf_counter() - start)
        if verdict.outcome is Outcome.UNSCORED:
            logger.warning("audit of %s is UNSCORED: %s: %s", verdict.id, verdict.reason, verdict.detail)
        return result

    async def _bounded(self, query: RagQuery, response: str, config: AuditConfig, ends: float) -> AuditResult:
        start = time.perf_counter()
        try:
            async with asyncio.timeout_at(ends) as deadline, self._room:
                self._metrics.waited(time.perf_counter() - start)
                return await self._tried(query, response, config)
        except Exception as error:  # a bug must not end as a number either, and must be seen
            if isinstance(error, TimeoutError) and deadline.expired():
                detail = f"not done in {self._deadline_s:g} s"
                return self._unscored(query, config, Reason.DEADLINE, detail)
            logger.exception("audit of %s failed", query.id)
            return self._unscored(query, config, Reason.INTERNAL, f"{type(error).__name__}: {error}")

    async def _tried(self, query: RagQuery, response: str, config: AuditConfig) -> AuditResult:
        result = await self._audit_once(query, response, config)
        if result.verdict.outcome is Outcome.UNSCORED and result.verdict.reason in TRANSIENT_REASONS:
            self._metrics.retried.inc()
            await asyncio.sleep(_RETRY_PAUSE_S)
            result = await self._audit_once(query, response, config)
        return result

    async def _audit_once(self, query: RagQuery, response: str, config: AuditConfig) -> AuditResult:
        return await audit(
            query,
            response,
            sampler=self._sampler,
            prompts=self._prompts,
            config=config,
            observer=self._metrics.turn_ended,
        )

    def _unscored(self, query: RagQuery, config: AuditConfig, reason: Reason, detail: str) -> AuditResult:
        provenance = provenance_of(
            config, auditor="model", prompt_digest=self._prompts.digest, model=self._sampler.model
        )
        failure = AuditFailure(reason, detail)
        return AuditResult(verdict=unscored(query, failure, provenance=provenance))

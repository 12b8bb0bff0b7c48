"""One audit in the server: a place in the room, a deadline, one more try; whatever happens is a result.

So many audits run at once, so many wait, and what is beyond is refused at once, with the time after which it
is worth asking again: as long as the audits that wait now will need, at the rate of the last half minute. An
audit that fails by accident is tried once more inside the same deadline; what still fails is UNSCORED, never
a number.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from types import TracebackType

from reward import telemetry
from reward.auditor import audit
from reward.config import AuditConfig
from reward.judging.unjudged import AuditFailure, unscored
from reward.judging.vote import Reason
from reward.lexical import lexical_audit
from reward.provenance import provenance_of
from reward.roles.prompts import PromptSet
from reward.samplers import Sampler
from reward.serving.access import Overloaded, Quotas
from reward.serving.config import Quota
from reward.serving.metrics import AuditMetrics
from reward.types import AuditResult, Outcome, RagQuery

_RATE_WINDOW_S = 30.0
_RATE_SAMPLES = 256
_UNKNOWN_RETRY_S = 5  # while nothing has ended lately
_MOST_RETRY_S = 30
_NUM_THREADS = 2


class Room:
    """Places for audits, first come first served; an audit enters with `async with room`.

    Args:
        num_places: Audits at once.
        max_waiting: Audits that wait.
        quotas: What each caller may take of it.
    """

    def __init__(self, num_places: int, max_waiting: int, quotas: Quotas | None = None) -> None:
        self.num_present = 0  # inside and waiting
        self.num_inside = 0
        self._quotas = quotas or Quotas(Quota(), {}, most_in_flight=num_places + max_waiting)
        self._max_present = num_places + max_waiting
        self._places = asyncio.Semaphore(num_places)
        self._ends: deque[float] = deque(maxlen=_RATE_SAMPLES)  # on the monotonic clock, seconds

    @property
    def num_waiting(self) -> int:
        """Audits that were let in and have no place yet."""
        return self.num_present - self.num_inside

    def enter(self, caller: str = "") -> None:
        """Counts one audit of a caller in; to be followed by `leave`.

        Raises:
            Overloaded: as many as may are here, of all or of this caller.
        """
        if self.num_present >= self._max_present:
            detail = f"{self.num_inside} audits are under way and {self.num_waiting} wait"
            mend = "ask again, or raise max_in_flight or max_waiting"
            raise Overloaded("overloaded", f"{detail}; {mend}", retry_after_s=self.retry_after_s())
        self._quotas.enter(caller)
        self.num_present += 1

    def leave(self, caller: str = "") -> None:
        """Counts one audit of a caller out."""
        self.num_present -= 1
        self._quotas.leave(caller)

    def retry_after_s(self) -> int:
        """Whole seconds until those who wait now will have had their turn."""
        now = time.monotonic()
        while self._ends and now - self._ends[0] > _RATE_WINDOW_S:
            self._ends.popleft()
        if len(self._ends) < 2:
            return _UNKNOWN_RETRY_S
        rate = len(self._ends) / max(now - self._ends[0], 1e-3)  # audits/s
        return min(max(math.ceil((self.num_waiting + 1) / rate), 1), _MOST_RETRY_S)

    async def __aenter__(self) -> None:
        with telemetry.span("waiting_room"):
            await self._places.acquire()
        self.num_inside += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.num_inside -= 1
        self._places.release()
        self._ends.append(time.monotonic())


logger = logging.getLogger(__name__)


class Retry(StrEnum):
    """What another try at an audit that failed is good for."""

    AT_ONCE = "at once"  # by the server itself, once
    LATER = "later"  # by the caller: 503 with Retry-After
    NEVER = "never"  # the same content fails again: 422


# The one table of it; a reason that is not here is worth another try later.
RETRIES: Mapping[str, Retry] = {
    Reason.INVALID_TEXT: Retry.NEVER,
    Reason.RESPONSE_TOO_LONG: Retry.NEVER,
    Reason.DOCUMENTS_TOO_LONG: Retry.NEVER,
    Reason.TOO_MANY_CLAIMS: Retry.NEVER,
    Reason.PROMPT_TOO_LONG: Retry.NEVER,
    Reason.TIMEOUT: Retry.AT_ONCE,
    Reason.CONNECTION: Retry.AT_ONCE,
    Reason.ENGINE: Retry.AT_ONCE,
    Reason.BAD_RESPONSE: Retry.AT_ONCE,
}
_RETRY_PAUSE_S = 0.5


class AuditRunner:
    """Runs audits to their end.

    Args:
        deadline_s: What is told of an audit that was not done in time.
        sampler: Where completions come from; None for the audit without a model.
        prompts: The roles' prompts.
        room: Where audits wait for a place.
        metrics: Counts what happens.
    """

    def __init__(
        self,
        deadline_s: float,
        *,
        sampler: Sampler | None,
        prompts: PromptSet,
        room: Room,
        metrics: AuditMetrics,
    ) -> None:
        self._deadline_s = deadline_s
        self._sampler = sampler
        self._prompts = prompts
        self._room = room
        self._metrics = metrics
        # Threads, so that the event loop goes on answering; more would only take its turns away.
        self._threads = ThreadPoolExecutor(_NUM_THREADS, "lexical")

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
            detail = f"{type(error).__name__}; see the server's log"  # its text is for no caller's eyes
            return self._unscored(query, config, Reason.INTERNAL, detail)

    async def _tried(self, query: RagQuery, response: str, config: AuditConfig) -> AuditResult:
        result = await self._audit_once(query, response, config)
        if result.verdict.outcome is Outcome.UNSCORED and RETRIES.get(result.verdict.reason) is Retry.AT_ONCE:
            self._metrics.retried.inc()
            await asyncio.sleep(_RETRY_PAUSE_S)
            result = await self._audit_once(query, response, config)
        return result

    async def _audit_once(self, query: RagQuery, response: str, config: AuditConfig) -> AuditResult:
        if self._sampler is None:
            work = asyncio.get_running_loop().run_in_executor(
                self._threads, lexical_audit, query, response, config
            )
            return AuditResult(verdict=await work)
        return await audit(
            query,
            response,
            sampler=self._sampler,
            prompts=self._prompts,
            config=config,
            observer=self._metrics.turn_ended,
        )

    def _unscored(self, query: RagQuery, config: AuditConfig, reason: Reason, detail: str) -> AuditResult:
        if self._sampler is None:
            provenance = provenance_of(config, auditor="lexical")
        else:
            digest, model = self._prompts.digest, self._sampler.model
            provenance = provenance_of(config, auditor="model", prompt_digest=digest, model=model)
        failure = AuditFailure(reason, detail)
        return AuditResult(verdict=unscored(query, failure, provenance=provenance))

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
from types import TracebackType

from reward import telemetry
from reward.auditor import AuditFailure, audit, unscored
from reward.config import AuditConfig
from reward.judging.vote import Reason
from reward.provenance import provenance_of
from reward.roles.prompts import PromptSet
from reward.samplers import Sampler
from reward.serving.logs import Refusal
from reward.serving.metrics import AuditMetrics
from reward.types import AuditResult, Outcome, RagQuery

_RATE_WINDOW_S = 30.0
_RATE_SAMPLES = 256
_UNKNOWN_RETRY_S = 5  # while nothing has ended lately
_MOST_RETRY_S = 30


class Overloaded(RuntimeError):
    """The server takes nothing more now; nothing was begun."""

    def __init__(self, reason: Refusal, detail: str, *, retry_after_s: int) -> None:
        super().__init__(detail)
        self.reason = reason
        self.retry_after_s = retry_after_s


class Room:
    """Places for audits, first come first served; an audit enters with `async with room`.

    Args:
        num_places: Audits at once.
        max_waiting: Audits that wait.
    """

    def __init__(self, num_places: int, max_waiting: int) -> None:
        self.num_present = 0  # inside and waiting
        self.num_inside = 0
        self._num_places = num_places
        self._max_present = num_places + max_waiting
        self._places = asyncio.Semaphore(num_places)
        self._ends: deque[float] = deque(maxlen=_RATE_SAMPLES)  # on the monotonic clock, seconds

    @property
    def num_waiting(self) -> int:
        """Audits that were let in and have no place yet."""
        return self.num_present - self.num_inside

    def enter(self) -> None:
        """Counts one audit in; to be followed by `leave`.

        Raises:
            Overloaded: as many as may are here.
        """
        if self.num_present >= self._max_present:
            detail = f"{self.num_inside} audits are under way and {self.num_waiting} wait"
            mend = "ask again, or raise max_in_flight or max_waiting"
            raise Overloaded("overloaded", f"{detail}; {mend}", retry_after_s=self.retry_after_s())
        self.num_present += 1

    def leave(self) -> None:
        """Counts one audit out."""
        self.num_present -= 1

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
            detail = f"{type(error).__name__}; see the server's log"  # its text may hold what no caller may see
            return self._unscored(query, config, Reason.INTERNAL, detail)

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

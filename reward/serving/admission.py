"""How much the server takes: audits under way and waiting, of all and of each caller, and bytes of bodies.

`max_in_flight` audits run at once and `max_waiting` wait, first come first served. What is beyond is refused
at once. A caller, by the name of its token, has a quota of its own.
"""

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from reward import telemetry
from reward.serving.config import ServerConfig
from reward.serving.errors import Refused

_FULL_RETRY_S = 5
_BUSY_RETRY_S = 2  # for a caller whose audits in flight are too many
_SHARE = 0.75  # of all audits and bytes, for one of several callers


class Admission:
    """Counts what is under way against the limits of `ServerConfig`."""

    def __init__(self, config: ServerConfig) -> None:
        self.num_admitted = 0  # audits, running and waiting
        self.num_running = 0
        self.num_bytes = 0  # of bodies, as far as they have come
        self._bytes_of: Counter[str] = Counter()  # the same, of each caller
        self._config = config
        self._max_admitted = config.max_in_flight + config.max_waiting
        self._share = 1.0 if config.tokens_file is None else _SHARE
        self._max_of_a_caller = math.ceil(self._share * self._max_admitted)
        self._slots = asyncio.Semaphore(config.max_in_flight)
        self._of_callers: Counter[str] = Counter()  # audits, running and waiting

    @property
    def num_waiting(self) -> int:
        """Audits that were admitted and do not run yet."""
        return self.num_admitted - self.num_running

    @contextmanager
    def holding(self, caller: str = "", declared: int = 0) -> Iterator[Callable[[int], None]]:
        """Counts the bytes of a request's body while the request is under way: those that have come, by what
        this yields, and not those that are only announced, which cost nothing.

        Raises:
            Refused: so many cannot be held now beside what other requests hold, of all or of this caller.
        """
        held = 0

        def take(num_bytes: int) -> None:
            nonlocal held
            self._check_bytes(caller, held, num_bytes)
            held += num_bytes
            self.num_bytes += num_bytes
            self._bytes_of[caller] += num_bytes

        self._check_bytes(caller, held, declared)
        try:
            yield take
        finally:
            self.num_bytes -= held
            self._bytes_of[caller] -= held

    def _check_bytes(self, caller: str, held: int, more: int) -> None:
        """Raises `Refused` when a request that holds bytes cannot hold more; one alone always can."""
        most, num, num_of_caller = self._config.max_held_bytes, self.num_bytes, self._bytes_of[caller]
        if num > held and num + more > most:
            detail = f"requests of {num} bytes are under way; ask again, or raise max_held_bytes"
            raise Refused(503, detail, reason="memory", retry_after_s=_FULL_RETRY_S)
        if num_of_caller > held and num_of_caller + more > self._share * most:
            detail = (
                f"requests of {num_of_caller} bytes of {caller!r} are under way, with {self._share:.0%} of "
                "max_held_bytes for one caller; wait for some of them, or raise max_held_bytes"
            )
            raise Refused(429, detail, reason="quota", retry_after_s=_BUSY_RETRY_S)

    def admit(self, caller: str = "") -> None:
        """Counts an audit of a caller; to be followed by `release`.

        Raises:
            Refused: as many as may be are under way, of all or of this caller.
        """
        if self.num_admitted >= self._max_admitted:
            detail = (
                f"{self.num_running} audits are under way and {self.num_waiting} wait; "
                "ask again, or raise max_in_flight or max_waiting"
            )
            raise Refused(503, detail, reason="overloaded", retry_after_s=_FULL_RETRY_S)
        quota = self._config.quotas.get(caller, self._config.quota)
        most = quota.in_flight or self._max_of_a_caller
        if self._of_callers[caller] >= most:
            detail = f"{most} audits of {caller!r} are under way; wait for some of them, or raise its quota"
            raise Refused(429, detail, reason="quota", retry_after_s=_BUSY_RETRY_S)
        self._of_callers[caller] += 1
        self.num_admitted += 1

    def release(self, caller: str = "") -> None:
        self.num_admitted -= 1
        self._of_callers[caller] -= 1

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Waits until an admitted audit may run, and counts it while it does."""
        with telemetry.span("queue"):
            await self._slots.acquire()
        self.num_running += 1
        try:
            yield
        finally:
            self.num_running -= 1
            self._slots.release()

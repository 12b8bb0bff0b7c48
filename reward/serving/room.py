"""Room for audits: so many at once, so many that wait for a place, and no more.

What is beyond is refused at once, with the time after which it is worth asking again: as long as the audits
that wait now will need, at the rate of the last half minute.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from types import TracebackType

from reward import telemetry
from reward.serving.caller import Refusal

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

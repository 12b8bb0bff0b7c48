"""Times of a cron expression, as a trigger of APScheduler.

APScheduler has a cron trigger of its own, which is not cron's: its weekday 0 is Monday, a day of the month
and a weekday must both fit, and on the night in which clocks go back 02:30 comes twice. cronsim counts as
Debian's cron does: 0 is Sunday, either day will do, a time that the clocks leave out comes at the switch, and
one that they show twice comes once; only expressions for every hour follow the clocks through both.
"""

from __future__ import annotations

import logging
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from apscheduler.triggers.base import BaseTrigger
from cronsim import CronSim

from orchestration.retrain.triggers import CronSettings
from orchestration.schedule.journal import Cause, Due, append_line

logger = logging.getLogger(__name__)


class CronTimes(BaseTrigger):  # type: ignore[misc]  # APScheduler is untyped
    """The times of one expression in one zone; kept in the job store by pickle.

    Args:
        cron: Expression and zone.
    """

    def __init__(self, cron: CronSettings) -> None:
        self.expression, self.timezone = cron.expression, cron.timezone

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """The first time after the previous one; after `now` if there was none."""
        return next(self._times(previous_fire_time or now), None)

    def last_until(self, now: datetime) -> datetime | None:
        """The last time that has come, `now` included."""
        return next(self._times(now + timedelta(microseconds=1), reverse=True), None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CronTimes) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.expression, self.timezone))

    def __str__(self) -> str:
        return f"{self.expression} ({self.timezone})"

    def _times(self, start: datetime, *, reverse: bool = False) -> CronSim:
        return CronSim(self.expression, start.astimezone(ZoneInfo(self.timezone)), reverse=reverse)


def cron_came(folder: str, times: CronTimes) -> None:
    """Writes down that a time came; the scheduler forgets it only afterwards.

    If it cannot be written, the process ends at once, and the next one finds the time missed.

    Args:
        folder: Of the job's journal.
        times: Which of them came is told by the clock.
    """
    now = time.time()
    came = times.last_until(datetime.fromtimestamp(now, UTC))
    due = Due(at=now, cause=Cause.CRON, detail=f"{times}: {came:%Y-%m-%d %H:%M %Z}")
    try:
        append_line(Path(folder), due)
    except OSError:
        logger.critical("%s: cannot be written; the service ends", folder, exc_info=True)
        os._exit(1)

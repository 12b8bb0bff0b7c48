"""Times of a cron expression, as Debian's cron counts them, by cronsim.

0 is Sunday; a day of the month or a weekday will do; a time that the clocks leave out comes at the switch,
and one that they show twice comes once; only expressions for every hour follow the clocks through both.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

from orchestration.retrain.triggers import CronSettings


def next_time(cron: CronSettings, now: float) -> datetime | None:
    """The first time after `now` (seconds since 1970); None: there is none."""
    return next(_times(cron, datetime.fromtimestamp(now, UTC)), None)


def last_time(cron: CronSettings, now: float) -> datetime | None:
    """The last time that has come, `now` (seconds since 1970) included; None: there was none."""
    # Added in UTC: a sum in local time forgets which of two equal hours it was.
    after = datetime.fromtimestamp(now, UTC) + timedelta(microseconds=1)
    return next(_times(cron, after, reverse=True), None)


def _times(cron: CronSettings, start: datetime, *, reverse: bool = False) -> CronSim:
    return CronSim(cron.expression, start.astimezone(ZoneInfo(cron.timezone)), reverse=reverse)

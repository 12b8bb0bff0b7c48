"""Times of cron expressions: clock switches, weekdays; the last time is found from any moment after it."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestration.retrain.triggers import CronSettings
from orchestration.schedule.due import last_time, next_time

BERLIN = "Europe/Berlin"


def times(expression: str, start: str, num: int, *, zone: str = BERLIN) -> list[str]:
    """The next times, in UTC."""
    cron, at = CronSettings(expression=expression, timezone=zone), datetime.fromisoformat(start)
    found = []
    for _ in range(num):
        coming = next_time(cron, at.timestamp())
        assert coming is not None
        at = coming
        found.append(f"{at.astimezone(UTC):%m-%d %H:%M}")
    return found


@pytest.mark.parametrize(
    ("expression", "start", "expected"),
    [
        # Clocks go from 02:00 to 03:00 on 2026-03-29: 02:30 does not exist, and comes at the switch.
        ("30 2 * * *", "2026-03-28T12:00+01:00", ["03-29 01:00", "03-30 00:30"]),
        # Clocks go from 03:00 back to 02:00 on 2026-10-25: 02:30 comes once, the first time.
        ("30 2 * * *", "2026-10-24T12:00+02:00", ["10-25 00:30", "10-26 01:30"]),
        # Times of every hour follow the clock through both: none twice, none left out.
        ("*/30 * * * *", "2026-03-29T01:15+01:00", ["03-29 00:30", "03-29 01:00", "03-29 01:30"]),
        (
            "*/30 * * * *",
            "2026-10-25T02:15+02:00",
            ["10-25 00:30", "10-25 01:00", "10-25 01:30", "10-25 02:00"],
        ),
        # A daily time away from the switch keeps its local hour.
        ("0 6 * * *", "2026-10-24T12:00+02:00", ["10-25 05:00", "10-26 05:00"]),
        # Weekdays are cron's: 0 is Sunday; a day of the month or a weekday will do.
        ("0 0 * * 0", "2026-11-01T12:00+01:00", ["11-07 23:00"]),
        ("0 0 13 * fri", "2026-11-07T12:00+01:00", ["11-12 23:00", "11-19 23:00"]),
    ],
)
def test_times_over_switches_and_weekdays(expression: str, start: str, expected: list[str]) -> None:
    assert times(expression, start, len(expected)) == expected


def test_southern_zones_switch_the_other_way_round() -> None:
    assert times("30 2 * * *", "2026-10-03T12:00+10:00", 2, zone="Australia/Sydney") == [
        "10-03 16:00",
        "10-04 15:30",
    ]


@given(
    start=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)).map(lambda at: at.replace(tzinfo=UTC)),
    expression=st.sampled_from(["30 2 * * *", "0 * * * *", "*/20 1-3 * * *", "0 3 * * sun"]),
    zone=st.sampled_from([BERLIN, "America/New_York", "Australia/Lord_Howe", "UTC"]),
    part=st.floats(0, 0.999),
)
def test_the_last_time_is_the_same_from_any_moment_before_the_next(
    start: datetime, expression: str, zone: str, part: float
) -> None:
    cron = CronSettings(expression=expression, timezone=zone)
    found = [start.timestamp()]
    for _ in range(4):
        coming = next_time(cron, found[-1])
        assert coming is not None and coming.astimezone(ZoneInfo(zone)).utcoffset() == coming.utcoffset()
        found.append(coming.timestamp())
    for before, after in pairwise(found[1:]):
        between = last_time(cron, before + part * (after - before))
        assert before < after and between is not None and between.timestamp() == before


@pytest.mark.parametrize("minute", [0, 30, 59])
def test_the_last_time_in_the_second_of_two_equal_hours_is_of_that_hour(minute: int) -> None:
    hourly = CronSettings(expression="0 * * * *", timezone=BERLIN)
    second = datetime(2026, 10, 25, 1, minute, tzinfo=UTC)  # clocks went back at 01:00 UTC
    found = last_time(hourly, second.timestamp())
    assert found is not None and found.astimezone(UTC) == second.replace(minute=0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"expression": "30 2 * *"}, "write five fields"),
        ({"expression": "0 0 31 2 *"}, "write five fields"),
        ({"expression": "0 0 * * *", "timezone": "Europe/Atlantis"}, "invalid timezone"),
        ({"expression": "0 0 * * *", "timezone": "/etc/passwd"}, "invalid timezone"),
    ],
)
def test_what_never_comes_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        CronSettings.model_validate(given)

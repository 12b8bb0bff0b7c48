"""Times of cron expressions: clock switches, weekdays, missed times, a restart of the scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import apscheduler.executors.base
import apscheduler.schedulers.base
import pytest
from apscheduler.schedulers.background import BackgroundScheduler
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import orchestration.schedule.cron
from orchestration.retrain.triggers import CronSettings, Triggers
from orchestration.schedule.cron import CronTimes
from orchestration.schedule.job_watch import JobWatch
from orchestration.schedule.service import cron_id, make_scheduler, start_times
from tests.schedule_jobs import journal, scheduled

BERLIN = "Europe/Berlin"


def times(expression: str, start: str, num: int, *, zone: str = BERLIN) -> list[str]:
    """The next times, in UTC."""
    cron, at = CronTimes(CronSettings(expression=expression, timezone=zone)), datetime.fromisoformat(start)
    found = []
    for _ in range(num):
        coming = cron.get_next_fire_time(at, at)
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
)
def test_times_go_forward_and_are_found_backward(start: datetime, expression: str, zone: str) -> None:
    cron = CronTimes(CronSettings(expression=expression, timezone=zone))
    found = [start]
    for _ in range(4):
        coming = cron.get_next_fire_time(found[-1], found[-1])
        assert coming is not None
        assert cron.last_until(coming) == coming
        found.append(coming)
    assert all(before.astimezone(UTC) < after.astimezone(UTC) for before, after in pairwise(found))
    assert all(after.astimezone(ZoneInfo(zone)).utcoffset() == after.utcoffset() for after in found[1:])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"expression": "30 2 * *"}, "write five fields"),
        ({"expression": "0 0 31 2 *"}, "write five fields"),
        ({"expression": "0 0 * * *", "timezone": "Europe/Atlantis"}, "write an IANA name"),
        ({"expression": "0 0 * * *", "timezone": "/etc/passwd"}, "write an IANA name"),
    ],
)
def test_what_never_comes_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        CronSettings.model_validate(given)


class Clock:
    """The time that APScheduler and the journal are told."""

    def __init__(self, at: str) -> None:
        self.at = datetime.fromisoformat(at)

    def now(self, tz: tzinfo) -> datetime:
        return self.at.astimezone(tz)

    def time(self) -> float:
        return self.at.timestamp()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock("2026-10-24T12:00+02:00")
    monkeypatch.setattr(apscheduler.schedulers.base, "datetime", clock)
    monkeypatch.setattr(apscheduler.executors.base, "datetime", clock)
    monkeypatch.setattr(orchestration.schedule.cron, "time", clock)
    return clock


@contextmanager
def scheduler_of(*watches: JobWatch) -> Iterator[BackgroundScheduler]:
    """The service's scheduler over the database beside the jobs' journals."""
    scheduler = make_scheduler(watches[0].folder.parent, len(watches))
    start_times(scheduler, watches)
    scheduler.resume()
    try:
        yield scheduler
    finally:
        scheduler.shutdown()


def cron_watch(folder: Path, expression: str, *, name: str = "shop", **more: object) -> JobWatch:
    cron = CronSettings.model_validate({"expression": expression, "timezone": BERLIN, **more})
    return JobWatch(scheduled(folder, Triggers(cron=cron), name=name), folder / name)


def came(watch: JobWatch) -> list[str]:
    return [line["detail"] for line in journal(watch.folder) if line["kind"] == "due"]


def test_the_scheduler_notes_each_time_once_over_both_switches(tmp_path: Path, clock: Clock) -> None:
    watch = cron_watch(tmp_path, "30 2 * * *")
    with scheduler_of(watch) as scheduler:
        for _ in range(3 * 24 * 4):
            clock.at += timedelta(minutes=15)
            scheduler._process_jobs()
    label = "30 2 * * * (Europe/Berlin): 2026-10"
    assert came(watch) == [f"{label}-25 02:30 CEST", f"{label}-26 02:30 CET", f"{label}-27 02:30 CET"]


@pytest.mark.parametrize(
    ("settings", "down", "notes"),
    [
        ({}, timedelta(days=3), 1),  # three times were missed: one retraining
        ({"grace_s": 3_600}, timedelta(days=3), 0),  # the last one is nine and a half hours old
        ({"missed": "skip"}, timedelta(days=3), 0),
        ({"missed": "skip"}, timedelta(hours=14, minutes=30, seconds=30), 1),  # half a minute late is in time
    ],
)
def test_times_missed_while_down(
    tmp_path: Path, clock: Clock, settings: dict[str, object], down: timedelta, notes: int
) -> None:
    watch = cron_watch(tmp_path, "30 2 * * *", **settings)
    with scheduler_of(watch):
        pass
    clock.at += down
    with scheduler_of(watch) as scheduler:
        scheduler._process_jobs()
        coming = scheduler.get_job(cron_id("shop")).next_run_time
    lines = journal(watch.folder)
    assert [line["kind"] for line in lines] == (["due"] if notes else ["missed"])
    assert coming > clock.at


def test_a_restart_keeps_times_unless_they_are_changed(tmp_path: Path, clock: Clock) -> None:
    with scheduler_of(cron_watch(tmp_path, "30 2 * * *")):
        pass
    clock.at += timedelta(days=1)
    changed = cron_watch(tmp_path, "30 4 * * *")
    with scheduler_of(changed) as scheduler:  # the time missed was of another expression
        scheduler._process_jobs()
        assert f"{scheduler.get_job(cron_id('shop')).next_run_time:%d %H:%M}" == "26 04:30"
    assert not changed.folder.exists()


def test_jobs_that_are_no_longer_given_are_removed(tmp_path: Path, clock: Clock) -> None:
    first, second = cron_watch(tmp_path, "0 * * * *"), cron_watch(tmp_path, "0 * * * *", name="books")
    with scheduler_of(first, second):
        pass
    with scheduler_of(second) as scheduler:
        assert [job.id for job in scheduler.get_jobs()] == ["books/cron"]


def test_a_time_that_cannot_be_written_down_ends_the_service(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the scheduler would forget it; the next service finds it missed."""
    codes: list[int] = []
    watch = cron_watch(tmp_path, "30 2 * * *")
    watch.folder.write_text("a file where the journal's folder has to be")
    monkeypatch.setattr(orchestration.schedule.cron.os, "_exit", codes.append)
    with scheduler_of(watch) as scheduler:
        clock.at += timedelta(days=1)
        scheduler._process_jobs()
    assert codes == [1]

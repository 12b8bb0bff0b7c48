"""Whether a job is due: the table of docs/scheduling.md, with the clock and the records of the test's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from orchestration.retrain.job import Job, load_job
from orchestration.retrain.records import Retraining, RetrainingState
from orchestration.retrain.triggers import Cause, CronSettings
from orchestration.schedule.due import Look, last_time, look_around, next_time
from reward.types import Outcome
from tests.schedule_jobs import record, write_verdicts
from tests.test_retrain_job import write_job

NIGHTLY = {"cron": {"expression": "30 2 * * *", "timezone": "Europe/Berlin"}}
DATA = {"data": {"paths": ["rows.jsonl"]}}
DRIFT = {"drift": {"verdicts": ["audits/*.jsonl"], "min_answers": 40, "min_documents": 30}}
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
NOON = datetime.fromisoformat("2026-10-20T12:00+02:00").timestamp()
NIGHT = datetime.fromisoformat("2026-10-21T02:30+02:00").timestamp()


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@dataclass
class Site:
    """A job, its records, and a clock."""

    job: Job
    folder: Path
    now: float = NOON
    history: list[Retraining] = field(default_factory=list)
    pointers: dict[str, str] = field(default_factory=dict)

    def look(self, after_s: float = 0.0) -> Look:
        """A look at the triggers, some time later."""
        self.now += after_s
        return look_around(self.job, self.folder, self.pointers.get, self.history, self.now)

    def began(self, *, after_s: float = 0.0, by_hand: bool = False) -> None:
        """A command takes a retraining up; it is killed unless `ended` follows."""
        seen = self.look(after_s).seen
        seen = seen.model_copy(update={"causes": ()}) if by_hand else seen
        self.history.append(record(seen, RetrainingState.RUNNING))

    def ended(
        self, state: RetrainingState = RetrainingState.DONE, *, after_s: float = 0.0, **more: Any
    ) -> None:
        """It ends."""
        self.now += after_s
        ended_ms = int(self.now * 1000)
        more = {"is_closed": True, **more, "state": state, "ended_ms": ended_ms, "last_sign_ms": ended_ms}
        self.history[-1] = self.history[-1].model_copy(update=more)

    def ran(self, *, after_s: float = 0.0, by_hand: bool = False) -> None:
        """A retraining that ended well."""
        self.began(after_s=after_s, by_hand=by_hand)
        self.ended(after_s=MINUTE)

    def failed(self, **more: Any) -> None:
        """One that failed."""
        self.began()
        self.ended(RetrainingState.FAILED, **more)


def site(folder: Path, triggers: dict[str, Any]) -> Site:
    job = load_job(str(write_job(folder, triggers=triggers)))
    return Site(job, folder)


@pytest.fixture
def nightly(tmp_path: Path) -> Site:
    """A nightly job that was retrained at noon."""
    made = site(tmp_path, NIGHTLY)
    made.ran()
    return made


@pytest.fixture
def fed(tmp_path: Path) -> Site:
    """A job that watches a file, retrained on what is in it."""
    made = site(tmp_path, DATA)
    (tmp_path / "rows.jsonl").write_text("old")
    made.ran()
    return made


def test_a_time_is_due_once_however_often_it_is_asked(nightly: Site) -> None:
    num_due = 0
    for _ in range(3 * 24 * 12):
        if nightly.look(5 * MINUTE).is_due:
            num_due += 1
            nightly.ran()
    assert num_due == 3


@pytest.mark.parametrize(
    ("night", "expected"),
    [
        ("2026-03-28T12:00+01:00", ["29 03:00", "30 02:30"]),  # 02:30 is left out on the 29th
        ("2026-10-24T12:00+02:00", ["25 02:30", "26 02:30"]),  # 02:30 comes twice on the 25th
    ],
)
def test_a_switch_of_daylight_saving_starts_one_retraining(
    tmp_path: Path, night: str, expected: list[str]
) -> None:
    nightly = site(tmp_path, NIGHTLY)
    nightly.now = at(night)
    nightly.ran()
    found = []
    for _ in range(2 * 24 * 6):
        look = nightly.look(10 * MINUTE)
        if look.is_due:
            found.append(look.why.split("2026-")[1][3:11])
            nightly.ran()
    assert found == expected


def test_a_time_that_comes_while_a_retraining_runs_is_due_when_it_ends(nightly: Site) -> None:
    nightly.began(after_s=14 * HOUR, by_hand=True)
    nightly.ended(after_s=2 * HOUR)
    look = nightly.look()
    assert look.is_due and look.why == "cron: 30 2 * * * (Europe/Berlin): 2026-10-21 02:30 CEST"
    nightly.ran()
    assert not nightly.look().is_due


def test_in_an_hour_that_comes_twice_what_has_come_is_not_forgotten() -> None:
    """2:30 of summer time, looked for at each quarter of the night on which clocks are put back."""
    cron = CronSettings(expression="30 2 * * *", timezone="Europe/Berlin")
    came = datetime(2025, 10, 26, 0, 30, tzinfo=UTC).timestamp()
    last = [last_time(cron, came + quarter * 900) for quarter in range(-1, 13)]
    assert [one.timestamp() if one else 0 for one in last] == [came - DAY] + [came] * 13


def test_the_next_time_is_ahead_in_an_hour_that_comes_twice() -> None:
    cron = CronSettings(expression="30 2 * * *", timezone=ZoneInfo("Europe/Berlin"))
    second = datetime.fromisoformat("2026-10-25T02:10+01:00").timestamp()
    assert (coming := next_time(cron, second)) is not None
    assert f"{coming:%d %H:%M %Z}" == "26 02:30 CET"


def test_missed_times_are_one_retraining_unless_the_last_is_too_long_ago(nightly: Site) -> None:
    assert nightly.look(5 * DAY).is_due
    nightly.ran()
    assert not nightly.look().is_due
    cron = nightly.job.triggers.cron
    assert cron is not None
    triggers = nightly.job.triggers.model_copy(update={"cron": cron.model_copy(update={"grace_s": 3_600})})
    nightly.job = nightly.job.model_copy(update={"triggers": triggers})
    look = nightly.look(DAY)
    assert not look.is_due and "was missed and is too long ago" in str(look)


def test_a_retraining_under_a_clock_that_was_years_ahead_stops_nothing(nightly: Site) -> None:
    nightly.now += 1_500 * DAY
    nightly.ran()
    nightly.now -= 1_500 * DAY
    assert nightly.look(DAY).is_due


def test_a_clock_that_is_set_back_starts_nothing_a_second_time(nightly: Site) -> None:
    nightly.now = NIGHT
    assert nightly.look(MINUTE).is_due
    nightly.ran()
    look = nightly.look(-HOUR)
    assert not look.is_due and "the clock was set back: the last retraining began at 2026-10-21 00:31" in str(
        look
    )
    for _ in range(24):
        assert not nightly.look(5 * MINUTE).is_due
    assert nightly.look(DAY).is_due


def test_a_time_that_comes_again_is_not_due_after_a_retraining_for_something_else(tmp_path: Path) -> None:
    made = site(tmp_path, NIGHTLY | DATA)
    (tmp_path / "rows.jsonl").write_text("old")
    made.now = NIGHT + MINUTE
    made.ran()
    (tmp_path / "rows.jsonl").write_text("new")
    look = made.look(-HOUR)  # the clock is set back
    assert look.seen.causes == (Cause.DATA,)
    made.ran()
    assert not made.look(HOUR).is_due and made.look(DAY).is_due


def test_a_command_after_the_clock_was_set_back_is_the_last_one(fed: Site) -> None:
    (fed.folder / "rows.jsonl").write_text("new")
    fed.now -= HOUR
    assert fed.look().is_due
    fed.ran()
    assert not fed.look().is_due and not fed.look(2 * HOUR).is_due


def test_a_job_that_was_never_retrained_is_due_by_a_time_of_the_last_day_and_by_data(tmp_path: Path) -> None:
    made = site(tmp_path, NIGHTLY | DATA)
    look = made.look()
    assert (
        look.seen.causes == (Cause.CRON,) and "nothing is there yet of rows.jsonl" in look.triggers[1].problem
    )
    (tmp_path / "rows.jsonl").write_text("first")
    assert made.look().seen.causes == (Cause.CRON, Cause.DATA)


def test_a_retraining_by_hand_settles_what_had_come(nightly: Site) -> None:
    nightly.now = NIGHT + MINUTE
    nightly.ran(by_hand=True)
    assert not nightly.look().is_due


def test_records_of_an_earlier_version_settle_nothing_and_are_no_error(nightly: Site) -> None:
    nightly.history = [record(None)]
    assert nightly.look().is_due


def test_what_was_killed_goes_on_at_once_and_then_waits(nightly: Site) -> None:
    nightly.now = NIGHT
    nightly.began(after_s=MINUTE)
    again = nightly.look()
    assert again.is_due and again.seen.attempt == 2
    nightly.began()
    assert nightly.look().waits_until == nightly.now + 1_200
    assert nightly.look(1_200).is_due


def test_what_was_killed_goes_on_however_long_the_machine_was_off(tmp_path: Path) -> None:
    weekly = site(tmp_path, {"cron": {"expression": "0 6 * * mon"}})
    weekly.now = at("2026-10-19T06:01+00:00")
    weekly.began()
    look = weekly.look(3 * DAY)
    assert look.is_due and look.why == "cron: goes on after an attempt that did not end well"


def test_a_decision_of_which_nobody_was_told_is_gone_on_with(nightly: Site) -> None:
    """Its final state was written, and it was killed before its run was closed."""
    nightly.now = NIGHT
    nightly.began(after_s=MINUTE)
    nightly.ended(is_closed=False)
    assert nightly.look().is_due
    nightly.ended()
    assert not nightly.look().is_due


def test_failures_wait_twice_as_long_each_time_and_the_last_one_gives_up(fed: Site) -> None:
    (fed.folder / "rows.jsonl").write_text("new")
    waits = []
    for _ in range(2):
        fed.failed()
        look = fed.look()
        assert not look.is_due and look.waits_until is not None and not look.gave_up
        waits.append(look.waits_until - fed.now)
        fed.now = look.waits_until
        assert fed.look().is_due
    fed.failed()
    assert waits == [600, 1_200]
    look = fed.look(DAY)
    assert not look.is_due and look.gave_up and look.num_failures == 3
    (fed.folder / "rows.jsonl").write_text("newer")
    look = fed.look()
    assert look.is_due and look.seen.attempt == 1


def test_a_later_trigger_is_no_way_round_the_wait(tmp_path: Path) -> None:
    made = site(tmp_path, NIGHTLY | DATA)
    (tmp_path / "rows.jsonl").write_text("first")
    made.now = NIGHT - MINUTE
    made.failed()
    assert not made.look(2 * MINUTE).is_due and made.look(10 * MINUTE).is_due


def test_what_only_a_person_can_fix_waits_for_a_later_trigger(nightly: Site) -> None:
    nightly.now = NIGHT + MINUTE
    nightly.failed(needs_person=True)
    look = nightly.look(HOUR)
    assert not look.is_due and look.gave_up
    assert nightly.look(DAY).is_due


def test_a_wait_that_lies_ahead_of_a_clock_that_was_set_back_is_over(fed: Site) -> None:
    (fed.folder / "rows.jsonl").write_text("new")
    fed.failed()
    assert not fed.look().is_due and fed.look(-HOUR).is_due


def test_data_is_new_by_content_and_once(fed: Site) -> None:
    assert not fed.look(DAY).is_due
    (fed.folder / "rows.jsonl").write_text("old")
    assert not fed.look().is_due
    (fed.folder / "rows.jsonl").write_text("new")
    look = fed.look()
    assert look.is_due and look.why == "data: changed: rows.jsonl"
    fed.ran()
    assert not fed.look().is_due


def test_data_that_arrives_while_a_retraining_runs_is_due_when_it_ends(fed: Site) -> None:
    fed.began(by_hand=True)
    (fed.folder / "rows.jsonl").write_text("new")
    fed.ended(after_s=HOUR)
    assert fed.look().is_due


def test_data_that_is_still_being_written_is_not_due(fed: Site) -> None:
    (fed.folder / "rows.jsonl").write_text("half of it")
    before = fed.look()
    (fed.folder / "rows.jsonl").write_text("half of it, and the rest")
    after = fed.look()
    assert not after.unless_changing(before).is_due and "still changing" in str(after.unless_changing(before))
    assert fed.look().unless_changing(after).is_due


def test_rows_without_a_manifest_are_not_there(tmp_path: Path) -> None:
    made = site(tmp_path, {"data": {"paths": ["rows"]}})
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows/train.jsonl").write_text("{}\n")
    look = made.look()
    assert not look.is_due and "nothing is there yet of rows" in look.triggers[0].problem


def test_a_pointer_that_moved_is_new_data(tmp_path: Path) -> None:
    made = site(tmp_path, {"data": {"pointers": ["datasets/shop"]}})
    made.pointers["datasets/shop"] = "a" * 64
    made.ran()
    assert not made.look().is_due
    made.pointers["datasets/shop"] = "b" * 64
    assert made.look().why == "data: changed: pointer datasets/shop"


def bad(day: str, num: int = 60) -> list[tuple[str, Outcome]]:
    return [(f"{day}{n}", Outcome.REFUTED if n % 3 == 0 else Outcome.SUPPORTED) for n in range(num)]


def test_drift_starts_one_retraining_for_the_same_verdicts(tmp_path: Path) -> None:
    made = site(tmp_path, {"drift": {**DRIFT["drift"], "cool_down_s": 1_000}})
    for day in ("mon", "tue"):
        write_verdicts(tmp_path / f"audits/{day}.jsonl", bad(day))
    look = made.look()
    assert look.is_due and look.why.startswith("drift: drifted: 35.0% of 40 answers refuted, known to be 2")
    made.ran()
    assert not made.look().is_due
    write_verdicts(tmp_path / "audits/wed.jsonl", bad("wed"))
    look = made.look(400)
    assert (
        not look.is_due
        and "the last retraining for drift is less than 1,000 s ago" in look.triggers[0].detail
    )
    assert made.look(600).is_due


def test_only_the_last_file_of_verdicts_may_grow(tmp_path: Path) -> None:
    made = site(tmp_path, DRIFT)
    for shop in "ab":
        write_verdicts(tmp_path / f"audits/{shop}.jsonl", bad(shop))
    made.ran()
    write_verdicts(tmp_path / "audits/b.jsonl", bad("b", 5))
    assert not made.look().triggers[0].problem
    write_verdicts(tmp_path / "audits/a.jsonl", bad("a"))
    (trigger,) = made.look().triggers
    assert not trigger.is_due
    assert trigger.problem.startswith("audits/a.jsonl: has grown since audits/b.jsonl was there")


def test_verdicts_that_cannot_be_read_keep_no_other_trigger_from_a_retraining(tmp_path: Path) -> None:
    made = site(tmp_path, DATA | DRIFT)
    (tmp_path / "rows.jsonl").write_text("old")
    write_verdicts(tmp_path / "audits/mon.jsonl", bad("mon", 9))
    made.ran()
    (tmp_path / "audits/folder.jsonl").mkdir()
    (tmp_path / "rows.jsonl").write_text("new")
    look = made.look()
    assert look.seen.causes == (Cause.DATA,) and "folder.jsonl" in look.triggers[1].problem
    assert look.seen.verdicts == {"audits/mon.jsonl": 9}  # what was settled is, and no more


def test_a_line_that_is_no_verdict_is_said(tmp_path: Path) -> None:
    made = site(tmp_path, DRIFT)
    (tmp_path / "audits").mkdir()
    (tmp_path / "audits/a.jsonl").write_text('{"id": "1"}\n' * 50)
    look = made.look()
    assert not look.is_due
    assert "a.jsonl:1: no verdict of march audit: outcome: missing" in look.triggers[0].problem


def test_the_record_of_many_files_of_verdicts_fits_into_a_tag(tmp_path: Path) -> None:
    made = site(tmp_path, DRIFT)
    for number in range(400):
        day = f"{datetime(2026, 1, 1) + timedelta(days=number):%Y-%m-%d}"
        write_verdicts(tmp_path / f"audits/{day}.jsonl", [(day, Outcome.REFUTED)])
    assert made.look().is_due
    made.ran()
    assert len(made.history[-1].seen.model_dump_json()) < 8_000  # type: ignore[union-attr]
    look = made.look()
    assert look.triggers[0].drift is not None and look.triggers[0].drift.num_new == 0

"""One job under the service: what starts a retraining, one at a time, failures, kills."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from orchestration.retrain.triggers import BackoffSettings, DataSettings, DriftSettings, Triggers
from orchestration.schedule.job_watch import JobWatch, is_running
from orchestration.schedule.journal import Began, Cause, Due, Ended, append_line
from reward.types import Outcome
from tests.schedule_jobs import journal, runs, wait_for_end, wait_until, watch_of, write_verdicts

DRIFT = DriftSettings(verdicts=("audits/*.jsonl",), min_answers=40, min_documents=30, cool_down_s=1_000)
DATA = DataSettings(every_s=1)


def due(watch: JobWatch, at: float = 1.0) -> None:
    append_line(watch.folder, Due(at=at, cause=Cause.CRON, detail="it is time"))


def test_a_trigger_starts_one_retraining_that_is_told_why(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, Triggers())
    due(watch)
    (tmp_path / "HOLD").touch()
    for now in range(2, 6):
        watch.step(now)
    assert is_running(watch.folder)
    (tmp_path / "HOLD").unlink()
    wait_for_end(watch)
    watch.step(9)
    assert runs(tmp_path) == ["--cause cron: it is time"]
    assert [line["kind"] for line in journal(watch.folder)] == ["due", "began", "ended"]


def test_a_failure_is_shown_and_waits_while_other_jobs_go_on(tmp_path: Path) -> None:
    backoff = BackoffSettings(attempts=2, first_s=1e9, most_s=1e9)
    failing = watch_of(tmp_path / "a", Triggers(backoff=backoff), name="a")
    other = watch_of(tmp_path / "b", Triggers(), name="b")
    (tmp_path / "a/CODE").write_text("1")
    for watch in (failing, other):
        due(watch)
        watch.step(2)
    wait_for_end(failing)
    wait_for_end(other)
    failing.step(3)
    state = failing.state()
    assert state.last is not None and state.last.error == "march: something is wrong"
    assert state.starts_at == state.last.at + 1e9 and len(runs(tmp_path / "a")) == 1
    failing.step(state.starts_at)
    wait_for_end(failing)
    assert failing.state().gave_up and other.state().num_well == 1


def test_a_retraining_outlives_its_service_and_is_found_by_the_next(tmp_path: Path) -> None:
    first = watch_of(tmp_path, Triggers())
    due(first)
    (tmp_path / "HOLD").touch()
    first.step(2)
    wait_until(lambda: runs(tmp_path))
    second = watch_of(tmp_path, Triggers())
    due(second, at=3)
    second.step(4)
    assert len(runs(tmp_path)) == 1
    (tmp_path / "HOLD").unlink()
    wait_for_end(second)
    second.step(5)  # what came meanwhile
    wait_for_end(second)
    assert len(runs(tmp_path)) == 2 and second.state().num_well == 2


def test_a_retraining_that_was_killed_goes_on_at_once(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, Triggers())
    due(watch)
    (tmp_path / "HOLD").touch()
    watch.step(2)
    wait_until(lambda: runs(tmp_path))
    assert watch._process is not None
    os.killpg(watch._process.pid, signal.SIGKILL)
    watch._process.wait()
    (tmp_path / "HOLD").unlink()
    wait_for_end(watch)
    watch.step(1e12)
    wait_for_end(watch)
    assert [line.get("code") for line in journal(watch.folder) if line["kind"] == "ended"] == [None, 0]


def test_data_is_new_when_two_looks_find_it_so(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    watch = watch_of(tmp_path, Triggers(data=DATA), paths=(rows,))
    rows.write_text("old")
    for now in (10, 20, 30):
        watch.step(now)
    assert not runs(tmp_path)
    rows.write_text("half of it")
    watch.step(40)
    rows.write_text("all of it, twice as long")
    watch.step(50)
    assert not runs(tmp_path)
    watch.step(60)
    wait_for_end(watch)
    for now in (70, 80, 90):
        watch.step(now)
    assert runs(tmp_path) == [f"--cause data: changed: {rows}"]


def test_data_that_no_retraining_has_seen_is_new_by_setting(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("first")
    watch = watch_of(tmp_path, Triggers(data=DATA.model_copy(update={"at_first": True})), paths=(rows,))
    watch.step(10)
    watch.step(20)
    wait_for_end(watch)
    assert len(runs(tmp_path)) == 1


def test_rows_that_are_being_written_are_not_there(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    (rows / "train.jsonl").write_text("{}\n")
    watch = watch_of(tmp_path, Triggers(data=DATA), paths=(rows,))
    watch.step(10)
    assert "nothing is there yet" in watch.problems[Cause.DATA]


def test_drift_starts_one_retraining_for_the_same_verdicts(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, Triggers(drift=DRIFT.model_copy(update={"every_s": 1.0})))
    for day in ("mon", "tue"):
        bad = [(f"{day}{n}", Outcome.REFUTED if n % 3 == 0 else Outcome.SUPPORTED) for n in range(60)]
        write_verdicts(tmp_path / f"audits/{day}.jsonl", bad)
    for now in (10, 20, 30, 40):
        watch.step(now)
        wait_for_end(watch)
    [told] = runs(tmp_path)
    assert told.startswith("--cause drift: drifted: 33.3% of 120 answers refuted, known to be 2")
    write_verdicts(tmp_path / "audits/wed.jsonl", [(f"wed{n}", Outcome.REFUTED) for n in range(60)])
    watch.step(500)
    assert len(runs(tmp_path)) == 1  # the cool-down
    watch.step(1_011)
    wait_for_end(watch)
    assert len(runs(tmp_path)) == 2


def test_verdicts_that_cannot_be_read_are_said_and_start_nothing(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, Triggers(drift=DRIFT))
    (tmp_path / "audits").mkdir()
    (tmp_path / "audits/a.jsonl").write_text('{"id": "1"}\n' * 50)
    watch.step(10)
    assert "a.jsonl:1: no verdict of march audit: outcome: missing" in watch.problems[Cause.DRIFT]
    assert watch.state().drift is None


def test_verdicts_that_cannot_be_read_keep_no_other_trigger_from_a_retraining(tmp_path: Path) -> None:
    watch = watch_of(tmp_path, Triggers(drift=DRIFT))
    write_verdicts(tmp_path / "audits/mon.jsonl", [("a", Outcome.SUPPORTED)])
    append_line(watch.folder, Began(at=0, causes=(Cause.CRON,), read={"audits/mon.jsonl": 1}, log=""))
    append_line(watch.folder, Ended(at=0.5, code=0))
    (tmp_path / "audits/folder.jsonl").mkdir()
    due(watch)
    watch.step(2)
    wait_for_end(watch)
    watch.step(3)
    assert runs(tmp_path) == ["--cause cron: it is time"]
    assert "folder.jsonl" in watch.problems[Cause.DRIFT]
    assert watch.state().read == {"audits/mon.jsonl": 1}  # what was settled is, and no more

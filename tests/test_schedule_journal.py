"""What follows from a job's journal: what is due, backoff, giving up, what needs no other retraining."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.retrain.triggers import BackoffSettings
from orchestration.schedule.drift import Drift, DriftState
from orchestration.schedule.journal import (
    Began,
    Cause,
    Due,
    Ended,
    Line,
    Looked,
    Missed,
    Seen,
    append_line,
    read_state,
    replay,
)

BACKOFF = BackoffSettings(attempts=3, first_s=100, most_s=150)


def due(at: float, cause: Cause = Cause.CRON) -> Due:
    return Due(at=at, cause=cause, detail="")


def began(at: float, *causes: Cause, data: dict[str, str] | None = None) -> Began:
    return Began(at=at, causes=causes or (Cause.CRON,), data=data or {}, read={"v": int(at)}, log="")


def ended(at: float, code: int | None = 0) -> Ended:
    return Ended(at=at, code=code)


def looked(at: float, low: float | None) -> Looked:
    drift = Drift(
        state=DriftState.WITHIN,
        num_scored=10,
        num_refuted=1,
        num_no_claims=0,
        num_unscored=0,
        num_documents=5,
        low=low,
        allowed=0.05,
        read={"v": int(at)},
    )
    return Looked(at=at, drift=drift)


@pytest.mark.parametrize(
    ("lines", "starts_at"),
    [
        ([], None),
        ([due(1)], 0.0),
        ([due(1), began(2)], None),
        ([due(1), began(2), ended(3)], None),
        ([due(1), began(2), due(3), ended(4)], 0.0),  # it came after the retraining began
        ([due(1), began(2), ended(3, code=1)], 103.0),
        ([due(1), began(2), ended(3, code=1), began(103), ended(104, code=1)], 254.0),  # 200, cut to 150
        ([due(1), began(2), ended(3, code=2)], None),  # a person must fix it
        ([due(1), began(2), ended(3, code=6)], None),  # the budget is spent
        ([due(1), began(2), due(3), ended(4, code=2)], 0.0),  # the later trigger is not given up
        ([due(1), began(2), due(3, Cause.DATA), ended(4, code=6)], 0.0),
        ([due(1), began(2), ended(3, code=7)], 103.0),  # it runs elsewhere; no failure
        ([due(1), began(2), ended(3, code=130)], 3.0),  # the supervisor stopped it
        ([due(1), began(2), ended(3, code=2), due(4)], 0.0),  # the next trigger is tried afresh
        ([due(1), began(2), ended(3, code=1), due(4, Cause.DATA)], 103.0),  # no way round the wait
        ([due(1), began(2), ended(3, code=None)], 3.0),  # the machine went down: at once
        ([due(1), began(2), ended(3, code=None), began(4), ended(5, code=None)], 155.0),
    ],
)
def test_when_the_next_retraining_may_start(lines: list[Line], starts_at: float | None) -> None:
    assert replay(lines, BACKOFF).starts_at == starts_at


def test_after_the_last_attempt_it_waits_for_another_trigger() -> None:
    lines: list[Line] = [due(1)]
    for at in (10, 200, 400):
        lines += [began(at, data={"rows": "new"}), ended(at + 1, code=1)]
    state = replay(lines, BACKOFF)
    assert state.gave_up and state.num_failures == 3 and state.starts_at is None
    assert state.data == {"rows": "new"}  # the same data does not come a second time
    again = replay([*lines, due(500)], BACKOFF)
    assert again.starts_at == 0 and again.num_failures == 0


def test_a_trigger_that_came_during_the_last_attempt_begins_anew() -> None:
    lines: list[Line] = [due(1)]
    for at in (10, 200, 400):
        lines += [began(at), due(at + 1, Cause.DATA), ended(at + 2, code=1)]
    state = replay(lines, BACKOFF)
    assert list(state.due) == [Cause.DATA]
    assert (state.num_failures, state.not_before, state.gave_up, state.num_failed) == (0, 0.0, False, 3)


def test_only_a_retraining_that_ended_settles_data_and_verdicts() -> None:
    lines: list[Line] = [Seen(at=0, data={"rows": "old"}), due(1), began(2, data={"rows": "new"})]
    assert replay(lines, BACKOFF).data == {"rows": "old"}
    failed = replay([*lines, ended(3, code=1)], BACKOFF)
    assert failed.data == {"rows": "old"} and failed.read == {}
    well = replay([*lines, ended(3)], BACKOFF)
    assert well.data == {"rows": "new"} and well.read == {"v": 2} and well.num_well == 1


def test_looks_are_counted_from_one_retraining_to_the_next() -> None:
    lines: list[Line] = [looked(1, None), looked(2, 0.01), looked(3, 0.02)]
    state = replay(lines, BACKOFF)
    assert (state.num_looks, state.looked) == (2, {"v": 3})
    state = replay([*lines, due(4, Cause.DRIFT), began(5, Cause.DRIFT), ended(6)], BACKOFF)
    assert (state.num_looks, state.looked, state.drift_began) == (0, {"v": 5}, 5)


def test_a_journal_is_read_as_it_was_written_and_a_torn_line_is_dropped(tmp_path: Path) -> None:
    lines: list[Line] = [due(1), Missed(at=2, detail="too long ago"), looked(3, 0.1), began(4), ended(5)]
    for line in lines:
        append_line(tmp_path, line)
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"kind": "due", "at"')
    assert read_state(tmp_path, BACKOFF) == replay(lines, BACKOFF)
    append_line(tmp_path, due(6))
    assert read_state(tmp_path, BACKOFF) == replay([*lines, due(6)], BACKOFF)


def test_a_line_of_another_kind_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"kind": "came", "at": 1}\n')
    with pytest.raises(ValueError, match=r"none of this version's journal; move the file away"):
        read_state(tmp_path, BACKOFF)

"""Drift: the bound by source, what a look says, false starts over many looks."""

from __future__ import annotations

import json
import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from orchestration.retrain.triggers import DriftSettings
from orchestration.schedule import drift
from orchestration.schedule.drift import DriftState, Judged, Tally, lines_of, look, look_at, lower_bound
from reward.offline.inputs import RowFormat, read_rows
from reward.types import Outcome
from tests.schedule_jobs import write_verdicts

SETTINGS = DriftSettings(verdicts=("*.jsonl",), min_answers=40, min_documents=20, max_unfaithful=0.05)


def answers(
    num_refuted: int, num_supported: int, num_unscored: int = 0, *, a_source: int = 1
) -> list[Judged]:
    outcomes = [
        *[Outcome.REFUTED] * num_refuted,
        *[Outcome.SUPPORTED] * num_supported,
        *[Outcome.UNSCORED] * num_unscored,
    ]
    random.Random(0).shuffle(outcomes)
    return [Judged(outcome, str(place // a_source)) for place, outcome in enumerate(outcomes)]


@pytest.mark.parametrize(
    ("given", "state"),
    [
        (answers(0, 100), DriftState.WITHIN),
        (answers(8, 92), DriftState.WITHIN),  # 8% were found, and 5% are not excluded
        (answers(20, 80), DriftState.DRIFTED),
        (answers(20, 10), DriftState.TOO_FEW),
        (answers(20, 80, a_source=10), DriftState.TOO_FEW),  # about ten sources
        (answers(20, 80, 30), DriftState.TOO_MANY_UNSCORED),
        (answers(0, 0, 100), DriftState.TOO_MANY_UNSCORED),
        ([], DriftState.TOO_FEW),
    ],
)
def test_what_a_look_says(given: list[Judged], state: DriftState) -> None:
    found = look(given, SETTINGS, num_looks=0)
    assert found.state is state
    assert (found.low is not None) == (state in (DriftState.WITHIN, DriftState.DRIFTED))


def test_failed_audits_are_in_no_share() -> None:
    without = look(answers(10, 90), SETTINGS, num_looks=0)
    with_them = look(answers(10, 90, 10), SETTINGS, num_looks=0)
    assert with_them.num_unscored == 10 and with_them.rate == without.rate == 0.1


def test_later_looks_ask_for_more() -> None:
    found = [look(answers(13, 87), SETTINGS, num_looks=num) for num in range(12)]
    assert [one.alpha for one in found[:3]] == pytest.approx([0.025, 0.05 / 6, 0.05 / 12])
    assert found[0].state is DriftState.DRIFTED and found[-1].state is DriftState.WITHIN


def test_the_bound_of_independent_answers_is_clopper_and_pearsons() -> None:
    tallies = [Tally(int(place < 20), 1) for place in range(200)]
    exact = stats.binomtest(20, 200, alternative="greater").proportion_ci(0.975, "exact").low
    assert lower_bound(tallies, 0.025) == pytest.approx(exact, rel=0.01)


def test_answers_about_one_source_tell_less() -> None:
    apart = [Tally(int(place < 20), 1) for place in range(200)]
    together = [Tally(5 * (place < 4), 5) for place in range(40)]
    assert lower_bound(together, 0.025) < lower_bound(apart, 0.025)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=2, max_size=60))
def test_the_bound_lies_below_the_share(drawn: list[tuple[int, int]]) -> None:
    tallies = [Tally(min(refuted, num), num) for refuted, num in drawn]
    share = sum(one.num_refuted for one in tallies) / sum(one.num_scored for one in tallies)
    low = lower_bound(tallies, 0.025)
    assert 0 <= low <= share and (low < share or share == 0)
    assert lower_bound(tallies, 0.001) <= low


def test_answers_are_counted_by_source_and_settled_lines_are_not_looked_at(tmp_path: Path) -> None:
    rows = [
        {"id": str(n), "query": "?", "documents": ["5"], "response": str(n), "source_id": f"s{n % 25}"}
        for n in range(60)
    ]
    file = tmp_path / "answers/a.jsonl"
    file.parent.mkdir()
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    digests = [row.digest for row in read_rows(file, RowFormat.JSONL)]
    write_verdicts(tmp_path / "v.jsonl", [(one, Outcome.SUPPORTED) for one in [*digests, "not there"]])
    by_source = SETTINGS.model_copy(update={"answers": ("answers/*.jsonl",), "min_answers": 61})
    lines = lines_of(tmp_path, by_source.verdicts)
    assert lines == {"v.jsonl": 61}
    found = look_at(tmp_path, by_source, settled={}, lines=lines)
    assert (found.num_scored, found.num_documents, found.num_unmatched) == (61, 26, 1)
    rest = look_at(tmp_path, by_source, settled={"v.jsonl": 50}, lines=lines)
    assert (rest.num_scored, rest.num_new, rest.state) == (11, 11, DriftState.TOO_FEW)
    assert look_at(tmp_path, by_source, settled={"v.jsonl": 90}, lines=lines).num_new == 61  # it was cut


def test_the_newest_answers_are_looked_at_and_a_line_under_way_is_not(tmp_path: Path) -> None:
    write_verdicts(tmp_path / "1.jsonl", [(f"a{n}", Outcome.REFUTED) for n in range(50)])
    write_verdicts(tmp_path / "2.jsonl", [(f"b{n}", Outcome.SUPPORTED) for n in range(50)])
    with (tmp_path / "2.jsonl").open("a") as file:
        file.write('{"id": ')
    windowed = SETTINGS.model_copy(update={"window": 50, "min_answers": 100})
    lines = lines_of(tmp_path, windowed.verdicts)
    found = look_at(tmp_path, windowed, settled={}, lines=lines)
    assert (found.num_scored, found.num_refuted) == (50, 0)


def test_a_look_holds_no_more_than_its_window(tmp_path: Path) -> None:
    """All verdicts since the last retraining were in memory: 9 GB after a year of 10,000 a day."""
    write_verdicts(tmp_path / "1.jsonl", [(str(n), Outcome.SUPPORTED) for n in range(5_000)])
    windowed = SETTINGS.model_copy(update={"window": 50})
    tracemalloc.start()
    try:
        found = look_at(tmp_path, windowed, settled={}, lines=lines_of(tmp_path, windowed.verdicts))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.num_new == 5_000 and most < 4 * drift._BLOCK


def test_looks_depend_on_the_verdicts_and_not_on_how_often_they_are_made(tmp_path: Path) -> None:
    drawn = random.Random(0)
    found = []
    for number in range(300):
        outcome = Outcome.REFUTED if drawn.random() < 0.14 else Outcome.SUPPORTED
        write_verdicts(tmp_path / f"{number // 7:03}.jsonl", [(str(number), outcome)])
        if number % 40 == 39:
            lines = lines_of(tmp_path, SETTINGS.verdicts)
            found.append(look_at(tmp_path, SETTINGS, settled={}, lines=lines))
    first = next(number for number, one in enumerate(found) if one.state is DriftState.DRIFTED)
    assert 0 < first < len(found) - 1
    assert {(one.state, one.num_scored, one.alpha) for one in found[first:]} == {
        (DriftState.DRIFTED, 40 * (first + 1), found[first].alpha)
    }


def test_false_starts_over_many_looks_stay_below_alpha() -> None:
    """Answers at the allowed share, clustered, looked at six times; `python -m bench drift` draws more."""
    draw, num_false, num_trials = random.Random(0), 0, 60
    for _ in range(num_trials):
        judged: list[Judged] = []
        for num_looks in range(6):
            for source in range(20):
                share = draw.betavariate(0.2, 3.8)  # mean 0.05, correlation 0.2
                judged += [
                    Judged(
                        Outcome.REFUTED if draw.random() < share else Outcome.SUPPORTED,
                        f"{num_looks} {source}",
                    )
                    for _ in range(3)
                ]
            if look(judged, SETTINGS, num_looks=num_looks).state is DriftState.DRIFTED:
                num_false += 1
                break
    assert num_false <= stats.binom.ppf(0.999, num_trials, SETTINGS.alpha)

"""The loop with scripted stages on a local store: what is done once, tried again, stopped, decided."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from orchestration.retrain.lease import Lease
from orchestration.retrain.loop import LeaseLostError, OverBudgetError, StageFailedError, planned, retrain
from orchestration.retrain.records import (
    Ending,
    ParentWeights,
    Retraining,
    RetrainingState,
    Stage,
    StageProblem,
    StageRequest,
    StageResult,
    StageState,
    stage_folder,
    stage_key,
)
from pipeline.artifacts.backend import StoreError
from pipeline.artifacts.upkeep import find_damage
from tests.retrainings import CANDIDATE, CHAMPION, Rig, Version, rig

PASSING = StageProblem(line="a worker was killed", transient=True)
FINAL = StageProblem(line="data.path: no such file", transient=False, exit_code=2)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestration.retrain.loop._POLL_S", 0.0)


@pytest.fixture
def tested(tmp_path: Path) -> Rig:
    return rig(tmp_path)


def test_every_stage_runs_once_and_in_order(tested: Rig) -> None:
    found = retrain(tested.place, cause="a test")
    order = [stage for stage in Stage if stage is not Stage.EVALUATE_CHAMPION]
    assert [one.stage for one in tested.factory.requests] == order
    evaluated = next(one for one in tested.factory.requests if one.stage is Stage.EVALUATE)
    assert evaluated.max_missing == 0.05, "of the job's policy"
    assert (found.state, found.outcome, found.version) == (RetrainingState.DONE, Ending.PROMOTED, "7")
    assert found.cause == "a test"
    states = {one.stage: one.state for one in found.stages}
    assert states.pop(Stage.EVALUATE_CHAMPION) is StageState.NOT_NEEDED
    assert set(states.values()) == {StageState.DONE}
    assert not list(
        find_damage(tested.place.results.store, tested.place.results.store.manifests(), read=True)
    )


def test_a_finished_retraining_is_not_done_again(tested: Rig) -> None:
    first = retrain(tested.place)
    tested.factory.started.clear()
    assert retrain(tested.place) == first.model_copy(update={"is_closed": True})
    assert not tested.factory.started


def test_one_that_ended_and_was_killed_before_it_was_closed_is_told_and_not_begun_anew(tested: Rig) -> None:
    ended = retrain(tested.place)
    tested.ledger.runs[ended.run_id] = ended.model_copy(update={"is_closed": False})
    tested.decisions.champion = Version("7", CANDIDATE)  # its own, from which another one would begin
    tested.factory.started.clear()
    assert retrain(tested.place).run_id == ended.run_id and not tested.factory.started
    assert tested.ledger.runs[ended.run_id].is_closed
    assert retrain(tested.place).run_id != ended.run_id  # now that it is closed, the champion is the parent


def test_a_stage_is_made_again_on_request_and_the_rest_stands(tested: Rig) -> None:
    tested.factory.outcome = Ending.REFUSED
    first = retrain(tested.place)
    tested.factory.started.clear()
    again = retrain(tested.place, redo=Stage.EVALUATE)
    assert tested.factory.started == {Stage.EVALUATE: 1}
    assert (again.run_id, again.outcome) == (first.run_id, Ending.REFUSED)
    tested.factory.started.clear()
    assert retrain(tested.place).outcome is Ending.REFUSED and not tested.factory.started


def test_a_stage_that_comes_out_otherwise_leads_to_another_decision(tested: Rig) -> None:
    tested.factory.outcome = Ending.REFUSED
    retrain(tested.place)
    tested.factory.outcome, made = Ending.PROMOTED, tested.factory.made
    other = tested.place.results.store.publish(kind="evaluation", record={"key": "another"}).digest

    def otherwise(request: StageRequest) -> StageResult:
        found = made(request)
        changed = {"outputs": {"evaluation": other}} if request.stage is Stage.EVALUATE else {}
        return found.model_copy(update=changed)

    tested.factory.made = otherwise  # type: ignore[method-assign]
    tested.factory.started.clear()
    assert retrain(tested.place, redo=Stage.EVALUATE).outcome is Ending.PROMOTED
    assert set(tested.factory.started) == {Stage.EVALUATE, Stage.PUBLISH, Stage.REGISTER, Stage.PROMOTE}


def test_what_is_made_again_and_fails_is_made_again_by_the_next_command(tested: Rig) -> None:
    retrain(tested.place)
    tested.factory.problems = {Stage.EVALUATE: [FINAL]}
    tested.factory.started.clear()
    with pytest.raises(StageFailedError):
        retrain(tested.place, redo=Stage.EVALUATE)
    assert retrain(tested.place).outcome is Ending.PROMOTED
    assert tested.factory.started == {Stage.EVALUATE: 2}


def test_the_same_command_after_a_kill_does_not_begin_the_redo_anew(tested: Rig) -> None:
    retrain(tested.place)
    tested.factory.problems = {Stage.EVALUATE: [FINAL]}
    with pytest.raises(StageFailedError):
        retrain(tested.place, redo=Stage.EVALUATE)
    request = tested.factory.requests[-1]
    assert request.redo and request.stage is Stage.EVALUATE
    begun = stage_folder(request.job, Stage.EVALUATE, request.key) / "half"
    begun.parent.mkdir(parents=True, exist_ok=True)
    begun.touch()
    assert retrain(tested.place, redo=Stage.EVALUATE).outcome is Ending.PROMOTED
    assert begun.is_file() and not tested.factory.requests[-1].redo


def test_a_version_that_was_deleted_since_is_registered_again(tested: Rig) -> None:
    tested.factory.outcome = Ending.REFUSED
    retrain(tested.place)
    tested.factory.started.clear()
    retrain(tested.place, redo=Stage.EVALUATE)
    assert Stage.REGISTER not in tested.factory.started
    tested.decisions.registered = [("7", 6)]  # another one of this number
    retrain(tested.place, redo=Stage.EVALUATE)
    assert tested.factory.started[Stage.REGISTER] == 1


def test_results_outlive_the_ledger(tested: Rig, tmp_path: Path) -> None:
    retrain(tested.place)
    elsewhere = rig(tmp_path)  # the same store, another machine, an MLflow that knows nothing
    found = retrain(elsewhere.place)
    assert not elsewhere.factory.started
    assert all(one.reused for one in found.stages if one.stage is not Stage.EVALUATE_CHAMPION)
    assert found.outcome is Ending.PROMOTED


def test_what_may_pass_is_tried_again_and_counted(tested: Rig) -> None:
    tested.factory.problems = {Stage.TRAIN: [PASSING, PASSING]}
    found = retrain(tested.place)
    status = next(one for one in found.stages if one.stage is Stage.TRAIN)
    assert (status.attempts, status.error, status.state) == (3, None, StageState.DONE)
    assert [stage for stage, _ in tested.notes.waited] == [Stage.TRAIN, Stage.TRAIN]


def test_waits_double_up_to_the_longest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _seconds: None)
    tested = rig(tmp_path, "retries.first_wait_s=10", "retries.longest_wait_s=30", "retries.attempts=5")
    tested.factory.problems = {Stage.PREPARE: [PASSING] * 4}
    retrain(tested.place)
    assert [seconds for _, seconds in tested.notes.waited] == [10, 20, 30, 30]


def test_what_a_user_can_fix_stops_at_once(tested: Rig) -> None:
    tested.factory.problems = {Stage.TRAIN: [FINAL]}
    with pytest.raises(StageFailedError, match=r"train: data\.path: no such file") as caught:
        retrain(tested.place)
    assert caught.value.problem.exit_code == 2
    assert tested.factory.started[Stage.TRAIN] == 1
    (left,) = tested.ledger.runs.values()
    assert (left.state, left.error) == (RetrainingState.FAILED, FINAL.line)


def test_a_stage_that_fails_too_often_is_gone_on_with_by_the_next_command(tested: Rig) -> None:
    tested.factory.problems = {Stage.TRAIN: [PASSING] * 5}
    with pytest.raises(StageFailedError):
        retrain(tested.place)
    assert tested.factory.started[Stage.TRAIN] == 4
    found = retrain(tested.place)
    assert tested.factory.started[Stage.PREPARE] == 1
    assert next(one for one in found.stages if one.stage is Stage.TRAIN).attempts == 6


def test_an_attempt_is_numbered_over_all_commands_and_within_its_own(tested: Rig) -> None:
    tested.factory.problems = {Stage.EVALUATE: [PASSING] * 5}
    with pytest.raises(StageFailedError):
        retrain(tested.place)
    retrain(tested.place)
    asked = [one for one in tested.factory.requests if one.stage is Stage.EVALUATE]
    assert [(one.attempt, one.command_attempt) for one in asked] == [
        (1, 1), (2, 2), (3, 3), (4, 4), (5, 1), (6, 2),
    ]  # fmt: skip


def test_a_stage_that_says_it_is_done_and_left_nothing_is_not_done(tested: Rig) -> None:
    tested.factory.results.put = lambda *_: None  # type: ignore[method-assign,assignment]
    with pytest.raises(StageFailedError, match="there is no result"):
        retrain(tested.place)


def test_a_lost_output_is_made_again(tested: Rig, tmp_path: Path) -> None:
    retrain(tested.place)
    store = tested.place.results.store
    model = tested.factory.results.find(Stage.TRAIN, tested.factory.requests[1].key)
    assert model is not None
    digest = model.result.outputs["model"]
    (tmp_path / "store" / f"manifests/sha256/{digest[:2]}/{digest}").unlink()
    elsewhere = rig(tmp_path)
    retrain(elsewhere.place)
    assert set(elsewhere.factory.started) == {Stage.TRAIN}
    assert store.manifest(digest).kind == "model"


def test_the_champion_is_evaluated_by_the_same_settings_and_only_once(tested: Rig) -> None:
    tested.decisions.champion = Version("3", CHAMPION)
    retrain(tested.place)
    assert tested.factory.started[Stage.EVALUATE_CHAMPION] == 1
    promote = tested.factory.requests[-1]
    assert promote.champion is not None and promote.champion.version == "3"
    assert promote.done[Stage.EVALUATE_CHAMPION].outputs != promote.done[Stage.EVALUATE].outputs
    assert promote.job == tested.place.plan.job


def test_a_champion_with_the_candidates_weights_needs_no_second_evaluation(tested: Rig) -> None:
    tested.decisions.champion = Version("7", CANDIDATE)
    retrain(tested.place)
    assert tested.factory.started[Stage.EVALUATE_CHAMPION] == 0


def test_a_decision_that_lost_the_race_is_tried_against_the_new_champion(tested: Rig) -> None:
    tested.decisions.champion = Version("3", CHAMPION)
    tested.factory.problems = {Stage.PROMOTE: [StageProblem(line="somebody was first", transient=True)]}

    def crown_another(stage: Stage) -> None:
        if stage is Stage.PROMOTE:
            tested.decisions.champion = Version("4", "d" * 64)

    tested.factory.before_end = crown_another
    retrain(tested.place)
    assert tested.factory.started[Stage.EVALUATE_CHAMPION] == 2
    last = tested.factory.requests[-1].champion
    assert last is not None and last.version == "4"


def test_a_champion_crowned_during_an_evaluation_is_not_paired_with_it(tested: Rig) -> None:
    tested.decisions.champion = Version("3", CHAMPION)
    tested.factory.problems = {Stage.PROMOTE: [StageProblem(line="the champion has changed", transient=True)]}
    crowned = [Version("5", "f" * 64), Version("4", "d" * 64)]

    def crown_another(stage: Stage) -> None:
        if stage in (Stage.PUBLISH, Stage.EVALUATE_CHAMPION) and tested.factory.started[Stage.PUBLISH]:
            tested.decisions.champion = crowned.pop() if crowned else tested.decisions.champion

    tested.factory.before_end = crown_another
    retrain(tested.place)
    asked = [one for one in tested.factory.requests if one.stage is Stage.PROMOTE]
    assert [one.champion and one.champion.version for one in asked] == ["4", "5"]
    for one, sha256 in zip(asked, ["d" * 64, "f" * 64], strict=True):
        champion = ParentWeights(sha256=sha256, uri="")
        inputs = tested.place.plan.inputs(Stage.EVALUATE_CHAMPION, champion, {}, champion)
        theirs = tested.place.results.find(Stage.EVALUATE, stage_key(Stage.EVALUATE, inputs))
        assert theirs is not None and one.done[Stage.EVALUATE_CHAMPION] == theirs.result


@pytest.mark.parametrize(("failed", "parent"), [(Stage.PROMOTE, None), (Stage.EVALUATE, "7")])
def test_a_retraining_that_was_left_goes_on_from_its_own_parent_once_it_has_a_version(
    failed: Stage, parent: str | None, tested: Rig
) -> None:
    tested.factory.problems = {failed: [FINAL]}
    with pytest.raises(StageFailedError) as caught:
        retrain(tested.place)
    assert caught.value.retraining and caught.value.retraining.state is RetrainingState.FAILED
    tested.decisions.champion = Version("7", CANDIDATE)  # by its own decision, or another
    found = retrain(tested.place)
    assert found.parent.version == parent
    assert tested.factory.started[Stage.TRAIN] == (1 if parent is None else 2)


@pytest.mark.parametrize("outcome", [Ending.REFUSED, Ending.INCONCLUSIVE, Ending.UNCHANGED])
def test_not_being_promoted_is_an_outcome_and_no_error(tested: Rig, outcome: Ending) -> None:
    tested.factory.outcome = outcome
    found = retrain(tested.place)
    assert (found.state, found.outcome) == (RetrainingState.DONE, outcome)


def test_a_candidate_may_wait_for_a_person(tested: Rig) -> None:
    tested.factory.outcome = Ending.WAITS
    assert retrain(tested.place).state is RetrainingState.WAITING_FOR_APPROVAL


def test_the_budget_stops_a_running_stage_and_a_raised_one_goes_on(tmp_path: Path) -> None:
    tested = rig(tmp_path, "budget.tokens=100")
    tested.factory.looks, tested.factory.tokens = 3, 60
    with pytest.raises(OverBudgetError, match="of 100 tokens are spent"):
        retrain(tested.place)
    assert tested.factory.last is not None and tested.factory.last.stopped
    (left,) = tested.ledger.runs.values()
    assert left.state is RetrainingState.STOPPED_BY_BUDGET
    assert left.spent.tokens == 120
    tested.factory.started.clear()
    with pytest.raises(OverBudgetError):  # nothing starts, since all attempts count
        retrain(tested.place)
    assert not tested.factory.started
    richer = rig(tmp_path, "budget.tokens=100000")
    richer.ledger.runs = tested.ledger.runs
    assert retrain(richer.place).outcome is Ending.PROMOTED


def test_an_interrupt_stops_the_stage_and_is_written_down(tested: Rig) -> None:
    def interrupt(_stage: Stage) -> None:
        raise KeyboardInterrupt

    tested.factory.before_end = interrupt
    with pytest.raises(KeyboardInterrupt):
        retrain(tested.place)
    (left,) = tested.ledger.runs.values()
    assert (left.state, left.reason) == (RetrainingState.STOPPED, "interrupted")


def test_a_lost_lease_stops_the_stage(tested: Rig) -> None:
    class Lost:
        is_lost = True

    place = replace(tested.place, lease=cast(Lease, Lost()))
    with pytest.raises(LeaseLostError):
        retrain(place)
    assert not tested.factory.started


def test_who_lost_the_lease_writes_nothing_over_the_record_of_who_has_it(tested: Rig) -> None:
    class Taken:
        is_lost = False

    lease, others = Taken(), list[Retraining]()

    def another_machine_ends_it(_stage: Stage) -> None:
        lease.is_lost = True
        (left,) = tested.ledger.runs.values()
        others.append(left.model_copy(update={"state": RetrainingState.DONE, "reason": "promoted there"}))
        tested.ledger.runs[left.run_id] = others[0]

    tested.factory.before_end = another_machine_ends_it
    with pytest.raises(LeaseLostError):
        retrain(replace(tested.place, lease=cast(Lease, lease)))
    assert list(tested.ledger.runs.values()) == others


def test_a_registry_that_is_away_for_a_moment_is_waited_for(tested: Rig) -> None:
    tested.decisions.errors = [ConnectionError("refused")]
    assert retrain(tested.place).outcome is Ending.PROMOTED


def test_a_ledger_that_stays_away_ends_the_loop_and_loses_no_result(tested: Rig) -> None:
    error = ValueError("registry.uri: does not answer")
    tested.factory.before_end = lambda stage: tested.ledger.errors.extend([error] * (stage is Stage.EVALUATE))
    with pytest.raises(StageFailedError, match="does not answer"):
        retrain(tested.place)
    found = retrain(tested.place)
    assert found.outcome is Ending.PROMOTED
    assert tested.factory.started[Stage.EVALUATE] == 1


def test_a_store_that_fails_for_a_moment_is_tried_again(tested: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    error = StoreError("s3://b: the server is busy")
    error.__cause__ = ConnectionError("reset")
    find, failures = tested.place.results.find, [error]

    def sometimes(stage: Stage, key: str) -> object:
        if failures and stage is Stage.EVALUATE:
            raise failures.pop()
        return find(stage, key)

    monkeypatch.setattr(tested.place.results, "find", sometimes)
    assert retrain(tested.place).outcome is Ending.PROMOTED


def test_a_dry_run_knows_what_has_a_result_and_starts_nothing(tested: Rig) -> None:
    assert {one.state for one in planned(tested.place).stages} == {StageState.WAITING}
    tested.factory.problems = {Stage.PUBLISH: [FINAL]}
    with pytest.raises(StageFailedError):
        retrain(tested.place)
    (left,) = tested.ledger.runs.values()
    tested.factory.started.clear()
    found = planned(tested.place)
    done = [one.stage for one in found.stages if one.state is StageState.DONE]
    assert done == [Stage.PREPARE, Stage.TRAIN, Stage.EVALUATE] and found.run_id == left.run_id
    assert (found.spent, found.status(Stage.PUBLISH).state) == (left.spent, StageState.WAITING)
    assert not tested.factory.started and list(tested.ledger.runs.values()) == [left]

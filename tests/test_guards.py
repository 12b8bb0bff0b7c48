"""Each guard fires on the figures of a run that goes wrong, and only then."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import pytest

from pipeline.record.checkpoints import mark_complete, prepare_resume
from pipeline.record.progress import figures
from pipeline.settings.guards import GuardAction, GuardSettings
from pipeline.settings.recipe import load_recipe
from pipeline.training.guards import due, findings, guard_metrics
from pipeline.training.trainer_settings import Batching, TrainerSettings
from pipeline.training.watch import RolledBackError, StoppedByGuardError, Watch

HEALTHY = {
    "audit/no_claims_rate": 0.05,
    "audit/unscored_rate": 0.0,
    "canary/support_gap": 0.1,
    "solver/kl": 0.02,
    "checker/kl": 0.03,
    "solver/tokens_per_turn": 50.0,
}
HEALTHY_WITHOUT_CANARY = {name: value for name, value in HEALTHY.items() if name != "canary/support_gap"}
FAILURES = {  # of each guard: a figure that is over its default limit
    "no_claims": {"audit/no_claims_rate": 0.6},
    "unscored": {"audit/unscored_rate": 0.3},
    "canary_gap": {"canary/support_gap": 0.5},
    "kl": {"checker/kl": 1.5},
    "length": {"solver/tokens_per_turn": 10.0},
    "growth": {"solver/tokens_per_turn": 200.0},
}


def guards(name: str, **settings: object) -> GuardSettings:
    return GuardSettings.model_validate({name: settings})


def steps(num_healthy: int, *bad: dict[str, float]) -> list[dict[str, float]]:
    return [HEALTHY] * num_healthy + [HEALTHY | one for one in bad]


@pytest.mark.parametrize("name", FAILURES)
def test_each_guard_acts_after_its_patience_and_no_other_does(name: str) -> None:
    bad = FAILURES[name]
    settings = guards(name, patience=3, action="stop")
    assert due(findings(settings, steps(6, bad, bad))) is None
    finding = due(findings(settings, steps(6, bad, bad, bad)))
    assert finding is not None and finding.name == name
    assert "3 steps in a row" in str(finding) and next(iter(bad)) in str(finding)
    noticed = guard_metrics(findings(settings, steps(6, bad, bad)))
    assert {key for key, share in noticed.items() if share} == {f"guards/{name}"}
    assert noticed[f"guards/{name}"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", FAILURES)
def test_one_healthy_step_is_a_new_start(name: str) -> None:
    bad = FAILURES[name]
    record = steps(6, bad, bad, {}, bad, bad)
    assert due(findings(guards(name, patience=3, action="stop"), record)) is None


@pytest.mark.parametrize("name", FAILURES)
def test_a_healthy_run_is_quiet(name: str) -> None:
    found = findings(guards(name, patience=1, action="roll_back"), steps(30))
    assert len(found) == len(FAILURES)
    assert all(finding.is_quiet and not finding.is_due for finding in found)


def test_a_guard_that_warns_ends_nothing_and_rejects_no_checkpoint() -> None:
    found = findings(guards("kl", patience=1), steps(1, FAILURES["kl"]))
    assert due(found) is None
    assert all(finding.is_quiet for finding in found)
    assert guard_metrics(found)["guards/kl"] == 1.0


def test_a_guard_that_rolls_back_goes_before_one_that_stops() -> None:
    settings = GuardSettings.model_validate(
        {"no_claims": {"patience": 1, "action": "stop"}, "kl": {"patience": 1, "action": "roll_back"}}
    )
    finding = due(findings(settings, steps(1, FAILURES["no_claims"] | FAILURES["kl"])))
    assert finding is not None and finding.guard.action is GuardAction.ROLL_BACK


def test_a_step_without_the_figure_counts_neither_for_nor_against() -> None:
    bad, blind = HEALTHY | FAILURES["canary_gap"], {"solver/kl": 0.0}
    settings = guards("canary_gap", patience=2, action="stop")
    assert due(findings(settings, [bad, blind])) is None
    assert due(findings(settings, [bad, blind, bad])) is not None
    assert "canary_gap" not in {finding.name for finding in findings(settings, [blind])}


@pytest.mark.parametrize("name", FAILURES)
def test_a_figure_that_is_no_number_is_over_the_limit(name: str) -> None:
    broken = dict.fromkeys(FAILURES[name], math.nan)
    assert due(findings(guards(name, patience=1, action="stop"), steps(6, broken))) is not None


@pytest.mark.parametrize(
    ("name", "limit", "lengths", "says"),
    [
        ("length", 0.5, [100.0, 60.0, 41.0, 39.0], "39 is under 0.5 of 80, as it began"),
        ("growth", 2.0, [100.0, 60.0, 159.0, 161.0], "161 is over 2 times 80, as it began"),
    ],
)
def test_lengths_are_held_against_the_first_steps_only(
    name: str, limit: float, lengths: list[float], says: str
) -> None:
    settings = guards(name, limit=limit, patience=1, baseline_steps=2, action="stop")
    record = [{"solver/tokens_per_turn": length} for length in lengths]
    assert due(findings(settings, record[:3])) is None
    finding = due(findings(settings, record))
    assert finding is not None and says in str(finding)
    assert findings(settings, record[:2]) == []  # nothing to hold them against yet


def test_guards_that_are_off_say_nothing() -> None:
    off = GuardSettings(no_claims=None, unscored=None, canary_gap=None, kl=None, length=None, growth=None)
    assert findings(off, steps(9, *FAILURES.values())) == []


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["guards.no_claims.limit=1.5"], "guards.no_claims.limit: Input should be less than 1"),
        (["guards.kl.patience=0"], "guards.kl.patience"),
        (["guards.kl.action=explode"], "guards.kl.action"),
        (["guards.kl.limit=.inf"], "guards.kl.limit"),
        (["guards.length.limit=0"], "guards.length.limit"),
        (["guards.unscored.limit=0.6"], "unscored.limit: 0.6 is not below max_unscored_rate 0.5"),
        (["guards.canary_gap.limit=0.2"], "guards.canary_gap: there is no canary to follow; set canary"),
        (["guards.kl.limit=0.2", "ppo.kl_coef=0"], "guards.kl: ppo.kl_coef 0 runs no reference"),
        (
            ["guards.length={patience: 20, action: roll_back}"],
            "guards.length.patience: 20 with checkpoint.every 10 and keep 3, so the last good checkpoint "
            "would be deleted before the guard acts; raise keep to 4 or lower patience",
        ),
        (["canary.base_url=http://host:8000/v1"], "base_url: given without model_name"),
        (["canary={base_url: host, model_name: m}"], "base_url: 'host' is no address"),
        (["canary.answers=8", "cluster.gpus_per_node=4"], "take 5 GPUs"),
    ],
)
def test_bad_settings_are_named_with_their_fix(overrides: list[str], says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("(", r"\(")) as error:
        load_recipe("tiny", overrides)
    assert "\n" not in str(error.value)


def test_the_demo_recipe_only_warns() -> None:
    actions = {guard.action for guard in load_recipe("tiny").guards.by_name.values()}
    assert actions == {GuardAction.WARN}


def watch(folder: Path, *, staleness: int = 0, **settings: object) -> Watch:
    ahead = [f"rollout.max_staleness={staleness}", "ppo.correction.level=token"] if staleness else []
    ahead += ["canary.answers=8"] if "canary_gap" in settings else []
    recipe = load_recipe("tiny", ahead).model_copy(update={"guards": GuardSettings.model_validate(settings)})
    with patch("pipeline.training.watch.Canary"):  # it would start Ray
        made = Watch(
            TrainerSettings(
                recipe=recipe,
                run_dir=folder,
                registry="",
                num_steps=1,
                reward_urls=("",),
                batching=Batching.of(recipe),
            )
        )
    made.canary = None  # the tests say its figures
    return made


def save(checkpoints: Path, step: int) -> None:
    for model in ("_actor", "_critic"):
        (checkpoints / model / f"global_step{step}").mkdir(parents=True)
    mark_complete(checkpoints, step)


def manifest(checkpoints: Path, step: int) -> dict[str, object]:
    found: dict[str, object] = json.loads((checkpoints / f"global_step{step}.json").read_text())
    return found


def test_waiting_for_the_canary_is_no_time_of_our_own(tmp_path: Path) -> None:
    run = watch(tmp_path)
    run.canary = cast("Any", SimpleNamespace(metrics=lambda: time.sleep(0.02) or {"canary/support_gap": 0.1}))
    assert run.judged(HEALTHY)["time/canary_s"] >= 0.02
    assert run.clock.take() == 0


@pytest.mark.parametrize(("every", "staleness", "good"), [(1, 0, 3), (1, 2, 1), (2, 0, 2), (4, 0, 0)])
def test_a_roll_back_ends_at_the_last_checkpoint_whose_own_answers_were_good(
    tmp_path: Path, every: int, staleness: int, good: int
) -> None:
    """Step 5's figures are of the weights that step 4 left, so checkpoint 4 is a bad one."""
    run = watch(tmp_path, staleness=staleness, kl={"patience": 3, "action": "roll_back"})
    for step in range(1, 8):
        run.judged(HEALTHY | (FAILURES["kl"] if step > 4 else {}))
        if step % every == 0:
            save(tmp_path, step)
        if step < 7:
            run.act(tmp_path, step)
    says = rf"guard kl: .* at step 7; rolled back to {f'step {good}' if good else 'the start'}"
    with pytest.raises(RolledBackError, match=says) as error:
        run.act(tmp_path, 7)
    assert error.value.exit_code == 4
    marks = {step: manifest(tmp_path, step)["mark"] for step in range(1, 8) if step % every == 0}
    assert marks == {
        step: "good" if step == good else "rejected" if step > good else "none" for step in marks
    }
    assert prepare_resume(tmp_path) == good
    assert not (tmp_path / "_actor" / f"global_step{good + every}").exists()


def test_a_run_that_goes_bad_again_after_a_good_step_has_one_more_checkpoint(tmp_path: Path) -> None:
    run = watch(tmp_path, kl={"patience": 1, "action": "warn"}, length={"patience": 2, "action": "roll_back"})
    bad = FAILURES["length"]
    for step, figures_of_step in enumerate([{}, {}, {}, {}, {}, bad, {}, bad], 1):
        run.judged(HEALTHY | FAILURES["kl"] | figures_of_step)  # a guard that only warns vouches for none
        save(tmp_path, step)
        run.act(tmp_path, step)
    assert [run.is_good(step) for step in range(1, 9)] == [
        *[True] * 4,
        False,  # of its weights were the short answers of step 6
        True,
        False,
        False,  # not known
    ]


def test_a_roll_back_without_a_quiet_checkpoint_ends_at_the_start(tmp_path: Path) -> None:
    run = watch(tmp_path, kl={"patience": 1, "action": "roll_back"})
    run.judged(HEALTHY | FAILURES["kl"])
    save(tmp_path, 1)
    with pytest.raises(RolledBackError, match="rolled back to the start, for no checkpoint's answers"):
        run.act(tmp_path, 1)
    assert manifest(tmp_path, 1)["mark"] == "rejected"
    assert prepare_resume(tmp_path) == 0


def test_a_stop_leaves_the_checkpoints_as_they_are(tmp_path: Path) -> None:
    run = watch(tmp_path, no_claims={"patience": 1, "action": "stop"})
    run.judged(HEALTHY | FAILURES["no_claims"])
    save(tmp_path, 1)
    with pytest.raises(StoppedByGuardError, match=r"guard no_claims: .* at step 1") as error:
        run.act(tmp_path, 1)
    assert error.value.exit_code == 3
    assert manifest(tmp_path, 1) == {"global_step": 1, "mark": "none"}


def test_a_canary_that_no_longer_answers_counts_neither_for_a_checkpoint_nor_against_it(
    tmp_path: Path,
) -> None:
    rolls_back = {"patience": 2, "action": "roll_back"}
    run = watch(tmp_path, canary_gap=rolls_back, kl=rolls_back)
    for step in range(1, 9):
        gap = {"canary/support_gap": 0.9} if step == 2 else {}
        run.judged(HEALTHY_WITHOUT_CANARY | gap | (FAILURES["kl"] if step > 6 else {}))
        save(tmp_path, step)
        if step < 8:
            run.act(tmp_path, step)
    with pytest.raises(RolledBackError, match="rolled back to step 5"):
        run.act(tmp_path, 8)


def test_a_guard_without_a_new_figure_does_not_stop_a_resumed_run(tmp_path: Path) -> None:
    bad = HEALTHY | {"canary/support_gap": 0.9}
    record = [{"step": step, **bad} for step in (1, 2)]
    (tmp_path / "steps.jsonl").write_text("".join(json.dumps(row) + "\n" for row in record))
    run = watch(tmp_path, canary_gap={"patience": 2, "action": "stop"})
    run.judged(HEALTHY_WITHOUT_CANARY)
    run.act(tmp_path, 3)
    run.judged(bad)
    with pytest.raises(StoppedByGuardError, match="guard canary_gap"):
        run.act(tmp_path, 4)


def test_a_resume_with_other_guards_judges_the_checkpoints_by_those(tmp_path: Path) -> None:
    """Figures of step 3 are the first bad ones: they are of the weights that step 2 left."""
    bad = FAILURES["kl"]
    record = [{"step": step, **HEALTHY, **(bad if step > 2 else {})} for step in range(1, 6)]
    (tmp_path / "steps.jsonl").write_text("".join(json.dumps(row) + "\n" for row in record))
    for step in range(1, 6):
        save(tmp_path, step)
    assert watch(tmp_path, kl={"patience": 3, "action": "warn"}).is_good(4)
    run = watch(tmp_path, kl={"patience": 3, "action": "roll_back"})
    run.judged(HEALTHY | bad)
    with pytest.raises(RolledBackError, match="rolled back to step 1"):
        run.act(tmp_path, 6)


def test_a_resumed_run_goes_on_with_the_patience_of_the_one_before(tmp_path: Path) -> None:
    bad = HEALTHY | FAILURES["kl"]
    record = [{"step": step, **bad} for step in (1, 2)]
    (tmp_path / "steps.jsonl").write_text("".join(json.dumps(row) + "\n" for row in record))
    run = watch(tmp_path, kl={"patience": 3, "action": "stop"})
    assert run.judged(bad)["guards/kl"] == 1.0
    with pytest.raises(StoppedByGuardError):
        run.act(tmp_path, 3)


def test_the_user_is_told_the_guards_line_and_exit_code(tmp_path: Path) -> None:
    from pipeline.launch.failures import failure_of, read_failure, write_failure

    class RemoteError(Exception):  # as Ray's, which carries the error of the remote call
        cause = RolledBackError("guard kl: too far; rolled back to step 4")

    write_failure(tmp_path, RemoteError())
    failure = read_failure(tmp_path, 1)
    assert (failure.exit_code, failure.may_pass) == (4, False)
    assert failure.message == "RolledBackError: guard kl: too far; rolled back to step 4"
    assert failure_of(ValueError("x")).message == "ValueError: x"


def test_the_progress_names_the_guards_whose_patience_is_over() -> None:
    step = {"audit/supported_rate": 0.5, "guards/kl": 1.2, "guards/length": 0.8}
    assert figures(step) == "accepted 0.50  guard kl!"

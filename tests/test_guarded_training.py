"""A real training that a guard ends: the policy leaves its start, and the run is rolled back.

The learning rate is far too high on purpose. The run also has a canary, the initial policy in an engine of
its own, and figures of every phase.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline.record.checkpoints import MODEL_FOLDERS, prepare_resume
from pipeline.record.rollout_files import read_rollouts, rollouts_file
from pipeline.record.tracking import read_steps
from tests.march_training import Run

pytestmark = [pytest.mark.long, pytest.mark.timeout(1500), pytest.mark.training]

BATCH, CANARY, LIMIT, PATIENCE = 16, 6, 0.01, 2
SETTINGS = {
    "data.max_steps": 24,
    "rollout.batch_size": BATCH,
    "rollout.micro_batch_size": 8,
    "ppo.micro_batch_size": 8,
    "ppo.actor.lr": 2e-4,
    "checkpoint.every": 1,
    "checkpoint.keep": PATIENCE + 2,
    "canary.answers": CANARY,
    "canary.timeout_s": 600,  # its engine starts when all others do
    "guards.max_unscored_rate": 0.9,  # or it would end the run before
    "guards.kl": f"{{limit: {LIMIT}, patience: {PATIENCE}, action: roll_back}}",
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, int]:
    """The run's folder, what it said at its end, and its exit code."""
    folder = tmp_path_factory.mktemp("runs") / "guarded"
    run = Run(folder, SETTINGS)
    message = run.end()
    return folder, message, run.process.returncode


def test_a_guard_ends_the_run_with_a_line_and_an_exit_code_of_its_own(
    ended: tuple[Path, str, int],
) -> None:
    folder, message, code = ended
    steps = read_steps(folder)
    assert code == 4, message
    assert len(message.strip().splitlines()) == 1
    assert "guard kl: " in message and f"at step {len(steps)}; rolled back to step" in message
    over = [max(step["solver/kl"], step["checker/kl"]) > LIMIT for step in steps]
    assert over[-PATIENCE:] == [True] * PATIENCE  # and no earlier
    assert not any(first and second for first, second in pairwise(over[:-1]))
    assert steps[-1]["guards/kl"] == 1.0
    assert not (folder / "result.json").exists()


def test_checkpoints_after_the_good_one_are_not_to_be_used(ended: tuple[Path, str, int]) -> None:
    folder, message, _ = ended
    last = len(read_steps(folder))
    good = last - PATIENCE - 1  # the first step over the limit judges the weights of the one before
    assert f"rolled back to step {good}" in message
    checkpoints = folder / "checkpoints"
    marks = {
        step: json.loads((checkpoints / f"global_step{step}.json").read_text())["mark"]
        for step in range(good, last + 1)
    }
    assert marks == {good: "good"} | dict.fromkeys(range(good + 1, last + 1), "rejected")
    assert prepare_resume(checkpoints) == good
    for model in MODEL_FOLDERS:
        assert (checkpoints / model / "latest").read_text() == f"global_step{good}"
        assert not (checkpoints / model / f"global_step{last}").exists()


def test_each_step_has_the_canarys_figures_and_no_reward_of_it(ended: tuple[Path, str, int]) -> None:
    folder, _, _ = ended
    for step in read_steps(folder):
        assert step["canary/num_answers"] == CANARY * (1 - step["canary/failed_rate"])
        assert step["canary/failed_rate"] < 1
        assert -1 <= step["canary/support_gap"] <= step["canary/only_live_rate"] <= 1
        rollouts = read_rollouts(rollouts_file(folder, int(step["step"])))
        rewards = [one.verdict.reward for one in rollouts if one.verdict.reward is not None]
        assert step["audit/reward"] == pytest.approx(sum(rewards) / len(rewards))


def test_each_step_has_figures_by_role_and_phase(ended: tuple[Path, str, int]) -> None:
    folder, _, _ = ended
    for step in read_steps(folder):
        for role in ("solver", "checker"):
            assert step[f"{role}/entropy"] > 0
            assert step[f"{role}/value_error"] >= 0
            assert step[f"{role}/tokens_per_s"] > 0
        assert step["proposer/tokens_per_turn"] > 0
        assert 0.3 < step["audit/vote_agreement"] <= 1
        assert step["ppo/clip_fraction"] >= 0
        phases = ("rollout", "experience", "update", "sync")
        assert sum(step[f"time/{phase}_s"] for phase in phases) == pytest.approx(step["time/step_s"])
        assert 0 < step["time/audit_s"] < step["time/rollout_s"]
        assert 0 < step["time/own_s"] < step["time/step_s"]
        assert step["time/canary_s"] >= 0

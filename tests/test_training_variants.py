"""Real trainings on CPU of what the GPU recipes use: shared devices with sleep, all roles, no critic."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.record.tracking import read_steps

pytestmark = [pytest.mark.timeout(900), pytest.mark.training]

STEPS, BATCH = 2, 8
SMALL: dict[str, object] = {
    "data.max_steps": STEPS,
    "rollout.batch_size": BATCH,
    "rollout.micro_batch_size": 4,
    "ppo.micro_batch_size": 4,
    "checkpoint.every": 1,
    "cluster.colocate": "all",
}


def trained(folder: Path, settings: dict[str, object]) -> list[dict[str, float]]:
    arguments = [part for key, value in (SMALL | settings).items() for part in ("--set", f"{key}={value}")]
    march = Path(sys.executable).with_name("march")
    command = [str(march), "train", "tiny", "--run-dir", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + (folder / "train.log").read_text()[-3000:]
    return read_steps(folder)


@pytest.mark.long
def test_the_hybrid_engine_with_sleep_audits_and_trains_every_step(tmp_path: Path) -> None:
    sleep = {"cluster.engine_sleep": "true", "cluster.trainer_sleep": "true", "cluster.zero_stage": 3}
    steps = trained(tmp_path, {**sleep, "cluster.gradient_checkpointing": "true"})
    assert len(steps) == STEPS
    for step in steps:
        assert step["audit/unscored_rate"] == 0 and step["checker/num_trained"] > 0
        assert step["sync/logprob_gap"] < 1e-4


@pytest.mark.long
def test_all_roles_are_trained(tmp_path: Path) -> None:
    for step in trained(tmp_path, {"train_roles": "[solver, checker, proposer]"}):
        scored = round(BATCH * (1 - step["audit/unscored_rate"] - step["audit/no_claims_rate"]))
        assert step["proposer/num_trained"] <= step["solver/num_trained"] == scored
        assert 0 < step["checker/num_trained"] <= scored


@pytest.mark.long
def test_grouped_answers_train_without_a_critic(tmp_path: Path) -> None:
    groups = {"ppo.estimator": "rloo", "ppo.gamma": 1.0, "rollout.samples_per_query": 2}
    for step in trained(tmp_path, groups):
        assert step["solver/num_trained"] + step["solver/num_masked"] == 2 * BATCH
        assert step["checker/num_trained"] > 0 and "ppo/critic_loss" not in step
        assert step["ppo/actor_grad_norm"] >= 0

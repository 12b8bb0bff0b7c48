"""Real trainings on CPU of what the GPU recipes use: LoRA, and all models on shared devices with sleep."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from pipeline.data.prepare import ROWS_FILE
from pipeline.record.rollout_files import read_rollouts, rollouts_file
from pipeline.record.run import RunState
from pipeline.record.tracking import read_steps
from pipeline.settings.recipe import TINY_POLICY
from pipeline.training.held_out import SCORE
from reward.types import RagQuery

pytestmark = [pytest.mark.timeout(900), pytest.mark.training]

STEPS = 2
SMALL = {
    "data.max_steps": STEPS,
    "rollout.batch_size": 8,
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


@pytest.mark.slow
def test_with_lora_engines_follow_the_policy_and_the_model_loads_without_peft(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    # A rate at which a step moves the policy far more than the tolerated gap.
    held_out = {"held_out": "{every: 1, num_rows: 8}"}
    steps = trained(tmp_path, {"cluster.lora": "{rank: 8, alpha: 16}", "ppo.actor.lr": 0.01, **held_out})
    assert len(steps) == STEPS
    for step in steps:
        assert step["sync/logprob_gap"] < 0.02
    assert_judged_while_it_trains(tmp_path, steps)
    saved = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32).state_dict()
    start = AutoModelForCausalLM.from_pretrained(TINY_POLICY, dtype=torch.float32).state_dict()
    assert set(saved) == set(start)
    moved = {name for name in start if not torch.equal(saved[name], start[name])}
    assert moved and all("proj" in name for name in moved)


def assert_judged_while_it_trains(folder: Path, steps: list[dict[str, float]]) -> None:
    """Every look has its figures, in MLflow too, the best one its model, and no row of it is trained on."""
    scores = {int(step["step"]): step[SCORE] for step in steps}
    for step in steps:
        assert step["held_out/num_answers"] == 8 and step["held_out/unscored_rate"] < 0.5
        assert 0 <= step[SCORE] <= step["held_out/right_rate"] <= 1
    best = min(step for step in scores if scores[step] == max(scores.values()))
    assert json.loads((folder / "result.json").read_text())["best"] == {"step": best, "score": scores[best]}
    assert [path.name for path in (folder / "checkpoints").glob("*_hf")] == [f"global_step{best}_hf"]
    state = RunState.model_validate_json((folder / "run.json").read_text())
    history = MlflowClient(state.tracking_uri).get_metric_history(state.mlflow_run_id, SCORE)
    assert {point.step: point.value for point in history} == pytest.approx(scores)
    held_out = {json.loads(line)["label"] for line in (folder / "held_out" / ROWS_FILE).open()}
    asked = {RagQuery.model_validate_json(label).id for label in held_out}
    files = [rollouts_file(folder, step) for step in scores]
    trained_on = {rollout.query_id for file in files for rollout in read_rollouts(file)}
    assert len(asked) == 8 and len(trained_on) == STEPS * 8 and not asked & trained_on


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
        scored = round(
            SMALL["rollout.batch_size"] * (1 - step["audit/unscored_rate"] - step["audit/no_claims_rate"])
        )
        assert step["proposer/num_trained"] <= step["solver/num_trained"] == scored
        assert 0 < step["checker/num_trained"] <= scored


@pytest.mark.long
def test_grouped_answers_train_without_a_critic(tmp_path: Path) -> None:
    groups = {"ppo.estimator": "rloo", "ppo.gamma": 1.0, "rollout.samples_per_query": 2}
    for step in trained(tmp_path, groups):
        assert step["solver/num_trained"] + step["solver/num_masked"] == 2 * SMALL["rollout.batch_size"]
        assert step["checker/num_trained"] > 0 and "ppo/critic_loss" not in step
        assert step["ppo/actor_grad_norm"] >= 0

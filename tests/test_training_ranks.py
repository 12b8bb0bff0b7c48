"""Real trainings on CPU: adapters on several data-parallel ranks, with held-out rows; asynchronous rows.

Both at the paper's temperature and with the off-policy correction, so that the sampler's log-probabilities
are held against the actor's on every trained token of both roles.
"""

import json
from pathlib import Path

import pytest
import torch
from mlflow import MlflowClient
from transformers import AutoModelForCausalLM

from pipeline.data.prepare import ROWS_FILE
from pipeline.record.rollout_files import read_rollouts, rollouts_file
from pipeline.record.run import RunState
from pipeline.record.tracking import read_steps
from pipeline.settings.recipe import TINY_POLICY
from pipeline.training.held_out import SCORE
from reward.types import RagQuery
from tests.march_training import Run, answers, assert_asked_in_order, assert_nothing_lost_or_repeated

pytestmark = [pytest.mark.timeout(3000), pytest.mark.training]

BATCH = 8
SMALL = {
    "rollout.batch_size": BATCH,
    "rollout.micro_batch_size": 2,
    "ppo.micro_batch_size": 2,
    "ppo.kl_coef": 0,  # no reference to start
    "rollout.temperature": 0.6,
    "audit.checker.temperature": 0.6,
    "ppo.correction.level": "token",
}
NUM_HELD_OUT = 8
TOO_LONG = 100  # characters of an answer; some of the policy's are longer, and so their audits fail


@pytest.mark.parametrize(
    "has_adapters",
    [
        pytest.param(True, marks=pytest.mark.slow, id="adapters"),
        pytest.param(False, marks=pytest.mark.long, id="whole"),
    ],
)
def test_two_ranks_train_each_answer_once_though_some_have_no_reward(
    tmp_path: Path, has_adapters: bool
) -> None:
    folder, steps = tmp_path / "run", 3
    ranks = {"cluster.actor_ranks": 2, "cluster.critic_ranks": 2, "checkpoint.every": steps}
    failing = {"audit.max_response_chars": TOO_LONG, "guards.max_unscored_rate": 0.95}
    held_out = {"held_out": f"{{every: 1, num_rows: {NUM_HELD_OUT}}}"}
    # A rate at which a step moves the policy far more than the tolerated gap.
    lora = {"cluster.lora": "{rank: 8, alpha: 16}", "ppo.actor.lr": 0.001}
    settings = {**SMALL, **ranks, **failing, **held_out, "data.max_steps": steps}
    run = Run(folder, settings | lora if has_adapters else settings)
    error = run.end()
    assert run.process.returncode == 0, error + (folder / "train.log").read_text()[-3000:]
    masked = [row["solver/num_masked"] for row in read_steps(folder)]
    assert 0 < sum(masked) < steps * BATCH
    for row, answered in zip(read_steps(folder), answers(folder), strict=True):
        for role in ("solver", "checker"):
            assert row[f"{role}/num_trained"] + row[f"{role}/num_masked"] == BATCH
            assert row[f"{role}/sampler_gap"] < 0.03
        assert row["solver/num_trained"] == sum(a.verdict.reward is not None for a in answered)
        assert row["sync/logprob_gap"] < 1e-4
        assert row["ppo/actor_grad_norm"] > 0 or row["ppo/actor_lr"] == 0
        assert row["ppo/critic_grad_norm"] > 0 or row["ppo/critic_lr"] == 0
    assert len({row["sync/weights_version"] for row in read_steps(folder)}) == steps
    assert_asked_in_order(folder, steps=steps, batch=BATCH)
    assert_judged_while_it_trains(folder)
    if has_adapters:
        assert_adapters_alone_have_moved(folder / "model")


def assert_judged_while_it_trains(folder: Path) -> None:
    """Every look has its figures, in MLflow too, the best one its model, and no row of it is trained on."""
    steps = read_steps(folder)
    scores = {int(step["step"]): step[SCORE] for step in steps}
    for step in steps:
        assert step["held_out/num_answers"] == NUM_HELD_OUT and step["held_out/unscored_rate"] < 0.5
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
    assert len(asked) == NUM_HELD_OUT and len(trained_on) == len(steps) * BATCH and not asked & trained_on


@pytest.mark.parametrize(
    "is_killed",
    [
        pytest.param(False, marks=pytest.mark.slow, id="plain"),
        pytest.param(True, marks=pytest.mark.long, id="killed"),
    ],
)
def test_asynchronous_rows_are_one_version_old_and_survive_a_kill(tmp_path: Path, is_killed: bool) -> None:
    folder, steps = tmp_path / "run", 5
    settings = {**SMALL, "rollout.max_staleness": 1, "data.max_steps": steps, "checkpoint.every": 2}
    if is_killed:
        assert Run(folder, settings, hold=("update", 3)).kill_when_held() == 3
    run = Run(folder, settings)
    error = run.end()
    assert run.process.returncode == 0, error + (folder / "train.log").read_text()[-3000:]
    assert_nothing_lost_or_repeated(folder, steps=steps, batch=BATCH)
    rows = read_steps(folder)
    assert {row["rollout/staleness"] for row in rows} <= {0.0, 1.0}
    assert max(row["rollout/staleness"] for row in rows) == 1.0  # the engines did run ahead
    for row, answered in zip(rows, answers(folder), strict=True):
        assert row["rollout/stale_rate"] == 0 and row["checker/num_trained"] > 0
        assert row["sync/logprob_gap"] < 0.02
        assert row["time/sync_s"] > 0 and row["time/sync_wait_s"] >= 0
        versions = {turn.weights_version for answer in answered for turn in answer.turns}
        versions |= {answer.verdict.weights_version for answer in answered if answer.verdict.claims}
        assert len(versions) == 1  # no answer, no audit straddles a sync


def assert_adapters_alone_have_moved(model: Path) -> None:
    """The model loads without peft, and has the adapters in its weights."""
    saved = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).state_dict()
    start = AutoModelForCausalLM.from_pretrained(TINY_POLICY, dtype=torch.float32).state_dict()
    assert set(saved) == set(start)
    moved = {name for name in start if not torch.equal(saved[name], start[name])}
    assert moved and all("proj" in name for name in moved)

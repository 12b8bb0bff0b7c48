"""Real trainings on CPU: OpenRLHF, Ray, DeepSpeed, vLLM and the reward server, with real kills.

One run goes through three lives: its reward server dies and stays away (the run must stop by itself, with a
clear line and no step taken on missing rewards), everything is killed with SIGKILL while a checkpoint is
written, and the third life ends it. The record must then be the same as if nothing had happened. The last
test is OpenRLHF alone, with nothing of ours but the reward server. What a training survives is in
test_training_faults.py; kills in every phase of a step are in test_training_kills.py.
"""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from pipeline.config import TINY_POLICY
from pipeline.tracking import read_steps
from pipeline.train import RunState
from reward.config import LocalSamplerConfig
from tests.march_training import Run, answers, assert_nothing_lost_or_repeated
from tests.stock_training import TOKEN, StockTraining, earned_means, server_command
from tests.supervised import environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]

STEPS, BATCH = 6, 16
SETTINGS = {
    "data.max_steps": STEPS,
    "rollout.batch_size": BATCH,
    "rollout.micro_batch_size": 8,
    "ppo.micro_batch_size": 8,
    "checkpoint.every": 1,
    "reward.patience_s": 3,
}


@pytest.fixture(scope="module")
def survivor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that lost its reward server once and its trainer once."""
    folder = tmp_path_factory.mktemp("runs") / "survivor"

    first = Run(folder, SETTINGS)
    first.wait_for_step(1)
    (folder / "reward_server-0.json").write_text("{}")  # so that it cannot start again
    first.reward_server(0).kill()
    message = first.end()
    assert first.process.returncode != 0
    assert "have no reward" in message and "resume" in message, message
    assert len(message.strip().splitlines()) == 1, message
    stopped_at = len(read_steps(folder))
    assert 1 <= stopped_at < STEPS

    second = Run(folder, SETTINGS, hold=("half_saved", stopped_at + 1))
    assert second.kill_when_held() == stopped_at + 1  # logged, but its checkpoint is not whole

    third = Run(folder, SETTINGS)
    error = third.end()
    assert third.process.returncode == 0, error
    return folder


def test_a_killed_run_resumes_with_no_step_lost_or_trained_twice(survivor: Path) -> None:
    assert_nothing_lost_or_repeated(survivor, steps=STEPS, batch=BATCH)
    trained = [answer["query_id"] for step in answers(survivor) for answer in step]
    rows = [json.loads(json.loads(line)["label"])["id"] for line in (survivor / "data/train.jsonl").open()]
    assert sorted(trained) == sorted(rows[: STEPS * BATCH])  # every query once


def test_checker_trajectories_are_trained_and_counted_each_step(survivor: Path) -> None:
    for row in read_steps(survivor):
        assert row["solver/num_trained"] + row["solver/num_masked"] == BATCH
        assert row["checker/num_trained"] + row["checker/num_masked"] == BATCH
        assert row["checker/num_trained"] > 0.7 * BATCH
        scored = BATCH * (1 - row["audit/unscored_rate"])
        assert row["solver/num_trained"] == pytest.approx(scored)


def test_engine_and_actor_agree_after_each_weight_sync(survivor: Path) -> None:
    for row in read_steps(survivor):
        assert row["sync/logprob_gap"] < 0.02


def test_rewards_are_those_of_the_verdicts(survivor: Path) -> None:
    for row in read_steps(survivor):
        rollouts = (survivor / "rollouts" / f"step-{int(row['step']):06d}.jsonl").read_text().splitlines()
        verdicts = [json.loads(line)["verdict"] for line in rollouts]
        rewards = [verdict["reward"] for verdict in verdicts if verdict["reward"] is not None]
        assert row["solver/reward"] == pytest.approx(sum(rewards) / len(rewards))
        assert all((v["reward"] is None) == (v["outcome"] == "UNSCORED") for v in verdicts)
        assert all(v["reward"] != 0 or v["outcome"] == "SUPPORTED" for v in verdicts)


def test_mlflow_has_every_step(survivor: Path) -> None:
    state = RunState.model_validate_json((survivor / "run.json").read_text())
    history = MlflowClient(state.tracking_uri).get_metric_history(state.mlflow_run_id, "solver/reward")
    last = {point.step: point.value for point in history}
    assert last == {int(row["step"]): pytest.approx(row["solver/reward"]) for row in read_steps(survivor)}


def test_the_saved_model_loads_and_differs_from_the_start(survivor: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    trained = AutoModelForCausalLM.from_pretrained(survivor / "model", dtype=torch.float32).state_dict()
    start = AutoModelForCausalLM.from_pretrained(TINY_POLICY, dtype=torch.float32).state_dict()
    AutoTokenizer.from_pretrained(survivor / "model")
    assert any(not torch.equal(trained[name], start[name]) for name in start)


def test_a_finished_run_says_so_and_changes_nothing(survivor: Path) -> None:
    before = (survivor / "steps.jsonl").read_bytes()
    again = Run(survivor, SETTINGS)
    assert again.end() == ""
    assert again.process.returncode == 0
    assert (survivor / "steps.jsonl").read_bytes() == before


def test_official_rows_go_through_the_real_trainer(tmp_path: Path) -> None:
    march = Path(sys.executable).with_name("march")
    rows = Path(__file__).parent / "data" / "2wikimultihopqa" / "train.json"
    prepare = ["prepare", "2wikimultihopqa", "--input", str(rows), "--out", str(tmp_path / "rows")]
    prepare += ["--prompts", "compact", "--tokenizer", "tiny", "--max-prompt-tokens", "2000"]
    subprocess.run([march, *prepare], check=True)
    train = ["train", "2wikimultihopqa_tiny", "--run-dir", str(tmp_path / "run")]
    train += ["--set", f"data.path={tmp_path / 'rows'}", "--set", "rollout.max_prompt_tokens=2000"]
    run = subprocess.run(
        [march, *train, "--set", "data.max_steps=1"], capture_output=True, text=True, timeout=1200
    )
    assert run.returncode == 0, run.stderr
    (step,) = read_steps(tmp_path / "run")
    answers = (tmp_path / "run" / "rollouts" / "step-000001.jsonl").read_text().splitlines()
    assert len(answers) == 4
    assert step["solver/num_trained"] + step["solver/num_masked"] == 4
    assert (tmp_path / "run" / "model" / "config.json").is_file()


def test_stock_openrlhf_gets_correct_rewards_from_the_server(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path / "audit.jsonl"
    sampler = LocalSamplerConfig(model=str(TINY_POLICY), max_model_len=512)
    command = server_command(tmp_path / "server.json", sampler=sampler, audit_log=log, port=port)
    server = subprocess.Popen(command, env=environment(MARCH_REWARD_TOKEN=TOKEN))
    training = StockTraining(tmp_path, f"http://127.0.0.1:{port}", num_steps=2, batch_size=8)
    try:
        training.wait()
    finally:
        training.close()
        server.terminate()
        server.wait(timeout=60)
    assert training.reward_means() == pytest.approx(earned_means(log, batch_size=8), abs=1e-6)
    assert len(training.reward_means()) == 2

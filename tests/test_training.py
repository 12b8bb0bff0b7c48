"""Real trainings on CPU: OpenRLHF, Ray, DeepSpeed, vLLM and the reward server, with real kills.

One run has two lives: everything is killed with SIGKILL while a checkpoint is written, and the second life
ends it. The record must then be the same as if nothing had happened. What else a training survives, and
OpenRLHF alone with nothing of ours but the reward server, is in test_training_faults.py; kills in every phase
of a step are in test_training_kills.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mlflow import MlflowClient
from safetensors.torch import load_file

from orchestration.inspect.run import open_run, read_entries
from pipeline.record.rollout_files import ROLLOUTS_FOLDER, read_rollouts, rollouts_file
from pipeline.record.run import RunState
from pipeline.record.tracking import read_steps
from pipeline.settings.recipe import TINY_POLICY
from reward.types import Role
from tests.march_training import Run, assert_nothing_lost_or_repeated

pytestmark = [pytest.mark.slow, pytest.mark.core, pytest.mark.timeout(3000), pytest.mark.training]

STEPS, BATCH = 4, 16
SETTINGS = {
    "data.max_steps": STEPS,
    "rollout.batch_size": BATCH,
    "rollout.micro_batch_size": 8,
    "ppo.micro_batch_size": 8,
    "checkpoint.every": 1,
    "checkpoint.models": "true",
}


@pytest.fixture(scope="module")
def survivor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed once."""
    folder = tmp_path_factory.mktemp("runs") / "survivor"
    first = Run(folder, SETTINGS, hold=("half_saved", 2))
    assert first.kill_when_held() == 2  # logged, but its checkpoint is not whole
    second = Run(folder, SETTINGS)
    error = second.end()
    assert second.process.returncode == 0, error
    return folder


def test_a_killed_run_resumes_with_no_step_lost_or_trained_twice(survivor: Path) -> None:
    assert_nothing_lost_or_repeated(survivor, steps=STEPS, batch=BATCH)
    files = sorted((survivor / "rollouts").iterdir())
    assert [path.name for path in files] == [f"step-{step:06d}.parquet" for step in range(1, STEPS + 1)]


@pytest.mark.long
def test_an_engine_that_cannot_start_ends_the_run_in_one_line(tmp_path: Path) -> None:
    """It would else be waited for: the actor's process group needs it."""
    lscpu = tmp_path / "bin" / "lscpu"  # vLLM asks it for the cores
    lscpu.parent.mkdir()
    lscpu.write_text("#!/bin/sh\nexit 1\n")
    lscpu.chmod(0o755)
    run = Run(tmp_path / "run", SETTINGS, PATH=f"{lscpu.parent}{os.pathsep}{os.environ['PATH']}")
    message = run.end()
    assert run.process.returncode != 0
    assert "EngineStartError: vLLM did not start" in message and "train.log" in message
    assert len(message.strip().splitlines()) == 1, message
    assert "lscpu" in (tmp_path / "run" / "train.log").read_text()


def test_checker_trajectories_are_trained_and_counted_each_step(survivor: Path) -> None:
    for row in read_steps(survivor):
        assert row["solver/num_trained"] + row["solver/num_masked"] == BATCH
        assert row["checker/num_trained"] + row["checker/num_masked"] == BATCH
        assert row["checker/num_trained"] > 0.7 * BATCH
        scored = BATCH * (1 - row["audit/unscored_rate"] - row["audit/no_claims_rate"])
        assert row["solver/num_trained"] == pytest.approx(scored)


def test_engine_and_actor_agree_after_each_weight_sync(survivor: Path) -> None:
    for row in read_steps(survivor):
        assert row["sync/logprob_gap"] < 1e-4


def test_rewards_are_those_of_the_verdicts(survivor: Path) -> None:
    for row in read_steps(survivor):
        rollouts = read_rollouts(rollouts_file(survivor, int(row["step"])))
        paid = [one.turns[0].reward for one in rollouts if one.turns[0].trained]
        assert [one.verdict.reward for one in rollouts if one.verdict.reward is not None] == paid
        assert row["solver/reward"] == pytest.approx(sum(paid) / len(paid))
        assert all(one.verdict.reward != 0 or one.verdict.outcome == "SUPPORTED" for one in rollouts)


def test_each_rollout_says_what_of_it_was_trained(survivor: Path) -> None:
    for row in read_steps(survivor):
        rollouts = read_rollouts(rollouts_file(survivor, int(row["step"])))
        for role in (Role.SOLVER, Role.CHECKER):
            turns = [turn for one in rollouts for turn in one.turns if turn.role is role and turn.trained]
            assert len(turns) == row[f"{role}/num_trained"]
            assert all(turn.advantage is not None for turn in turns)
        lengths = [one.turns[0].num_response_tokens for one in rollouts if one.turns[0].trained]
        assert row["solver/response_length"] == pytest.approx(sum(lengths) / len(lengths))
        assert all(
            turn.weights_version == one.verdict.weights_version
            for one in rollouts
            for turn in one.turns
            if turn.role is Role.CHECKER
        )


def test_mlflow_has_every_step(survivor: Path) -> None:
    state = RunState.model_validate_json((survivor / "run.json").read_text())
    history = MlflowClient(state.tracking_uri).get_metric_history(state.mlflow_run_id, "solver/reward")
    last = {point.step: point.value for point in history}
    assert last == {int(row["step"]): pytest.approx(row["solver/reward"]) for row in read_steps(survivor)}


def test_mlflow_has_every_rollout(survivor: Path, tmp_path: Path) -> None:
    state = RunState.model_validate_json((survivor / "run.json").read_text())
    assert len(read_entries(open_run(survivor))) == STEPS * BATCH
    client = MlflowClient(state.tracking_uri)
    client.download_artifacts(state.mlflow_run_id, ROLLOUTS_FOLDER, str(tmp_path))
    for row in read_steps(survivor):
        path = rollouts_file(survivor, int(row["step"])).relative_to(survivor)
        assert (tmp_path / path).read_bytes() == (survivor / path).read_bytes()


def test_the_saved_model_loads_and_differs_from_the_start(survivor: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    trained = AutoModelForCausalLM.from_pretrained(survivor / "model", dtype=torch.float32).state_dict()
    start = AutoModelForCausalLM.from_pretrained(TINY_POLICY, dtype=torch.float32).state_dict()
    AutoTokenizer.from_pretrained(survivor / "model")
    assert any(not torch.equal(trained[name], start[name]) for name in start)


def test_a_model_stands_beside_each_checkpoint_and_the_last_is_the_trained_one(survivor: Path) -> None:
    models = {path.name: load_file(path / "model.safetensors") for path in survivor.glob("checkpoints/*_hf")}
    assert set(models) == {f"global_step{step}_hf" for step in range(1, STEPS + 1)}
    trained = load_file(survivor / "model" / "model.safetensors")
    last = models[f"global_step{STEPS}_hf"]
    assert all(torch.equal(trained[name], last[name]) for name in trained)
    assert any(not torch.equal(trained[name], models["global_step1_hf"][name]) for name in trained)


def test_a_finished_run_says_so_and_changes_nothing(survivor: Path) -> None:
    before = (survivor / "steps.jsonl").read_bytes()
    again = Run(survivor, SETTINGS)
    assert again.end() == ""
    assert again.process.returncode == 0
    assert (survivor / "steps.jsonl").read_bytes() == before


@pytest.mark.long
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
    answers = read_rollouts(rollouts_file(tmp_path / "run", 1))
    assert len(answers) == 4
    assert step["solver/num_trained"] + step["solver/num_masked"] == 4
    assert (tmp_path / "run" / "model" / "config.json").is_file()

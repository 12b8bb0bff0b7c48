"""Real trainings on CPU: OpenRLHF, Ray, DeepSpeed, vLLM and the reward server, with real kills.

One run goes through three lives: its reward server is killed (the run must stop by itself, with a clear line
and no step taken on missing rewards), its trainer is killed with SIGKILL, and the third life ends it. The
record must then be the same as if nothing had happened. The last test is OpenRLHF alone, with nothing of ours
but the reward server.
"""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from mlflow import MlflowClient

from pipeline.config import TINY_POLICY
from pipeline.data.prepare import write_rows
from pipeline.tiny.world import worlds
from pipeline.tracking import read_steps
from pipeline.train import RunState
from reward.config import AuditConfig, LocalSamplerConfig, SamplingSettings, ServerConfig
from reward.roles.prompts import load_prompts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

STEPS, BATCH = 6, 16
SETTINGS = {
    "data.max_steps": STEPS,
    "rollout.batch_size": BATCH,
    "rollout.micro_batch_size": 8,
    "ppo.micro_batch_size": 8,
    "checkpoint.every": 1,
}


class Run:
    """`march train` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        arguments = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
        march = Path(sys.executable).with_name("march")
        command = [str(march), "train", "tiny", "--run-dir", str(folder), *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)

    def wait_for_step(self, step: int) -> None:
        deadline = time.monotonic() + 600
        while len(read_steps(self.folder)) < step:
            assert self.process.poll() is None, self.end()
            assert time.monotonic() < deadline, (self.folder / "train.log").read_text()[-3000:]
            time.sleep(0.1)

    def child(self, is_it: Callable[[list[str]], bool]) -> psutil.Process:
        children = psutil.Process(self.process.pid).children(recursive=True)
        return next(p for p in children if is_it(p.cmdline()))

    def end(self) -> str:
        _, error = self.process.communicate(timeout=600)
        return str(error)


@pytest.fixture(scope="module")
def survivor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that lost its reward server once and its trainer once."""
    folder = tmp_path_factory.mktemp("runs") / "survivor"

    first = Run(folder)
    first.wait_for_step(1)
    first.child(lambda line: line[1:3] == ["-m", "reward"]).kill()
    message = first.end()
    assert first.process.returncode != 0
    assert "have no reward" in message and "resume" in message, message
    assert len(message.strip().splitlines()) == 1, message
    stopped_at = len(read_steps(folder))
    assert 1 <= stopped_at < STEPS

    second = Run(folder)
    second.wait_for_step(stopped_at + 1)
    time.sleep(random.uniform(0, 3))  # somewhere in the next step: generation, update, sync or checkpoint
    os.kill(second.child(lambda line: line[1:3] == ["-m", "pipeline.train"]).pid, signal.SIGKILL)
    second.end()
    assert second.process.returncode != 0

    third = Run(folder)
    error = third.end()
    assert third.process.returncode == 0, error
    return folder


def test_a_killed_run_resumes_with_no_step_lost_or_trained_twice(survivor: Path) -> None:
    assert [row["step"] for row in read_steps(survivor)] == list(range(1, STEPS + 1))
    assert json.loads((survivor / "result.json").read_text())["steps"] == STEPS
    trained = [
        json.loads(line)["query_id"]
        for path in sorted((survivor / "rollouts").glob("step-*.jsonl"))
        for line in path.read_text().splitlines()
    ]
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
    again = Run(survivor)
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


STOCK = """
import os, runpy, sys
from pipeline import cpu
cpu.install()
import ray
ray.init(address="local", include_dashboard=False, num_cpus=16, num_gpus=4, _node_ip_address="127.0.0.1",
         object_store_memory=256 * 1024**2,
         runtime_env={"env_vars": cpu.ENVIRONMENT, "worker_process_setup_hook": "pipeline.cpu.install"})
runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__")
"""


def test_stock_openrlhf_gets_correct_rewards_from_the_server(tmp_path: Path) -> None:
    write_rows(
        worlds(16, seed=5, split="train"),
        tmp_path / "rows",
        prompts=load_prompts("compact"),
        tokenizer_path=None,
        max_prompt_tokens=None,
        source="tiny",
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    sampling = SamplingSettings(temperature=1.0, max_tokens=128)
    config = ServerConfig(
        port=port,
        audit=AuditConfig(prompts="compact", proposer=sampling, checker=sampling),
        sampler=LocalSamplerConfig(model=str(TINY_POLICY), max_model_len=512),
        audit_log=tmp_path / "audit.jsonl",
    )
    (tmp_path / "server.json").write_text(config.model_dump_json())
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # ninja, for DeepSpeed
    environment = {**os.environ, "MARCH_REWARD_TOKEN": "a-token-of-the-test-suite", "PATH": path}
    command = [sys.executable, "-m", "reward", str(tmp_path / "server.json")]
    server = subprocess.Popen(command, env=environment)
    arguments = {
        "actor.num_gpus_per_node": 1,
        "ref.num_gpus_per_node": 1,
        "critic.num_gpus_per_node": 1,
        "vllm.num_engines": 1,
        "vllm.sync_backend": "gloo",
        "vllm.gpu_memory_utilization": 0.3,
        "ds.attn_implementation": "sdpa",
        "actor.model_name_or_path": TINY_POLICY,
        "critic.model_name_or_path": TINY_POLICY,
        "reward.remote_url": f"http://march:a-token-of-the-test-suite@127.0.0.1:{port}/get_reward",
        "data.prompt_dataset": tmp_path / "rows" / "train.jsonl",
        "data.input_key": "input",
        "data.label_key": "label",
        "data.max_samples": 16,
        "data.max_len": 512,
        "rollout.max_new_tokens": 128,
        "rollout.batch_size": 8,
        "rollout.micro_batch_size": 8,
        "train.batch_size": 8,
        "train.micro_batch_size": 8,
        "algo.kl.init_coef": 0.01,
        "ckpt.output_dir": tmp_path / "model",
        "ckpt.path": tmp_path / "ckpt",
    }
    flags = ["--vllm.enforce_eager", "--data.apply_chat_template"]
    line = [part for key, value in arguments.items() for part in (f"--{key}", str(value))] + flags
    try:
        run = subprocess.run(
            [sys.executable, "-c", STOCK, *line],
            env=environment,
            capture_output=True,
            text=True,
            timeout=1200,
        )
    finally:
        server.terminate()
        server.wait(timeout=60)
    output = run.stdout + run.stderr
    assert run.returncode == 0, output[-3000:]
    logged = re.findall(r"Global step \d+: .*?'rollout/reward_mean': ([-\d.]+)", output)
    means = [float(mean) for mean in logged]
    verdicts = [json.loads(line)["verdict"] for line in (tmp_path / "audit.jsonl").open()]
    given = [verdict["reward"] for verdict in verdicts if verdict["reward"] is not None]
    assert len(means) == 2
    assert len(given) == 16
    assert sum(means) / 2 == pytest.approx(sum(given) / 16, abs=1e-6)

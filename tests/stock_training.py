"""Shared by the slow tests: OpenRLHF's own training of the tiny policy, with nothing of ours but the URL of
its reward, and what its reward server must have told it.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pipeline.data.prepare import write_rows
from pipeline.settings.recipe import TINY_POLICY
from pipeline.tiny.world import worlds
from reward.config import AuditConfig, SamplerConfig, SamplingSettings
from reward.roles.prompts import load_prompts
from reward.serving.config import ServerConfig
from tests.supervised import environment

TOKEN = "a-token-of-the-test-suite"
# Without a GPU OpenRLHF needs the CPU layer below it; itself it is unmodified.
STOCK = """
import os, runpy, sys
from pipeline import cpu
cpu.install()
import ray, torch
def install():
    cpu.install()
    torch.manual_seed(0)  # of the order of the queries, which OpenRLHF leaves to torch's default
ray.init(address="local", include_dashboard=False, num_cpus=16, num_gpus=4, _node_ip_address="127.0.0.1",
         object_store_memory=256 * 1024**2,
         runtime_env={"env_vars": cpu.ENVIRONMENT, "worker_process_setup_hook": install})
runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__")
"""
FLAGS = ["--vllm.enforce_eager", "--data.apply_chat_template"]


class StockTraining:
    """`openrlhf.cli.train_ppo_ray` in a process of its own.

    Args:
        folder: For the log.
        reward_server: Its address.
        arguments: OpenRLHF's, without its agent and its reward's address.
    """

    def __init__(self, folder: Path, reward_server: str, arguments: Sequence[str]) -> None:
        self._log = folder / "stock.log"
        host = reward_server.removeprefix("http://")
        line = [*arguments, "--reward.remote_url", f"http://march:{TOKEN}@{host}/get_reward"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # ninja, for DeepSpeed
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", STOCK, *line],
                env=environment(PATH=path),
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> str:
        return self._log.read_text()

    def reward_means(self) -> list[float]:
        """The mean reward of each step until now, as the trainer logs it."""
        return self.logged("rollout/reward_mean")

    def logged(self, figure: str) -> list[float]:
        """A figure of each step until now, as the trainer logs it."""
        found = re.findall(rf"Global step \d+: .*?'{figure}': ([-\d.e]+)", self.output)
        return [float(value) for value in found]

    def wait_for_step(self, step: int) -> None:
        while len(self.reward_means()) < step:
            assert self.process.poll() is None, self.output[-3000:]
            time.sleep(0.05)

    def wait(self) -> None:
        """Returns when the training has ended well."""
        assert self.process.wait(1200) == 0, self.output[-3000:]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def server_command(path: Path, *, sampler: SamplerConfig, audit_log: Path, port: int = 5001) -> list[str]:
    """The command of a reward server for the tiny policy's answers; its settings are written to `path`."""
    sampling = SamplingSettings(temperature=1.0, max_tokens=128)
    audit = AuditConfig(
        kinds=("number",),
        prompts="compact",
        proposer=sampling,
        checker=sampling,
        reward_no_claims=-1.0,  # so that the audit log has a reward for each answer, as the wire gives it
        reward_abstention=-1.0,
    )
    config = ServerConfig(port=port, audit=audit, sampler=sampler, audit_log=audit_log)
    path.write_text(config.model_dump_json())
    return [sys.executable, "-m", "reward", str(path)]


def earned_means(audit_log: Path, *, batch_size: int) -> list[float]:
    """The mean reward of each step by the server's own log.

    Of an answer that was audited again after a failure the last verdict counts, since the trainer asks until
    it has one. Every answer of a step is there before the first of the next, so answers come in batches.
    """
    lines = [json.loads(line) for line in audit_log.read_text().splitlines()]
    answers = dict.fromkeys((line["verdict"]["id"], line["response_sha256"]) for line in lines)
    assert len({query for query, _ in answers}) == len(answers), "a query was answered twice"
    earned = {
        line["verdict"]["id"]: line["verdict"]["reward"]
        for line in lines
        if line["verdict"]["reward"] is not None
    }
    rewards = [earned[query] for query, _ in answers]
    return [statistics.mean(rewards[i : i + batch_size]) for i in range(0, len(rewards), batch_size)]


def tiny_arguments(folder: Path, *, num_steps: int, batch_size: int) -> list[str]:
    """OpenRLHF's arguments for the tiny policy on rows of the tiny world, each query asked once."""
    num_rows = num_steps * batch_size
    rows = write_rows(
        worlds(num_rows + batch_size, seed=5, split="train"),
        folder / "rows",
        prompts=load_prompts("compact"),
        tokenizer_path=None,
        max_prompt_tokens=None,
        source="tiny",
    )
    assert rows.num_rows >= num_rows  # twins were left out
    values = _values(folder, num_rows=num_rows, batch_size=batch_size)
    return [*(part for key, value in values.items() for part in (f"--{key}", str(value))), *FLAGS]


def _values(folder: Path, *, num_rows: int, batch_size: int) -> dict[str, object]:
    return {
        "actor.num_gpus_per_node": 1,
        "vllm.num_engines": 1,
        "vllm.sync_backend": "gloo",
        "vllm.gpu_memory_utilization": 0.3,
        "ds.attn_implementation": "sdpa",
        "actor.model_name_or_path": TINY_POLICY,
        "data.prompt_dataset": folder / "rows" / "train.jsonl",
        "data.input_key": "input",
        "data.label_key": "label",
        "data.max_samples": num_rows,
        "data.max_len": 512,
        "rollout.max_new_tokens": 128,
        "rollout.batch_size": batch_size,
        "rollout.micro_batch_size": batch_size,
        "train.batch_size": batch_size,
        "train.micro_batch_size": batch_size,
        "algo.advantage.estimator": "reinforce",  # no critic to start
        "algo.kl.init_coef": 0,  # and no reference
        "ckpt.output_dir": folder / "model",
        "ckpt.path": folder / "ckpt",
    }

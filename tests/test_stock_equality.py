"""Solver-only training is OpenRLHF's own: the same command line, rows, seed and rewards give the same steps
and the same weights, once with our trainer and once with unmodified OpenRLHF and the URL of a reward server.

Both sample so narrowly that the likeliest token is always taken, and scripted roles make the reward a
function of the answer. OpenRLHF takes answers in the order in which they end, which rounds the sums in
another way.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from pipeline.launch.openrlhf_args import openrlhf_arguments
from pipeline.record.tracking import read_steps
from pipeline.settings.recipe import TINY_POLICY, load_recipe
from reward.config import OpenAISamplerConfig
from tests.march_training import Run
from tests.openai_model import Model
from tests.stock_training import TOKEN, StockTraining, server_command
from tests.supervised import Supervised, environment

pytestmark = [pytest.mark.long, pytest.mark.timeout(1500), pytest.mark.training]

STEPS, BATCH = 5, 8
SETTINGS: dict[str, object] = {
    "train_roles": "[solver]",
    "data.max_steps": STEPS,
    "rollout.batch_size": BATCH,
    "rollout.micro_batch_size": BATCH,
    "rollout.top_p": 1e-6,
    "ppo.micro_batch_size": BATCH,
    "ppo.actor.lr": 2e-5,  # small, so that a rounding does not make another token the likeliest
    "audit.verbatim_evidence": "false",
    "audit.reward_no_claims": -1.0,  # what the stock wire gives; by default ours masks such an answer
    "audit.reward_abstention": -1.0,
}


def said(role: str, text: str) -> str:
    """What a Proposer and a Checker that never err say of the tiny world's sentences."""
    if role == "proposer":
        found = re.finditer(r"([A-Z][^.?)]*) (\d+) (\w+)\.", text)
        return "\n".join(f"- Question: {m[1]} how many {m[3]}? [Answer: {m[2]}]" for m in found)
    documents, *_ = text.split("\n1. ")
    lines = [
        f"{m[1]}. Evidence: it is said. [Answer: {told(documents, m[2], m[3])}]"
        for m in re.finditer(r"(\d+)\. (.*) how many (\w+)\?", text)
    ]
    return "\n".join(lines)


def told(documents: str, statement: str, unit: str) -> str:
    number = re.search(rf"{re.escape(statement)} (\d+) {unit}\.", documents)
    return number[1] if number else "cannot answer"


def weights(folder: Path) -> torch.Tensor:
    """(N,) all weights of a saved model; tied ones, which some files hold twice, once."""
    (file,) = folder.glob("*.safetensors")
    tensors = load_file(file)
    tensors.pop("lm_head.weight", None)
    return torch.cat([tensors[name].float().flatten() for name in sorted(tensors)])


def ours(folder: Path, sampler: OpenAISamplerConfig) -> dict[str, list[float]]:
    run = Run(folder, {**SETTINGS, "reward.sampler": json.dumps(sampler.model_dump(mode="json"))})
    error = run.end()
    assert run.process.returncode == 0, error
    steps = read_steps(folder)
    return {name: [step[ours] for step in steps] for name, ours in FIGURES.items()}


def stock(folder: Path, rows: Path, sampler: OpenAISamplerConfig) -> dict[str, list[float]]:
    recipe = load_recipe("tiny", [f"{key}={value}" for key, value in SETTINGS.items()])
    folder.mkdir()
    command = server_command(folder / "server.json", sampler=sampler, audit_log=folder / "audit.jsonl")
    server = Supervised(command, environment(MARCH_REWARD_TOKEN=TOKEN))
    num_rows = len(rows.read_text().splitlines())
    line = openrlhf_arguments(recipe, folder, rows=rows, num_rows=num_rows, cuda=False)
    agent = line.index("--train.agent_func_path")
    training = StockTraining(folder, server.url, [*line[:agent], *line[agent + 2 :]])
    try:
        training.wait()
    finally:
        training.close()
        server.close()
    return {name: training.logged(name) for name in FIGURES}


# OpenRLHF's names to ours.
FIGURES = {
    "rollout/reward_mean": "solver/reward",
    "actor_grad_norm": "ppo/actor_grad_norm",
    "critic_loss": "ppo/critic_loss",
    "critic_grad_norm": "ppo/critic_grad_norm",
}


def test_solver_only_training_equals_stock_openrlhf_step_for_step(tmp_path: Path) -> None:
    model = Model(said)
    sampler = OpenAISamplerConfig(base_url=model.url, model="m")
    try:
        found = ours(tmp_path / "ours", sampler)
        expected = stock(tmp_path / "stock", tmp_path / "ours" / "data" / "train.jsonl", sampler)
    finally:
        model.close()
    assert len(set(expected["rollout/reward_mean"])) > 1  # there is something to learn from
    for name, values in expected.items():
        assert found[name] == pytest.approx(values, rel=1e-4), name
    start = weights(TINY_POLICY)
    moved, moved_by_stock = (weights(tmp_path / who / "model") - start for who in ("ours", "stock"))
    assert torch.linalg.norm(moved - moved_by_stock) < 1e-3 * torch.linalg.norm(moved_by_stock)

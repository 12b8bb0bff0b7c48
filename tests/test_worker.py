"""What OpenRLHF's command line finds in the place of its own classes."""

import inspect
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline import cpu

cpu.install()

import openrlhf.trainer.ppo_trainer as ppo_trainer  # noqa: E402
import openrlhf.trainer.ppo_trainer_async as ppo_trainer_async  # noqa: E402
import ray  # noqa: E402
from openrlhf.trainer.ray import launcher, ppo_actor, ppo_critic, vllm_engine  # noqa: E402
from ray.actor import DEFAULT_MAX_CONCURRENCY_ASYNC  # noqa: E402

from pipeline.launch import worker  # noqa: E402
from pipeline.settings.recipe import load_recipe  # noqa: E402
from pipeline.training.engine_actor import MarchRolloutActor  # noqa: E402

REPLACED = {
    ppo_trainer: "PPOTrainer",
    ppo_trainer_async: "PPOTrainerAsync",
    vllm_engine: "RolloutRayActor",
    ppo_actor: "PolicyModelActor",
    ppo_critic: "CriticModelActor",
    launcher: "ReferenceModelActor",
}


def remote(*classes: type, **options: Any) -> Any:
    """As `ray.remote`, which would change the class for all tests: the class and its options."""
    return (classes[0], options) if classes else lambda one: (one, options)


def test_an_engine_takes_all_prompts_of_a_step_and_the_turns_of_their_audits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in REPLACED.items():
        monkeypatch.setattr(module, name, getattr(module, name))  # put back afterwards
    found: list[Any] = []
    monkeypatch.setattr(runpy, "run_module", lambda *_, **__: found.extend(vllm_engine.RolloutRayActor))
    monkeypatch.setattr(ray, "remote", remote)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(sys, "argv", [])
    state: Any = SimpleNamespace(recipe=load_recipe("tiny"), rows=tmp_path, num_rows=64 * 40)
    worker._run_command_line(state, tmp_path, cuda=False)
    engine, options = found
    assert engine is MarchRolloutActor
    assert options["max_concurrency"] > 10 * DEFAULT_MAX_CONCURRENCY_ASYNC == 10_000
    source = inspect.getsource(vllm_engine)
    assert "RolloutRayActor.options(" in source and "max_concurrency" not in source  # ours stands

"""Threads by phase and the dtype of a training without a GPU: what is chosen, and that models use it."""

import asyncio
import os
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pipeline import cpu
from pipeline.cpu import speed
from pipeline.cpu.speed import (
    ENGINE_THREADS_VARIABLE,
    PhaseThreads,
    bfloat16_is_faster,
    multiplies_bfloat16,
    num_cores,
    phase_threads,
)
from pipeline.launch.cpu_speed import dtype_of, for_cpus, threads_of
from pipeline.settings.recipe import Recipe, load_recipe
from pipeline.training.trainer_settings import TrainerSettings

cpu.install()

from pipeline.training import critic, engine_actor, policy, rendezvous  # noqa: E402
from pipeline.training.rendezvous import threads_for  # noqa: E402

AUTO = ["cluster.cpu_threads=auto", "cluster.cpu_dtype=auto"]


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ("flags\t\t: fpu avx512f avx512_bf16 avx512vbmi\n", True),
        ("flags\t\t: fpu amx_bf16\n", True),
        ("Features\t: fp asimd bf16\n", True),
        ("flags\t\t: fpu avx2\nbugs\t\t: avx512_bf16\n", False),
        ("", False),
    ],
)
def test_bfloat16_is_for_cpus_that_multiply_it(info: str, expected: bool) -> None:
    assert multiplies_bfloat16(info) is expected


@pytest.mark.parametrize(
    ("has_it", "bfloat16", "expected"), [(True, 0.01, True), (True, 0.04, False), (False, 0.01, False)]
)
def test_instructions_alone_do_not_make_bfloat16_faster(
    monkeypatch: pytest.MonkeyPatch, has_it: bool, bfloat16: float, expected: bool
) -> None:
    monkeypatch.setattr(speed, "multiplies_bfloat16", lambda: has_it)
    monkeypatch.setattr(speed, "_seconds", lambda dtype: bfloat16 if dtype == torch.bfloat16 else 0.02)
    assert bfloat16_is_faster.__wrapped__() is expected


@pytest.mark.parametrize(
    ("cores", "kwargs", "expected"),
    [
        (2, {"engines": 1, "scoring": 2, "updating": 1, "at_once": False}, (2, 1, 2)),
        (2, {"engines": 1, "scoring": 3, "updating": 2, "at_once": False}, (2, 1, 1)),
        (16, {"engines": 2, "scoring": 3, "updating": 2, "at_once": False}, (8, 5, 8)),
        (16, {"engines": 1, "scoring": 3, "updating": 1, "at_once": True}, (4, 4, 8)),
    ],
)
def test_the_cores_of_a_phase_are_shared_out(cores: int, kwargs: Any, expected: tuple[int, ...]) -> None:
    assert phase_threads(cores, **kwargs) == PhaseThreads(*expected)


def recipe(*overrides: str) -> Recipe:
    return load_recipe("tiny", [*AUTO, *overrides])


def test_a_users_own_threads_hold_in_every_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert threads_of(recipe()) == PhaseThreads(7, 7, 7)
    assert for_cpus(recipe())["OMP_NUM_THREADS"] == "7"
    assert threads_of(recipe("cluster.cpu_threads=3")) == PhaseThreads(3, 3, 3)
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert threads_of(recipe("ppo.estimator=rloo", "rollout.samples_per_query=2")).update == num_cores()
    assert "OMP_NUM_THREADS" not in for_cpus(recipe())


def test_the_dtype_is_the_recipes_or_the_cpus() -> None:
    assert dtype_of(recipe("cluster.cpu_dtype=bfloat16")) == "bfloat16"
    assert dtype_of(recipe()) == ("bfloat16" if bfloat16_is_faster() else "float32")
    assert (load_recipe("tiny").cluster.cpu_threads, dtype_of(load_recipe("tiny"))) == (1, "float32")


def test_threads_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    given = SimpleNamespace(threads=PhaseThreads(rollout=1, scoring=before + 1, update=1))
    monkeypatch.setattr(TrainerSettings, "from_environment", lambda: given)
    with threads_for("scoring"):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
    given.threads = None
    with threads_for("update"):
        assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("actor", "plain", "method", "expected"),
    [
        (policy.MarchPolicyActor, policy.PlainPolicyModelActor, "fit", 5),
        (policy.MarchPolicyActor, policy.PlainPolicyModelActor, "forward", 4),
        (rendezvous.MarchReferenceActor, rendezvous.PlainReferenceModelActor, "forward", 4),
        (critic.MarchCriticActor, critic.PlainCriticModelActor, "forward", 4),
        (critic.MarchCriticActor, critic.PlainCriticModelActor, "fit", 5),
    ],
)
def test_models_compute_with_the_threads_of_their_phase(
    actor: Any, plain: Any, method: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = PhaseThreads(rollout=3, scoring=4, update=5)
    monkeypatch.setattr(TrainerSettings, "from_environment", lambda: SimpleNamespace(threads=threads))
    monkeypatch.setattr(plain, method, lambda self, *args: torch.get_num_threads())
    model = actor.__new__(actor)
    assert getattr(model, method)() == expected


@pytest.mark.parametrize("name", ["get_train_ds_config", "get_eval_ds_config"])
def test_deepspeed_multiplies_in_the_dtype_and_keeps_gradients_in_32_bits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from openrlhf.utils.deepspeed import deepspeed

    configure = getattr(deepspeed, name)
    assert "torch_autocast" not in configure(offload=False)
    monkeypatch.setenv(cpu.DTYPE_VARIABLE, "bfloat16")
    config = configure(offload=False)
    assert not config["bf16"]["enabled"]
    assert config["torch_autocast"] == {
        "enabled": True,
        "dtype": "bfloat16",
        "lower_precision_safe_modules": [],
    }


def test_deepspeeds_autocast_still_takes_these_settings() -> None:
    from deepspeed.runtime import config

    given = {"torch_autocast": {"enabled": True, "dtype": "bfloat16", "lower_precision_safe_modules": []}}
    assert config.get_torch_autocast_enabled(given)
    assert config.get_torch_autocast_dtype(given) is torch.bfloat16
    assert config.get_lower_precision_safe_modules(given) == []


def test_an_engines_process_gets_the_threads_of_the_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def started(self: Any, **settings: Any) -> None:
        seen.append(os.environ["OMP_NUM_THREADS"])

    monkeypatch.setattr(engine_actor.PlainRolloutActor, "__init__", started)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv(ENGINE_THREADS_VARIABLE, "6")
    engine = engine_actor.MarchRolloutActor.__new__(engine_actor.MarchRolloutActor)
    asyncio.run(engine_actor.MarchRolloutActor.__init__(engine))
    assert seen == ["6"]

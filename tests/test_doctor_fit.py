"""`march doctor --recipe`: what a recipe needs, against made-up machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration.doctor.fit import Resources, check_fit
from orchestration.doctor.report import Finding, State
from pipeline.estimate.memory import GIB
from pipeline.settings.recipe import load_recipe
from tests.march_cli import march

HYBRID, LORA, FOUR_NODES = "llama31_8b_stem", "llama31_8b_stem_lora_1gpu", "llama31_8b_stem_4x8"
ATTENTION = frozenset({"flash-attn", "ring-flash-attn"})


def machine(num_gpus: int = 8, **changes: Any) -> Resources:
    """A node of H100s with all that a recipe may want."""
    facts: dict[str, Any] = {
        "num_gpus": num_gpus,
        "gpu_memory": int(79.6 * GIB) if num_gpus else None,
        "memory": 1000 * GIB,
        "disk_free": 10**13,
        "packages": ATTENTION,
    }
    return Resources(**facts | changes)


def fit(recipe: str, have: Resources, *overrides: str) -> dict[str, Finding]:
    read = load_recipe(recipe, list(overrides))
    return {one.check: one for one in check_fit(read, have)}


@pytest.mark.parametrize(
    ("recipe", "have", "check", "state", "says"),
    [
        (HYBRID, machine(), "GPUs", State.OK, "needs 8 on one node; this machine has 8"),
        (HYBRID, machine(4), "GPUs", State.FAILED, "needs 8 on one node; this machine has 4"),
        (HYBRID, machine(0), "GPUs", State.FAILED, "this machine has 0"),
        (HYBRID, machine(gpu_memory=24 * GIB), "GPU memory", State.FAILED, "each has 24.0"),
        (HYBRID, machine(memory=16 * GIB), "host memory", State.FAILED, "this machine has 16"),
        (HYBRID, machine(disk_free=10**9), "disk", State.FAILED, "this machine has 1.0"),
        (HYBRID, machine(packages=frozenset()), "attention", State.FAILED, "flash-attn and ring-flash-attn"),
        (HYBRID, machine(ptrace_scope=1), "kernel", State.WARNING, "ptrace_scope is 1"),
        (LORA, machine(1), "GPUs", State.OK, "needs 1 on one node; this machine has 1"),
        (FOUR_NODES, machine(), "GPUs", State.OK, "needs 32 on 4 nodes, 8 on each; this machine has 8"),
        (FOUR_NODES, machine(4), "GPUs", State.FAILED, "8 on each; this machine has 4"),
    ],
)
def test_need_and_have(recipe: str, have: Resources, check: str, state: State, says: str) -> None:
    found = fit(recipe, have)[check]
    assert found.state is state and says in found.found


def test_a_recipe_that_fits_has_nothing_that_failed(tmp_path: Path) -> None:
    found = fit(HYBRID, machine())
    assert {one.state for one in found.values()} <= {State.OK, State.WARNING}
    assert found.keys() >= {"recipe", "GPUs", "GPU memory", "host memory", "disk"}


def test_the_tiny_policy_needs_no_gpu_but_memory() -> None:
    assert {one.state for one in fit("tiny", machine(0)).values()} == {State.OK}
    found = fit("tiny", machine(0, memory=4 * GIB))["host memory"]
    assert found.state is State.FAILED and "needs 8 GiB" in found.found


def test_what_a_model_cannot_do_is_told_with_its_fix() -> None:
    found = fit(HYBRID, machine(), "rollout.max_prompt_tokens=200000")["settings"]
    assert found.state is State.FAILED and "march train --dry-run" in found.fix
    assert "exceed the model's 131,072; vLLM will not start" in found.found


def test_the_command_says_that_a_recipe_does_not_fit_here(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert march("doctor", "--only", "recipe", "--recipe", HYBRID) == 1
    out = capsys.readouterr().out
    assert "recipe llama31-8b-stem" in out and "needs 8 on one node" in out
    assert march("doctor", "--only", "recipe", "--recipe", HYBRID, "--set", "model=no-such/model") == 1
    assert "an estimate knows only" in " ".join(capsys.readouterr().out.split())

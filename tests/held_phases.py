"""Copied as `sitecustomize.py` into a training's processes by `tests.march_training`: it stops one of them in
a named phase of a step, so that a test can kill the run exactly there.

`MARCH_TEST_HOLD` is "PHASE STEPS FOLDER": once STEPS steps are finished, who comes to PHASE writes
FOLDER/held and waits to be killed. Phases are where a trainer can lose or repeat work:

    rollout      a Solver is about to answer
    audit        an answer is about to be audited
    update       the actor has seen its first micro-batch, and the critic may be done
    sync         the engines have some of the new weights
    half_saved   the actor's checkpoint may be on disk, the critic's is not
    saved        both are on disk, and nothing says so yet
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def hold(phase: str) -> None:
    """Stays here for ever when this is the phase and enough steps are finished."""
    wanted, steps, folder = os.environ["MARCH_TEST_HOLD"].split(" ", 2)
    run_dir = Path(json.loads(os.environ["MARCH_TRAINER_SETTINGS"])["run_dir"])
    done = (run_dir / "steps.jsonl").read_text().count("\n") if (run_dir / "steps.jsonl").exists() else 0
    if phase != wanted or done < int(steps):
        return
    (Path(folder) / "held").write_text(phase)
    time.sleep(3600)


def before(owner: Any, name: str, phase: str, when: Callable[..., bool] = lambda *_: True) -> None:
    """Holds whoever calls a method, before it does anything."""
    original = getattr(owner, name)

    @functools.wraps(original)  # Ray reads the signature
    def held(*args: Any, **kwargs: Any) -> Any:
        if when(*args):
            hold(phase)
        return original(*args, **kwargs)

    @functools.wraps(original)
    async def held_when_awaited(*args: Any, **kwargs: Any) -> Any:
        return await held(*args, **kwargs)

    setattr(owner, name, held_when_awaited if inspect.iscoroutinefunction(original) else held)


def in_rollout(module: Any) -> None:
    before(module, "_generate", "rollout")
    before(module.AgentExecutor, "_asked", "audit")


def in_policy(module: Any) -> None:
    before(module, "weigh_nothing", "update")  # it gets what the first micro-batch's step returned


def in_engine(module: Any) -> None:
    # The first weights of a sync have been taken when the norm at the end comes.
    before(
        module.MarchRolloutActor, "update_weight", "sync", lambda _, name, *rest: name == "model.norm.weight"
    )


def in_trainer(module: Any) -> None:
    before(module, "mark_complete", "saved")


def in_models(module: Any) -> None:
    def is_critic(_strategy: Any, _model: Any, folder: str, *rest: Any) -> bool:
        return folder.endswith("_critic")

    before(module.DeepspeedStrategy, "save_ckpt", "half_saved", is_critic)


if "MARCH_TEST_HOLD" in os.environ:
    from pipeline import cpu

    cpu.PATCHES_AFTER |= {
        "pipeline.training.rollout": in_rollout,
        "pipeline.training.policy": in_policy,
        "pipeline.training.engine_actor": in_engine,
        "pipeline.training.trainer": in_trainer,
        "openrlhf.utils.deepspeed.deepspeed": in_models,
    }

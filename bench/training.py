"""What it costs to train the Checker too, and what the layout of a step saves.

Tiny runs differ in `train_roles` alone, in turn.

`joint_over_solver_only` is the ratio of the median seconds of their steps, `own_share` the part of a joint
step that the trainer spends in our code. Both audit each answer; joint training has twice the rows to update
on. The first steps of a run are left out, in which kernels and caches are cold.

`gae` is the time of OpenRLHF's loop over the tokens of a step's long rows, micro-batch by micro-batch and of
all rows together. `busiest_rank` is what the rank with the most tokens has, by the mean, for rows as they
come (each role's by itself, masked ones as fillers) and dealt out by length, without the masked ones.
"""

import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import torch

from bench.measure import median_ratio, write_result
from pipeline import cpu
from pipeline.record.tracking import read_steps

_ROUNDS = int(os.environ.get("BENCH_ROUNDS", "2"))
_STEPS, _COLD_STEPS = 14, 4
_ROLES = {"joint": "[solver, checker]", "solver_only": "[solver]"}
_ROWS, _TOKENS, _RANKS, _FILLER, _LAYOUT_ROUNDS = 64, 2000, 4, 2, 5
_PHASES = ("rollout", "experience", "update", "sync")


def run() -> None:
    medians: dict[str, list[float]] = {name: [] for name in _ROLES}
    seen: dict[str, list[Mapping[str, float]]] = {name: [] for name in _ROLES}
    for _ in range(_ROUNDS):
        for name, roles in _ROLES.items():
            steps = _warm_steps(roles)
            seen[name] += steps
            medians[name].append(_median(steps, "time/step_s"))
    figures = {
        "joint_over_solver_only": median_ratio(medians, "joint", "solver_only"),
        "own_share": _median(seen["joint"], "time/own_share"),
        "seconds_by_phase": {
            name: {phase: _median(steps, f"time/{phase}_s") for phase in _PHASES}
            for name, steps in seen.items()
        },
        "steps_a_run": _STEPS - _COLD_STEPS,
        **layout_figures(),
    }
    print(write_result("training", samples_s=medians, figures=figures), figures)


def layout_figures() -> dict[str, object]:
    """What batches of all rows and shares by length save, without a training."""
    cpu.install()
    from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker

    from pipeline.training.advantages import stacked
    from pipeline.training.micro_batches import shared

    gae = partial(RemoteExperienceMaker.get_advantages_and_returns, None, gamma=1.0, lambd=0.95)
    draw = random.Random(0)
    lengths = [int(draw.lognormvariate(math.log(_TOKENS), 0.5)) for _ in range(_ROWS)]
    rows = [(torch.rand(1, length), torch.ones(1, length)) for length in lengths]
    apart, together = [], []
    for _ in range(_LAYOUT_ROUNDS):
        begin = time.perf_counter()
        for values, mask in rows:
            gae(values, values, mask)
        middle = time.perf_counter()
        values, mask = (stacked(part) for part in zip(*rows, strict=True))
        gae(values, values, mask)
        apart.append(middle - begin)
        together.append(time.perf_counter() - middle)
    # A quarter of the audits left no turn of the Checker to train.
    shown = [length if place % 4 else _FILLER for place, length in enumerate(lengths)]
    size = 2 * _ROWS // _RANKS
    in_order = [*lengths, *shown]  # the Solver's rows, then the Checker's
    as_they_come = [sum(in_order[first : first + size]) for first in range(0, 2 * _ROWS, size)]
    kept = [length for length in in_order if length > _FILLER]
    by_length = [sum(kept[place] for place in places) for places in shared(kept, _RANKS)]
    return {
        "gae": {
            "rows": _ROWS,
            "speedup": statistics.median(a / b for a, b in zip(apart, together, strict=True)),
            "seconds": {"by_micro_batch": apart, "together": together},
        },
        "busiest_rank": {
            "ranks": _RANKS,
            "as_they_come": max(as_they_come) / statistics.mean(as_they_come),
            "by_length": max(by_length) / statistics.mean(by_length),
        },
    }


def _warm_steps(roles: str) -> list[dict[str, float]]:
    with tempfile.TemporaryDirectory(prefix="march-bench-") as folder:
        run_dir = Path(folder) / "run"
        settings = {"train_roles": roles, "data.max_steps": _STEPS, "checkpoint.every": _STEPS}
        march = Path(sys.executable).with_name("march")
        command = [str(march), "train", "tiny", "--run-dir", str(run_dir)]
        command += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        subprocess.run(command, check=True)
        return read_steps(run_dir)[_COLD_STEPS:]


def _median(steps: Sequence[Mapping[str, float]], name: str) -> float:
    return statistics.median(step[name] for step in steps)

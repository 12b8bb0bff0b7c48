"""What it costs to train the Checker too: tiny runs that differ in `train_roles` alone, in turn.

`joint_over_solver_only` is the ratio of the median seconds of their steps, `own_share` the part of a joint
step that the trainer spends in our code. Both audit each answer; joint training has twice the rows to update
on. The first steps of a run are left out, in which kernels and caches are cold.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.measure import median_ratio, write_result
from pipeline.record.tracking import read_steps

_ROUNDS = int(os.environ.get("BENCH_ROUNDS", "2"))
_STEPS, _COLD_STEPS = 14, 4
_ROLES = {"joint": "[solver, checker]", "solver_only": "[solver]"}
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
    }
    print(write_result("training", samples_s=medians, figures=figures), figures)


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

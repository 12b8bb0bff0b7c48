"""Whether a recipe fits: what its estimate says it needs (`pipeline/estimate`), against what there is.

The estimate is made again for the memory of the GPUs that are really there, of which the engines take their
fraction. It was never measured on a GPU, so what just fits is reported as a warning.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestration.doctor.machine import GB, gather_gpus, gather_machine, nearest
from orchestration.doctor.report import Finding, failed, ok, warning
from pipeline.estimate.memory import GIB
from pipeline.estimate.plan import Estimate, estimate, host_bytes, needs_no_gpu
from pipeline.lineage.record import version_of
from pipeline.settings.cluster import Colocation
from pipeline.settings.recipe import Recipe

_TIGHT = 0.9  # of what is there: the estimate is no measurement
_PTRACE = Path("/proc/sys/kernel/yama/ptrace_scope")
_OPTIONAL = ("flash-attn", "ring-flash-attn")


@dataclass(frozen=True)
class Resources:
    """What a recipe can run on: this machine, which is one node of a cluster's or all there is. Bytes."""

    num_gpus: int
    gpu_memory: int | None  # of the smallest; None without GPUs
    memory: int
    disk_free: int  # where the run goes
    packages: frozenset[str] = frozenset()  # of those that only some recipes need
    ptrace_scope: int = 0


def gather_resources(run_dir: Path) -> Resources:
    gpus, space = gather_gpus().gpus, os.statvfs(nearest(run_dir))
    return Resources(
        num_gpus=len(gpus),
        gpu_memory=min((gpu.memory for gpu in gpus), default=None),
        memory=gather_machine().usable_memory,
        disk_free=space.f_frsize * space.f_bavail,
        packages=frozenset(name for name in _OPTIONAL if version_of(name)),
        ptrace_scope=int(_PTRACE.read_text()) if _PTRACE.is_file() else 0,
    )


def check_fit(recipe: Recipe, have: Resources) -> Iterator[Finding]:
    """Need and have of each thing, as one finding.

    Raises:
        FileNotFoundError, ValueError: as `pipeline.estimate.plan.estimate` does.
    """
    there = {} if have.gpu_memory is None else {"gpu_memory_gib": have.gpu_memory / GIB}
    cluster = recipe.cluster.model_copy(update=there)
    plan = estimate(recipe.model_copy(update={"cluster": cluster}))
    on_cpu = have.gpu_memory is None and needs_no_gpu(plan.dimensions.num_parameters)
    size = f"{plan.dimensions.num_parameters / 1e6:,.1f} million parameters, {plan.num_steps:,} steps"
    yield ok("recipe", f"{recipe.name}: {size}")
    yield _gpus(recipe, have, on_cpu=on_cpu)
    if not on_cpu and have.num_gpus:
        yield _gpu_memory(plan, have)
    yield _host_memory(plan, have, on_cpu=on_cpu)
    yield _disk(recipe, plan, have)
    yield from _software(recipe, have)
    if plan.setting_warnings:
        found = "; ".join(plan.setting_warnings)
        yield failed("settings", found, "change them; `march train --dry-run` shows the estimate")


def _gpus(recipe: Recipe, have: Resources, *, on_cpu: bool) -> Finding:
    cluster, needed = recipe.cluster, recipe.num_gpus
    if on_cpu:
        return ok("GPUs", f"needs {needed}; they are logical, on this machine's CPUs")
    here = cluster.gpus_per_node if cluster.num_nodes > 1 else needed
    where = f"{cluster.num_nodes} nodes, {here} on each" if cluster.num_nodes > 1 else "one node"
    found = f"needs {needed} on {where}; this machine has {have.num_gpus}"
    if have.num_gpus >= here:
        return ok("GPUs", found)
    fix = "lower ranks or engines, colocate or use LoRA (docs/recipes.md), or run where they are"
    return failed("GPUs", found, fix)


def _gpu_memory(plan: Estimate, have: Resources) -> Finding:
    worst = max(plan.memory.loads, key=lambda load: load.used / load.limit)
    needed, there = worst.used / GIB, worst.limit / GIB
    found = f"needs {needed:,.1f} GiB ({worst.gpu}, {worst.phase}), each has {there:,.1f}"
    fix = "shard (cluster.zero_stage), offload, or shorten rollout.max_*_tokens; `march train --dry-run`"
    tight = "the estimate was never measured: leave it room"
    return _held_against("GPU memory", found, worst.used / worst.limit, fix=fix, tight=tight)


def _host_memory(plan: Estimate, have: Resources, *, on_cpu: bool) -> Finding:
    needed = host_bytes(plan) if on_cpu else plan.memory.host_per_node
    found = f"needs {needed / GIB:,.0f} GiB a node, this machine has {have.memory / GIB:,.0f}"
    fix = "offload less (cluster.adam_offload, trainer_sleep, engine_sleep), or take nodes with more"
    tight = None if on_cpu else fix  # without GPUs the need was measured
    return _held_against("host memory", found, needed / have.memory, fix=fix, tight=tight)


def _disk(recipe: Recipe, plan: Estimate, have: Resources) -> Finding:
    """A checkpoint more than are kept: the oldest goes when the newest is complete."""
    held, is_here = plan.storage, (Path(recipe.model_path) / "config.json").is_file()
    needed = held.kept + held.checkpoint + (0.0 if is_here else held.model)
    parts = f"{held.num_kept} + 1 checkpoints of {held.checkpoint / GB:,.1f}, models"
    found = f"needs {needed / GB:,.1f} GB ({parts}), this machine has {have.disk_free / GB:,.1f}"
    fix = "lower checkpoint.keep, leave checkpoint.models out, or give --run-dir a larger volume"
    return _held_against("disk", found, needed / max(have.disk_free, 1), fix=fix, tight=fix)


def _held_against(check: str, found: str, share: float, *, fix: str, tight: str | None) -> Finding:
    """By the share of what there is that is needed; `tight` is the fix where that is nearly all."""
    if share > 1:
        return failed(check, found, fix)
    return warning(check, f"{found}; tight", tight) if tight and share > _TIGHT else ok(check, found)


def _software(recipe: Recipe, have: Resources) -> Iterator[Finding]:
    """Packages and the kernel's settings, which a dry run does not look at."""
    cluster = recipe.cluster
    needed = {"flash-attn"} if "flash_attention" in cluster.attention else set()
    needed |= {"ring-flash-attn"} if cluster.ring_attention > 1 else set()
    if missing := sorted(needed - have.packages):
        fix = "pip install --no-build-isolation '.[ring-attn]'"
        yield failed("attention", f"{' and '.join(missing)} not installed", fix)
    if cluster.colocate is Colocation.ALL and have.num_gpus and have.ptrace_scope:
        found = f"kernel.yama.ptrace_scope is {have.ptrace_scope}; weights go to the engines by CUDA IPC"
        yield warning("kernel", found, "sysctl -w kernel.yama.ptrace_scope=0, or run with CAP_SYS_PTRACE")

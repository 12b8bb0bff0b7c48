"""Whether a recipe fits: what its estimate says it needs (`pipeline/estimate`), against what there is.

The estimate is made again for the memory of the GPUs that are really there, of which the engines take their
fraction. It was never measured on a GPU, so what just fits is reported as a warning.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestration.doctor.disk import GB, hugging_face_home, nearest
from orchestration.doctor.gpu import GpuFacts
from orchestration.doctor.machine import MachineFacts
from orchestration.doctor.packages import version_of
from orchestration.doctor.ray_cluster import Node
from orchestration.doctor.report import Finding, failed, ok, warning
from pipeline.data.prepare import MANIFEST_FILE
from pipeline.estimate.memory import GIB
from pipeline.estimate.plan import Estimate, estimate
from pipeline.estimate.without_gpus import host_bytes, needs_no_gpu
from pipeline.settings.cluster import Colocation
from pipeline.settings.recipe import Recipe

_TIGHT = 0.9  # of what is there: the estimate is no measurement
_PTRACE = Path("/proc/sys/kernel/yama/ptrace_scope")
_OPTIONAL = ("flash-attn", "ring-flash-attn")


@dataclass(frozen=True)
class Resources:
    """What a recipe can run on. Bytes; None for what nobody tells."""

    where: str
    nodes: tuple[int, ...]  # GPUs of each node
    gpu_memory: int | None  # of the smallest
    memory: int | None  # of the smallest node
    disk_free: int | None  # where the run goes
    is_here: bool
    gpus_in_use: float = 0.0  # by what else runs
    packages: frozenset[str] = frozenset()  # of those that only some recipes need; known here alone
    ptrace_scope: int = 0

    @property
    def num_gpus(self) -> int:
        """On all nodes."""
        return sum(self.nodes)


def machine_resources(gpus: GpuFacts, machine: MachineFacts, run_dir: Path) -> Resources:
    """This machine."""
    space = os.statvfs(nearest(run_dir))
    return Resources(
        where="this machine",
        nodes=(len(gpus.gpus),),
        gpu_memory=min((gpu.memory for gpu in gpus.gpus), default=None),
        memory=machine.usable_memory,
        disk_free=space.f_frsize * space.f_bavail,
        is_here=True,
        packages=frozenset(name for name in _OPTIONAL if version_of(name)),
        ptrace_scope=int(_PTRACE.read_text()) if _PTRACE.is_file() else 0,
    )


def cluster_resources(nodes: Sequence[Node], *, gpus_in_use: float = 0.0) -> Resources:
    """A cluster; nodes without GPUs give no memory to models where others have GPUs."""
    workers = [node for node in nodes if node.num_gpus] or list(nodes)
    return Resources(
        where="the cluster",
        nodes=tuple(int(node.num_gpus) for node in workers),
        gpu_memory=min((node.gpu_memory for node in workers if node.gpu_memory), default=None),
        memory=min((node.memory for node in workers if node.memory), default=None),
        disk_free=min((node.disk_free for node in nodes if node.disk_free is not None), default=None),
        is_here=False,
        gpus_in_use=gpus_in_use,
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
    time = "on CPUs" if on_cpu else f"{plan.hours:,.1f} hours, {plan.gpu_hours:,.0f} GPU hours on H100s"
    yield ok("recipe", f"{recipe.name}: {size}, {time}")
    yield _gpus(recipe, have, on_cpu=on_cpu)
    if not on_cpu and have.num_gpus:
        yield _gpu_memory(plan, have)
    yield _host_memory(plan, have, on_cpu=on_cpu)
    yield _disk(recipe, plan, have)
    if have.is_here:
        yield from _here(recipe, plan, have)
    for problem in plan.setting_warnings:  # loads that do not fit have a finding of their own
        yield failed("settings", *_split(problem))


def _gpus(recipe: Recipe, have: Resources, *, on_cpu: bool) -> Finding:
    cluster, needed = recipe.cluster, recipe.num_gpus
    if on_cpu:
        return ok("GPUs", f"needs {needed}; they are logical, on {have.where}'s CPUs")
    shape = f" on {cluster.num_nodes} nodes" if cluster.num_nodes > 1 else " on one node"
    there = f"{have.num_gpus} on {len(have.nodes)} nodes" if len(have.nodes) > 1 else f"{have.num_gpus}"
    there += f", {have.gpus_in_use:g} in use" if have.gpus_in_use else ""
    found = f"needs {needed}{shape}, {have.where} has {there}"
    if not have.num_gpus:
        return failed("GPUs", found, "run it where GPUs are (--cluster asks a cluster)")
    usable = have.num_gpus if cluster.num_nodes > 1 else max(have.nodes, default=0)
    widest = max(have.nodes, default=0)
    if usable < needed:
        fix = "lower ranks or engines, colocate or use LoRA (docs/recipes.md), or run where they are"
        return failed("GPUs", found, fix)
    if widest < cluster.engine_tensor_parallel:
        fix = f"lower cluster.engine_tensor_parallel ({cluster.engine_tensor_parallel})"
        return failed("GPUs", f"{found}; no node holds one engine", fix)
    if have.num_gpus - have.gpus_in_use < needed:
        return warning("GPUs", found, "Ray waits until they are free: `ray status` says who holds them")
    if len(set(have.nodes)) == 1 and widest != cluster.gpus_per_node and cluster.num_nodes > 1:
        return warning("GPUs", found, f"set cluster.gpus_per_node={widest}, as the nodes are")
    return ok("GPUs", found)


def _gpu_memory(plan: Estimate, have: Resources) -> Finding:
    worst = max(plan.memory.loads, key=lambda load: load.used / load.limit)
    needed, there = worst.used / GIB, worst.limit / GIB
    whose = f"each has {there:,.1f}" if have.gpu_memory else f"assumed {there:,.0f} (no node tells it)"
    found = f"needs {needed:,.1f} GiB ({worst.gpu}, {worst.phase}), {whose}"
    fix = "shard (cluster.zero_stage), offload, or shorten rollout.max_*_tokens; `march train --dry-run`"
    tight = "the estimate was never measured: leave it room"
    return _held_against("GPU memory", found, worst.used / worst.limit, fix=fix, tight=tight)


def _host_memory(plan: Estimate, have: Resources, *, on_cpu: bool) -> Finding:
    needed = host_bytes(plan) if on_cpu else plan.memory.host_per_node
    if have.memory is None:
        found = f"needs {needed / GIB:,.0f} GiB a node; no node tells what it has"
        return warning("host memory", found, "look there: free -g")
    found = f"needs {needed / GIB:,.0f} GiB a node, {have.where} has {have.memory / GIB:,.0f}"
    fix = "offload less (cluster.adam_offload, trainer_sleep, engine_sleep), or take nodes with more"
    tight = None if on_cpu else fix  # without GPUs the need was measured
    return _held_against("host memory", found, needed / have.memory, fix=fix, tight=tight)


def _disk(recipe: Recipe, plan: Estimate, have: Resources) -> Finding:
    """A checkpoint more than are kept: the oldest goes when the newest is complete."""
    held, fetched = plan.storage, 0.0 if _is_local(recipe) else plan.storage.model
    needed = held.kept + held.checkpoint + fetched
    parts = f"{held.num_kept} + 1 checkpoints of {held.checkpoint / GB:,.1f}, models"
    found = f"needs {needed / GB:,.1f} GB ({parts})"
    if have.disk_free is None:
        return warning("disk", f"{found}; {have.where} does not tell what is free", "look there: df -h")
    found += f", {have.where} has {have.disk_free / GB:,.1f}"
    fix = "lower checkpoint.keep, leave checkpoint.models out, or give --run-dir a larger volume"
    return _held_against("disk", found, needed / max(have.disk_free, 1), fix=fix, tight=fix)


def _held_against(check: str, found: str, share: float, *, fix: str, tight: str | None) -> Finding:
    """By the share of what there is that is needed; `tight` is the fix where that is nearly all."""
    if share > 1:
        return failed(check, found, fix)
    return warning(check, f"{found}; tight", tight) if tight and share > _TIGHT else ok(check, found)


def _here(recipe: Recipe, plan: Estimate, have: Resources) -> Iterator[Finding]:
    """What only the machine itself can tell."""
    data, cluster = recipe.data, recipe.cluster
    yield _model(recipe, plan)
    if data.path is not None and not (data.path / MANIFEST_FILE).is_file():
        found = f"{data.path} has none; the estimate takes {plan.workload.rows_source}"
        yield warning("rows", found, "write them: `march prepare`")
    needed = {"flash-attn"} if "flash_attention" in cluster.attention else set()
    needed |= {"ring-flash-attn"} if cluster.ring_attention > 1 else set()
    if missing := sorted(needed - have.packages):
        fix = "pip install --no-build-isolation 'march-pipeline[ring-attn]'"
        yield failed("attention", f"{' and '.join(missing)} not installed", fix)
    if cluster.colocate is Colocation.ALL and have.num_gpus and have.ptrace_scope:
        found = f"kernel.yama.ptrace_scope is {have.ptrace_scope}; weights go to the engines by CUDA IPC"
        yield warning("kernel", found, "sysctl -w kernel.yama.ptrace_scope=0, or run with CAP_SYS_PTRACE")


def _model(recipe: Recipe, plan: Estimate) -> Finding:
    if _is_local(recipe):
        return ok("model", f"{recipe.model}, on this machine")
    if (hugging_face_home() / "hub" / f"models--{recipe.model.replace('/', '--')}").is_dir():
        return ok("model", f"{recipe.model}, in Hugging Face's cache")
    size = f"{recipe.model} is not here: {plan.storage.model / GB:,.1f} GB are fetched on first use"
    if os.environ.get("HF_HUB_OFFLINE", "") not in ("", "0"):
        return failed("model", f"{size}, which HF_HUB_OFFLINE forbids", "bring it, and give its folder")
    return warning("model", size, "fetch it before; set HF_TOKEN where its licence must be accepted")


def _is_local(recipe: Recipe) -> bool:
    return (Path(recipe.model_path) / "config.json").is_file()


def _split(problem: str) -> tuple[str, str]:
    """A warning of the estimate says what is wrong and, after the last "; " or ", so ", how to fix it."""
    for mark in (", so ", "; "):
        found, mark, fix = problem.rpartition(mark)
        if mark:
            return found, fix
    return problem, "see `march train --dry-run`"

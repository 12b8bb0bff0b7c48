"""`march train --dry-run`: OpenRLHF's exact command, and what it will take, before anything is started.

Reads the recipe, the rows' manifest if there is one, and the model's config.json if it is local; needs no
GPU, no network, no Ray and no weights.
"""

import shlex
from dataclasses import fields
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from pipeline.estimate.memory import GIB, RoleMemory
from pipeline.estimate.plan import Estimate, estimate, host_bytes, needs_no_gpu
from pipeline.launch.openrlhf_args import openrlhf_arguments
from pipeline.launch.reward_servers import has_gpu
from pipeline.rows import rows_file
from pipeline.settings.cluster import Colocation
from pipeline.settings.recipe import Recipe

_GB = 1e9  # object storage is sold by it
_MEMORY_COLUMNS = {
    "weights": "weights",
    "gradients": "grads",
    "optimizer": "Adam",
    "buffers": "buffers",
    "activations": "activ.",
    "logits": "logits",
    "key_values": "KV",
}


def show_plan(recipe: Recipe, folder: Path, *, console: Console | None = None) -> None:
    """Prints the command of a run in `folder` and the estimate; tables on a terminal, columns in a pipe.

    Where the run needs no GPU the estimate, which is of GPUs, is one line of what it takes instead.
    """
    console = console or Console(highlight=False)
    plan = estimate(recipe)
    on_cpus = needs_no_gpu(plan.dimensions.num_parameters) and not has_gpu()
    line = command(recipe, folder, num_rows=plan.workload.num_rows, cuda=not on_cpus)
    console.out(line, highlight=False)
    preset = f" (preset {recipe.preset})" if recipe.preset else ""
    console.print(f"\n[bold]{recipe.name}[/bold]{preset}: {recipe.note}\n", highlight=False)
    if on_cpus:
        rows, memory_gib = plan.workload.num_rows, host_bytes(plan) / GIB
        takes = f"runs on this machine's CPUs and takes about {memory_gib:.0f} GiB of its memory"
        console.print(f"{plan.num_steps:,} steps on {rows:,} rows; {takes}.", highlight=False)
        return _show_warnings(plan.setting_warnings, console)
    longest = f"{recipe.max_model_len:,}"
    sections = {
        "GPUs by role": _placement(recipe),
        f"GPU memory by role: GiB on each of its GPUs, rows of {longest} tokens": _memory(plan),
        "GPU memory together": _loads(plan),
        "Tokens of a PPO step": _tokens(plan),
        "Time": _time(plan),
        "Checkpoints, on disk or in S3": _storage(recipe, plan),
        "Assumptions; nothing here was measured on a GPU": _assumptions(recipe, plan),
    }
    for title, table in sections.items():
        console.print(f"[bold]{title}[/bold]", highlight=False)
        table.box = box.SIMPLE if console.is_terminal else None
        console.print(table, *([] if console.is_terminal else [""]))
    _show_warnings(plan.warnings, console)


def _show_warnings(warnings: tuple[str, ...], console: Console) -> None:
    for warning in warnings:
        console.print(f"[red]warning:[/red] {warning}", highlight=False)


def command(recipe: Recipe, folder: Path, *, num_rows: int, cuda: bool = True) -> str:
    rows = rows_file(recipe, folder)
    arguments = openrlhf_arguments(recipe, folder, rows=rows, num_rows=num_rows, cuda=cuda)
    return "python -m openrlhf.cli.train_ppo_ray " + shlex.join(arguments)


def _table(*columns: str, texts: tuple[int, ...] = (0,)) -> Table:
    """A table whose columns are numbers, but for those whose places are in `texts`."""
    table = Table(pad_edge=False, show_header=any(columns))
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place in texts else "right", overflow="fold")
    return table


def _placement(recipe: Recipe) -> Table:
    cluster = recipe.cluster
    table = _table("role", "GPUs", "nodes", "which", texts=(0, 3))
    engines = f"{cluster.num_engines} x {cluster.engine_tensor_parallel}"
    beside = "beside the actor" if cluster.colocate is Colocation.ACTOR_REF else ""
    placed = {
        "actor": (cluster.actor_ranks, ""),
        "reference": (cluster.actor_ranks * recipe.has_reference, beside),
        "critic": (cluster.critic_ranks * recipe.has_critic, ""),
        "engines": (cluster.num_engines * cluster.engine_tensor_parallel, engines),
        "canary": (recipe.canary_gpus, ""),
    }
    for role, (gpus, which) in placed.items():
        if gpus:
            table.add_row(role, str(gpus), str(-(-gpus // cluster.gpus_per_node)), which)
    total = recipe.num_gpus
    shared = ", shared by all roles" if cluster.colocate is Colocation.ALL else ""
    there = f"of {cluster.num_nodes} x {cluster.gpus_per_node} with {cluster.gpu_memory_gib:g} GiB{shared}"
    table.add_row("together", str(total), str(-(-total // cluster.gpus_per_node)), there)
    return table


def _memory(plan: Estimate) -> Table:
    assert {field.name for field in fields(RoleMemory)} == set(_MEMORY_COLUMNS)
    table = _table("role", *_MEMORY_COLUMNS.values(), "sum")
    for role, held in plan.memory.roles.items():
        parts = [getattr(held, name) for name in _MEMORY_COLUMNS]
        table.add_row(role, *(_gib(part) for part in (*parts, held.total)))
    return table


def _loads(plan: Estimate) -> Table:
    table = _table("", "while", "holds", "of", "", texts=(0, 1, 4))
    for load in plan.memory.loads:
        verdict = "GiB, fits" if load.fits else "[red]GiB, does not fit[/red]"
        table.add_row(f"GPU: {load.gpu}", load.phase, _gib(load.used), _gib(load.limit), verdict)
    space = plan.memory
    table.add_row("an engine's cache", "rollout", f"{space.cached_tokens:,.0f}", "", "tokens")
    table.add_row("a node's host memory", "offloading", _gib(space.host_per_node), "", "GiB, pinned")
    return table


def _tokens(plan: Estimate) -> Table:
    table = _table("role", "requests", "a prompt", "an answer", "all prompts", "all answers")
    for role in plan.workload.roles:
        each = (role.prompt_tokens, role.completion_tokens, role.prompts, role.completions)
        table.add_row(role.role.value, f"{role.requests:,.0f}", *(f"{tokens:,.0f}" for tokens in each))
    return table


def _time(plan: Estimate) -> Table:
    table = _table("", "", "", texts=(0, 2))
    step = plan.step
    phases = {
        "rollout and audit": step.rollout_s,
        "scoring": step.scoring_s,
        "PPO update": step.training_s,
        "sync, sleep, offload": step.overhead_s,
        "a step": step.total_s,
    }
    for name, seconds in phases.items():
        table.add_row(name, f"{seconds:,.0f}", "s")
    table.add_row("steps", f"{plan.num_steps:,}", "")
    if plan.held_out_s:
        table.add_row("held-out answers", f"{plan.held_out_s / 3600:,.1f}", "hours")
    table.add_row("the run", f"{plan.hours:,.1f}", "hours", style="bold")
    table.add_row("", f"{plan.gpu_hours:,.0f}", "GPU hours", style="bold")
    return table


def _storage(recipe: Recipe, plan: Estimate) -> Table:
    table, held = _table("", "", "", texts=(0, 2)), plan.storage
    models = "actor and critic" if recipe.has_critic else "actor"
    rows = {
        f"a checkpoint of {models}": held.checkpoint,
        f"a model, of {held.num_models}" if held.num_models > 1 else "the model at the end": held.model,
        f"written: {held.num_written} checkpoints, each {recipe.checkpoint.every} steps": held.written,
        f"kept: the last {held.num_kept}, and all models": held.kept,
    }
    for name, size in rows.items():
        table.add_row(name, f"{size / _GB:,.1f}", "GB")
    return table


def _assumptions(recipe: Recipe, plan: Estimate) -> Table:
    table = _table("--set", "value", "what, and where from", texts=(0, 1, 2))
    for name, field in type(recipe.estimate).model_fields.items():
        value = getattr(recipe.estimate, name)
        shown = f"{value:g}" if isinstance(value, float) else str(value or "-")
        table.add_row(f"estimate.{name}", shown, field.description)
    table.add_row("rows", f"{plan.workload.num_rows:,}", plan.workload.rows_source)
    table.add_row("prompt", f"{plan.workload.solver.prompt_tokens:,.0f}", plan.workload.lengths_source)
    parameters = f"{plan.dimensions.num_parameters / 1e9:.3f}e9"
    table.add_row("parameters", parameters, f"dimensions of {recipe.model}")
    return table


def _gib(value: float) -> str:
    return f"{value / GIB:,.1f}" if value else "-"

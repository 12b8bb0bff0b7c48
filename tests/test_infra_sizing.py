"""docs/sizing.md: its table and its arithmetic are what its own commands compute."""

from __future__ import annotations

import shlex
from pathlib import Path

from pipeline.estimate.memory import GIB
from pipeline.estimate.plan import Estimate, estimate
from pipeline.settings.recipe import Recipe, load_recipe

PAGE = Path(__file__).parents[1] / "docs" / "sizing.md"
GB = 1e9


def plans() -> list[tuple[Recipe, Estimate]]:
    """What the page's commands estimate."""
    found = []
    for line in PAGE.read_text().splitlines():
        if line.startswith("    march train "):
            _, _, name, *words = shlex.split(line)
            assert words[0] == "--dry-run" and set(words[1::2]) <= {"--set"}
            recipe = load_recipe(name, words[2::2])
            found.append((recipe, estimate(recipe)))
    return found


def table() -> list[str]:
    head = (
        "| model | GPUs | a GPU, GiB | host memory a node, GiB | answers a step | rows a step | hours | "
        "GPU hours | a checkpoint, GB | kept on the volume, GB | a version in S3, GB |"
    )
    return [head, "|" + "---|" * 11, *(row(recipe, plan) for recipe, plan in plans())]


def row(recipe: Recipe, plan: Estimate) -> str:
    cluster, held = recipe.cluster, plan.storage
    nodes = f"{cluster.num_nodes} x {cluster.gpus_per_node}"
    cells = [
        recipe.model.partition("/")[2],
        f"{plan.num_gpus} ({nodes})",
        f"{max(load.used for load in plan.memory.loads) / GIB:.0f}",
        f"{plan.memory.host_per_node / GIB:,.0f}",
        str(recipe.answers_per_step),
        str(recipe.rows_per_step),
        f"{plan.hours:.1f}",
        f"{plan.gpu_hours:,.0f}",
        f"{held.checkpoint / GB:,.0f}",
        f"{held.kept / GB:,.0f}",
        f"{held.model / GB:,.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def arithmetic(recipe: Recipe, plan: Estimate) -> list[str]:
    """The figures of one row, from parameters to bytes."""
    size, step, held = plan.dimensions, plan.step, plan.storage
    actor, ranks, ring = plan.memory.roles["actor"], recipe.cluster.actor_ranks, recipe.cluster.ring_attention
    number, critic = size.num_parameters, size.num_critic_parameters
    load = max(plan.memory.loads, key=lambda one: one.used)
    return [
        f"    parameters N           {number:,} (critic {critic:,})",
        f"    weights                2 N / {ranks} ranks = {actor.weights / GIB:.1f} GiB a GPU",
        f"    gradients              2 N / {ranks} = {actor.gradients / GIB:.1f} GiB",
        f"    Adam                   12 N / {ranks} = {actor.optimizer / GIB:.1f} GiB",
        f"    logits                 10 bytes x {size.vocab_size:,} x {recipe.max_model_len:,} tokens / "
        f"{ring} of a ring = {actor.logits / GIB:.1f} GiB",
        f"    fullest GPU            {load.phase}: {load.used / GIB:.1f} of {load.limit / GIB:.0f} GiB",
        f"    a step                 rollout and audit {step.rollout_s:.0f} + scoring {step.scoring_s:.0f} + "
        f"update {step.training_s:.0f} + sync {step.overhead_s:.0f} = {step.total_s:.0f} s",
        f"    hours                  {plan.num_steps} steps x {step.total_s:.0f} s / 3600 = {plan.hours:.1f}",
        f"    a checkpoint           12 (N + critic) = {held.checkpoint / GB:.1f} GB",
        f"    a model                2 N = {held.model / GB:.1f} GB",
        f"    kept                   {held.num_kept} checkpoints + {held.num_models} models = "
        f"{held.kept / GB:.1f} GB",
    ]


def test_the_table_is_what_the_commands_compute() -> None:
    text, rows = PAGE.read_text(), table()
    assert len(rows) == 6
    assert "\n".join(rows) in text, "\n".join(["write into docs/sizing.md:", *rows])


def test_everything_fits() -> None:
    for recipe, plan in plans():
        assert all(load.fits for load in plan.memory.loads)
        reasons = [line for line in plan.warnings if not line.startswith("reward.host")]
        assert reasons == [], recipe.model


def test_the_arithmetic_is_that_of_the_second_row() -> None:
    recipe, plan = plans()[1]
    lines = arithmetic(recipe, plan)
    assert "\n".join(lines) in PAGE.read_text(), "\n".join(["write into docs/sizing.md:", *lines])
    assert plan.storage.checkpoint == 12 * (
        plan.dimensions.num_parameters + plan.dimensions.num_critic_parameters
    )

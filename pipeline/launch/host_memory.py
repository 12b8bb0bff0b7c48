"""Whether a machine without a GPU has the memory for a training: asked before it, not by the kernel."""

from __future__ import annotations

from pipeline.container import usable_memory
from pipeline.estimate.memory import GIB
from pipeline.estimate.plan import estimate
from pipeline.estimate.without_gpus import host_bytes, needs_no_gpu
from pipeline.settings.recipe import Recipe

_SURE = 0.8  # of the estimate; a training that needs less than that has not been seen


def check_host_memory(recipe: Recipe, have: int | None = None) -> None:
    """Refuses a training on CPUs that cannot fit.

    Args:
        recipe: With a small model; of others nothing is known here.
        have: Bytes, in place of this machine's.

    Raises:
        ValueError: the machine, or its container, has too little.
    """
    try:
        plan = estimate(recipe)
    except (ValueError, FileNotFoundError):  # dimensions that are not known, rows that are still to be made
        return
    have = usable_memory() if have is None else have
    needed = host_bytes(plan)
    if needs_no_gpu(plan.dimensions.num_parameters) and have < _SURE * needed:
        raise ValueError(
            f"memory: {recipe.name} needs about {needed / GIB:.0f} GiB without a GPU and this machine has "
            f"{have / GIB:.0f}; lower ppo.micro_batch_size ({recipe.ppo.micro_batch_size}) or "
            f"rollout.max_prompt_tokens ({recipe.rollout.max_prompt_tokens}), or train adapters: --set "
            "'cluster.lora={rank: 8, alpha: 16}'"
        )

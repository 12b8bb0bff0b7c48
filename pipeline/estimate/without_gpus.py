"""What runs without a GPU, on the CPU layer (`pipeline/cpu/`), and what it takes of a machine's memory."""

from __future__ import annotations

from pipeline.container import usable_memory
from pipeline.estimate.memory import GIB
from pipeline.estimate.plan import Estimate, estimate
from pipeline.settings.recipe import Recipe

TINY_BYTES = 8 * GIB  # host memory of a training of the tiny policy, measured
_PROCESSES = 6.5 * GIB  # Ray, trainer, engine with 1 GiB of cache, reward server, command: measured
_MOST_PARAMETERS = 500_000_000  # above, a step takes an hour on a few cores
_32_BITS = 2  # times the bytes of the estimate's 16
_SURE = 0.8  # of the estimate; a training that needs less than that has not been seen


def needs_no_gpu(num_parameters: int) -> bool:
    """Whether the CPU layer is used where there is no GPU: for small models."""
    return num_parameters <= _MOST_PARAMETERS


def host_bytes(plan: Estimate) -> float:
    """Host memory of a training on CPUs, where all roles share it.

    Weights, gradients and optimizer are 16 bytes a parameter here too; activations and logits are kept in
    twice the bytes of a GPU's. SmolLM2-135M in rows of 608 tokens, 8 at once: 17.7 GiB, and 17.5 measured.
    """
    roles = plan.memory.roles
    trained = [roles[name] for name in ("actor", "critic") if name in roles]
    held = sum(one.total - one.buffers + (one.activations + one.logits) * (_32_BITS - 1) for one in trained)
    scored = sum(roles[name].weights * _32_BITS for name in ("engine", "reference") if name in roles)
    return _PROCESSES + held + scored


def check_host_memory(recipe: Recipe, have: int | None = None) -> None:
    """Raises ValueError for a training of a small model on CPUs that has too little memory (bytes)."""
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

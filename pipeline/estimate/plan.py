"""An estimate of a whole run, out of its parts; and what one takes that runs on the CPU layer."""

from dataclasses import dataclass

from pipeline.container import usable_memory
from pipeline.estimate.dimensions import Dimensions, dimensions_of
from pipeline.estimate.memory import GIB, Memory, Storage, memory, storage
from pipeline.estimate.time import StepTime, step_time
from pipeline.estimate.workload import Workload, workload
from pipeline.rows import num_steps
from pipeline.settings.cluster import unreachable_from_nodes
from pipeline.settings.recipe import Recipe

TINY_BYTES = 8 * GIB  # host memory of a training of the tiny policy, measured
_PROCESSES = 6.5 * GIB  # Ray, trainer, engine with 1 GiB of cache, reward server, command: measured
_MOST_PARAMETERS = 500_000_000  # above, a step takes an hour on a few cores
_32_BITS = 2  # times the bytes of the estimate's 16
_SURE = 0.8  # of the estimate; a training that needs less than that has not been seen


@dataclass(frozen=True)
class Estimate:
    """What a recipe will take; `warnings` say why it would not run as it is."""

    dimensions: Dimensions
    workload: Workload
    memory: Memory
    step: StepTime
    storage: Storage
    num_steps: int
    num_gpus: int
    held_out_s: float  # of all looks at the held-out set
    warnings: tuple[str, ...]  # of GPUs' memory first

    @property
    def setting_warnings(self) -> tuple[str, ...]:
        """Those of settings alone, whatever the GPUs."""
        return self.warnings[sum(not load.fits for load in self.memory.loads) :]

    @property
    def hours(self) -> float:
        """Of all steps and held-out answers; starting, evaluating and uploading are not in it."""
        return (self.num_steps * self.step.total_s + self.held_out_s) / 3600

    @property
    def gpu_hours(self) -> float:
        return self.hours * self.num_gpus


def estimate(recipe: Recipe) -> Estimate:
    """Returns the estimate of a recipe.

    Raises:
        FileNotFoundError: its rows are not there, and no table of the paper stands for them.
        ValueError: the model's dimensions are not known, or the rows are too few or too long.
    """
    dimensions, load = dimensions_of(recipe.model_path), workload(recipe)
    space = memory(recipe, dimensions)
    steps = num_steps(recipe, load.num_rows)
    step, held_out = step_time(recipe, dimensions, load, cached_tokens=space.cached_tokens), recipe.held_out
    looks = -(-steps // held_out.every) * held_out.num_rows / recipe.answers_per_step if held_out else 0.0
    return Estimate(
        dimensions=dimensions,
        workload=load,
        memory=space,
        step=step,
        storage=storage(recipe, dimensions, num_steps=steps),
        num_steps=steps,
        num_gpus=recipe.num_gpus,
        held_out_s=looks * step.rollout_s,
        warnings=tuple(_warnings(recipe, dimensions, space)),
    )


def _warnings(recipe: Recipe, dimensions: Dimensions, space: Memory) -> list[str]:
    longest = recipe.max_model_len
    warnings = [
        f"{load.gpu}, {load.phase}: does not fit; shard, offload, shorten rollout.max_*_tokens, "
        f"or lower {'rollout' if load.phase == 'scoring' else 'ppo'}.micro_batch_size"
        for load in space.loads
        if not load.fits
    ]
    if space.cached_tokens < longest:
        warnings.append(
            f"engine: its cache holds {space.cached_tokens:,.0f} tokens, fewer than one row of {longest:,}; "
            "vLLM will not start, so raise cluster.engine_memory_fraction or engine_tensor_parallel"
        )
    if longest > dimensions.max_position_embeddings:
        warnings.append(
            f"rollout: prompt and response of {longest:,} tokens exceed the model's "
            f"{dimensions.max_position_embeddings:,}; vLLM will not start, so lower them"
        )
    problem = unreachable_from_nodes(recipe.reward.host, num_nodes=recipe.cluster.num_nodes)
    warnings += [problem] if problem else []
    return warnings


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
    held += max(0.0, plan.memory.scored - _32_BITS * (roles["actor"].activations + roles["actor"].logits))
    scored = sum(roles[name].weights * _32_BITS for name in ("engine", "reference") if name in roles)
    return _PROCESSES + held + scored


def check_host_memory(recipe: Recipe, have: int | None = None) -> None:
    """Raises ValueError for a training of a small model on CPUs that cannot fit into so many bytes."""
    try:
        plan = estimate(recipe)
    except (ValueError, FileNotFoundError):  # dimensions that are not known, rows that are still to be made
        return
    have = usable_memory() if have is None else have
    needed = host_bytes(plan)
    if needs_no_gpu(plan.dimensions.num_parameters) and have < _SURE * needed:
        raise ValueError(
            f"memory: {recipe.name} needs about {needed / GIB:.0f} GiB without a GPU and this machine has "
            f"{have / GIB:.0f}; lower ppo.micro_batch_size ({recipe.ppo.micro_batch_size}), "
            f"rollout.micro_batch_size ({recipe.rollout.micro_batch_size}) or rollout.max_prompt_tokens "
            f"({recipe.rollout.max_prompt_tokens}), or train adapters: "
            "--set 'cluster.lora={rank: 8, alpha: 16}'"
        )

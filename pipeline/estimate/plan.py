"""An estimate of a whole run, out of its parts."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.estimate.dimensions import Dimensions, dimensions_of
from pipeline.estimate.memory import Memory, Storage, memory, storage
from pipeline.estimate.time import StepTime, step_time
from pipeline.estimate.workload import Workload, workload
from pipeline.rows import num_steps
from pipeline.settings.cluster import unreachable_from_nodes
from pipeline.settings.recipe import Recipe


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
        f"{load.gpu}, {load.phase}: does not fit; shard, offload, or shorten rollout.max_*_tokens"
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

"""Bytes of checkpoints, on disk and in object storage.

DeepSpeed saves 12 bytes of optimizer a trained parameter and, below stage 3, the weights in 16 bits beside
them; frozen weights are saved at every stage. The model at the end is its weights in 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.estimate.dimensions import Dimensions
from pipeline.estimate.memory import num_frozen, num_trained
from pipeline.settings.recipe import Recipe

_ADAM, _WEIGHT = 12, 2  # bytes a parameter


@dataclass(frozen=True)
class Storage:
    """Bytes of a run's checkpoints and of its model."""

    checkpoint: float  # actor and critic, one step
    num_written: int  # over the run
    num_kept: int
    model: float
    num_models: int  # that of the end, and those beside checkpoints or the best

    @property
    def written(self) -> float:
        """Bytes that leave the machine if every checkpoint is uploaded."""
        return self.num_written * self.checkpoint + self.num_models * self.model

    @property
    def kept(self) -> float:
        """Bytes that lie there at the end."""
        return self.num_kept * self.checkpoint + self.num_models * self.model


def storage(recipe: Recipe, dimensions: Dimensions, *, num_steps: int) -> Storage:
    """Returns what a run of `num_steps` writes and keeps."""
    num_written = num_steps // recipe.checkpoint.every
    models = (False, True) if recipe.has_critic else (False,)
    return Storage(
        checkpoint=sum(_checkpoint(recipe, dimensions, critic=critic) for critic in models),
        num_written=num_written,
        num_kept=min(num_written, recipe.checkpoint.keep),
        model=_WEIGHT * dimensions.num_parameters,
        num_models=1 + (num_written if recipe.checkpoint.models else recipe.held_out is not None),
    )


def _checkpoint(recipe: Recipe, dimensions: Dimensions, *, critic: bool) -> float:
    cluster = recipe.cluster
    trained = num_trained(cluster, dimensions, critic=critic)
    each = _ADAM + (0 if cluster.zero_stage == 3 else _WEIGHT)
    return each * trained + _WEIGHT * num_frozen(cluster, dimensions, critic=critic)

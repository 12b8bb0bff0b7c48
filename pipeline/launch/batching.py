"""A recipe's micro-batches, in tokens."""

from __future__ import annotations

import math

from pipeline.settings.recipe import Recipe
from pipeline.training.trainer_settings import Batching


def batching(recipe: Recipe) -> Batching:
    """Returns micro-batches of as many tokens as `micro_batch_size` rows of the longest length have.

    So the longest rows decide about memory, as `pipeline.estimate` counts it, and shorter ones go together in
    greater number. The rows are dealt into so many shares that the ranks of every model get equally many.
    """
    cluster = recipe.cluster
    ranks = [cluster.actor_ranks, *([cluster.critic_ranks] if recipe.has_critic else [])]
    return Batching(
        num_shares=math.lcm(*(num // cluster.ring_attention for num in ranks)),
        scoring_tokens=recipe.rollout.micro_batch_size * recipe.max_model_len,
        update_tokens=recipe.ppo.micro_batch_size * recipe.max_model_len,
    )

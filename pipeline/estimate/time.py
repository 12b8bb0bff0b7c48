"""Seconds of a PPO step and hours of a run.

A forward pass costs 2 FLOPs a parameter and token, training three times that (Kaplan et al. 2020, section
2.1: C = 6ND; Hoffmann et al. 2022, appendix F), one more forward pass with checkpointing; LoRA needs no
gradients of frozen weights, half of the backward pass. Attention adds 4 FLOPs a layer, channel and pair of
tokens, half of them behind the causal mask (Chowdhery et al. 2022, appendix B). Prompts are read at the GPU's
FLOPs; answers are written at its bandwidth, since each token reads all weights and the sequence's keys and
values once (Pope et al. 2022, section 2). Means stand for all rows, also in attention's square.
"""

import math
from dataclasses import dataclass

from pipeline.estimate.dimensions import Dimensions
from pipeline.estimate.workload import RoleLoad, Workload
from pipeline.settings.cluster import Colocation
from pipeline.settings.recipe import Recipe


@dataclass(frozen=True)
class StepTime:
    rollout_s: float
    scoring_s: float
    training_s: float
    overhead_s: float
    overlaps: bool = False  # engines answer while the actor trains

    @property
    def total_s(self) -> float:
        """One phase after the other; in asynchronous mode the longer of rollout and update."""
        update_s = self.scoring_s + self.training_s
        busy_s = max(self.rollout_s, update_s) if self.overlaps else self.rollout_s + update_s
        return busy_s + self.overhead_s


def step_time(recipe: Recipe, dimensions: Dimensions, load: Workload, *, cached_tokens: float) -> StepTime:
    """Returns the time of a PPO step; `cached_tokens` is what one engine's cache holds."""
    rollouts = (_rollout(recipe, dimensions, role, cached_tokens=cached_tokens) for role in load.roles)
    scoring, training = _update(recipe, dimensions, load)
    return StepTime(
        rollout_s=sum(rollouts),
        scoring_s=scoring,
        training_s=training,
        overhead_s=recipe.estimate.step_overhead_s,
        overlaps=recipe.rollout.max_staleness > 0,
    )


def forward_flops(dimensions: Dimensions, tokens: float, *, head: bool = True) -> float:
    """FLOPs of one forward pass over one sequence, with or without the matrix to logits."""
    parameters = dimensions.num_body_parameters + (dimensions.num_head_parameters if head else 0)
    attention = 2 * dimensions.num_hidden_layers * dimensions.query_size * tokens**2
    return 2 * parameters * tokens + attention


def training_factor(recipe: Recipe) -> int:
    """Forward passes that one training pass is worth."""
    backward = 1 if recipe.cluster.lora else 2
    return 1 + backward + (1 if recipe.cluster.gradient_checkpointing else 0)


def _rollout(recipe: Recipe, dimensions: Dimensions, role: RoleLoad, *, cached_tokens: float) -> float:
    """Seconds of one role's requests, in as many waves as the engines' caches let them run."""
    cluster, assumed = recipe.cluster, recipe.estimate
    gpus = cluster.num_engines * cluster.engine_tensor_parallel
    read = role.requests * forward_flops(dimensions, role.prompt_tokens, head=False)
    read_s = read / (gpus * assumed.gpu_tflops * 1e12 * assumed.prefill_mfu)
    each = role.prompt_tokens + role.completion_tokens
    waiting = role.requests / cluster.num_engines
    at_once = min(max(cached_tokens / each, 1.0), max(waiting, 1.0))
    waves = math.ceil(waiting / at_once)
    read_bytes = 2 * dimensions.num_parameters + at_once * each * dimensions.key_value_bytes
    bandwidth = cluster.engine_tensor_parallel * assumed.gpu_bandwidth_gb_s * 1e9 * assumed.decode_bandwidth
    most = recipe.max_turn_tokens[role.role]
    longest = min(role.completion_tokens * assumed.longest_over_mean, most)
    # All waves but the last are refilled as sequences end; the last one waits for its longest.
    written = (waves - 1) * role.completion_tokens + longest
    return read_s + written * read_bytes / bandwidth


def _update(recipe: Recipe, dimensions: Dimensions, load: Workload) -> tuple[float, float]:
    """Seconds of log-probabilities and values, and of the PPO update, over the rows of a step."""
    cluster, assumed = recipe.cluster, recipe.estimate
    rate = assumed.gpu_tflops * 1e12 * assumed.mfu
    lengths = [
        role.prompt_tokens + role.completion_tokens for role in load.roles if role.role in recipe.train_roles
    ]
    actor, critic = (
        recipe.answers_per_step * sum(forward_flops(dimensions, tokens, head=head) for tokens in lengths)
        for head in (True, False)
    )
    actor_s = actor / (rate * cluster.actor_ranks)
    critic_s = critic / (rate * cluster.critic_ranks) if recipe.has_critic else 0.0
    reference_s = actor_s if recipe.ppo.kl_coef else 0.0
    passes = training_factor(recipe) * recipe.ppo.epochs
    if cluster.colocate is Colocation.ALL:
        return actor_s + critic_s + reference_s, passes * (actor_s + critic_s)
    in_turn = cluster.colocate is Colocation.ACTOR_REF or cluster.lora  # of adapters both are one model
    policy_s = actor_s + reference_s if in_turn else actor_s
    return max(policy_s, critic_s), passes * max(actor_s, critic_s)

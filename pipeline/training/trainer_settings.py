"""What the trainer, the models' actors and the agents of a run need beside OpenRLHF's own arguments."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path
from typing import Self

from pydantic import Field

from pipeline.cpu.speed import PhaseThreads
from pipeline.settings.recipe import Recipe
from reward.config import Settings

SETTINGS_VARIABLE = "MARCH_TRAINER_SETTINGS"


class Batching(Settings):
    """How a step's rows are computed."""

    num_shares: int = Field(ge=1, description="Into which a step's rows are dealt, as the ranks take them.")
    scoring_tokens: int = Field(ge=1, description="Of a micro-batch of a forward pass, padding included.")
    update_tokens: int = Field(ge=1, description="Of a micro-batch of a backward pass.")

    @classmethod
    def of(cls, recipe: Recipe) -> Self:
        """Returns micro-batches of as many tokens as `micro_batch_size` rows of the longest length have.

        So the longest rows decide about memory, as `pipeline.estimate` counts it, and shorter ones go
        together in greater number. Rows are dealt into so many shares that the ranks of every model get
        equally many.
        """
        cluster = recipe.cluster
        ranks = [cluster.actor_ranks, *([cluster.critic_ranks] if recipe.has_critic else [])]
        return cls(
            num_shares=math.lcm(*(num // cluster.ring_attention for num in ranks)),
            scoring_tokens=recipe.rollout.micro_batch_size * recipe.max_model_len,
            update_tokens=recipe.ppo.micro_batch_size * recipe.max_model_len,
        )


class TrainerSettings(Settings):
    """Travels as JSON in an environment variable that every process of the run has."""

    recipe: Recipe
    run_dir: Path
    registry: str = Field(description="Name of the actor that knows the engines.")
    num_steps: int = Field(description="PPO steps of the run.")
    reward_urls: tuple[str, ...] = Field(min_length=1, description="The servers that share the audits.")
    batching: Batching
    threads: PhaseThreads | None = Field(
        default=None, description="Of each process in each phase, on CPUs; None leaves them as they are."
    )

    @property
    def num_optimizer_steps(self) -> int:
        """The horizon of the learning rates; OpenRLHF counts only those of the Solver's rows."""
        return self.num_steps * self.recipe.ppo.epochs

    @classmethod
    def from_environment(cls) -> TrainerSettings:
        """Reads what `pipeline.launch.worker` set."""
        return _parsed(os.environ[SETTINGS_VARIABLE])


@cache
def _parsed(text: str) -> TrainerSettings:
    return TrainerSettings.model_validate_json(text)

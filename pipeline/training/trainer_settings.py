"""What the trainer and the policy's actors need beside OpenRLHF's own arguments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from pydantic import Field

from pipeline.cpu.speed import PhaseThreads
from pipeline.settings.canary import CanaryPlan
from pipeline.settings.guards import GuardSettings
from pipeline.settings.held_out import HeldOutSettings
from pipeline.settings.ppo import PpoSettings
from reward.config import Settings
from reward.types import Role

SETTINGS_VARIABLE = "MARCH_TRAINER_SETTINGS"


class Batching(Settings):
    """How a step's rows are computed."""

    num_shares: int = Field(ge=1, description="Into which a step's rows are dealt, as the ranks take them.")
    scoring_tokens: int = Field(ge=1, description="Of a micro-batch of a forward pass, padding included.")
    update_tokens: int = Field(ge=1, description="Of a micro-batch of a backward pass.")


class TrainerSettings(Settings):
    """Travels as JSON in an environment variable that every actor of the run has."""

    run_dir: Path
    namespace: str
    registry: str
    num_steps: int = Field(description="PPO steps of the run.")
    seed: int = Field(description="Of the order in which the queries are asked.")
    train_roles: tuple[Role, ...] = Field(description="An answer has a row of each.")
    ppo: PpoSettings
    batching: Batching
    threads: PhaseThreads | None = Field(
        default=None, description="Of each process in each phase, on CPUs; None leaves them as they are."
    )
    max_staleness: int = Field(
        default=0, ge=0, description="Weight syncs an answer may be old; older ones are masked."
    )
    guards: GuardSettings
    canary: CanaryPlan | None
    held_out: HeldOutSettings | None = None
    thinking: bool = Field(default=False, description="Whether responses begin with thought.")
    probe_tolerance: float | None = Field(
        description="None switches the probe off: an engine that sleeps gives no samples."
    )

    @property
    def num_optimizer_steps(self) -> int:
        """The horizon of the learning rates; OpenRLHF counts only those of the Solver's rows."""
        return self.num_steps * self.ppo.epochs

    @classmethod
    def from_environment(cls) -> Self:
        """Reads what `pipeline.launch.worker` set."""
        return cls.model_validate_json(os.environ[SETTINGS_VARIABLE])

"""The settings of a warm-up; a part of a recipe, though a training does not read them."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from pipeline.settings.cluster import LoraSettings
from reward.config import Settings


class RoleShares(Settings):
    """How many of the demonstrations are of each role, as weights."""

    solver: float = Field(default=0.35, ge=0)
    proposer: float = Field(default=0.15, ge=0)
    checker: float = Field(default=0.5, ge=0, description="The hardest of the three, and the one that pays.")

    @model_validator(mode="after")
    def _something_is_shown(self) -> Self:
        if self.solver + self.proposer + self.checker == 0:
            raise ValueError("all shares are 0; give at least one role a share")
        return self


class WarmupSettings(Settings):
    """Supervised fine-tuning before the reinforcement."""

    num_demonstrations: int = Field(
        default=640, ge=1, description="Some are shown twice where the world has fewer."
    )
    demonstrations: Path | None = Field(
        default=None,
        description="JSONL of your own in place of a world's: messages, completion, and role if you like.",
    )
    shares: RoleShares = RoleShares()
    cannot_answer_share: float = Field(
        default=0.1, ge=0, le=1, description="Of a Checker's questions: about what no document says."
    )
    epochs: int = Field(default=1, ge=1)
    batch_size: int = Field(default=8, ge=1, description="Demonstrations of an update.")
    micro_batch_size: int = Field(default=4, ge=1, description="Of them, how many at once.")
    lr: float = Field(default=1.5e-4, gt=0)
    lr_scheduler: str = Field(default="cosine_with_min_lr", description="One of OpenRLHF's.")
    warmup_ratio: float = Field(
        default=0.1, ge=0, lt=1, description="Share of the updates in which the rate rises."
    )
    max_tokens: int = Field(default=1024, ge=16, description="Longer demonstrations are left out.")
    lora: LoraSettings | None = Field(
        default=None, description="Adapters, added to the weights in the end; all weights when left out."
    )
    save_every: int = Field(default=20, ge=1, description="Updates between two checkpoints.")

    @model_validator(mode="after")
    def _batches_are_whole(self) -> Self:
        if self.batch_size % self.micro_batch_size:
            raise ValueError(
                f"batch_size: {self.batch_size} is no multiple of micro_batch_size {self.micro_batch_size}"
            )
        if self.demonstrations is None and self.num_demonstrations < self.batch_size:
            raise ValueError(
                f"num_demonstrations: {self.num_demonstrations} is less than one batch of {self.batch_size}"
            )
        return self

    @property
    def num_accumulated(self) -> int:
        return self.batch_size // self.micro_batch_size

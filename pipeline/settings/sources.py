"""Where a run's prompts, its held-out rows and its rewards come from."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from pipeline.settings.worlds import WikiSettings, WorldSettings
from reward.config import LocalSamplerConfig, OpenAISamplerConfig, Settings


class DataSettings(Settings):
    """Where the prompts come from: prepared rows, or those of a world, made when a run starts."""

    source: Literal["prepared", "tiny", "wiki"] = "prepared"
    path: Path | None = Field(
        default=None, description="Folder that `march prepare` wrote; needs source: prepared."
    )
    world: WorldSettings = Field(default=WorldSettings(), description="For source: tiny.")
    wiki: WikiSettings = Field(default=WikiSettings(), description="For source: wiki.")
    max_steps: int | None = Field(default=None, ge=1, description="PPO steps; all rows once when left out.")

    @property
    def is_made(self) -> bool:
        """Whether the rows are a world's, which nobody has to prepare."""
        return self.source != "prepared"

    @model_validator(mode="after")
    def _source_has_what_it_needs(self) -> Self:
        if self.source == "prepared" and self.path is None:
            raise ValueError("path: missing; give the folder that `march prepare` wrote")
        if self.source == "tiny" and self.max_steps is None:
            raise ValueError("max_steps: missing; worlds are made on the spot, so say how many steps")
        return self


class HeldOutSettings(Settings):
    """Rows that are answered and audited, and never trained on."""

    every: int = Field(default=20, ge=1, description="Steps between two looks; the last step is one, too.")
    num_rows: int = Field(
        default=100,
        ge=1,
        description="Most queries of a look: of the file's beginning, or of the world's held-out rows. Never "
        "more than the training has.",
    )
    path: Path | None = Field(
        default=None,
        description="Plain JSONL (id, query, documents) with `answers` where they are known; the world's own "
        "held-out rows when left out.",
    )
    patience: int | None = Field(
        default=None,
        ge=1,
        description="Looks in a row that were not better than the best, after which the run ends; null: all "
        "steps are taken.",
    )


class RewardSettings(Settings):
    """The reward servers of a run; they sample its own rollout engines by default."""

    num_servers: int = Field(
        default=1, ge=1, le=64, description="Processes that share the audits (docs/scaling.md)."
    )
    host: str = Field(
        default="127.0.0.1",
        description="This machine's address for rollout engines on others; plain HTTP, answers signed.",
    )
    patience_s: float = Field(
        default=120.0, ge=0, description="How long a step waits for servers that are gone."
    )
    deadline_s: float = Field(
        default=150.0,
        gt=0,
        le=3600,
        description="For one audit, all its turns: an audit that takes longer is UNSCORED.",
    )
    sampler: OpenAISamplerConfig | LocalSamplerConfig | None = Field(
        default=None,
        discriminator="kind",
        description="What plays Proposer and Checker in place of the live policy: a frozen model; then only "
        "the Solver can be trained.",
    )

"""Where a run's prompts and its rewards come from."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from pipeline.settings.worlds import WikiSettings, WorldSettings
from reward.config import (
    AuditConfig,
    LocalSamplerConfig,
    OpenAISamplerConfig,
    RewardFunction,
    Settings,
    UncoveredPolicy,
)


class DataSettings(Settings):
    """Where the prompts come from: prepared rows, or those of a world, made when a run starts."""

    source: Literal["prepared", "tiny", "wiki"] = "prepared"
    path: Path | None = Field(
        default=None, description="Folder that `march prepare` wrote; for source: prepared."
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


class RewardModelSettings(Settings):
    """An extra term from a learned reward model, for the Solver's turns alone."""

    url: str = Field(
        pattern=r"^https?://[^@]+$",
        description="OpenRLHF's reward wire, such as http://127.0.0.1:5000/get_reward of its `serve_rm`.",
    )
    weight: float = Field(default=0.1, description="Of its score.")
    limit: float = Field(
        default=0.25,
        gt=0,
        lt=0.5,
        description="Largest size of the weighted score. It must be too small to lift an answer that is not "
        "supported over one that is (`check_reward_model`); with the audit's own rewards, below 0.5.",
    )
    timeout_s: float = Field(default=60.0, gt=0)


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
    model: RewardModelSettings | None = Field(
        default=None, description="A learned reward model beside the audit; none when left out."
    )


def check_reward_model(
    model: RewardModelSettings, audit: AuditConfig, *, truncated_reward: float | None
) -> None:
    """Refuses a term that could lift an answer that is not supported over one that is.

    Args:
        model: The term, at most `limit` up or down for each answer.
        audit: What answers are paid without it.
        truncated_reward: What an answer that was cut is paid instead, term included; None for no such rule.

    Raises:
        ValueError: a limit that is too large, or error rates, which come as close to a supported answer as an
            answer is long.
    """
    if audit.reward_function is RewardFunction.ERROR_RATE:
        raise ValueError(
            "reward.model: with audit.reward_function error_rate one error in many claims costs less than "
            "the term can give back; set it to ztr, or leave the model out"
        )
    penalty = audit.coverage_penalty if audit.uncovered is UncoveredPolicy.IGNORE else 0.0
    supported = audit.reward_supported - penalty
    without_claims = (audit.reward_no_claims, audit.reward_abstention, audit.reward_right_abstention)
    others = [one for one in without_claims if one is not None]
    bound = (supported - max([audit.reward_refuted, *others])) / 2
    if truncated_reward is not None:
        bound = min(bound, supported - truncated_reward)
    if model.limit >= bound:
        raise ValueError(
            f"reward.model.limit: {model.limit:g} is not below {bound:g}, so the term could lift an answer "
            "that is refuted, cut or without claims over a supported one; lower it, or audit.reward_refuted, "
            "audit.reward_no_claims, audit.reward_abstention, audit.reward_right_abstention, "
            "audit.coverage_penalty or ppo.truncated_reward"
        )

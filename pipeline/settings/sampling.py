"""How the live policy is sampled for a PPO step, and how far it may run ahead of the update."""

from __future__ import annotations

from pydantic import Field

from reward.config import Settings


class RolloutSettings(Settings):
    """Generation by the live policy, shared by all three roles."""

    batch_size: int = Field(default=32, ge=1, description="Queries a PPO step; 32 in the paper.")
    samples_per_query: int = Field(default=1, ge=1)
    micro_batch_size: int = Field(
        default=4, ge=1, description="Rows of the longest length in one forward pass; sets memory."
    )
    temperature: float = Field(
        default=0.6, gt=0, le=2, description="0.6 in the paper; the Checker samples at it too."
    )
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_prompt_tokens: int = Field(
        default=24_567, ge=1, description="The paper's; longer prompts are filtered."
    )
    max_response_tokens: int = Field(default=8_192, ge=1, description="The paper's.")
    max_staleness: int = Field(
        default=0,
        ge=0,
        description="Weight syncs that an answer may be old when it is trained. 0: the engines wait for each "
        "update. More: OpenRLHF's asynchronous mode, they answer so many batches ahead meanwhile.",
    )

"""Settings of the audit and of the reward server. A default is vetted; unknown keys are refused."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Settings(BaseModel):
    """A frozen part of a configuration tree."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SamplingSettings(Settings):
    """How a role is sampled."""

    temperature: float = Field(default=0.6, ge=0, le=2, description="0.6 in the paper (Table 6).")
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_tokens: int = Field(default=2048, ge=1, le=131_072, description="Most tokens of one completion.")


class UncoveredPolicy(StrEnum):
    """What a number of the response that no claim covers does to the verdict."""

    REFUTE = "refute"  # zero tolerance: an unchecked number is an unsupported number
    UNSCORED = "unscored"  # the Proposer failed, so say nothing
    IGNORE = "ignore"  # the paper's own reward; invites "less said, less leaked"


class AuditConfig(Settings):
    """One audit: the prompts, the voters, the guards and the reward."""

    prompts: str = Field(
        default="full", description='"full", "compact", or the path of a YAML file like them.'
    )
    proposer: SamplingSettings = SamplingSettings()
    checker: SamplingSettings = SamplingSettings()
    voters: int = Field(
        default=3, ge=1, le=15, description="Independent Checker samples; odd, three in the paper."
    )
    min_valid_voters: int | None = Field(
        default=None, ge=1, description="Fewest readable votes a claim; default majority."
    )
    proposer_retries: int = Field(
        default=1, ge=0, le=5, description="Fresh samples after an unusable claim list."
    )
    max_claims: int = Field(
        default=64, ge=1, le=512, description="More claims than this make the audit UNSCORED."
    )
    uncovered: UncoveredPolicy = UncoveredPolicy.REFUTE
    verbatim_evidence: bool = Field(
        default=False,
        description='A number whose evidence stands in no document verbatim counts as "cannot answer".',
    )
    reward_supported: float = 0.0
    reward_refuted: float = -1.0
    reward_no_claims: float = Field(default=-1.0, description="An answer without claims is not paid.")
    max_response_chars: int = Field(default=100_000, ge=1)
    max_documents_chars: int = Field(
        default=1_000_000, ge=1, description="All documents of a query together."
    )

    @model_validator(mode="after")
    def _fields_fit_together(self) -> Self:
        if self.voters % 2 == 0:
            raise ValueError(f"voters: {self.voters} is even, so votes can tie; use {self.voters + 1}")
        if self.min_valid_voters is not None and self.min_valid_voters > self.voters:
            raise ValueError(
                f"min_valid_voters: {self.min_valid_voters} exceeds voters: {self.voters}; lower it"
            )
        if not self.reward_refuted < self.reward_supported:
            raise ValueError("reward_refuted: must be below reward_supported")
        if self.reward_no_claims > self.reward_supported:
            raise ValueError(
                "reward_no_claims: must not exceed reward_supported; saying nothing is never paid best"
            )
        return self

    @property
    def num_valid_voters_needed(self) -> int:
        """Fewest readable votes that decide a claim."""
        return self.min_valid_voters if self.min_valid_voters is not None else self.voters // 2 + 1


class OpenAISamplerConfig(Settings):
    """An OpenAI-compatible server, such as `vllm serve`."""

    kind: Literal["openai"] = "openai"
    base_url: str = Field(description="With the version, e.g. http://127.0.0.1:8000/v1")
    model: str
    api_key_env: str = Field(
        default="OPENAI_API_KEY", description="Environment variable that holds the key, if any."
    )
    timeout_s: float = Field(default=120.0, gt=0)
    max_retries: int = Field(default=3, ge=0, le=10)
    max_in_flight: int = Field(default=256, ge=1)


class RaySamplerConfig(Settings):
    """The live rollout engines of a training run, over Ray: every role is the current policy."""

    kind: Literal["ray"] = "ray"
    address: str = Field(description="Address of the Ray cluster, e.g. 127.0.0.1:6379")
    namespace: str = "march"
    registry: str = Field(
        default="march-engines", description="Named actor from which the trainer hands out engines."
    )
    tokenizer: str = Field(description="Folder or name of the policy's tokenizer.")
    max_model_len: int = Field(ge=2, description="Prompt and completion together, in tokens.")
    timeout_s: float = Field(
        default=120.0, gt=0, description="For one generation; a sleeping engine never answers."
    )


class LocalSamplerConfig(Settings):
    """vLLM inside this process."""

    kind: Literal["vllm"] = "vllm"
    model: str = Field(description="Folder or name of a Hugging Face model.")
    max_model_len: int | None = Field(default=None, ge=2)
    seed: int = 0


SamplerConfig = OpenAISamplerConfig | RaySamplerConfig | LocalSamplerConfig


class ServerConfig(Settings):
    """The reward server. Its token comes from the environment variable `token_env`, never from a file."""

    host: str = "127.0.0.1"
    port: int = Field(default=5001, ge=1, le=65_535)
    token_env: str = "MARCH_REWARD_TOKEN"
    audit: AuditConfig = AuditConfig()
    sampler: SamplerConfig = Field(discriminator="kind")
    deadline_s: float = Field(default=150.0, gt=0, lt=180, description="Below OpenRLHF's 180 s a request.")
    max_in_flight: int = Field(
        default=512, ge=1, description="Audits at once; more are answered 503 with Retry-After."
    )
    max_body_bytes: int = Field(default=16 * 1024**2, ge=1024)
    strip_suffixes: tuple[str, ...] = Field(
        default=("<|end|>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"),
        description="End tokens that OpenRLHF's wire leaves at the end of a response.",
    )
    audit_log: Path | None = Field(default=None, description="JSONL of every verdict given; none by default.")

"""The settings of the canary, a frozen Checker beside the live one (`pipeline.training.canary`)."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from reward.config import LocalSamplerConfig, OpenAISamplerConfig, SamplerConfig, Settings


class CanarySettings(Settings):
    answers: int = Field(default=8, ge=0, description="Of a step, checked a second time; 0 switches it off.")
    base_url: str | None = Field(
        default=None,
        description="An OpenAI-compatible server, e.g. http://host:8000/v1; left out, the initial policy in "
        "an engine of its own, which takes one more GPU.",
    )
    model_name: str | None = Field(default=None, description="The model's name on that server.")
    timeout_s: float = Field(
        default=120.0, gt=0, description="Longest that a step waits for it after its update."
    )

    @model_validator(mode="after")
    def _a_server_has_a_model(self) -> Self:
        if (self.base_url is None) != (self.model_name is None):
            names = ("base_url", "model_name")
            given, missing = names[::-1] if self.base_url is None else names
            raise ValueError(
                f"{given}: given without {missing}; give both, or neither for the initial policy"
            )
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise ValueError(f"base_url: {self.base_url!r} is no address; write http://host:port/v1")
        return self

    def sampler(self, *, model: str, max_model_len: int, seed: int) -> SamplerConfig | None:
        if not self.answers:
            return None
        if self.base_url and self.model_name:
            return OpenAISamplerConfig(
                base_urls=(self.base_url,), model=self.model_name, timeout_s=self.timeout_s
            )
        return LocalSamplerConfig(
            model=model, max_model_len=max_model_len, seed=seed, timeout_s=self.timeout_s
        )

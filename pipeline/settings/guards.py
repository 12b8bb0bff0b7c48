"""The settings of what watches a run: its guards and its canary.

Which figure each guard follows, and how, is in `pipeline.training.guards`.
"""

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from reward.config import LocalSamplerConfig, OpenAISamplerConfig, SamplerConfig, Settings


class GuardAction(StrEnum):
    """What a guard does when its patience is over."""

    WARN = "warn"  # say so, in the log and beside the progress
    STOP = "stop"  # end the run; the same command goes on from the last checkpoint
    ROLL_BACK = "roll_back"  # end it at the last checkpoint whose answers left all guards quiet


class Guard(Settings):
    limit: float = Field(gt=0, allow_inf_nan=False)
    patience: int = Field(default=5, ge=1, description="Steps in a row over the limit before it acts.")
    action: GuardAction = GuardAction.WARN


class NoClaimsGuard(Guard):
    limit: float = Field(default=0.5, gt=0, lt=1, description="Largest share of a step's answers.")


class UnscoredGuard(Guard):
    limit: float = Field(
        default=0.2, gt=0, lt=1, description="Largest share of a step's answers, below max_unscored_rate."
    )


class CanaryGuard(Guard):
    limit: float = Field(
        default=0.3, gt=0, lt=1, description="Largest gap of the support rates, live less frozen."
    )


class KlGuard(Guard):
    limit: float = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="Largest mean divergence from the reference of any trained role, nats a token.",
    )


class LengthGuard(Guard):
    limit: float = Field(
        default=0.3, gt=0, lt=1, description="Smallest share of the first steps' mean length in tokens."
    )
    baseline_steps: int = Field(default=5, ge=1, description="First steps, which it does not judge.")


class GrowthGuard(Guard):
    limit: float = Field(
        default=3.0,
        gt=1,
        allow_inf_nan=False,
        description="Largest multiple of the first steps' mean length in tokens.",
    )
    baseline_steps: int = Field(default=5, ge=1, description="First steps, which it does not judge.")


class GuardSettings(Settings):
    """What stops a run that can no longer be trusted; null switches one of the last six off."""

    max_unscored_rate: float = Field(
        default=0.5,
        ge=0,
        lt=1,
        description="Of a step's answers; above it the run stops before it trains on the step.",
    )
    probe_tolerance: float = Field(
        default=0.1,
        gt=0,
        description="Largest mean gap of engines and actor on a step's tokens, nats each. On equal weights "
        "in bfloat16 it is below 0.005 where the policy is sure and 0.04 where it is not.",
    )
    no_claims: NoClaimsGuard | None = NoClaimsGuard()
    unscored: UnscoredGuard | None = UnscoredGuard()
    canary_gap: CanaryGuard | None = CanaryGuard()
    kl: KlGuard | None = KlGuard()
    length: LengthGuard | None = LengthGuard()
    growth: GrowthGuard | None = GrowthGuard()

    @model_validator(mode="after")
    def _each_can_act(self) -> Self:
        if self.unscored is None or self.unscored == UnscoredGuard():
            return self  # the default does not refuse a lower bound: it is in every recipe written out
        if self.unscored.limit >= self.max_unscored_rate:
            raise ValueError(
                f"unscored.limit: {self.unscored.limit} is not below max_unscored_rate "
                f"{self.max_unscored_rate}, where the run stops at once; lower it"
            )
        return self

    @property
    def by_name(self) -> dict[str, Guard]:
        """The six that follow a figure over the steps, without those that are off."""
        of_fields = ((name, getattr(self, name)) for name in type(self).model_fields)
        return {name: guard for name, guard in of_fields if isinstance(guard, Guard)}


class CanarySettings(Settings):
    """The canary, a frozen Checker beside the live one."""

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

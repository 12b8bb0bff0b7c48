"""What one request may ask to be audited otherwise than the server does by default, within bounds.

Only settings of the audit itself can be overridden: never prompts, sampling, rewards or the limits on length.
The trainer's `/get_reward` takes no overrides, so a training's reward has one meaning.
"""

from __future__ import annotations

from pydantic import Field, ValidationError

from reward.config import AuditConfig, UncoveredPolicy
from reward.serving.config import OverrideBounds
from reward.types import Record


class AuditOverrides(Record):
    """Settings of `AuditConfig` for one request; what is left out stays as the server has it."""

    voters: int | None = Field(default=None, ge=1, le=15)
    min_valid_voters: int | None = Field(default=None, ge=1)
    early_stop: bool | None = None
    verbatim_evidence: bool | None = None
    uncovered: UncoveredPolicy | None = None
    seed: int | None = Field(default=None, ge=0)
    max_claims: int | None = Field(default=None, ge=1, le=512)


class OverrideRefused(ValueError):
    """An override is out of bounds or does not fit the other settings; one line that names field and mend."""


def apply_overrides(
    config: AuditConfig, overrides: AuditOverrides | None, *, bounds: OverrideBounds
) -> AuditConfig:
    """The settings of one request.

    Raises:
        OverrideRefused: a value exceeds its bound, or the settings do not fit together.
    """
    changes = overrides.model_dump(exclude_none=True) if overrides else {}
    if not changes:
        return config
    for field, bound, setting in (
        ("voters", bounds.max_voters, "max_voters"),
        ("max_claims", bounds.max_claims, "max_claims"),
    ):
        if changes.get(field, 0) > bound:
            raise OverrideRefused(
                f"overrides.{field}: {changes[field]} exceeds this server's bound {bound}; "
                f"ask for less, or raise overrides.{setting} in its settings"
            )
    try:
        return AuditConfig.model_validate({**config.model_dump(), **changes})
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise OverrideRefused(f"overrides.{problem['msg'].removeprefix('Value error, ')}") from error

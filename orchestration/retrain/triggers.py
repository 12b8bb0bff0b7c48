"""When a job is retrained: the `triggers` of a job's YAML; each part may be left out.

triggers:
  cron: {expression: "30 2 * * mon-fri", timezone: Europe/Berlin}
  data: {paths: [runs/data/shop], pointers: [datasets/shop]}
  drift: {verdicts: ["audits/*.jsonl"], answers: ["answers/*.jsonl"], max_unfaithful: 0.05}
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

from reward.config import Settings

SKIP_GRACE_S = 60  # a busy machine is no missed trigger


class Missed(StrEnum):
    """What becomes of times that passed while the service was down, or the job was running."""

    RUN_ONCE = "run_once"  # one retraining for all of them, if the last one is not too old
    SKIP = "skip"


class CronSettings(Settings):
    """By the clock: a cron expression as Debian's cron reads it, switches of daylight saving included."""

    expression: str = Field(description='Minute, hour, day, month, weekday; e.g. "30 2 * * mon-fri".')
    timezone: str = Field(default="UTC", description="IANA name, e.g. Europe/Berlin.")
    missed: Missed = Missed.RUN_ONCE
    grace_s: int = Field(
        default=86_400, ge=1, description="run_once: how late a missed time may still start, in seconds."
    )

    @field_validator("timezone")
    @classmethod
    def _is_a_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"{name!r} is no time zone; write an IANA name such as Europe/Berlin") from None
        return name

    @model_validator(mode="after")
    def _ever_comes(self) -> Self:
        from cronsim import CronSim, CronSimError

        try:
            next(CronSim(self.expression, datetime.now(UTC)))
        except CronSimError as error:
            raise ValueError(
                f"expression: {self.expression!r}: {error}; write five fields, e.g. '30 2 * * mon-fri'"
            ) from None
        except StopIteration:
            raise ValueError(f"expression: {self.expression!r} never comes; fix day and month") from None
        return self

    @property
    def latest_s(self) -> int:
        """How late a time may still start, in seconds."""
        return self.grace_s if self.missed is Missed.RUN_ONCE else SKIP_GRACE_S


class DataSettings(Settings):
    """By new data: something has another digest than when the last retraining that ended began."""

    paths: tuple[Path, ...] = Field(
        default=(),
        description="Folders of rows (march prepare), known by their manifest, or files. With no pointers "
        "either: what the job itself reads.",
    )
    pointers: tuple[str, ...] = Field(default=(), description="Pointers of the artifact store.")
    every_s: float = Field(default=300.0, ge=1, description="How often it is looked at, in seconds.")
    at_first: bool = Field(
        default=False, description="Whether data is new that is there when it is first looked at."
    )


class DriftSettings(Settings):
    """By drift: production answers are known to be unfaithful more often than allowed.

    The bound is one-sided and by document. All looks at new answers between two retrainings share `alpha`, so
    it is the chance that answers which are good enough ever start one.
    """

    verdicts: tuple[str, ...] = Field(min_length=1, description="Verdicts of march audit: files or patterns.")
    answers: tuple[str, ...] = Field(
        default=(),
        description="The audited rows (JSONL): answers of one source count together. Without them each "
        "answer counts as independent.",
    )
    max_unfaithful: float = Field(default=0.05, gt=0, lt=1, description="Share of refuted answers allowed.")
    alpha: float = Field(default=0.05, gt=0, le=0.2, description="False starts, all looks together.")
    min_answers: int = Field(
        default=200, ge=20, description="Scored answers a look needs; fewer say nothing."
    )
    min_documents: int = Field(default=30, ge=2, description="Sources they must be about.")
    max_unscored: float = Field(
        default=0.1, ge=0, lt=1, description="Share of failed audits a look may have."
    )
    window: int = Field(default=5_000, ge=20, description="Answers looked at: the last ones, by file name.")
    every_s: float = Field(default=900.0, ge=1, description="How often it is looked at, in seconds.")
    cool_down_s: float = Field(
        default=86_400.0, ge=0, description="Least time between two retrainings for drift, in seconds."
    )

    @model_validator(mode="after")
    def _the_window_holds_enough(self) -> Self:
        if self.window < self.min_answers:
            raise ValueError(f"window: {self.window} is less than min_answers, {self.min_answers}; raise it")
        return self


class BackoffSettings(Settings):
    """What follows a retraining that failed."""

    attempts: int = Field(default=3, ge=1, description="For one trigger; then it waits for the next one.")
    first_s: float = Field(default=600.0, gt=0, description="Before the second attempt; doubled each time.")
    most_s: float = Field(default=21_600.0, gt=0, description="Most seconds between two attempts.")


class Triggers(Settings):
    """What starts a retraining of a job; without any, only `march retrain` does."""

    cron: CronSettings | None = None
    data: DataSettings | None = None
    drift: DriftSettings | None = None
    backoff: BackoffSettings = BackoffSettings()

"""When a job is retrained: the `triggers` of a job's YAML; each part may be left out.

triggers:
  cron: {expression: "30 2 * * mon-fri", timezone: Europe/Berlin}
  data: {paths: [runs/data/shop], pointers: [datasets/shop]}
  drift: {verdicts: ["audits/*.jsonl"], answers: ["answers/*.jsonl"], max_unfaithful: 0.05}
"""

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Self
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from reward.config import Settings


class Cause(StrEnum):
    CRON = "cron"
    DATA = "data"
    DRIFT = "drift"


class CronSettings(Settings):
    """By the clock: a cron expression as Debian's cron reads it, switches of daylight saving included."""

    expression: str = Field(description='Minute, hour, day, month, weekday; e.g. "30 2 * * mon-fri".')
    timezone: ZoneInfo = Field(default=ZoneInfo("UTC"), description="IANA name, e.g. Europe/Berlin.")
    grace_s: int = Field(
        default=86_400,
        ge=1,
        description="How late a missed time may still start a retraining, in seconds; longer than the time "
        "between two looks.",
    )

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


class DataSettings(Settings):
    """By new data: something has another digest than when the last retraining that ended well began."""

    paths: tuple[Path, ...] = Field(
        default=(),
        description="Folders of rows (march prepare), known by their manifest, or files. With no pointers "
        "either: what the job itself reads.",
    )
    pointers: tuple[str, ...] = Field(default=(), description="Pointers of the artifact store.")
    settle_s: float = Field(
        default=5.0,
        ge=0,
        description="New data is looked at again after so many seconds, and counts if it is still the same.",
    )


class DriftSettings(Settings):
    """By drift: production answers are known to be unfaithful more often than allowed.

    The bound is one-sided and by document. A look is made at every `min_answers` new verdicts; all looks
    between two retrainings share `alpha`, so it is the chance that answers which are good enough ever start
    one, however often the command runs.
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
        default=200, ge=20, description="Verdicts from one look to the next; fewer scored ones say nothing."
    )
    min_documents: int = Field(default=30, ge=2, description="Sources they must be about.")
    max_unscored: float = Field(
        default=0.1, ge=0, lt=1, description="Share of failed audits a look may have."
    )
    window: int = Field(default=5_000, ge=20, description="Answers looked at: the last ones, by file name.")
    cool_down_s: float = Field(
        default=86_400.0, ge=0, description="Least time between two retrainings for drift, in seconds."
    )

    @model_validator(mode="after")
    def _the_window_holds_enough(self) -> Self:
        if self.window * (1 - self.max_unscored) < self.min_answers:
            raise ValueError(
                f"window: {self.window} holds fewer than min_answers, {self.min_answers}, without the share "
                f"max_unscored, {self.max_unscored:g}, that may be unscored; raise it"
            )
        return self


class BackoffSettings(Settings):
    attempts: int = Field(default=3, ge=1, description="For one trigger; then it waits for the next one.")
    first_s: float = Field(default=600.0, gt=0, description="Before the second attempt; doubled each time.")
    most_s: float = Field(default=21_600.0, gt=0, description="Most seconds between two attempts.")


class Triggers(Settings):
    """What starts a retraining of a job; without any, only `march retrain` does."""

    cron: CronSettings | None = None
    data: DataSettings | None = None
    drift: DriftSettings | None = None
    backoff: BackoffSettings = BackoffSettings()

    @property
    def is_empty(self) -> bool:
        return self.cron is None and self.data is None and self.drift is None

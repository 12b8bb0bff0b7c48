"""What a run keeps of itself: checkpoints to resume from, rollouts, and its record in MLflow."""

from pydantic import Field

from reward.config import Settings


class CheckpointSettings(Settings):
    every: int = Field(default=20, ge=1, description="Steps between checkpoints; 20 in the paper.")
    keep: int = Field(
        default=3, ge=2, description="Two at least: a kill while one is written must leave another."
    )
    restarts: int = Field(
        default=3,
        ge=0,
        description="Times that a command goes on by itself from the last checkpoint when a process died.",
    )
    models: bool = Field(
        default=False, description="A model to evaluate beside each checkpoint; none of them is removed."
    )


class RolloutFileSettings(Settings):
    """The answers of each step, which are kept in the run's folder with verdicts and documents."""

    artifacts: bool = Field(default=True, description="Whether the files are MLflow artifacts, too.")


class TrackingSettings(Settings):
    uri: str | None = Field(
        default=None, description="MLflow; MLFLOW_TRACKING_URI, else a SQLite file beside the runs."
    )
    experiment: str = "march"
    rollouts: RolloutFileSettings = RolloutFileSettings()

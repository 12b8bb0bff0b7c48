"""What a run is, as its `run.json` says, and what is said when it stopped."""

from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from pipeline.settings.recipe import Recipe
from pipeline.settings.resume import without_gone
from reward.config import Settings

RESULT_FILE = "result.json"


class RunState(Settings):
    """What a run is; written at its start, compared on every resume."""

    recipe: Recipe
    recipe_digest: str
    asked: tuple[str, ...] | None = Field(
        default=None,
        description="Settings that its user gave, by `--set` or a file of their own; None in the files of "
        "earlier versions.",
    )
    rows: Path = Field(description="The prepared JSONL.")
    num_rows: int
    rows_sha256: str | None = Field(default=None, description="None in the files of earlier versions.")
    weights_sha256: str | None = Field(default=None, description="Of a local model's folder; likewise.")
    tracking_uri: str
    mlflow_run_id: str

    @field_validator("recipe", mode="before")
    @classmethod
    def _earlier_versions_are_read(cls, recipe: Any) -> Any:
        return without_gone(recipe) if isinstance(recipe, dict) else recipe


class TrainingFailedError(RuntimeError):
    """The worker ended with an error; the message says which and where its log is.

    `exit_code` is 1, or 3 and 4 when a guard stopped the run or rolled it back. `may_pass`: another worker
    may come through.
    """

    def __init__(self, message: str, *, exit_code: int = 1, may_pass: bool = True) -> None:
        super().__init__(message)
        self.exit_code, self.may_pass = exit_code, may_pass

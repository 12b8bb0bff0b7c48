"""The record of what made a model. What nobody wrote down is None: later it may have changed."""

from __future__ import annotations

from pydantic import Field, JsonValue

from pipeline.models.cache import Origin
from reward.types import Record


class Surroundings(Record):
    """Where a training ran: written down when it began, and again when it went on elsewhere."""

    git_commit: str | None = Field(default=None, description="None outside a checkout.")
    git_dirty: bool | None = Field(default=None, description="Whether files differed from the commit.")
    git_diff_sha256: str | None = Field(default=None, description="Of `git diff HEAD`, where it is dirty.")
    locks: dict[str, str] = Field(default={}, description="SHA-256 of each lock file, by name.")
    image_digest: str | None = Field(default=None, description="MARCH_IMAGE_DIGEST, where an image ran.")
    packages: dict[str, str] = Field(default={}, description="Versions by package.")
    python: str = ""
    hardware: dict[str, str] = Field(default={}, description="Machine, cores, memory, GPUs.")


class DataRecord(Record):
    """The rows that were trained on."""

    source: str
    num_rows: int
    rows_sha256: str = Field(
        description="Of all rows; MLflow's own dataset digest reads the first 10,000 alone."
    )
    inputs: dict[str, str] = Field(default={}, description="SHA-256 of the files they were made of.")
    artifact: str | None = Field(default=None, description="Digest of its manifest in the store.")


class ModelRecord(Record):
    """Weights."""

    name: str = Field(description="Folder or name, as the recipe or the run has it.")
    weights_sha256: str | None = Field(
        default=None, description="None of a model that is not on this machine."
    )
    artifact: str | None = Field(default=None, description="Digest of its manifest in the store.")
    lineage: str | None = Field(default=None, description="Digest of what made it, where that is known.")
    origin: Origin | None = Field(default=None, description="Of a model that `march base-model` fetched.")


class EvaluationRecord(Record):
    """Figures of the model."""

    model: str
    judge: str | None
    settings_sha256: str
    seeds: dict[str, JsonValue] = Field(default={}, description="By setting.")
    sources: dict[str, str] = Field(default={}, description="Where each benchmark's files were.")
    benchmarks: dict[str, float | None] = Field(
        default={}, description="Primary figure; None: nothing scored."
    )
    num_unscored: dict[str, int] = Field(default={}, description="Items without a score, in no figure.")
    prompts: dict[str, str] = Field(default={}, description="Digest of each benchmark's prompts.")
    average: float | None = None
    artifact: str | None = None


class Lineage(Record):
    """What made a model."""

    run: str = Field(description="Name of the run.")
    recipe_name: str
    recipe_digest: str
    recipe: dict[str, JsonValue] = Field(
        description="As it was merged; `march model reproduce` writes it out."
    )
    data: DataRecord | None = Field(description="None where the rows' folder is gone.")
    parent: ModelRecord
    model: ModelRecord | None = Field(description="None of a run that is not finished.")
    seed: int
    prompt_digests: dict[str, str] = Field(description="By role or part.")
    surroundings: tuple[Surroundings, ...] = Field(description="In the order in which they were used.")
    mlflow_run_id: str
    num_steps: int
    metrics: dict[str, float] = Field(default={}, description="Of the last step.")
    worker_s: float | None = Field(default=None, description="Of the last process; a resumed run had others.")
    evaluations: tuple[EvaluationRecord, ...] = ()

    @property
    def is_of_prepared_rows(self) -> bool:
        """Whether the rows were read from a folder; else the recipe makes them."""
        data = self.recipe.get("data")
        return isinstance(data, dict) and data.get("source") == "prepared"

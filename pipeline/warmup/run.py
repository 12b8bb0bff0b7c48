"""`march warmup`: a recipe's model learns the three roles' formats, or goes on where it was interrupted.

    RUN/demonstrations.jsonl   what it learns from, made before anything heavy starts
    RUN/run.json               what the run is
    RUN/checkpoints/           while it runs: weights and optimizer, every `warmup.save_every` updates
    RUN/steps.jsonl            loss and rate of each update, also in MLflow
    RUN/model/                 the result, with model.origin.json beside it; then result.json

As in `pipeline.train` there are two processes: this one checks, prepares and shows progress, and the worker
(`pipeline.warmup.worker`) runs OpenRLHF's `train_sft`. The result is a model's folder, where a training
starts: `march train RECIPE --set model=RUN/model`.
"""

import os
import shlex
import shutil
from collections import Counter
from pathlib import Path

from pydantic import Field

from pipeline import cpu
from pipeline.cpu.speed import num_cores
from pipeline.launch.cpu_speed import dtype_of
from pipeline.launch.failures import ERROR_FILE, read_failure
from pipeline.launch.reward_servers import has_gpu
from pipeline.launch.run_lock import LOG_FILE, only_run_in, start_worker
from pipeline.launch.signals import terminable
from pipeline.lineage.record import note_surroundings
from pipeline.models.cache import require_model
from pipeline.ports import hold_port
from pipeline.record.mlflow_sender import kept_status
from pipeline.record.run import RESULT_FILE, TrainingFailedError
from pipeline.record.tracking import (
    RUN_FILE,
    drop_steps_after,
    read_steps,
    start_mlflow_run,
    tracking_address,
)
from pipeline.settings.recipe import Recipe, load_recipe
from pipeline.warmup.prepare import DEMONSTRATIONS_FILE, Prepared, demand_demonstrations, prepare
from reward.config import Settings
from reward.offline.files import replace_file

CHECKPOINTS, MODEL = "checkpoints", "model"


class WarmupState(Settings):
    """What a run is; written once, compared on every resume."""

    recipe: Recipe
    key: str = Field(description="Digest of all that decides the result.")
    prepared: Prepared
    tracking_uri: str
    mlflow_run_id: str

    @property
    def num_steps(self) -> int:
        """Whole updates, over all epochs together."""
        settings = self.recipe.warmup
        micro_batches = self.prepared.num_written // settings.micro_batch_size
        return micro_batches * settings.epochs // settings.num_accumulated


def warmup(
    recipe: str, *, run_dir: Path | None = None, overrides: list[str] | None = None, dry_run: bool = False
) -> int:
    """Runs or resumes a warm-up and shows its progress; returns the exit code. A dry run trains nothing.

    Raises:
        ValueError, FileNotFoundError: a recipe, a model or demonstrations that cannot be used.
        TrainingFailedError: the run stopped; the same command resumes it.
        KeyboardInterrupt: by Ctrl-C or SIGTERM; likewise.
    """
    from pipeline.record.progress import show_progress

    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    settings = load_recipe(recipe, overrides)
    require_model(settings.model)
    demand_demonstrations(settings)
    folder = (run_dir or Path("runs") / f"{settings.name}-warmup").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with only_run_in(folder, "march warmup") as lock:
        known = _known(folder)
        prepared = prepare(settings, folder, known_key=known.key if known else None)
        print(describe(settings, prepared, folder))
        if dry_run:
            return 0
        state = known or _open_run(settings, prepared, folder)
        if (folder / RESULT_FILE).exists():
            print(f"{folder}: this warm-up is finished: {_next(recipe, overrides, folder)}")
            return 0
        with terminable(), kept_status(folder), hold_port("127.0.0.1") as port:
            note_surroundings(folder)
            (folder / ERROR_FILE).unlink(missing_ok=True)
            drop_steps_after(folder, last_checkpoint(folder))
            environment = _environment(settings, port.getsockname()[1])
            worker = start_worker("pipeline.warmup.worker", folder, lock, environment)
            show_progress(worker, folder, total_steps=state.num_steps, note="")
            if worker.returncode != 0:
                what, done = read_failure(folder, worker.returncode).message, len(read_steps(folder))
                where = f"(after {done} updates; log: {folder / LOG_FILE}; the same command resumes the run)"
                raise TrainingFailedError(f"{what} {where}")
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    print(f"{folder / MODEL}: {_next(recipe, overrides, folder)}")
    return 0


def describe(recipe: Recipe, prepared: Prepared, folder: Path) -> str:
    """What a run will learn from, in a line."""
    roles = ", ".join(f"{num:,} {role}" for role, num in sorted(Counter(prepared.by_role).items()))
    dropped = f"; {prepared.num_overlong:,} over {recipe.warmup.max_tokens:,} tokens left out"
    return (
        f"{folder / DEMONSTRATIONS_FILE}: {prepared.num_written:,} demonstrations ({roles}), "
        f"{prepared.mean_tokens:,.0f} tokens each, longest {prepared.longest_tokens:,}"
        + (dropped if prepared.num_overlong else "")
    )


def last_checkpoint(folder: Path) -> int:
    """The update of the last whole checkpoint, which DeepSpeed names last; 0 without one."""
    latest = folder / CHECKPOINTS / "latest"
    return int(latest.read_text().strip().removeprefix("global_step")) if latest.is_file() else 0


def _known(folder: Path) -> WarmupState | None:
    path = folder / RUN_FILE
    return WarmupState.model_validate_json(path.read_text()) if path.is_file() else None


def _open_run(recipe: Recipe, prepared: Prepared, folder: Path) -> WarmupState:
    uri = tracking_address(recipe.tracking.uri, folder)
    params = recipe.model_dump(mode="json", include={"name", "model", "seed", "warmup", "data"})
    run_id = start_mlflow_run(
        tracking_uri=uri,
        artifact_root=folder.parent / "mlartifacts",
        experiment=recipe.tracking.experiment,
        name=folder.name,
        params=params | {"demonstrations_sha256": prepared.sha256},
    )
    state = WarmupState(
        recipe=recipe, key=prepared.key, prepared=prepared, tracking_uri=uri, mlflow_run_id=run_id
    )
    replace_file(folder / RUN_FILE, state.model_dump_json(indent=2) + "\n")
    return state


def _environment(recipe: Recipe, port: int) -> dict[str, str]:
    """One process that is a whole DeepSpeed job; it may use every core, since nobody else works meanwhile."""
    speed = {"OMP_NUM_THREADS": str(num_cores()), cpu.DTYPE_VARIABLE: dtype_of(recipe)}
    layer = {} if has_gpu() else cpu.ENVIRONMENT | speed
    return layer | {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "PYTHONUNBUFFERED": "1",
    }


def _next(recipe: str, overrides: list[str] | None, folder: Path) -> str:
    """The training of the same recipe, with the settings that are no warm-up's."""
    settings = [one for one in overrides or () if not one.startswith(("model=", "warmup."))]
    settings.append(f"model={os.path.relpath(folder / MODEL)}")
    words = [word for one in settings for word in ("--set", one)]
    return f"start from it: {shlex.join(['march', 'train', recipe, *words])}"

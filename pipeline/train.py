"""`march train`: a recipe becomes an OpenRLHF run, or goes on with one that was interrupted.

Two processes. The one that the user starts (`train`) checks everything that can be checked cheaply, prepares
the rows and shows progress. The worker (`python -m pipeline.train RUN_DIR`) starts Ray and the reward server
and runs OpenRLHF's own command line with our trainer in place; its output goes to `train.log`. A run lives in
one folder, and the same command on the same folder resumes it: `run.json` says what the run is, `steps.jsonl`
how far it came, `result.json` (last) that it is done.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import IO, Any

from pipeline.estimate.plan import check_host_memory
from pipeline.launch.failures import ERROR_FILE, read_failure, write_failure
from pipeline.launch.held_out_rows import write_held_out
from pipeline.launch.reward_servers import has_gpu, uncounted_gpu
from pipeline.launch.run_lock import LOG_FILE, only_run_in, start_worker
from pipeline.launch.signals import terminable
from pipeline.launch.worker import run_openrlhf
from pipeline.lineage.record import note_surroundings
from pipeline.models.cache import require_model
from pipeline.record.checkpoints import model_of, prepare_resume
from pipeline.record.mlflow_sender import kept_status, sent_to_mlflow
from pipeline.record.run import RESULT_FILE, RunState, TrainingFailedError
from pipeline.record.run_status import GUARDS_TAG, RESTARTS_TAG, note_status
from pipeline.record.tracking import RUN_FILE, drop_steps_after, read_steps
from pipeline.redaction import one_line
from pipeline.rows import num_steps, planned_rows, rows_file, write_made
from pipeline.settings.cluster import unreachable_from_nodes
from pipeline.settings.recipe import Recipe, load_recipe
from pipeline.settings.resume import asked_settings, gone_settings, resumed
from pipeline.training.held_out import Look, best_look, is_over, recorded_looks
from reward.offline.files import file_sha256, replace_file, weights_sha256


def train(
    recipe: str,
    *,
    run_dir: Path | None = None,
    overrides: list[str] | None = None,
    dry_run: bool = False,
    part_of: str | None = None,
) -> int:
    """Runs or resumes a training run and shows its progress; returns the exit code.

    At its end it prints what was made, unless it is part of something longer, which `part_of` names; MLflow's
    run has that name, too.

    Raises:
        ValueError, FileNotFoundError: a recipe, row file or run folder that cannot be used.
        TrainingFailedError: the run stopped; the same command resumes it.
        KeyboardInterrupt: by Ctrl-C or SIGTERM; likewise.
    """
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")  # read when MLflow is imported
    settings = load_recipe(recipe, overrides)
    folder = (run_dir or Path("runs") / settings.name).resolve()
    if file := next((one for one in (folder, *folder.parents) if one.is_file()), None):
        raise ValueError(f"--run-dir: {file} is a file; name a folder")
    require_model(settings.model)
    if dry_run:
        from pipeline.launch.dry_run import show_plan

        show_plan(settings, folder)
        return 0
    if not has_gpu():
        check_host_memory(settings)
    problem = unreachable_from_nodes(settings.reward.host, num_nodes=settings.cluster.num_nodes)
    if problem := problem or uncounted_gpu(settings.reward, on_gpus=has_gpu()):
        raise ValueError(problem)
    folder.mkdir(parents=True, exist_ok=True)
    with only_run_in(folder) as lock:
        asked = asked_settings(settings, recipe, overrides)
        state = _open_run(settings, folder, asked, name=part_of or folder.name)
        if (folder / RESULT_FILE).exists():
            print(f"{folder}: this run is finished; use another --run-dir for a new one")
            note_status(folder, "FINISHED")  # it may have been killed before
            with sent_to_mlflow(folder):
                return 0
        with terminable(), kept_status(folder):
            note_surroundings(folder)
            _train_to_the_end(state, folder, lock)
        if part_of is None:
            print(_end(state, run_dir or Path("runs") / settings.name), flush=True)
    return 0


def _end(state: RunState, folder: Path) -> str:
    """What a finished run has made, and what to do with it."""
    result = json.loads((folder / RESULT_FILE).read_text())
    best = result.get("best")
    of_step = f", of step {best['step']}: the best on held-out rows, {best['score']:.3g}" if best else ""
    return (
        f"model: {folder / result['model']}{of_step}\n"
        f"record: run {state.mlflow_run_id} of {state.tracking_uri}\n"
        f"next: march inspect {folder}"
    )


def _train_to_the_end(state: RunState, folder: Path, lock: IO[str]) -> None:
    """Runs a worker, and another one from the last checkpoint where a process of the one before has died.

    A worker that has finished no step would not come further a second time.

    Raises:
        TrainingFailedError: the last one failed, too, or its error is one that stays.
    """
    from pipeline.record.progress import show_progress

    total, most = num_steps(state.recipe, state.num_rows), state.recipe.checkpoint.restarts
    for restarts in count():
        (folder / ERROR_FILE).unlink(missing_ok=True)
        _demand_same_inputs(state, folder)
        drop_steps_after(folder, prepare_resume(folder / "checkpoints"))
        before = len(read_steps(folder))
        worker = start_worker("pipeline.train", folder, lock)
        show_progress(worker, folder, total_steps=total, note="" if restarts else state.recipe.note)
        if worker.returncode == 0:
            return
        failure, done = read_failure(folder, worker.returncode), len(read_steps(folder))
        if not failure.may_pass or done == before or restarts == most:
            fixed = "" if failure.may_pass else "once that is fixed "
            where = f"(after {done} steps; log: {folder / LOG_FILE}; {fixed}the same command resumes the run)"
            message, code = f"{failure.message} {where}", failure.exit_code
            raise TrainingFailedError(message, exit_code=code, may_pass=failure.may_pass)
        print(f"march: {failure.message}; restart {restarts + 1} of {most}", file=sys.stderr, flush=True)
        note_status(folder, "RUNNING", {RESTARTS_TAG: one_line(f"{restarts + 1}, after {failure.message}")})


def _open_run(recipe: Recipe, folder: Path, asked: tuple[str, ...], *, name: str) -> RunState:
    """Reads the run's state, or makes rows and an MLflow run and writes it."""
    path = folder / RUN_FILE
    if path.is_file():
        return _go_on(RunState.model_validate_json(path.read_text()), path, recipe, asked)
    from pipeline.record.tracking import start_mlflow_run, tracking_address

    rows, num_rows = rows_file(recipe, folder), planned_rows(recipe)
    if recipe.data.is_made:
        num_rows = write_made(recipe, rows.parent, num_rows)
    num_steps(recipe, num_rows)
    write_held_out(recipe, folder, rows)
    uri = tracking_address(recipe.tracking.uri, folder)
    run_id = start_mlflow_run(
        tracking_uri=uri,
        artifact_root=folder.parent / "mlartifacts",
        experiment=recipe.tracking.experiment,
        name=name,
        params=recipe.model_dump(mode="json") | {"recipe_digest": recipe.digest},
    )
    state = RunState(
        recipe=recipe,
        recipe_digest=recipe.digest,
        asked=asked,
        rows=rows,
        num_rows=num_rows,
        rows_sha256=file_sha256(rows),
        weights_sha256=_weights_of(recipe),
        tracking_uri=uri,
        mlflow_run_id=run_id,
    )
    replace_file(path, state.model_dump_json(indent=2) + "\n")
    return state


def _go_on(state: RunState, path: Path, now: Recipe, asked: tuple[str, ...]) -> RunState:
    """The run with the settings that it goes on with, now in `run.json`; ValueError for another training."""
    folder, recorded = path.parent, json.loads(path.read_text())["recipe"]
    try:
        found = resumed(state.recipe, now, asked_then=state.asked or (), asked_now=asked)
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from None
    if (folder / RESULT_FILE).exists():
        return state
    if gone := [".".join(place) for place in gone_settings(recorded)]:
        print(f"{folder}: goes on without settings that this version does not have: {', '.join(gone)}")
    if found.kept:
        print(f"{folder}: goes on with the recorded settings: {', '.join(map(str, found.kept))}")
    changed = state.model_copy(
        update={"recipe": found.recipe, "recipe_digest": found.recipe.digest, "asked": asked}
    )
    replace_file(path, changed.model_dump_json(indent=2) + "\n")
    if found.changed:
        print(f"{folder}: goes on with changed settings: {', '.join(map(str, found.changed))}")
    if found.guards:
        guards = found.recipe.guards.model_dump_json(exclude_none=True)
        note_status(folder, "RUNNING", {GUARDS_TAG: guards})
    return changed


def _demand_same_inputs(state: RunState, folder: Path) -> None:
    """ValueError where a worker would read other rows than those before it, or start from other weights.

    A checkpoint has a place among the rows, and the reference is loaded from the start's weights.
    """
    rows, weights = state.rows_sha256, state.weights_sha256
    changed = [f"{state.rows} has other rows"] if rows and file_sha256(state.rows) != rows else []
    if weights and _weights_of(state.recipe) != weights:
        changed.append(f"{state.recipe.model_path} has other weights")
    if changed:
        fix = "bring back what it had, or use another --run-dir"
        raise ValueError(f"{folder}: {' and '.join(changed)} than the run began with; {fix}")


def _weights_of(recipe: Recipe) -> str | None:
    model = Path(recipe.model_path)
    return weights_sha256(model) if model.is_dir() else None


def _demand_all_steps(state: RunState, num_done: int, looks: Sequence[Look]) -> None:
    """A run whose rows ended early, for whatever reason, is not finished."""
    held_out, wanted = state.recipe.held_out, num_steps(state.recipe, state.num_rows)
    if num_done < wanted and not (held_out and is_over(looks, held_out)):
        raise ValueError(f"the rows ended after {num_done} of {wanted} steps; use another --run-dir")


def run_worker(folder: Path) -> None:
    """The worker: Ray, the reward server, OpenRLHF; writes `result.json` when the model is saved."""
    state = RunState.model_validate_json((folder / RUN_FILE).read_text())
    start = time.monotonic()
    try:
        run_openrlhf(state, folder)
        num_done, looks = len(read_steps(folder)), recorded_looks(folder)
        _demand_all_steps(state, num_done, looks)
    except BaseException as error:
        write_failure(folder, error)
        raise
    result: dict[str, Any] = {"steps": num_done, "model": "model", "worker_s": time.monotonic() - start}
    if best := best_look(looks):
        result["best"] = {"step": best.step, "score": best.score}
        if best.step < num_done:
            _take_model(model_of(folder / "checkpoints", best.step), folder / "model")
    replace_file(folder / RESULT_FILE, json.dumps(result) + "\n")


def _take_model(best: Path, model: Path) -> None:
    """Puts the best model in the place of the last one."""
    partial = model.with_name("model.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(best, partial)
    shutil.rmtree(model)
    partial.rename(model)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    run_worker(Path(sys.argv[1]))

"""One cell run for real: its start, its training, its two measurements; all in a scratch folder.

What cells share is made once, under a digest: the start models and their measurements. A model or a
measurement that is there is whole, because both are written by rename.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from bench.ablations.plan import Cell, Start, code_digest
from bench.ablations.results import Row, figures_of, trained_of
from pipeline.demo.evaluation import Evaluation
from pipeline.launch.reward_servers import die_with_parent
from pipeline.launch.run_lock import LOG_FILE
from pipeline.record.run import TrainingFailedError
from pipeline.record.tracking import read_steps
from pipeline.settings.recipe import TINY_POLICY, load_recipe
from pipeline.tiny.manifest import MANIFEST
from pipeline.train import train

_T = TypeVar("_T")


class CellFailedError(RuntimeError):
    """A part of a cell ended with an error; the message says which and where its log is."""


def run_cell(cell: Cell, scratch: Path) -> Row:
    """Trains and measures; a training that stops makes a row with its reason and without figures.

    Args:
        cell: What to run.
        scratch: Folder of starts, runs and logs; nothing in it is data.
    """
    folder = new_folder(scratch / "runs", f"{cell.arm}-{cell.seed}-")
    phases: dict[str, float] = {}
    begun = {"code": code_digest(), "date": datetime.now(UTC).date().isoformat()}
    try:
        figures = _run(cell, scratch, folder, phases)
    except (TrainingFailedError, CellFailedError, ValueError, FileNotFoundError) as error:
        said = f"{error} {last_line(folder / 'training' / LOG_FILE)}"
        figures = {"failure": " ".join(said.replace(str(scratch), "").split())[:800], "num_failures": 1}
    took = {name: round(seconds, 1) for name, seconds in phases.items()}
    wall_s = round(phases.get("training", 0.0) + phases.get("after", 0.0), 1)
    named = {"arm": cell.arm, "seed": cell.seed, "settings": cell.digest}
    return Row.model_validate(named | begun | {"wall_s": wall_s, "phases_s": took} | figures)


def last_line(log: Path) -> str:
    """What a training's log ends with; a worker that dies early says why nowhere else."""
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    return next((line for line in reversed(lines) if line.strip()), "")


def new_folder(within: Path, prefix: str) -> Path:
    """Returns an empty folder and throws away what earlier calls left: a cell has one life.

    It has a name of its own, since processes of a call that was killed may still write to the last one.
    """
    within.mkdir(parents=True, exist_ok=True)
    for left in within.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=prefix, dir=within))


def _run(cell: Cell, scratch: Path, folder: Path, phases: dict[str, float]) -> dict[str, object]:
    start = _timed(phases, "start", lambda: start_model(cell.start, scratch))
    # One store for all cells: making a new one takes MLflow longer than a step.
    overrides = [*cell.overrides(str(start)), f"tracking.uri=sqlite:///{scratch / 'mlflow.db'}"]
    measured = scratch / "starts" / f"measured-{cell.start_digest}.json"
    asked = [*cell.evaluation, "--tries", str(cell.plan.tries)]
    before = _timed(phases, "before", lambda: measure(start, measured, asked))
    run = folder / "training"
    _timed(phases, "training", lambda: train(cell.plan.recipe, run_dir=run, overrides=overrides))
    after = _timed(phases, "after", lambda: measure(run / "model", folder / "after.json", asked))
    recipe = load_recipe(cell.plan.recipe, overrides)
    answers = recipe.rollout.batch_size * recipe.rollout.samples_per_query
    return {
        "preset": recipe.preset or "",
        "start": hashlib.sha256((start / "model.safetensors").read_bytes()).hexdigest()[:12],
        "before": figures_of(before),
        "after": figures_of(after),
        "trained": trained_of(read_steps(run), answers_per_step=answers),
    }


def start_model(start: Start, scratch: Path) -> Path:
    """Returns the folder of a start model; one that is not shipped is trained, once, some minutes long.

    Raises:
        CellFailedError: its training failed.
    """
    if not start.arguments:
        return TINY_POLICY
    folder = scratch / "starts" / start.digest
    if not (folder / MANIFEST).is_file():
        command = ["pipeline.tiny.supervised", "--out", str(folder), *start.arguments]
        _run_module(command, folder.with_suffix(".log"))
    return folder


def measure(model: Path, out: Path, arguments: Sequence[str]) -> Evaluation:
    """Returns the measurement in `out`, and makes it first where there is none.

    Raises:
        CellFailedError: vLLM did not start or failed.
    """
    if not out.is_file():
        command = ["pipeline.demo.evaluate", str(model), str(out), *arguments]
        _run_module(command, out.with_suffix(".log"))
    return Evaluation.model_validate_json(out.read_text())


def _run_module(command: Sequence[str], log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        line = [sys.executable, "-m", *command]
        ended = subprocess.run(line, stdout=file, stderr=subprocess.STDOUT, preexec_fn=die_with_parent)
    if ended.returncode:
        raise CellFailedError(f"{command[0]} ended with code {ended.returncode} (log: {log})")


def _timed(phases: dict[str, float], name: str, work: Callable[[], _T]) -> _T:
    start = time.monotonic()
    try:
        return work()
    finally:
        phases[name] = time.monotonic() - start

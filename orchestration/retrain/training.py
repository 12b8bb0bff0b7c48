"""The train stage: `march train` on the published rows, from the parent's weights.

The run's folder stays where it is from one attempt to the next, so a killed training goes on from its last
whole checkpoint on the same machine; on another one it begins again.
"""

import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from orchestration.registry.store import ModelVersion
from orchestration.registry.stored import local_weights
from orchestration.retrain.attempt import Attempt
from orchestration.retrain.records import KEY_DIGITS, ParentWeights, Stage, StageResult
from orchestration.retrain.rows import ROWS
from pipeline.lineage.publish import collect
from pipeline.lineage.record import SURROUNDINGS_FILE
from pipeline.record.run import RESULT_FILE
from pipeline.record.tracking import RUN_FILE, STEPS_FILE, TIMESTAMP, last_row, rows_since
from reward.offline.files import replace_file, weights_sha256

MODEL, RUN, LINEAGE_FILE = "model", "run", "lineage.json"
_KEPT = (RUN_FILE, RESULT_FILE, STEPS_FILE, SURROUNDINGS_FILE)
_TOKENS = "/num_tokens"
_POLL_S = 1.0


def train(attempt: Attempt) -> StageResult:
    """Trains, or goes on with it; TrainingFailedError where the run stopped."""
    from pipeline.train import train as run_training

    parent = attempt.request.parent
    assert parent is not None, "a training starts from something"
    # A training goes on only with a recipe that names the same place, so the rows alone decide it.
    place = attempt.job.folder / f"{ROWS}-{str(attempt.request.inputs[ROWS])[:KEY_DIGITS]}"
    rows = attempt.bring(attempt.made(Stage.PREPARE, ROWS), place)
    said = [*attempt.job.recipe.overrides, "data.source=prepared", f"data.path={rows}"]
    if parent.version is not None:
        said.append(f"model={bring_weights(parent)}")
    if attempt.recipe.tracking.uri is None:
        said.append(f"tracking.uri={attempt.job.registry.address}")
    run_dir, name = attempt.folder / RUN, f"{attempt.job.name}-{attempt.folder.name}"
    with _progress(attempt, run_dir):
        run_training(attempt.recipe_name, run_dir=run_dir, overrides=said, part_of=name)
    model = run_dir / "model"
    weights = attempt.publish(model, kind=MODEL)
    record = attempt.publish(_record(run_dir, attempt.folder / "record", parent, name), kind=RUN)
    drop_checkpoints(attempt, run_dir)
    made = {MODEL: weights.digest, RUN: record.digest}
    return attempt.result(made, facts={"weights_sha256": weights_sha256(model)})


def drop_checkpoints(attempt: Attempt, run_dir: Path) -> None:
    """Removes what only an unfinished training needs, unless it is to be kept, or models to choose from."""
    if not (attempt.job.keep_checkpoints or attempt.recipe.checkpoint.models):
        shutil.rmtree(run_dir / "checkpoints", ignore_errors=True)


def bring_weights(found: ParentWeights) -> Path:
    assert found.version is not None and found.sha256 is not None, found
    return local_weights(ModelVersion(found.version, found.uri, found.sha256, (), {}, 0))


def num_tokens(steps: Sequence[Mapping[str, float]]) -> int:
    return int(sum(value for step in steps for name, value in step.items() if name.endswith(_TOKENS)))


def _record(run_dir: Path, folder: Path, parent: ParentWeights, name: str) -> Path:
    """What the publish stage needs of a run, on whatever machine it is."""
    folder.mkdir(exist_ok=True)
    for file in _KEPT:
        if (run_dir / file).is_file():
            shutil.copyfile(run_dir / file, folder / file)
    lineage = collect(run_dir, parent=parent.lineage).model_copy(update={"run": name})
    replace_file(folder / LINEAGE_FILE, lineage.model_dump_json(indent=2) + "\n")
    return folder


@contextmanager
def _progress(attempt: Attempt, run_dir: Path) -> Iterator[None]:
    """Tells the steps and the tokens that were spent while a training runs in this process."""
    ended = threading.Event()
    last = last_row(run_dir) or {}
    spent, counted = 0, int(last.get(TIMESTAMP, 0))

    def tell(*, now: bool = False) -> None:
        nonlocal last, spent, counted
        # Steps behind the checkpoint that a run goes on from are dropped and done, and paid for, again.
        new, last = rows_since(run_dir, counted), last_row(run_dir) or {}
        spent, counted = spent + num_tokens(new), max([counted, *(row[TIMESTAMP] for row in new)])
        done, total = int(last.get("step", 0)), attempt.recipe.data.max_steps or 0
        attempt.tell(label="training", done=done, total=total, tokens=spent, now=now)

    def keep_telling() -> None:
        while not ended.wait(_POLL_S):
            tell()

    teller = threading.Thread(target=keep_telling, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
        tell(now=True)

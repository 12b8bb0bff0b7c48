"""The train stage: `march train` on the published rows, from the parent's weights.

The run's folder stays where it is from one attempt to the next, so a killed training goes on from its last
whole checkpoint on the same machine; on another one it begins again.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestration.registry.store import ModelVersion
from orchestration.registry.weights import local_weights
from orchestration.retrain.records import ParentWeights
from orchestration.retrain.rows import bring_rows
from orchestration.retrain.stages import StageResult
from orchestration.retrain.workshop import Workshop
from pipeline.atomic import write_atomically
from pipeline.evaluate.weights import weights_sha256
from pipeline.lineage.collect import collect
from pipeline.lineage.surroundings import SURROUNDINGS_FILE
from pipeline.record.run import RESULT_FILE, RunState
from pipeline.record.tracking import RUN_FILE, STEPS_FILE, read_steps

MODEL, RUN, LINEAGE_FILE = "model", "run", "lineage.json"
_KEPT = (RUN_FILE, RESULT_FILE, STEPS_FILE, SURROUNDINGS_FILE)
_TOKENS = "/num_tokens"
_POLL_S = 1.0


def train(shop: Workshop) -> StageResult:
    """Trains, or goes on with it.

    Raises:
        TrainingFailedError: the run stopped.
        ValueError: the rows or the parent's weights cannot be used.
    """
    from pipeline.train import train as run_training

    rows = bring_rows(shop)
    parent = ParentWeights.model_validate(shop.request.materials["parent"])
    run_dir = shop.folder / RUN
    before = num_tokens(read_steps(run_dir))
    with _told(shop, run_dir, before):
        run_training(shop.job.recipe.name, run_dir=run_dir, overrides=overrides(shop, rows, parent))
    model = run_dir / "model"
    weights = shop.publish(model, kind=MODEL)
    record = shop.publish(_record(run_dir, shop.folder / "record", parent), kind=RUN)
    state = RunState.model_validate_json((run_dir / RUN_FILE).read_text())
    steps = read_steps(run_dir)
    drop_checkpoints(shop, run_dir)
    return shop.result(
        outputs={MODEL: weights.digest, RUN: record.digest},
        facts={
            "weights_sha256": weights_sha256(model),
            "steps": len(steps),
            "mlflow_run_id": state.mlflow_run_id,
        },
        tokens=max(0, num_tokens(steps) - before),
    )


def drop_checkpoints(shop: Workshop, run_dir: Path) -> None:
    """Removes what only an unfinished training needs, unless it is to be kept, or models to choose from."""
    if not (shop.job.keep_checkpoints or shop.recipe.checkpoint.models):
        shutil.rmtree(run_dir / "checkpoints", ignore_errors=True)


def overrides(shop: Workshop, rows: Path, parent: ParentWeights) -> list[str]:
    """What the retraining says over the recipe."""
    found = [*shop.job.recipe.overrides, "data.source=prepared", f"data.path={rows}"]
    if parent.version is not None:
        found.append(f"model={bring_parent(parent)}")
    if shop.recipe.tracking.uri is None:
        found.append(f"tracking.uri={shop.job.registry.address}")
    return found


def bring_parent(parent: ParentWeights) -> Path:
    """The folder of a registered version's weights, verified."""
    assert parent.version is not None and parent.sha256 is not None, parent
    return local_weights(
        ModelVersion(
            version=parent.version, uri=parent.uri, sha256=parent.sha256, aliases=(), tags={}, created_ms=0
        )
    )


def num_tokens(steps: list[dict[str, float]]) -> int:
    """Tokens that all roles have written."""
    return int(sum(value for step in steps for name, value in step.items() if name.endswith(_TOKENS)))


def _record(run_dir: Path, folder: Path, parent: ParentWeights) -> Path:
    """What the publish stage needs of a run, on whatever machine it is."""
    folder.mkdir(exist_ok=True)
    for name in _KEPT:
        if (run_dir / name).is_file():
            shutil.copyfile(run_dir / name, folder / name)
    lineage = collect(run_dir, parent=parent.lineage)
    write_atomically(folder / LINEAGE_FILE, lineage.model_dump_json(indent=2) + "\n")
    return folder


@contextmanager
def _told(shop: Workshop, run_dir: Path, before: int) -> Iterator[None]:
    """Tells the steps and their tokens while a training runs in this process."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(_POLL_S):
            steps = read_steps(run_dir)
            tokens = max(0, num_tokens(steps) - before)
            total = shop.recipe.data.max_steps or 0
            shop.tell(label="training", done=len(steps), total=total, tokens=tokens, now=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()

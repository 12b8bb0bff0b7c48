"""The record of a run, put together from its folder, and that of an evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipeline.data.prepare import Manifest as DataManifest
from pipeline.data.prepare import read_manifest as read_data_manifest
from pipeline.evaluate.results import read_manifest as read_evaluation
from pipeline.evaluate.weights import weights_sha256
from pipeline.lineage.record import DataRecord, EvaluationRecord, Lineage, ModelRecord
from pipeline.lineage.surroundings import read_surroundings
from pipeline.models.cache import read_origin
from pipeline.record.run import RESULT_FILE, RunState
from pipeline.record.tracking import RUN_FILE, read_steps
from reward.roles.prompts import load_prompts


def collect(run_dir: Path, *, parent: str | None = None, weights: str | None = None) -> Lineage:
    """The record of a run.

    Args:
        run_dir: The run's folder.
        parent: Digest of the lineage of the model that it started from.
        weights: Digest of its own weights, where that is known; else their files are read.

    Raises:
        FileNotFoundError: the folder holds no run.
    """
    state, model = read_state(run_dir), model_folder(run_dir)
    data, steps = read_data_manifest(state.rows.parent), read_steps(run_dir)
    result = _result(run_dir)
    prompts = {"roles": load_prompts(state.recipe.audit.prompts).digest}
    return Lineage(
        run=run_dir.resolve().name,
        recipe_name=state.recipe.name,
        recipe_digest=state.recipe_digest,
        recipe=state.recipe.model_dump(mode="json"),
        data=_data(data) if data else None,
        parent=_model(state.recipe.model, Path(state.recipe.model_path), lineage=parent),
        model=_model(model.name, model, weights=weights) if model else None,
        seed=state.recipe.seed,
        prompt_digests=prompts | ({"rows": data.prompt_digest} if data else {}),
        surroundings=read_surroundings(run_dir),
        mlflow_run_id=state.mlflow_run_id,
        num_steps=len(steps),
        metrics={name: value for name, value in steps[-1].items() if name != "step"} if steps else {},
        worker_s=result.get("worker_s"),
    )


def model_folder(run_dir: Path) -> Path | None:
    """The folder of a run's weights; None of a run that is not finished."""
    result = _result(run_dir)
    return run_dir / str(result["model"]) if result else None


def read_state(run_dir: Path) -> RunState:
    """What a run wrote down when it started.

    Raises:
        FileNotFoundError: the folder holds no run.
    """
    path = run_dir / RUN_FILE
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; give the folder of a training run")
    return RunState.model_validate_json(path.read_text())


def _data(manifest: DataManifest) -> DataRecord:
    return DataRecord(
        source=manifest.source,
        num_rows=manifest.num_rows,
        rows_sha256=manifest.rows_sha256,
        inputs={one.name: one.sha256 for one in manifest.inputs},
    )


def _model(name: str, folder: Path, *, weights: str | None = None, lineage: str | None = None) -> ModelRecord:
    if weights is None and folder.is_dir():
        weights = weights_sha256(folder)
    return ModelRecord(name=name, weights_sha256=weights, lineage=lineage, origin=read_origin(folder))


def evaluation_record(folder: Path, artifact: str) -> EvaluationRecord:
    """The figures of a whole evaluation.

    Args:
        folder: Of the evaluation.
        artifact: Digest of its manifest in the store.

    Raises:
        FileNotFoundError: the folder holds none.
    """
    manifest = read_evaluation(folder)
    primary = {name: one.primary for name, one in manifest.benchmarks.items()}
    return EvaluationRecord(
        model=manifest.model,
        judge=manifest.judge,
        settings_sha256=manifest.settings_sha256,
        seeds={
            name: part["seed"]
            for name, part in manifest.settings.items()
            if isinstance(part, dict) and part.get("seed") is not None
        },
        sources={name: one.source for name, one in manifest.benchmarks.items()},
        benchmarks={name: one.value if one else None for name, one in primary.items()},
        num_unscored={name: one.num_unscored for name, one in primary.items() if one},
        prompts={name: one.card.prompt_digest for name, one in manifest.benchmarks.items()},
        average=manifest.average.value if manifest.average else None,
        artifact=artifact,
    )


def _result(run_dir: Path) -> dict[str, Any]:
    """What a finished run says; nothing of another one."""
    path = run_dir / RESULT_FILE
    return dict(json.loads(path.read_text())) if path.is_file() else {}

"""The record of a run, put together from its folder; and into the store, with all that it refers to."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.artifacts.address import Artifact
from pipeline.artifacts.backend import Advance, CorruptError, no_progress
from pipeline.artifacts.manifest import MODEL
from pipeline.artifacts.store import ArtifactStore
from pipeline.data.prepare import read_manifest as read_data_manifest
from pipeline.evaluate.results import read_manifest as read_evaluation
from pipeline.lineage.record import DataRecord, EvaluationRecord, Lineage, ModelRecord, read_surroundings
from pipeline.lineage.show import render_html, tree_of
from pipeline.models.cache import read_origin
from pipeline.record.run import RESULT_FILE, RunState
from pipeline.record.tracking import RUN_FILE, link_lineage, read_steps
from reward.offline.files import digest_of_files, weights_sha256
from reward.roles.prompts import load_prompts

DATA, EVALUATION, LINEAGE = "data", "evaluation", "lineage"  # kinds of manifests, beside MODEL
_FIELD = "lineage"


def collect(run_dir: Path, *, parent: str | None = None, weights: str | None = None) -> Lineage:
    """The record of a run.

    Args:
        run_dir: Its folder.
        parent: Digest of the lineage of the model that it started from.
        weights: Digest of its own weights, where that is known; else their files are read.

    Raises:
        FileNotFoundError: the folder holds no run.
    """
    state, model = read_state(run_dir), model_folder(run_dir)
    data, steps = read_data_manifest(state.rows.parent), read_steps(run_dir)
    result = _result(run_dir)
    prompts = {"roles": load_prompts(state.recipe.audit.prompts).digest}
    rows = (
        None
        if data is None
        else DataRecord(
            source=data.source,
            num_rows=data.num_rows,
            rows_sha256=data.rows_sha256,
            inputs={one.name: one.sha256 for one in data.inputs},
        )
    )
    return Lineage(
        run=run_dir.resolve().name,
        recipe_name=state.recipe.name,
        recipe_digest=state.recipe_digest,
        recipe=state.recipe.model_dump(mode="json"),
        data=rows,
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
    """What a run wrote down when it started; FileNotFoundError where the folder holds none."""
    path = run_dir / RUN_FILE
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; give the folder of a training run")
    return RunState.model_validate_json(path.read_text())


def _model(name: str, folder: Path, *, weights: str | None = None, lineage: str | None = None) -> ModelRecord:
    if weights is None and folder.is_dir():
        weights = weights_sha256(folder)
    return ModelRecord(name=name, weights_sha256=weights, lineage=lineage, origin=read_origin(folder))


def evaluation_record(folder: Path, artifact: str) -> EvaluationRecord:
    """The figures of a whole evaluation; `artifact` is the digest of its manifest in the store."""
    manifest = read_evaluation(folder)
    primary = {name: one.primary for name, one in manifest.benchmarks.items()}
    return EvaluationRecord(
        model=manifest.model,
        judge=manifest.judge,
        settings_sha256=manifest.settings_sha256,
        settings=manifest.settings,
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


def publish_run(
    store: ArtifactStore,
    run_dir: Path,
    *,
    evaluations: Sequence[Path] = (),
    parent: str | None = None,
    advance: Advance = no_progress,
) -> str:
    """Publishes a finished run and returns the digest of its lineage. The same run has the same digest.

    Raises:
        FileNotFoundError: a folder that holds no run or no whole evaluation.
        ValueError: the run is not finished, or an evaluation is of other weights.
    """
    rows = read_state(run_dir).rows.parent  # says so of a folder that holds no run
    folder = model_folder(run_dir)
    if folder is None:
        raise ValueError(f"{run_dir}: is not finished; the command that started it goes on with it")
    model = store.publish(folder, kind=MODEL, advance=advance)
    weights = digest_of_files({file.path: file.sha256 for file in model.manifest.files})
    for one in evaluations:
        of = read_evaluation(one).settings.get("weights_sha256")  # a server's are not known
        if of not in (None, weights):
            raise ValueError(f"{one}: evaluates other weights ({of!s:.12}) than the run's ({weights:.12})")
    lineage = collect(run_dir, parent=parent, weights=weights)
    data = store.publish(rows, kind=DATA, advance=advance) if lineage.data else None
    found = [
        evaluation_record(one, store.publish(one, kind=EVALUATION, advance=advance).digest)
        for one in evaluations
    ]
    return publish_record(
        store, lineage, model=model.digest, rows=data.digest if data else None, evaluations=found
    )


def publish_record(
    store: ArtifactStore,
    lineage: Lineage,
    *,
    model: str,
    rows: str | None = None,
    evaluations: Sequence[EvaluationRecord] = (),
) -> str:
    """Publishes the record of a finished run, which keeps what it names in the store; returns its digest."""
    assert lineage.model is not None, "the run is finished"
    changes: dict[str, object] = {
        "model": lineage.model.model_copy(update={"artifact": model}),
        "evaluations": tuple(evaluations),
    }
    if lineage.data is not None:
        changes["data"] = lineage.data.model_copy(update={"artifact": rows})
    named = [model, lineage.parent.lineage, rows, *(one.artifact for one in evaluations)]
    refers = [digest for digest in named if digest is not None]
    record = lineage.model_copy(update=changes).model_dump(mode="json")
    return store.publish(kind=LINEAGE, refers=refers, record={_FIELD: record}).digest


def link_run(store: ArtifactStore, run_dir: Path, digest: str) -> None:
    """Names the lineage of a run in MLflow, where its page is kept too; gc keeps what a run there names."""
    state = read_state(run_dir)
    page = render_html(tree_of(read_lineage(store, digest)))
    link_lineage(state.tracking_uri, state.mlflow_run_id, address=Artifact(store, digest).address, page=page)


def read_lineage(store: ArtifactStore, digest: str) -> Lineage:
    """The record of a manifest; ValueError for one of another kind."""
    manifest = store.manifest(digest)
    if manifest.kind != LINEAGE:
        raise ValueError(
            f"{digest[:16]}: is of kind {manifest.kind}, not {LINEAGE}; `march artifacts ls` lists them"
        )
    if _FIELD not in manifest.record:
        raise CorruptError(f"{digest[:16]}: holds no record; publish the run again")
    return Lineage.model_validate(manifest.record[_FIELD])

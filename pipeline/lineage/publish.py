"""A run into the store: weights, rows, evaluations, and the record that refers to them all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.artifacts.address import Artifact
from pipeline.artifacts.backend import Advance, no_progress
from pipeline.artifacts.failures import CorruptError
from pipeline.artifacts.manifest import MODEL
from pipeline.artifacts.store import ArtifactStore
from pipeline.evaluate.weights import digest_of_files
from pipeline.lineage.collect import collect, evaluation_record, model_folder, read_state
from pipeline.lineage.record import EvaluationRecord, Lineage
from pipeline.lineage.show import render_html, tree_of
from pipeline.record.tracking import link_lineage

DATA, EVALUATION, LINEAGE = "data", "evaluation", "lineage"  # kinds of manifests, beside MODEL
_FIELD = "lineage"


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
        ValueError: the run is not finished.
    """
    rows = read_state(run_dir).rows.parent  # says so of a folder that holds no run
    folder = model_folder(run_dir)
    if folder is None:
        raise ValueError(f"{run_dir}: is not finished; the command that started it goes on with it")
    model = store.publish(folder, kind=MODEL, advance=advance)
    weights = digest_of_files({file.path: file.sha256 for file in model.manifest.files})
    lineage = collect(run_dir, parent=parent, weights=weights)
    data = store.publish(rows, kind=DATA, advance=advance) if lineage.data else None
    found = [
        evaluation_record(one, store.publish(one, kind=EVALUATION, advance=advance).digest)
        for one in evaluations
    ]
    return publish_record(
        store,
        lineage,
        model=model.digest,
        rows=data.digest if data else None,
        evaluations=found,
    )


def publish_record(
    store: ArtifactStore,
    lineage: Lineage,
    *,
    model: str,
    rows: str | None = None,
    evaluations: Sequence[EvaluationRecord] = (),
) -> str:
    """Publishes a record, which keeps what it names in the store; returns its digest.

    Args:
        store: Where.
        lineage: Of a finished run.
        model: Manifest of its weights.
        rows: Manifest of its rows.
        evaluations: Of its weights, in the store.

    Raises:
        ValueError: something that is named is not in the store.
    """
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
    """Names the lineage of a run in MLflow, where its page is kept too; gc keeps what a run there names.

    Raises:
        ValueError: the run or MLflow's server cannot be reached.
    """
    state = read_state(run_dir)
    page = render_html(tree_of(read_lineage(store, digest)))
    link_lineage(state.tracking_uri, state.mlflow_run_id, address=Artifact(store, digest).address, page=page)


def read_lineage(store: ArtifactStore, digest: str) -> Lineage:
    """The record of a manifest.

    Raises:
        ValueError: the manifest is of something else.
    """
    manifest = store.manifest(digest)
    if manifest.kind != LINEAGE:
        raise ValueError(
            f"{digest[:16]}: is of kind {manifest.kind}, not {LINEAGE}; `march artifacts ls` lists them"
        )
    if _FIELD not in manifest.record:
        raise CorruptError(f"{digest[:16]}: holds no record; publish the run again")
    return Lineage.model_validate(manifest.record[_FIELD])

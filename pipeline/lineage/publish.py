"""A run into the store: weights, rows, evaluations, and the record that refers to them all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.artifacts.backend import Advance, no_progress
from pipeline.artifacts.failures import CorruptError
from pipeline.artifacts.store import ArtifactStore, Published
from pipeline.data.prepare import ROWS_FILE
from pipeline.lineage.collect import collect, rows_folder
from pipeline.lineage.record import Lineage

KIND, FIELD = "lineage", "lineage"


def publish_run(
    store: ArtifactStore,
    run_dir: Path,
    *,
    evaluations: Sequence[Path] = (),
    gate_report: Path | None = None,
    parent: str | None = None,
    advance: Advance = no_progress,
) -> Published:
    """Publishes a finished run and returns the manifest of its lineage. The same run has the same digest.

    Raises:
        FileNotFoundError: a folder that holds no run or no whole evaluation.
        ValueError: the run is not finished.
    """
    lineage = collect(run_dir, evaluations=evaluations, gate_report=gate_report, parent=parent)
    if lineage.model is None:
        raise ValueError(f"{run_dir}: is not finished; the command that started it goes on with it")
    model = store.publish(run_dir / lineage.model.name, kind="model", advance=advance)
    changes: dict[str, object] = {"model": lineage.model.model_copy(update={"artifact": model.digest})}
    refers = [model.digest, *([parent] if parent else [])]
    if lineage.data is not None:
        data = store.publish(rows_folder(run_dir), kind="data", advance=advance)
        found = {"artifact": data.digest, "version_id": data.versions.get(ROWS_FILE)}
        changes["data"] = lineage.data.model_copy(update=found)
        refers.append(data.digest)
    stored = [store.publish(folder, kind="evaluation", advance=advance).digest for folder in evaluations]
    pairs = zip(lineage.evaluations, stored, strict=True)
    changes["evaluations"] = tuple(one.model_copy(update={"artifact": digest}) for one, digest in pairs)
    record = lineage.model_copy(update=changes).model_dump(mode="json")
    return store.publish(kind=KIND, refers=[*refers, *stored], record={FIELD: record})


def read_lineage(store: ArtifactStore, digest: str) -> Lineage:
    """The record of a manifest.

    Raises:
        ValueError: the manifest is of something else.
    """
    manifest = store.manifest(digest)
    if manifest.kind != KIND:
        raise ValueError(
            f"{digest[:16]}: is of kind {manifest.kind}, not {KIND}; `march artifacts ls` lists them"
        )
    if FIELD not in manifest.record:
        raise CorruptError(f"{digest[:16]}: holds no record; publish the run again")
    return Lineage.model_validate(manifest.record[FIELD])

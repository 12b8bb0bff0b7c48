"""Where the inputs of a stage are: manifests of earlier stages in the store, and weights in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from orchestration.retrain.job import Job
from orchestration.retrain.records import ParentWeights
from orchestration.retrain.stages import Stage, StageResult
from orchestration.retrain.workshop import FILE_KIND, FOLDER_KIND
from pipeline.artifacts.store import ArtifactStore

MAX_MISSING = "max_missing"  # a share: what the gates let an evaluation lack


def files_of_job(stage: Stage, job: Job) -> dict[str, Path]:
    """Files that a stage reads where the job says, by name; a cluster gets them from the store."""
    if stage in (Stage.EVALUATE, Stage.EVALUATE_CHAMPION):
        return {f"benchmarks.{name}": path for name, path in job.evaluation.benchmarks.items()}
    if stage is not Stage.PREPARE:
        return {}
    if job.data.rows is not None:
        return {"rows": job.data.rows}
    given = job.data.prepare
    if given is None:
        return {}
    found = {f"inputs.{place}": one.path for place, one in enumerate(given.inputs)}
    return found | {f"exclude_overlap.{place}": path for place, path in enumerate(given.exclude_overlap)}


def put_files(stage: Stage, job: Job, store: ArtifactStore) -> dict[str, JsonValue]:
    """Puts the job's own files into the store; returns their manifests by name."""
    return {
        name: store.publish(path, kind=FOLDER_KIND if path.is_dir() else FILE_KIND).digest
        for name, path in files_of_job(stage, job).items()
    }


def materials_of(
    stage: Stage,
    parent: ParentWeights,
    done: Mapping[Stage, StageResult],
    champion: ParentWeights | None,
) -> dict[str, JsonValue]:
    """What a stage is given beside what decides it.

    Args:
        stage: Which.
        parent: What the training starts from.
        done: Results of the stages before it.
        champion: Whose evaluation is asked for, or is in `done`; for that and for the decision.
    """
    made = {name: digest for one in done.values() for name, digest in one.outputs.items()}
    candidate = done[Stage.EVALUATE].outputs if Stage.EVALUATE in done else {}
    if stage is Stage.TRAIN:
        return {"rows": made["rows"], "parent": parent.model_dump(mode="json")}
    if stage is Stage.EVALUATE:
        return {"model": made["model"]}
    if stage is Stage.EVALUATE_CHAMPION:
        assert champion is not None
        return {"champion": champion.model_dump(mode="json")}
    if stage is Stage.PUBLISH:
        names = {name: made[name] for name in ("rows", "model", "run")}
        return {**names, **candidate, "parent_lineage": parent.lineage}
    if stage is Stage.REGISTER:
        return {"model": made["model"], "lineage": made["lineage"]}
    if stage is Stage.PROMOTE:
        theirs = done[Stage.EVALUATE_CHAMPION].outputs["evaluation"] if champion else None
        return {
            **candidate,
            "champion": champion.version if champion else None,
            "champion_evaluation": theirs,
        }
    return {}

"""Where the inputs of a stage are: manifests of earlier stages in the store, and weights in the registry."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from orchestration.retrain.records import ParentWeights
from orchestration.retrain.stages import Stage, StageResult


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
        champion: Who is champion now; for its evaluation, and for the decision.
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
        version_id = done[Stage.PREPARE].facts.get("version_id")
        names = {name: made[name] for name in ("rows", "model", "run")}
        return {**names, **candidate, "version_id": version_id, "parent_lineage": parent.lineage}
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

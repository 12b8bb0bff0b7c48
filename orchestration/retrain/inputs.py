"""What decides a retraining and each of its stages, as digests: files by content, not by their place."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import JsonValue

from orchestration.promotion.policy import GatePolicy
from orchestration.registry.decisions import Decisions
from orchestration.registry.store import LINEAGE_TAG
from orchestration.retrain.evaluation import check_evaluation
from orchestration.retrain.job import Job, PrepareSettings
from orchestration.retrain.records import ParentWeights, Stage, StageResult
from orchestration.retrain.rows import counted, rows_inputs
from orchestration.settings.evaluate import EvaluationSettings
from pipeline.data.prepare import MANIFEST_FILE
from pipeline.models.cache import require_model
from pipeline.settings.recipe import Recipe, load_recipe
from pipeline.settings.tree import read_tree
from reward.offline.files import file_sha256, replace_file, weights_sha256
from reward.provenance import json_sha256, package_version
from reward.roles.prompts import load_prompts

_ELSEWHERE = {"model", "estimate", "tracking", "data"}  # of a recipe: in the key by content, or in none
_NOT_DECIDING = {"benchmarks", "concurrency", "timeout_s", "judge"}
_WORLDS = {"tiny": "world", "wiki": "wiki"}  # the settings of each source


@dataclass(frozen=True)
class Plan:
    """A job with everything that it names looked up and read."""

    job: Job
    recipe: Recipe
    policy: GatePolicy
    code: JsonValue
    data: JsonValue
    evaluation: JsonValue

    @property
    def digest(self) -> str:
        """Of all but the parent."""
        made, policy = (self.code, self.data, _recipe(self.recipe)), self.policy.model_dump(mode="json")
        return json_sha256([self.job.registry.model, *made, self.evaluation, policy, self.job.parent])

    def inputs(
        self,
        stage: Stage,
        parent: ParentWeights,
        done: Mapping[Stage, StageResult],
        champion: ParentWeights | None = None,
    ) -> dict[str, JsonValue]:
        """What decides a stage, given the results of those before it (of a champion where there is one)."""
        weights = done[Stage.TRAIN].facts["weights_sha256"] if Stage.TRAIN in done else None
        registered: dict[str, JsonValue] = {"model": self.job.registry.model, "weights": weights}
        match stage:
            case Stage.PREPARE:
                return {"code": self.code, "data": self.data}
            case Stage.TRAIN:
                rows, start = done[Stage.PREPARE].facts["rows_sha256"], parent.sha256 or parent.uri
                return {"code": self.code, "rows": rows, "recipe": _recipe(self.recipe), "parent": start}
            case Stage.EVALUATE | Stage.EVALUATE_CHAMPION:
                asked = champion.sha256 if champion else weights
                return {"code": self.code, "weights": asked, "evaluation": self.evaluation}
            case Stage.PUBLISH:
                of = (Stage.PREPARE, Stage.TRAIN, Stage.EVALUATE)
                made: dict[str, JsonValue] = {one.value: dict(done[one].outputs) for one in of}
                return {"lineage": parent.lineage, **made}
            case Stage.REGISTER:
                lineage = done[Stage.PUBLISH].outputs["lineage"]
                return {**registered, "at": self.job.registry.address, "lineage": lineage}
            case Stage.PROMOTE:
                version = done[Stage.REGISTER].facts
                return {
                    **registered,
                    "version": version["version"],
                    "registered_ms": version["registered_ms"],
                    "evaluation": done[Stage.EVALUATE].outputs["evaluation"],
                    "policy": json_sha256([self.policy.model_dump(mode="json")]),
                }


def make_plan(job: Job) -> Plan:
    """Looks up and reads all that a job names, so that nothing is refused by a later stage."""
    recipe = load_recipe(job.recipe.name, job.recipe_overrides)
    return Plan(
        job=job,
        recipe=recipe,
        policy=job.registry.read_policy(),
        code={"version": package_version()},  # a release pins what it runs with
        data=_data(job, recipe),
        evaluation=_evaluation(job.evaluation),
    )


def starting_weights(plan: Plan, decisions: Decisions) -> ParentWeights:
    champion = champion_weights(decisions) if plan.job.parent == "champion" else None
    if champion is not None:
        return champion
    require_model(plan.recipe.model)
    folder = Path(plan.recipe.model_path)
    sha256 = weights_sha256(folder) if folder.is_dir() else None
    return ParentWeights(sha256=sha256, uri=plan.recipe.model)


def champion_weights(decisions: Decisions) -> ParentWeights | None:
    if decisions.state().champion is None:
        return None
    found = decisions.version("@champion")
    lineage = found.tags.get(LINEAGE_TAG)
    return ParentWeights(sha256=found.sha256, uri=found.uri, version=found.version, lineage=lineage)


def whole_recipe(file: Path, job: Job) -> Path:
    """A recipe's file with all that it extends, in the job's folder, for a cluster that has neither."""
    path = job.folder / f"{file.stem}.whole.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, yaml.safe_dump(read_tree(file), sort_keys=False))
    return path


def files_of_job(stage: Stage, job: Job, recipe: Recipe) -> list[Path]:
    """What a stage reads where the job says; a cluster gets it from the store."""
    if stage in (Stage.EVALUATE, Stage.EVALUATE_CHAMPION):
        return list(job.evaluation.benchmarks.values())
    if stage is not Stage.PREPARE:
        return []
    given, named = job.data.prepare, job.data.rows or (None if recipe.data.is_made else recipe.data.path)
    rows = [named] if named else []
    return [*(one.path for one in given.inputs), *given.exclude_overlap] if given else rows


def _recipe(recipe: Recipe) -> JsonValue:
    tree: dict[str, JsonValue] = recipe.model_dump(mode="json", exclude=_ELSEWHERE)
    prompts = load_prompts(recipe.audit.prompts).digest
    return {**tree, "data": {"max_steps": recipe.data.max_steps}, "prompts": prompts}


def _data(job: Job, recipe: Recipe) -> JsonValue:
    if job.data.rows is not None:
        return {"rows": file_sha256(_there("data.rows", job.data.rows / MANIFEST_FILE))}
    if job.data.prepare is not None:
        return _preparation(job.data.prepare, recipe)
    if not recipe.data.is_made:
        if recipe.data.path is None:
            raise ValueError("data: missing; give rows or prepare, or a recipe that names its rows")
        return {"rows": file_sha256(_there("data.path of the recipe", recipe.data.path / MANIFEST_FILE))}
    return {
        "worlds": recipe.data.model_dump(mode="json", include={_WORLDS[recipe.data.source], "max_steps"}),
        "seed": recipe.seed,
        "batch_size": recipe.rollout.batch_size,
        "max_prompt_tokens": recipe.rollout.max_prompt_tokens,
        "prompts": load_prompts(recipe.audit.prompts).digest,
        "model": recipe.model,
    }


def _preparation(given: PrepareSettings, recipe: Recipe) -> JsonValue:
    files: list[JsonValue] = [
        [one.source.name, *(file_sha256(_there("data.prepare.inputs", file)) for file in one.files)]
        for one in rows_inputs(given)
    ]
    others: list[JsonValue] = [
        content_sha256("data.prepare.exclude_overlap", one) for one in given.exclude_overlap
    ]
    unread = {"inputs", "exclude_overlap", "accept_licence"}
    settings = counted(given, recipe).model_dump(mode="json", exclude=unread)
    settings["prompts"] = load_prompts(str(settings["prompts"])).digest
    return {"settings": settings, "inputs": files, "exclude_overlap": others}


def _evaluation(given: EvaluationSettings) -> JsonValue:
    benchmarks: dict[str, JsonValue] = {
        name: content_sha256(f"evaluation.benchmarks.{name}", path) for name, path in given.benchmarks.items()
    }
    check_evaluation(given)
    return {
        "settings": given.model_dump(mode="json", exclude=_NOT_DECIDING),
        "judge": given.judge.model if given.judge else None,
        "benchmarks": benchmarks,
    }


def content_sha256(key: str, path: Path) -> str:
    """Digest of a file, or of all files of a folder with their names; `key` is the job's, for errors."""
    return weights_sha256(path) if path.is_dir() else file_sha256(_there(key, path))


def _there(key: str, path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"{key}: {path}: no such file; fix the path")
    return path

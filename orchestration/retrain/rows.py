"""The prepare stage: rows of `march prepare`, or worlds of the tiny task, in the artifact store."""

import os
from dataclasses import replace
from pathlib import Path

from orchestration.retrain.attempt import Attempt
from orchestration.retrain.job import PrepareSettings
from orchestration.retrain.records import StageResult
from pipeline.data.job import run_job
from pipeline.data.prepare import MANIFEST_FILE, ROWS_FILE, read_manifest
from pipeline.data.sources import SOURCES
from pipeline.data.work import Choices, Input, PrepareJob
from pipeline.rows import num_made, write_made
from pipeline.settings.recipe import Recipe, path_of_model
from reward.offline.files import file_sha256

ROWS = "rows"


def prepare(attempt: Attempt) -> StageResult:
    """Makes or takes the rows, holds them against their manifest, and publishes them."""
    folder = _rows(attempt)
    manifest = read_manifest(folder)
    if manifest is None:
        raise FileNotFoundError(f"data: {folder} has no {MANIFEST_FILE}; write it with `march prepare`")
    if file_sha256(folder / ROWS_FILE) != manifest.rows_sha256:
        raise ValueError(f"data: {folder / ROWS_FILE} is not what its manifest says; prepare the rows again")
    rows = attempt.publish(folder, kind="data")
    return attempt.result(
        {ROWS: rows.digest}, facts={"rows_sha256": manifest.rows_sha256, "num_rows": manifest.num_rows}
    )


def rows_inputs(given: PrepareSettings) -> tuple[Input, ...]:
    for one in given.inputs:
        if one.dataset not in SOURCES:
            known = ", ".join(SOURCES)
            raise ValueError(f"data.prepare.inputs: {one.dataset!r} is not known; give one of {known}")
    return tuple(Input(SOURCES[one.dataset], one.path) for one in given.inputs)


def counted(given: PrepareSettings, recipe: Recipe) -> PrepareSettings:
    """With the recipe's model and limit where the settings name none: no training takes uncounted rows."""
    return given.model_copy(
        update={
            "prompts": given.prompts or recipe.audit.prompts,
            "tokenizer": given.tokenizer or recipe.model,
            "max_prompt_tokens": given.max_prompt_tokens or recipe.rollout.max_prompt_tokens,
        }
    )


def _rows(attempt: Attempt) -> Path:
    job, recipe, made = attempt.job, attempt.recipe, attempt.folder / ROWS
    if job.data.rows is not None:
        return attempt.file(job.data.rows)
    if job.data.prepare is not None:
        _prepare(attempt, counted(job.data.prepare, recipe), made)
        return made
    if recipe.data.is_made:
        write_made(recipe, made, num_made(recipe))
        return made
    assert recipe.data.path is not None, "the recipe was checked"
    return attempt.file(recipe.data.path)


def _prepare(attempt: Attempt, given: PrepareSettings, out: Path) -> None:
    same = {"max_shared_documents", "noise", "unanswerable", "limit", "sample", "seed"}
    choices = Choices(
        near_duplicates=given.near_duplicates or None,
        accepted_licences=given.accept_licence,
        **given.model_dump(include=same),
    )
    job = PrepareJob(
        inputs=tuple(replace(one, path=attempt.file(one.path)) for one in rows_inputs(given)),
        out=out,
        prompts=given.prompts or "full",
        tokenizer_path=given.tokenizer and path_of_model(given.tokenizer),
        max_prompt_tokens=given.max_prompt_tokens,
        evaluation_sets=tuple(map(attempt.file, given.exclude_overlap)),
        choices=choices,
        num_workers=len(os.sched_getaffinity(0)),
    )
    done = 0

    def count(_num_chars: int, num_rows: int) -> None:
        nonlocal done
        done += num_rows
        attempt.tell(label="preparing", done=done, total=0)

    run_job(job, count)

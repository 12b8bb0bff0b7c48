"""The prepare stage: rows of `march prepare`, or worlds of the tiny task, in the artifact store."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from orchestration.retrain.job import PrepareSettings
from orchestration.retrain.stages import KEY_DIGITS, StageResult
from orchestration.retrain.workshop import Workshop
from pipeline.data.job import run_job
from pipeline.data.prepare import MANIFEST_FILE, ROWS_FILE, Manifest, read_manifest
from pipeline.data.sources import SOURCES
from pipeline.data.work import Choices, Input, PrepareJob
from pipeline.settings.recipe import TINY_POLICY, Recipe
from reward.offline.files import file_sha256

ROWS = "rows"


def prepare(shop: Workshop) -> StageResult:
    """Makes or takes the rows, holds them against their manifest, and publishes them.

    Raises:
        FileNotFoundError: an input is not there.
        ValueError: rows cannot be made, or are not those of their manifest.
    """
    folder = _rows(shop)
    manifest = read_manifest(folder)
    if manifest is None:
        raise FileNotFoundError(f"data: {folder} has no {MANIFEST_FILE}; write it with `march prepare`")
    if file_sha256(folder / ROWS_FILE) != manifest.rows_sha256:
        raise ValueError(f"data: {folder / ROWS_FILE} is not what its manifest says; prepare the rows again")
    rows = shop.publish(folder, kind="data")
    return shop.result(
        outputs={ROWS: rows.digest},
        facts={"rows_sha256": manifest.rows_sha256, "num_rows": manifest.num_rows},
    )


def rows_inputs(given: PrepareSettings) -> tuple[Input, ...]:
    """The files that are prepared.

    Raises:
        ValueError: a dataset is not known.
    """
    for one in given.inputs:
        if one.dataset not in SOURCES:
            known = ", ".join(SOURCES)
            raise ValueError(f"data.prepare.inputs: {one.dataset!r} is not known; give one of {known}")
    return tuple(Input(SOURCES[one.dataset], one.path) for one in given.inputs)


def counted(given: PrepareSettings, recipe: Recipe) -> PrepareSettings:
    """With the recipe's model and limit where the settings name none: no training takes uncounted rows."""
    return given.model_copy(
        update={
            "tokenizer": given.tokenizer or recipe.model,
            "max_prompt_tokens": given.max_prompt_tokens or recipe.rollout.max_prompt_tokens,
        }
    )


def _rows(shop: Workshop) -> Path:
    """The folder of the rows."""
    job, recipe = shop.job, shop.recipe
    if job.data.rows is not None:
        return shop.file("rows", job.data.rows)
    if job.data.prepare is not None:
        _prepare(shop, counted(job.data.prepare, recipe))
    elif recipe.data.is_made:
        _draw_worlds(recipe, shop.folder / ROWS)
    else:
        assert recipe.data.path is not None, "the recipe was checked"
        return recipe.data.path
    return shop.folder / ROWS


def _prepare(shop: Workshop, given: PrepareSettings) -> Manifest:
    from pipeline.data.card import write_card

    inputs = tuple(
        replace(one, path=shop.file(f"inputs.{place}", one.path))
        for place, one in enumerate(rows_inputs(given))
    )
    job = PrepareJob(
        inputs=inputs,
        out=shop.folder / ROWS,
        prompts=given.prompts,
        tokenizer_path=str(TINY_POLICY) if given.tokenizer == "tiny" else given.tokenizer,
        max_prompt_tokens=given.max_prompt_tokens,
        evaluation_sets=tuple(
            shop.file(f"exclude_overlap.{place}", path) for place, path in enumerate(given.exclude_overlap)
        ),
        choices=Choices(
            near_duplicates=given.near_duplicates or None,
            max_shared_documents=given.max_shared_documents,
            noise=given.noise,
            unanswerable=given.unanswerable,
            limit=given.limit,
            sample=given.sample,
            seed=given.seed,
            accepted_licences=given.accept_licence,
        ),
    )
    manifest = run_job(replace(job, num_workers=len(os.sched_getaffinity(0))), shop.count_rows)
    write_card(manifest, job.out)
    return manifest


def _draw_worlds(recipe: Recipe, folder: Path) -> None:
    from pipeline.rows import num_made, write_made

    write_made(recipe, folder, num_made(recipe))


def bring_rows(shop: Workshop) -> Path:
    """The rows of an earlier stage on this machine, at a place that the rows alone decide.

    A training goes on only with a recipe that names the same place.
    """
    rows_sha256 = str(shop.request.inputs[ROWS])
    return shop.bring(shop.material(ROWS), shop.job.folder / f"{ROWS}-{rows_sha256[:KEY_DIGITS]}")

"""What nothing needs any more after retrainings: results of stages, versions that lost, and what they kept.

The loop removes it after each retraining that ended, where its job says so; `march artifacts prune` does on
request. What registered versions, MLflow's runs, pointers and decisions name stays in any case.
"""

import logging
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from orchestration.registry.chain import Chosen
from orchestration.registry.decisions import Decisions
from orchestration.registry.store import LINEAGE_TAG, ModelVersion
from orchestration.registry.stored import references
from orchestration.retrain.job import Job
from orchestration.retrain.records import Stage, StageResult, stage_folder
from orchestration.retrain.results import FIELD, PREFIX, Results
from pipeline.artifacts.address import cached_artifacts, forget, located
from pipeline.artifacts.backend import Entry
from pipeline.artifacts.layout import POINTERS, is_digest, manifest_key
from pipeline.artifacts.store import ArtifactStore
from pipeline.artifacts.upkeep import find_garbage, remove
from pipeline.lineage.publish import EVALUATION

logger = logging.getLogger(__name__)


def prune_after(job: Job, store: ArtifactStore, decisions: Decisions) -> None:
    """Does what the job's `retention` says, under its lease. A failure is a warning: the next one does it."""
    settings, grace = job.retention, timedelta(hours=job.retention.grace_hours)
    if settings.keep_last is None:
        return
    try:
        for stage in (Stage.TRAIN, Stage.EVALUATE):  # checkpoints and copies of what is in the store
            for key in Results(store, job.name).keys(stage):
                shutil.rmtree(stage_folder(job, stage, key), ignore_errors=True)
        _forget_weights(decisions)
        idle = idle_versions(decisions, settings.versions, store, grace=grace)
        stale = stale_results(store, settings.keep_last, job=job.name)
        stale |= results_of_versions(store, idle)
        named = references(decisions.registry, store, without=idle)
        garbage = find_garbage(
            store, references=named, grace=grace, stale=stale, with_ancestors=settings.ancestors
        )
        for version in idle:
            if why_needed(decisions, version) is None:  # still: the looks above take minutes
                decisions.registry.delete(decisions.model, version.version)
        num_removed = remove(store, garbage, grace=grace)
    except (OSError, ValueError) as error:
        logger.warning("retention: nothing or not all was removed, the next retraining does it: %s", error)
        return
    logger.info("retention: removed %d things, %.1f MB", num_removed, garbage.size / 1e6)


def _forget_weights(decisions: Decisions) -> None:
    """Removes the cached weights of versions, but for the champion and the one before."""
    state = decisions.state()
    kept = {one.sha256 for one in (state.champion, state.previous) if one is not None}
    for version in decisions.registry.versions(decisions.model):
        place = located(version.uri)
        if place is not None and version.sha256 not in kept:
            forget(cached_artifacts() / place[1])


def idle_versions(
    decisions: Decisions, num_kept: int | None, store: ArtifactStore, *, grace: timedelta = timedelta()
) -> list[ModelVersion]:
    """Versions beside the newest so many that are nothing to anybody; None: none is.

    What was registered or used within the grace may be a candidate that gates look at just now.
    """
    if num_kept is None:
        return []
    before = datetime.now(UTC) - grace
    versions = decisions.registry.versions(decisions.model)[:-num_kept]
    return [
        one
        for one in versions
        if one.created_ms <= before.timestamp() * 1000
        and why_needed(decisions, one) is None
        and not _is_used(store, one, before)
    ]


def _is_used(store: ArtifactStore, version: ModelVersion, before: datetime) -> bool:
    """Whether a version's weights were written or used since."""
    place = located(version.uri)
    there = store.backend.stat(manifest_key(place[1])) if place else None
    return there is not None and there.modified > before


def why_needed(decisions: Decisions, version: ModelVersion) -> str | None:
    """Why a version cannot be deleted, for people; None: it can."""
    state = decisions.state()
    if state.champion is not None and _is(version, state.champion):
        return "is champion"
    if state.previous is not None and _is(version, state.previous):
        return "was champion before, and a rollback needs it"
    if any(_is(version, one) for one in state.waiting.values()):
        return "waits for approval"
    return f"is {version.aliases[0]}" if version.aliases else None


def _is(version: ModelVersion, chosen: Chosen) -> bool:
    """Whether a decision is about a version; one registered again under another number has its weights."""
    return version.version == chosen.version or version.sha256 == chosen.sha256


def results_of_versions(store: ArtifactStore, versions: Sequence[ModelVersion]) -> set[str]:
    """Names of pointers to results that made some versions, which keep what these need from being garbage.

    Prepared rows are left out: other weights are trained on them, too.
    """
    if not versions:
        return set()
    there, weights = set(store.manifests()), {version.sha256 for version in versions}
    made = {digest for version in versions for digest in _digests_of(version)} & there
    named = {one for digest in made for one in store.manifest(digest).refers}
    made |= {one for one in named if store.manifest(one).kind == EVALUATION}
    found: set[str] = set()
    for entry in store.backend.entries(f"{POINTERS}{PREFIX}"):
        name = entry.key.removeprefix(POINTERS)
        digest = store.pointed(name)
        record = store.manifest(digest).record.get(FIELD) if digest else None
        if not isinstance(record, dict) or record.get("stage") == Stage.PREPARE:
            continue
        result = StageResult.model_validate(record)
        if made & {*result.outputs.values()} or result.facts.get("weights_sha256") in weights:
            found.add(name)
    return found


def _digests_of(version: ModelVersion) -> Iterator[str]:
    """What names a version in its store: its weights and its lineage."""
    weights = located(version.uri)
    yield from filter(is_digest, (weights[1] if weights else "", version.tags.get(LINEAGE_TAG, "")))


def stale_results(store: ArtifactStore, keep_last: int, *, job: str = "") -> set[str]:
    """Names of pointers to results that none of each job's (or one job's) last retrainings made or used."""
    stages: dict[str, list[Entry]] = {}
    for entry in store.backend.entries(f"{POINTERS}{PREFIX}" + (f"{job}/" if job else "")):
        stages.setdefault(entry.key.rpartition("/")[0], []).append(entry)
    stale: set[str] = set()
    for folder, found in stages.items():
        # A retraining uses two evaluations, its candidate's and the champion's.
        num_kept = keep_last * (2 if folder.endswith(f"/{Stage.EVALUATE.result_name}") else 1)
        found.sort(key=lambda entry: entry.modified, reverse=True)
        stale |= {entry.key.removeprefix(POINTERS) for entry in found[num_kept:]}
    return stale

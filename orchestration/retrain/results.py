"""Results of stages in the artifact store: by key, and for good.

    pointers/retrain/JOB/SHELF/KEY    the manifest of a key's result

A result is there, whole, or it is not. The pointer keeps it from gc, and with it all that it refers to.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pydantic import ValidationError

from orchestration.retrain.stages import Stage, StageResult
from pipeline.artifacts.backend import Entry
from pipeline.artifacts.failures import CorruptError, MovedError, StoreError
from pipeline.artifacts.layout import POINTERS, digest_of, pointer_key
from pipeline.artifacts.store import ArtifactStore
from pipeline.artifacts.upkeep import find_damage

logger = logging.getLogger(__name__)

KIND, FIELD = "stage", "stage"
_PREFIX = "retrain/"


@dataclass(frozen=True)
class Standing:
    """A result that exists."""

    result: StageResult
    digest: str  # of its manifest


class Results:
    """The results of a job's stages, in the artifact store."""

    def __init__(self, store: ArtifactStore, job: str) -> None:
        self.store = store
        self._job = job

    def standing(self, stage: Stage, key: str) -> Standing | None:
        """The result for a key, if it exists and nothing that it names is lost or cut.

        Raises:
            StoreError: the store does not answer.
        """
        digest = self.store.pointed(self._pointer(stage.shelf, key))
        if digest is None:
            return None
        try:
            result = read_result(self.store, digest)
            damage = next(find_damage(self.store, [digest, *result.outputs.values()], read=False), None)
        except StoreError:
            raise
        except ValueError as error:
            logger.warning("%s of key %s is made again: %s", stage, key[:12], error)
            return None
        if damage is not None:
            logger.warning("%s of key %s is made again: %s %s", stage, key[:12], damage.key, damage.problem)
            return None
        return Standing(result, digest)

    def put(self, stage: Stage, result: StageResult) -> Standing:
        """Makes a result stand; of two for one key the first stays, and both writers get it."""
        published = self.store.publish(
            kind=KIND,
            refers=tuple(dict.fromkeys(result.outputs.values())),
            record={FIELD: result.model_dump(mode="json")},
        )
        name = self._pointer(result.stage, result.key)
        try:
            self.store.move(name, published.digest, expected=None)
        except MovedError:
            found = self.standing(stage, result.key)
            if found is not None:
                return found
            self.store.move(name, published.digest, expected=self.store.pointed(name))  # over a damaged one
        return Standing(result, published.digest)

    def keys(self, stage: Stage) -> list[str]:
        """Keys that have a result, whole or not."""
        pointers = self.store.backend.entries(POINTERS + self._pointer(stage.shelf, ""))
        return [digest_of(entry.key) for entry in pointers]

    def use(self, stage: Stage, key: str) -> None:
        """Makes a result that exists the one used last, which decides what `stale_results` finds."""
        there = self.store.backend.stat(pointer_key(self._pointer(stage.shelf, key)))
        if there is not None:
            self.store.backend.touch(there)

    def forget(self, stage: Stage, key: str) -> None:
        """Lets no result stand for a key, so that the stage runs again; what refers to the old one keeps it.

        Raises:
            StoreError: the store does not answer.
        """
        name = self._pointer(stage.shelf, key)
        digest = self.store.pointed(name)
        if digest is not None:
            withdrawn = self.store.publish(kind=KIND, record={FIELD: None})
            self.store.move(name, withdrawn.digest, expected=digest)

    def _pointer(self, shelf: str, key: str) -> str:
        return f"{_PREFIX}{self._job}/{shelf}/{key}"


def stale_results(store: ArtifactStore, keep_last: int) -> set[str]:
    """Names of pointers to results that none of each job's last retrainings made or used.

    Args:
        store: Which.
        keep_last: Of so many retrainings all results stay.
    """
    stages: dict[str, list[Entry]] = {}
    for entry in store.backend.entries(f"{POINTERS}{_PREFIX}"):
        stages.setdefault(entry.key.rpartition("/")[0], []).append(entry)
    stale: set[str] = set()
    for folder, found in stages.items():
        # A retraining uses two evaluations, its candidate's and the champion's.
        num_kept = keep_last * (2 if folder.endswith(f"/{Stage.EVALUATE.shelf}") else 1)
        found.sort(key=lambda entry: entry.modified, reverse=True)
        stale |= {entry.key.removeprefix(POINTERS) for entry in found[num_kept:]}
    return stale


def results_of(store: ArtifactStore, manifests: set[str], weights_sha256: str) -> set[str]:
    """Names of pointers to results that made these weights, or one of these manifests.

    Prepared rows are left out: other weights are trained on them, too.
    """
    found: set[str] = set()
    for entry in store.backend.entries(f"{POINTERS}{_PREFIX}"):
        name = entry.key.removeprefix(POINTERS)
        digest = store.pointed(name)
        result = store.manifest(digest).record.get(FIELD) if digest else None
        if not isinstance(result, dict) or result.get("stage") == Stage.PREPARE.shelf:
            continue
        made = StageResult.model_validate(result)
        if manifests & {*made.outputs.values()} or made.facts.get("weights_sha256") == weights_sha256:
            found.add(name)
    return found


def read_result(store: ArtifactStore, digest: str) -> StageResult:
    """The result that a manifest holds.

    Raises:
        ValueError: it holds none.
    """
    manifest = store.manifest(digest)
    try:
        return StageResult.model_validate(manifest.record.get(FIELD))
    except ValidationError as error:
        raise CorruptError(f"{digest[:12]}: is no result of a stage; the stage is run again") from error

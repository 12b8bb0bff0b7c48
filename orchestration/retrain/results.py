"""Results of stages in the artifact store: by key, and for good.

    pointers/retrain/JOB/STAGE/KEY    the manifest of a key's result

A result is there, whole, or it is not. The pointer keeps it from gc, and with it all that it refers to.
"""

import logging
from dataclasses import dataclass

from pydantic import ValidationError

from orchestration.retrain.job import Job
from orchestration.retrain.records import Stage, StageResult
from pipeline.artifacts.backend import CorruptError, MovedError, StoreError
from pipeline.artifacts.layout import POINTERS, digest_of, pointer_key
from pipeline.artifacts.settings import settings_from_environment
from pipeline.artifacts.store import ArtifactStore, open_store
from pipeline.artifacts.upkeep import find_damage

logger = logging.getLogger(__name__)

KIND, FIELD = "stage", "stage"
PREFIX = "retrain/"


@dataclass(frozen=True)
class StoredResult:
    result: StageResult
    digest: str  # of its manifest


class Results:
    """The results of a job's stages, in the artifact store; StoreError where that does not answer."""

    def __init__(self, store: ArtifactStore, job: str) -> None:
        self.store = store
        self._job = job

    def find(self, stage: Stage, key: str) -> StoredResult | None:
        """The result for a key, if it exists and nothing that it names is lost or cut."""
        digest = self.store.pointed(self._pointer(stage.result_name, key))
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
        return StoredResult(result, digest)

    def put(self, stage: Stage, result: StageResult) -> StoredResult:
        """Stores a result; of two for one key the first stays, and both writers get it."""
        published = self.store.publish(
            kind=KIND,
            refers=tuple(dict.fromkeys(result.outputs.values())),
            record={FIELD: result.model_dump(mode="json")},
        )
        name = self._pointer(result.stage, result.key)
        try:
            self.store.move(name, published.digest, expected=None)
        except MovedError:
            found = self.find(stage, result.key)
            if found is not None:
                return found
            self.store.move(name, published.digest, expected=self.store.pointed(name))  # over a damaged one
        return StoredResult(result, published.digest)

    def keys(self, stage: Stage) -> list[str]:
        """Keys that have a result, whole or not."""
        pointers = self.store.backend.entries(POINTERS + self._pointer(stage.result_name, ""))
        return [digest_of(entry.key) for entry in pointers]

    def use(self, stage: Stage, key: str) -> None:
        """Makes a result that exists the one used last, which decides what `stale_results` finds."""
        there = self.store.backend.stat(pointer_key(self._pointer(stage.result_name, key)))
        if there is not None:
            self.store.backend.touch(there)

    def forget(self, stage: Stage, key: str) -> None:
        """Takes a key's result back, so that the stage runs again; what refers to the old one keeps it."""
        name = self._pointer(stage.result_name, key)
        digest = self.store.pointed(name)
        if digest is not None:
            withdrawn = self.store.publish(kind=KIND, record={FIELD: None})
            self.store.move(name, withdrawn.digest, expected=digest)

    def _pointer(self, stage: str, key: str) -> str:
        return f"{PREFIX}{self._job}/{stage}/{key}"


def open_job_store(job: Job) -> ArtifactStore:
    return open_store(settings_from_environment(job.store.location, job.store.endpoint))


def read_result(store: ArtifactStore, digest: str) -> StageResult:
    manifest = store.manifest(digest)
    try:
        return StageResult.model_validate(manifest.record.get(FIELD))
    except ValidationError as error:
        raise CorruptError(f"{digest[:12]}: is no result of a stage; the stage is run again") from error

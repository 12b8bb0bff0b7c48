"""Results of stages in the artifact store: by key, and for good.

    pointers/retrain/JOB/SHELF/KEY    the manifest of the result that stands for a key

A result is there, whole, or it is not. The pointer keeps it from gc, and with it all that it refers to.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pydantic import ValidationError

from orchestration.retrain.stages import Stage, StageResult
from pipeline.artifacts.failures import CorruptError, MovedError, StoreError
from pipeline.artifacts.store import ArtifactStore
from pipeline.artifacts.upkeep import find_damage

logger = logging.getLogger(__name__)

KIND, FIELD = "stage", "stage"


@dataclass(frozen=True)
class Standing:
    """A result that stands."""

    result: StageResult
    digest: str  # of its manifest


class Results:
    """The results of a job's stages, in the artifact store."""

    def __init__(self, store: ArtifactStore, job: str) -> None:
        self.store = store
        self._job = job

    def standing(self, stage: Stage, key: str) -> Standing | None:
        """The result for a key, if it stands and nothing that it names is lost or cut.

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
            logger.warning("%s of key %s is made again: %s %s", stage, key[:12], damage.what, damage.problem)
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
        return f"retrain/{self._job}/{shelf}/{key}"


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

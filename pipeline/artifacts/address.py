"""References to what is in a store: as a command takes them, and as a registry keeps them.

artifact:REF                                          a pointer, a digest or its first digits
s3://BUCKET/PREFIX/manifests/sha256/ab/abcd...        the address of a manifest, store and all
file:///FOLDER/manifests/sha256/ab/abcd...            the same in a folder
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pipeline.artifacts.backend import Advance, no_progress
from pipeline.artifacts.layout import MANIFESTS, MODELS, manifest_key
from pipeline.artifacts.local import locked
from pipeline.artifacts.manifest import Manifest
from pipeline.artifacts.settings import settings_from_environment
from pipeline.artifacts.store import ArtifactStore, files_of, open_store
from reward.offline.files import user_cache

SCHEME = "artifact:"
OpenStore = Callable[[], ArtifactStore]
_ADDRESS = re.compile(rf"(?P<store>.+)/{MANIFESTS}sha256/(?P<start>[0-9a-f]{{2}})/(?P<digest>[0-9a-f]{{64}})")


@dataclass(frozen=True)
class Artifact:
    """A manifest in its store."""

    store: ArtifactStore
    digest: str

    @property
    def address(self) -> str:
        """Where the manifest is; whoever reads it there needs nothing else but credentials."""
        return f"{self._root}/{manifest_key(self.digest)}"

    @property
    def mlflow_address(self) -> str:
        """Where a model is, as MLflow's clients read it."""
        return f"{self._root}/{MODELS}{self.digest}"

    @property
    def _root(self) -> str:
        root = self.store.backend.address
        return root if root.startswith("s3://") else Path(root).as_uri()

    def manifest(self) -> Manifest:
        """The manifest, verified."""
        return self.store.manifest(self.digest)

    def bring(self, *, advance: Advance = no_progress) -> Path:
        """Its files in the user's cache: verified, and gone on with after a kill.

        Raises:
            CorruptError: an object is not what its name says.
            ValueError: something else lies there, too.
        """
        folder = cached_artifacts() / self.digest
        with locked(folder.with_name(f"{self.digest}.lock")):
            manifest = self.store.get(self.digest, folder, advance=advance)
        strange = files_of(folder).keys() - {file.path for file in manifest.files}
        if strange:
            raise ValueError(f"{folder}: holds {min(strange)!r} too, which was not published; remove it")
        return folder


def cached_artifacts() -> Path:
    """Where `Artifact.bring` brings files, each manifest's in a folder of its own."""
    return user_cache() / "artifacts"


def located(uri: str) -> tuple[str, str] | None:
    """The store and the digest of a manifest's address; None for anything else."""
    found = _ADDRESS.fullmatch(uri)
    if found is None or not found["digest"].startswith(found["start"]):
        return None
    parts = urlsplit(found["store"])
    return unquote(parts.path) if parts.scheme == "file" else found["store"], found["digest"]


def environments_store() -> ArtifactStore:
    """The store that the environment names."""
    return open_store(settings_from_environment())


def named_artifact(reference: str, store: OpenStore = environments_store) -> Artifact:
    """What a reference names; the scheme may be left out.

    Args:
        reference: `artifact:REF`, REF, or a manifest's address.
        store: Opens the store of the former two.

    Raises:
        ValueError: the store has nothing of that name.
    """
    place = located(reference)
    if place is not None:
        location, digest = place
        return Artifact(open_store(settings_from_environment(location)), digest)
    opened = store()
    return Artifact(opened, opened.resolve(reference.removeprefix(SCHEME)))

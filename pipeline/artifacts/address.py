"""References to what is in a store: as a command takes them, and as a registry keeps them.

artifact:REF                                          a pointer, a digest or its first digits
s3://BUCKET/PREFIX/manifests/sha256/ab/abcd...        the address of a manifest, store and all
file:///FOLDER/manifests/sha256/ab/abcd...            the same in a folder
"""

import fcntl
import os
import re
import shutil
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
_IN_USE: dict[Path, int] = {}  # the folders that this process brought, with a descriptor that holds its lock
_ADDRESS = re.compile(rf"(?P<store>.+)/{MANIFESTS}sha256/(?P<start>[0-9a-f]{{2}})/(?P<digest>[0-9a-f]{{64}})")


@dataclass(frozen=True)
class Artifact:
    store: ArtifactStore
    digest: str

    @property
    def address(self) -> str:
        """Where the manifest is; whoever reads it there needs nothing else but credentials."""
        return f"{self._root}/{manifest_key(self.digest)}"

    @property
    def mlflow_address(self) -> str:
        return f"{self._root}/{MODELS}{self.digest}"

    @property
    def _root(self) -> str:
        root = self.store.backend.address
        return root if root.startswith("s3://") else Path(root).as_uri()

    def manifest(self) -> Manifest:
        return self.store.manifest(self.digest)

    def bring(self, *, advance: Advance = no_progress) -> Path:
        """Its files in the user's cache: verified, and gone on with after a kill.

        Raises:
            CorruptError: an object is not what its name says.
            ValueError: something else lies there, too.
        """
        folder = cached_artifacts() / self.digest
        with locked(_lock_of(folder)):
            manifest = self.store.get(self.digest, folder, advance=advance)
            if folder.is_dir() and folder not in _IN_USE:  # a record has no files
                _IN_USE[folder] = _shared(folder)
        strange = files_of(folder).keys() - {file.path for file in manifest.files}
        if strange:
            raise ValueError(f"{folder}: holds {min(strange)!r} too, which was not published; remove it")
        return folder


def cached_artifacts() -> Path:
    """Where `Artifact.bring` brings files, each manifest's in a folder of its own."""
    return user_cache() / "artifacts"


def forget(folder: Path) -> None:
    """Removes files that `Artifact.bring` brought, unless another process that brought them still runs."""
    if folder.parent != cached_artifacts() or not folder.is_dir():
        return
    with locked(_lock_of(folder)):
        if folder in _IN_USE:
            os.close(_IN_USE.pop(folder))
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
        except BlockingIOError:
            pass
        finally:
            os.close(descriptor)


def _shared(folder: Path) -> int:
    """A descriptor that holds a shared lock of a folder for as long as this process runs."""
    descriptor = os.open(folder, os.O_RDONLY)
    os.set_inheritable(descriptor, True)  # `exec` starts a server of these files in this process
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def located(uri: str) -> tuple[str, str] | None:
    """The store and the digest of a manifest's address; None for anything else."""
    found = _ADDRESS.fullmatch(uri)
    if found is None or not found["digest"].startswith(found["start"]):
        return None
    parts = urlsplit(found["store"])
    return unquote(parts.path) if parts.scheme == "file" else found["store"], found["digest"]


def environments_store() -> ArtifactStore:
    return open_store(settings_from_environment())


def named_artifact(reference: str, store: OpenStore = environments_store) -> Artifact:
    """`artifact:REF`, REF (of the store that `store` opens) or a manifest's address; ValueError for none."""
    place = located(reference)
    if place is not None:
        location, digest = place
        return Artifact(open_store(settings_from_environment(location)), digest)
    opened = store()
    return Artifact(opened, opened.resolve(reference.removeprefix(SCHEME)))

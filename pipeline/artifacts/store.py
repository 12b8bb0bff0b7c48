"""Putting files into a store, getting them out, and moving pointers: what callers use.

Publishing is in three steps: every object (verified), then the manifest (only if absent), then a pointer (by
compare-and-set, if one is wanted). A kill between any two leaves nothing that a reader would trust, and the
same call again ends in the same digests.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

from pydantic import JsonValue

from pipeline.artifacts.backend import (
    Advance,
    Backend,
    CorruptError,
    Entry,
    MovedError,
    StoreError,
    no_progress,
    refuse_large,
)
from pipeline.artifacts.layout import MANIFESTS, POINTERS, digest_of, is_digest, manifest_key, pointer_key
from pipeline.artifacts.local import LocalBackend
from pipeline.artifacts.manifest import File, Manifest, read_manifest
from pipeline.artifacts.settings import StoreSettings
from reward.offline.files import file_sha256, files_in, naming

_TRIES = 3  # of a file whose content comes otherwise than it was stored
_FRESH = timedelta(hours=12)  # what is older is touched when it is used again, so that gc leaves it


@dataclass(frozen=True)
class Published:
    digest: str
    manifest: Manifest
    num_sent: int  # bytes; what was there is not sent


class ArtifactStore:
    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def publish(
        self,
        source: Path | None = None,
        *,
        kind: str,
        refers: Sequence[str] = (),
        record: dict[str, JsonValue] | None = None,
        advance: Advance = no_progress,
    ) -> Published:
        """Puts a file or a folder, if there is one, and then the manifest.

        Args:
            refers: Digests of manifests that must stay as long as this one.
            advance: Called with the number of bytes that are there.

        Raises:
            FileNotFoundError: the source is not there, or a folder is empty.
            ValueError: the store cannot be used, or a manifest that is referred to is not in it.
        """
        for digest in refers:
            self.manifest(digest)
            self._renew(manifest_key(digest))
        paths = files_of(source) if source else {}
        before = {path: _identity(one) for path, one in paths.items()}
        files = tuple(
            File(path=path, sha256=file_sha256(one), size=one.stat().st_size) for path, one in paths.items()
        )
        manifest = Manifest(kind=kind, files=files, refers=tuple(refers), record=record or {})
        keys, num_sent = manifest.keys(), 0
        for file in files:
            is_sent = self._put(paths[file.path], file, keys[file.path], advance=advance)
            num_sent += file.size * is_sent
            if is_sent and _identity(paths[file.path]) != before[file.path]:
                self._take_back(keys[file.path], paths[file.path])
        self._write(manifest)
        for file in files:  # gc may have run between a reused object and the manifest
            self._put(paths[file.path], file, keys[file.path])
        for digest in refers:
            self.manifest(digest)
        return Published(manifest.digest, manifest, num_sent)

    def _take_back(self, key: str, source: Path) -> NoReturn:
        """Removes an object that may hold something else than its name says."""
        changed = f"{source}: has changed while it was stored; store it again"
        try:
            self.backend.delete(key)
        except StoreError as error:
            wrong = f"have {key} removed first, whose content is not what its name says ({error})"
            raise CorruptError(f"{changed}, but {wrong}") from error
        raise CorruptError(changed)

    def _put(self, source: Path, file: File, key: str, *, advance: Advance = no_progress) -> bool:
        """Puts one file, unless it is there; returns whether it did."""
        there = self.backend.stat(key)
        if there and there.size == file.size:
            self._renew(key, there)
            advance(file.size)
            return False
        self.backend.store(source, key, advance=advance)
        there = self.backend.stat(key)
        if there is None or there.size != file.size:
            raise CorruptError(
                f"{self.backend.address}: {key} is not whole after it was stored; store it again"
            )
        return True

    def manifest(self, digest: str) -> Manifest:
        """ValueError where there is none; `CorruptError` where it is not what its name says."""
        blob = self.backend.read(manifest_key(digest))
        if blob is None:
            raise ValueError(
                f"{self.backend.address}: has no manifest {digest}; `march artifacts ls` shows all"
            )
        return read_manifest(blob.content, digest)

    def renew(self, digest: str) -> None:
        """Makes a manifest young for gc; ValueError where it, or something that it names, is missing."""
        manifest, there = self.manifest(digest), self.backend.stat(manifest_key(digest))
        if there:
            self.backend.touch(there)
        for one in (manifest, *map(self.manifest, manifest.refers)):
            for key in one.keys().values():
                if self.backend.stat(key) is None:
                    raise ValueError(f"{self.backend.address}: {key} is missing; publish it again")

    def manifests(self) -> Iterator[str]:
        return (digest_of(entry.key) for entry in self.backend.entries(MANIFESTS))

    def resolve(self, name: str) -> str:
        """The digest of a manifest by pointer, whole, or by eight first digits; ValueError for none."""
        if is_digest(name):
            return name
        if 8 <= len(name) < 64 and set(name) <= set("0123456789abcdef"):
            found = [digest for digest in self.manifests() if digest.startswith(name)]
            if len(found) > 1:
                raise ValueError(f"{name}: {len(found)} manifests begin so; give more digits")
            if found:
                return found[0]
        pointed = self.pointed(name)
        if pointed is None:
            raise ValueError(
                f"{self.backend.address}: {name!r} is no pointer or manifest; `march artifacts ls` shows all"
            )
        return pointed

    def pointed(self, name: str) -> str | None:
        blob = self.backend.read(pointer_key(name))
        return _pointed(blob.content, name) if blob else None

    def pointers(self) -> dict[str, str]:
        names = [entry.key.removeprefix(POINTERS) for entry in self.backend.entries(POINTERS)]
        return {name: digest for name in names if (digest := self.pointed(name)) is not None}

    def move(self, name: str, digest: str, *, expected: str | None) -> None:
        """Points a pointer to a manifest that exists; `expected` is what it points to now, if it is there.

        Raises:
            MovedError: it points to something else; of two that move it at once, one gets this.
            UnsafeEndpointError: the endpoint cannot compare and set.
        """
        self.manifest(digest)
        blob = self.backend.read(pointer_key(name))
        found = _pointed(blob.content, name) if blob else None
        if found != expected:
            raise MovedError(
                f"pointer {name}: points to {found or 'nothing'}, expected was {expected or 'nothing'}; "
                "somebody else has moved it"
            )
        content = json.dumps({"manifest": digest, "writer": os.urandom(8).hex()}).encode()
        self.backend.compare_and_set(pointer_key(name), content, tag=blob.tag if blob else None)

    def get(
        self, digest: str, folder: Path, *, replaces: bool = True, advance: Advance = no_progress
    ) -> Manifest:
        """Brings the files, each by rename, what is there is kept.

        Raises:
            CorruptError: an object is not what its name says.
            ValueError: something else is there, and nothing `replaces` it.
        """
        manifest = self.manifest(digest)
        keys = manifest.keys()
        if not replaces:
            _refuse_others(folder, manifest)
        for file in manifest.files:
            target = folder / file.path
            self.get_file(file, keys[file.path], target, replaces=replaces, advance=advance)
        return manifest

    def get_file(
        self, file: File, key: str, target: Path, *, replaces: bool = True, advance: Advance = no_progress
    ) -> None:
        """Brings one file, unless it is there; raises as `get`. What came wrong is read again."""
        if target.is_file() and target.stat().st_size == file.size and file_sha256(target) == file.sha256:
            return advance(file.size)
        if target.exists() and not replaces:
            raise ValueError(f"{target}: is there already, with another content; name a new folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{file.sha256[:24]}.part")
        for _ in range(_TRIES):
            with naming(target):
                self.backend.fetch(key, part, advance=advance)
            if file_sha256(part) == file.sha256:
                os.replace(part, target)
                return None
            part.unlink()
            advance(-file.size)
        raise CorruptError(
            f"{self.backend.address}: {key} came {_TRIES} times with another content; "
            "remove it from the store, then publish it again"
        )

    def _write(self, manifest: Manifest) -> None:
        """Writes a manifest where none is, or a damaged one; what else is there is the same by its name."""
        key = manifest_key(manifest.digest)
        refuse_large(key, len(manifest.text))
        there = self.backend.read(key)
        if there is None or there.content != manifest.text:
            with suppress(MovedError):  # by another who writes the same
                self.backend.compare_and_set(key, manifest.text, tag=there.tag if there else None)
        self._renew(key)
        self.manifest(manifest.digest)

    def _renew(self, key: str, there: Entry | None = None) -> None:
        """Makes something young for gc that may run now, unless it is."""
        there = there or self.backend.stat(key)
        if there and datetime.now(UTC) - there.modified > _FRESH:
            self.backend.touch(there)


def _refuse_others(folder: Path, manifest: Manifest) -> None:
    """Refuses a folder that holds something else than a manifest, or parts of its files."""
    there = files_in(folder) if folder.is_dir() else {}
    ours = {file.path for file in manifest.files}
    for name, path in there.items():
        if name not in ours and name != ".lock" and path.suffix != ".part":
            raise ValueError(f"{path}: is none of the files that are brought; name a new folder")


def open_store(settings: StoreSettings) -> ArtifactStore:
    """The store that the settings name; boto3 is loaded only for a bucket."""
    if settings.is_s3:
        from pipeline.artifacts.s3 import S3Backend

        return ArtifactStore(S3Backend(settings))
    return ArtifactStore(LocalBackend(Path(settings.location)))


def files_of(source: Path) -> dict[str, Path]:
    """Files to publish by their paths, sorted; FileNotFoundError where there are none."""
    found = {source.name: source} if source.is_file() else files_in(source) if source.is_dir() else {}
    if not found:
        raise FileNotFoundError(f"{source}: no such file, or a folder without any; fix the path")
    return found


def _identity(source: Path) -> tuple[int, int, int]:
    found = source.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _pointed(content: bytes, name: str) -> str:
    try:
        digest = json.loads(content)["manifest"]
    except (ValueError, KeyError, TypeError):
        digest = ""
    if not isinstance(digest, str) or not is_digest(digest):
        raise CorruptError(f"pointer {name}: holds no digest; move it again after `march artifacts verify`")
    return digest

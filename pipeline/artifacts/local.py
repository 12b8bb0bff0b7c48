"""A store in a local folder: files appear by rename or link, pointers move under a lock."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from pipeline.artifacts.backend import MOST_BYTES, Advance, Blob, Entry, Stored, Unfinished
from pipeline.artifacts.failures import AlreadyThereError, CorruptError, MovedError, refuse_large
from pipeline.artifacts.layout import LINKS, MODELS, digest_of

_CHUNK = 1 << 20
_UPLOADS = "uploads"


class LocalBackend:
    """A folder, on one file system."""

    def __init__(self, root: Path) -> None:
        self._root = root.expanduser().resolve()

    @property
    def address(self) -> str:
        """The folder."""
        return str(self._root)

    def store(self, source: Path, key: str, sha256: str, *, advance: Advance) -> Stored:
        """Copies a file; what is copied is what is hashed."""
        target, found = self._path(key), hashlib.sha256()
        with self._staged(target) as staged, source.open("rb") as file, staged.open("wb") as out:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
                out.write(chunk)
                advance(len(chunk))
            out.flush()
            os.fsync(out.fileno())
            if found.hexdigest() != sha256:
                raise CorruptError(f"{source}: has changed while it was stored; store it again")
            os.replace(staged, target)
        size = target.stat().st_size
        return Stored(sha256=sha256, size=size, num_sent=size)

    def fetch(self, key: str, target: Path, *, advance: Advance) -> None:
        """Copies the file."""
        with self._path(key).open("rb") as file, target.open("wb") as out:
            while chunk := file.read(_CHUNK):
                out.write(chunk)
                advance(len(chunk))

    def stat(self, key: str) -> Entry | None:
        """Size and time of a file."""
        try:
            found = self._path(key).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Entry(key=key, size=found.st_size, modified=_time(found.st_mtime))

    def touch(self, entry: Entry) -> None:
        """Sets the file's time, if it is there."""
        with suppress(FileNotFoundError):
            os.utime(self._path(entry.key))

    def read(self, key: str) -> Blob | None:
        """The file's content, tagged by its digest."""
        try:
            with self._path(key).open("rb") as file:
                content = file.read(MOST_BYTES + 1)
        except FileNotFoundError:
            return None
        refuse_large(key, len(content))
        return Blob(content, hashlib.sha256(content).hexdigest())

    def write(self, key: str, content: bytes) -> None:
        """Writes by rename."""
        target = self._path(key)
        with self._staged(target) as staged:
            _write(staged, content)
            os.replace(staged, target)

    def create(self, key: str, content: bytes) -> None:
        """Writes by a link, which fails where a file is."""
        target = self._path(key)
        with self._staged(target) as staged:
            _write(staged, content)
            try:
                os.link(staged, target)
            except FileExistsError:
                raise AlreadyThereError(f"{key}: is there already") from None

    def compare_and_set(self, key: str, content: bytes, *, tag: str | None) -> None:
        """Compares and writes under the store's lock."""
        with self._lock():
            found = self.read(key)
            if (found.tag if found else None) != tag:
                raise MovedError(f"{key}: somebody else has moved it; look again")
            self.write(key, content)

    def demand_conditions(self) -> None:
        """Links and locks of a folder are atomic."""

    def entries(self, prefix: str) -> Iterator[Entry]:
        """The files under a prefix."""
        for path in sorted(self._path(prefix).rglob("*")):
            entry = self.stat(str(path.relative_to(self._root))) if path.is_file() else None
            if entry is not None:
                yield entry

    def delete(self, key: str) -> None:
        """Removes the file, and with the last one of a model MLflow's links to it."""
        self._path(key).unlink(missing_ok=True)
        if key.startswith(MODELS):
            folder = self._path(MODELS + digest_of(key))
            if not any(path.is_file() for path in folder.rglob("*")):
                for link in self._path(LINKS).rglob("*"):
                    if link.is_symlink() and link.resolve() == folder:
                        link.unlink()

    def unfinished(self) -> Iterator[Unfinished]:
        """Copies that a kill has left."""
        for entry in self.entries(_UPLOADS):
            yield Unfinished(key=entry.key, upload_id=entry.key, started=entry.modified)

    def give_up(self, upload: Unfinished) -> None:
        """Removes the copy."""
        self.delete(upload.key)

    @contextmanager
    def _staged(self, target: Path) -> Iterator[Path]:
        """A name on the same file system, free again in the end."""
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = self._root / _UPLOADS
        folder.mkdir(exist_ok=True)
        staged = folder / f"{target.name}.{os.getpid()}.{os.urandom(4).hex()}"
        try:
            yield staged
        finally:
            staged.unlink(missing_ok=True)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        self._root.mkdir(parents=True, exist_ok=True)
        with (self._root / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _path(self, key: str) -> Path:
        return self._root / key


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

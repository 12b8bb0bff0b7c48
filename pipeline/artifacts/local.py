"""A store in a local folder: files appear by rename or link, pointers move under a lock."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from pipeline.artifacts.backend import MOST_BYTES, Advance, Backend, Blob, Entry, MovedError, refuse_large
from pipeline.artifacts.layout import LINKS, MODELS, UPLOADS, digest_of
from reward.offline.files import naming

_CHUNK = 1 << 20


class LocalBackend:
    """A folder, on one file system. Keys are those of `layout.py`."""

    def __init__(self, root: Path) -> None:
        self._root = root.expanduser().resolve()

    @property
    def address(self) -> str:
        return str(self._root)

    def store(self, source: Path, key: str, *, advance: Advance) -> None:
        with self._staged(key) as staged:
            _copy(source, staged, advance)

    def fetch(self, key: str, target: Path, *, advance: Advance) -> None:
        _copy(self._path(key), target, advance)

    def stat(self, key: str) -> Entry | None:
        try:
            found = self._path(key).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Entry(key, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    def touch(self, entry: Entry) -> None:
        """Makes what is there as new as if it were written now, so that gc's grace begins again."""
        with suppress(FileNotFoundError):
            os.utime(self._path(entry.key))

    def read(self, key: str) -> Blob | None:
        """A small content with its tag, None for nothing; `CorruptError` for one above `MOST_BYTES`."""
        try:
            with self._path(key).open("rb") as file:
                content = file.read(MOST_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        refuse_large(key, len(content))
        return Blob(content, hashlib.sha256(content).hexdigest())

    def write(self, key: str, content: bytes) -> None:
        with self._staged(key) as staged:
            staged.write_bytes(content)

    def compare_and_set(self, key: str, content: bytes, *, tag: str | None) -> None:
        """Writes in place of what has this tag (None: of nothing); `MovedError` where something else is."""
        set_under_lock(self, self._root / ".lock", key, content, tag)

    def demand_conditions(self) -> None:
        """Nothing: a folder has a lock."""

    def entries(self, prefix: str) -> Iterator[Entry]:
        """What is under a prefix; under `UPLOADS` what was begun and not finished."""
        for path in sorted(self._path(prefix).rglob("*")):
            entry = self.stat(str(path.relative_to(self._root))) if path.is_file() else None
            if entry is not None:
                yield entry

    def delete(self, key: str) -> None:
        """Removes what is there, if anything is; with the last file of a model MLflow's links to it."""
        self._path(key).unlink(missing_ok=True)
        if key.startswith(MODELS):
            folder = self._path(MODELS + digest_of(key))
            if not any(path.is_file() for path in folder.rglob("*")):
                for link in self._path(LINKS).rglob("*"):
                    if link.is_symlink() and link.resolve() == folder:
                        link.unlink()

    @contextmanager
    def _staged(self, key: str) -> Iterator[Path]:
        """A file on the same file system, which gets its key when it is whole."""
        target = self._path(key)
        staged = self._path(f"{UPLOADS}{target.name}.{os.getpid()}.{os.urandom(4).hex()}")
        if target.is_dir() or any(path.is_file() for path in target.parents):
            raise ValueError(
                f"{key}: in a folder, no name can begin with another one and '/'; choose another name"
            )
        for path in (target, staged):
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with naming(self._root):
                yield staged
                with staged.open("rb") as file:
                    os.fsync(file.fileno())
            os.replace(staged, target)
        finally:
            staged.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._root / key


def _copy(source: Path, target: Path, advance: Advance) -> None:
    with source.open("rb") as file, target.open("wb") as out:
        while chunk := file.read(_CHUNK):
            out.write(chunk)
            advance(len(chunk))


def set_under_lock(backend: Backend, lock: Path, key: str, content: bytes, tag: str | None) -> None:
    """Compares and sets where a lock keeps all who do so apart; raises as `compare_and_set`."""
    with locked(lock):
        found = backend.read(key)
        if (found.tag if found else None) != tag:
            raise MovedError(f"{key}: somebody else has moved it; look again")
        backend.write(key, content)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a file's lock; waits for whoever has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

"""Files that a command writes: by one writer at a time, whole or not at all."""

import errno
import fcntl
import filecmp
import hashlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from reward.provenance import json_sha256

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def replace_file(path: Path, text: str | Iterable[str]) -> None:
    """Writes a file by rename: a reader sees the old text or the new, and the same text changes nothing.

    Raises:
        ValueError: the path is a device, a pipe or a folder, which a rename would destroy.
    """
    _demand_file(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{threading.get_native_id()}.tmp")  # of this writer alone
    try:
        with naming(path), temporary.open("w", encoding="utf-8", newline="") as file:
            file.writelines([text] if isinstance(text, str) else text)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if path.exists() and filecmp.cmp(temporary, path, shallow=False):
        temporary.unlink()
    else:
        os.replace(temporary, path)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Names the file in the error of a disk without room, which the system does not."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM and error.filename is None:
            error.filename = str(path)
        raise


def _demand_file(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise ValueError(f"{path}: is a device, a pipe or a folder; give the name of a file")


def refuse_inputs(path: Path, inputs: Iterable[Path]) -> None:
    """Raises `ValueError` when a file to write is one that is read."""
    if path.exists() and any(one.exists() and path.samefile(one) for one in inputs):
        raise ValueError(f"{path}: is an input; write to another file")


def file_sha256(path: Path) -> str:
    """Digest of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def weights_sha256(folder: Path) -> str:
    """Digest over the names and contents of the files of a model's folder; seconds for gigabytes.

    A folder that was written again is another model.
    """
    return digest_of_files({name: file_sha256(path) for name, path in files_in(folder).items()})


def files_in(folder: Path) -> dict[str, Path]:
    """All files of a folder by their paths in it, sorted; links are followed, those to folders, too.

    Raises:
        OSError: a folder cannot be read.
        ValueError: a link leads nowhere, or to a folder that it is in.
    """
    found: dict[str, Path] = {}
    for name, folders, files in os.walk(folder, followlinks=True, onerror=_raise):
        here = Path(name)
        for path in (here / one for one in (*folders, *files)):
            if path.is_symlink() and (not path.exists() or here.resolve().is_relative_to(path.resolve())):
                raise ValueError(f"{path}: a link that leads nowhere or round in a circle; remove or fix it")
            if path.is_file():
                found[path.relative_to(folder).as_posix()] = path
    return dict(sorted(found.items()))


def _raise(error: OSError) -> None:
    raise error


def digest_of_files(sha256s: Mapping[str, str]) -> str:
    """The same digest from that of each file by its path, as a manifest has them."""
    ordered = sorted(sha256s, key=PurePosixPath)
    return json_sha256([[[path, sha256s[path]] for path in ordered]])


def user_cache() -> Path:
    """Where a user's own caches are (XDG)."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "march"


@contextmanager
def only_writer(path: Path, *, what: str = "audit") -> Iterator[BinaryIO]:
    """Opens a file to append to, which nobody else does meanwhile; an empty one is removed in the end.

    Raises:
        ValueError: another process writes it, which the message calls `what`, or it is no file.
    """
    _demand_file(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path), path.open("ab") as out:
        try:
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fix = "wait for it or use another --out"
            raise ValueError(f"{path}: another {what} writes it; {fix}") from None
        try:
            yield out
        finally:
            if path.exists() and path.stat().st_size == 0:
                path.unlink()

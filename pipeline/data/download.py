"""Published files onto this machine: resumable, held against a digest, and never half a file under its name.

    NAME.part        what came so far
    NAME.part.json   what it is a part of: address, ETag
    NAME             the whole file, by rename
    NAME.sha256      its digest, held against whatever is fetched under that name later

A server that cannot be reached, one that says no and one that hangs up are each one clear line; the same
command then goes on where it stopped (HTTP Range), if the server still has the same file.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.data.sources import RemoteFile
from pipeline.record.checkpoints import write_atomically
from reward.types import Record

if TYPE_CHECKING:
    import httpx

_CHUNK = 1 << 20
_TIMEOUT_S = 30.0
_ATTEMPTS = 3

Advance = Callable[[int, int | None], None]  # bytes so far, bytes in all if they are known


class _Part(Record):
    """What a part is a part of."""

    url: str
    etag: str | None


def download(remote: RemoteFile, folder: Path, advance: Advance = lambda done, total: None) -> Path:
    """Fetches a file, or goes on with it, or finds it there; returns where it is.

    Args:
        remote: The file.
        folder: Made if needed.
        advance: Told of the progress.

    Raises:
        ConnectionError: the server cannot be reached, says no, or hung up too often.
        ValueError: the content is not what it must be; the file is removed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / remote.name
    if path.is_file() and path.with_name(f"{path.name}.sha256").is_file():
        _check(path, remote, refetch=False)
        return path
    part = path.with_name(f"{path.name}.part")
    _fetch(remote.url, part, advance)
    try:
        whole = _extract(part, remote) if remote.member else part
        _check(whole, remote, refetch=True, name=path)
        os.replace(whole, path)
    finally:
        part.unlink(missing_ok=True)
        _note(part).unlink(missing_ok=True)
    return path


def _fetch(url: str, part: Path, advance: Advance) -> None:
    """Fetches until the part is whole; a connection that ends early is taken up again a few times."""
    import httpx

    with httpx.Client(follow_redirects=True, timeout=_TIMEOUT_S) as client:
        for attempt in range(1, _ATTEMPTS + 1):
            before = _size(part)
            try:
                _fetch_on(client, url, part, advance)
                return
            except httpx.TransportError as error:
                got = _size(part)
                if attempt == _ATTEMPTS or (attempt > 1 and got == before):
                    raise ConnectionError(_told(url, error, got)) from error


def _fetch_on(client: httpx.Client, url: str, part: Path, advance: Advance) -> None:
    done, etag = _size(part), _etag(part, url)
    headers = {"Accept-Encoding": "identity"}
    if done and etag:
        headers |= {"Range": f"bytes={done}-", "If-Range": etag}
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code == 416 and _is_whole(response, done):
            return
        if response.status_code not in (200, 206):
            raise ConnectionError(
                f"{url}: the server said {response.status_code} {response.reason_phrase}; fetch the file by "
                "hand and give it with --input, or give another address with --url"
            )
        has_resumed = response.status_code == 206
        done = done if has_resumed else 0
        write_atomically(_note(part), _Part(url=url, etag=_strong(response)).model_dump_json())
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else None
        with part.open("ab" if has_resumed else "wb") as file:
            for chunk in response.iter_bytes():
                file.write(chunk)
                file.flush()  # so that a kill costs no more than a chunk
                done += len(chunk)
                advance(done, total)


def _is_whole(response: httpx.Response, num_bytes: int) -> bool:
    """Whether a server that has nothing more to give says that this is all."""
    return bool(response.headers.get("Content-Range") == f"bytes */{num_bytes}")


def _strong(response: httpx.Response) -> str | None:
    """The ETag if it names exact bytes; else the part cannot be gone on with."""
    etag: str | None = response.headers.get("ETag")
    return etag if etag and not etag.startswith("W/") else None


def _told(url: str, error: Exception, num_bytes: int) -> str:
    if num_bytes:
        return f"{url}: the connection ended after {num_bytes:,} bytes ({error}); the same command goes on"
    return (
        f"{url}: cannot be reached ({error}); check the network and proxy settings, or fetch the file on "
        "another machine and give it with --input"
    )


def _extract(part: Path, remote: RemoteFile) -> Path:
    """Takes the one file out of an archive."""
    assert remote.member is not None
    target = part.with_name(f"{remote.name}.extracted")
    try:
        with zipfile.ZipFile(part) as archive:
            names = [name for name in archive.namelist() if Path(name).name == remote.member]
            if len(names) != 1:
                raise ValueError(f"{remote.url}: holds {len(names)} files {remote.member}; fetch it by hand")
            with archive.open(names[0]) as packed, target.open("wb") as file:
                while chunk := packed.read(_CHUNK):
                    file.write(chunk)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{remote.url}: is no ZIP archive ({error}); it was removed, try again") from error
    return target


def _check(path: Path, remote: RemoteFile, *, refetch: bool, name: Path | None = None) -> None:
    """Holds a file against the digest that is published, and the one of the first download."""
    named = name or path
    record = named.with_name(f"{named.name}.sha256")
    found = _sha256(path)
    known = record.read_text().split()[0] if record.is_file() else None
    if known is not None and found != known:
        raise ValueError(_mismatch(path, f"SHA-256 {found} is not {known}, as {record.name} has it", refetch))
    if remote.git_blob is not None and _git_blob(path) != remote.git_blob:
        raise ValueError(_mismatch(path, f"git's digest is not {remote.git_blob}, as published", refetch))
    write_atomically(record, f"{found}  {named.name}\n")


def _mismatch(path: Path, what: str, refetch: bool) -> str:
    if refetch:
        path.unlink()
        return f"{path}: {what}; it was removed: try again, or get it by hand and give it with --input"
    return f"{path}: {what}; it was changed here: remove it and try again"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _git_blob(path: Path) -> str:
    """The name that git gives the content: SHA-1 of a header and the bytes."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _note(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _etag(part: Path, url: str) -> str | None:
    note = _note(part)
    known = _Part.model_validate_json(note.read_text()) if note.is_file() else None
    return known.etag if known and known.url == url else None


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0

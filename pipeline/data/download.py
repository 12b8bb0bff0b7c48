"""Published files onto this machine: resumable, held against a digest, and never half a file under its name.

    NAME.part        what came so far
    NAME.part.json   what it is a part of: the ETag by address
    NAME             the whole file, by rename
    NAME.sha256      its digest, held against whatever is fetched under that name later

A server that cannot be reached, one that says no and one that hangs up are each one clear line; the same
command then goes on where it stopped (HTTP Range), if the server still has the same file.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.data.sources import RemoteFile
from reward.offline.files import file_sha256, replace_file

if TYPE_CHECKING:
    import httpx

_TIMEOUT_S = 30.0
_ATTEMPTS = 3

Advance = Callable[[int, int | None], None]  # bytes so far, bytes in all if they are known


def download(remote: RemoteFile, folder: Path, advance: Advance = lambda done, total: None) -> Path:
    """Fetches a file, or goes on with it, or finds it there; returns where it is.

    Raises:
        ConnectionError: the server cannot be reached, says no, or hung up too often.
        ValueError: the content is not what it must be; the file is removed.
    """
    path, part = folder / remote.name, folder / f"{remote.name}.part"
    record = folder / f"{remote.name}.sha256"
    if path.is_file() and record.is_file():
        _check(path, remote, record, "it was changed here: remove it and try again")
        return path
    _fetch(remote.url, part, advance)
    whole = folder / f"{remote.name}.extracted" if remote.member else part
    try:
        if remote.member:
            _extract(part, remote.member, whole, remote.url)
        fix = "it was removed: try again, or get it by hand and give it with --input"
        replace_file(record, f"{_check(whole, remote, record, fix)}  {remote.name}\n")
        os.replace(whole, path)
    finally:
        for left in (part, folder / f"{part.name}.json", whole):
            left.unlink(missing_ok=True)
    return path


def _fetch(url: str, part: Path, advance: Advance) -> None:
    """Fetches until the part is whole; a connection that ends early is taken up again a few times."""
    import httpx
    from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

    is_cut = retry_if_exception_type(httpx.TransportError)
    try:
        with httpx.Client(follow_redirects=True, timeout=_TIMEOUT_S) as client:
            Retrying(stop=stop_after_attempt(_ATTEMPTS), retry=is_cut, reraise=True)(
                _fetch_on, client, url, part, advance
            )
    except httpx.TransportError as error:
        raise ConnectionError(_told(url, error, _size(part))) from error


def _fetch_on(client: httpx.Client, url: str, part: Path, advance: Advance) -> None:
    note, done = part.with_name(f"{part.name}.json"), _size(part)
    etag = json.loads(note.read_text()).get(url) if note.is_file() else None
    headers = {"Accept-Encoding": "identity"}
    if done and etag:
        headers |= {"Range": f"bytes={done}-", "If-Range": etag}
    with client.stream("GET", url, headers=headers) as response:
        if response.status_code == 416 and response.headers.get("Content-Range") == f"bytes */{done}":
            return  # the server has nothing more to give
        if response.status_code not in (200, 206):
            raise ConnectionError(
                f"{url}: the server said {response.status_code} {response.reason_phrase}; fetch the file by "
                "hand and give it with --input, or give another address with --url"
            )
        has_resumed = response.status_code == 206
        done = done if has_resumed else 0
        etag = response.headers.get("ETag", "")
        # A weak one does not name exact bytes, so the part cannot be gone on with.
        replace_file(note, json.dumps({} if etag.startswith("W/") else {url: etag}))
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else None
        with part.open("ab" if has_resumed else "wb") as file:
            for chunk in response.iter_bytes():
                file.write(chunk)
                file.flush()  # so that a kill costs no more than a chunk
                done += len(chunk)
                advance(done, total)


def _told(url: str, error: Exception, num_bytes: int) -> str:
    if num_bytes:
        return f"{url}: the connection ended after {num_bytes:,} bytes ({error}); the same command goes on"
    return (
        f"{url}: cannot be reached ({error}); check the network and proxy settings, or fetch the file on "
        "another machine and give it with --input"
    )


def _extract(part: Path, member: str, target: Path, url: str) -> None:
    try:
        with zipfile.ZipFile(part) as archive:
            names = [name for name in archive.namelist() if Path(name).name == member]
            if len(names) != 1:
                raise ValueError(f"{url}: holds {len(names)} files {member}; fetch it by hand")
            with archive.open(names[0]) as packed, target.open("wb") as file:
                shutil.copyfileobj(packed, file)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{url}: is no ZIP archive ({error}); it was removed, try again") from error


def _check(file: Path, remote: RemoteFile, record: Path, fix: str) -> str:
    """Holds a file against the digest that is published, and the one of the first download; returns it."""
    found = file_sha256(file)
    known = record.read_text().split()[0] if record.is_file() else found
    if found != known:
        raise ValueError(f"{file}: SHA-256 {found} is not {known}, as {record.name} has it; {fix}")
    if remote.git_blob is not None and _git_blob(file) != remote.git_blob:
        raise ValueError(f"{file}: git's digest is not {remote.git_blob}, as published; {fix}")
    return found


def _git_blob(file: Path) -> str:
    """The name that git gives the content: SHA-1 of a header and the bytes."""
    content = file.read_bytes()  # of 44 MB at most
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0

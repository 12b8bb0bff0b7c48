"""A large file to S3 in parts: side by side in bounded memory, each with its checksums, resumed after a kill.

The key is named by the content, so an unfinished upload of the same key is one of the same file. Its parts
are kept where their ETag is the MD5 of our part; what a kill can cost is what was on the wire: less than one
part of each worker. Where ETags are no MD5 (encryption by KMS), no part is kept and all are sent again.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt

from pipeline.artifacts.backend import Advance
from pipeline.artifacts.failures import CorruptError
from pipeline.artifacts.settings import MIB, StoreSettings

_MOST_PARTS = 10_000  # of S3
_DAMAGED = ("BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch")
_Piece = TypeVar("_Piece")
_Result = TypeVar("_Result")
_TRIES = 3  # of what arrives otherwise than it was sent


@dataclass(frozen=True)
class Sent:
    """What an upload took, and the ETag that its object must have."""

    etag: str
    num_sent: int
    num_kept: int
    version_id: str | None = None


@dataclass(frozen=True)
class _Part:
    number: int  # from 1
    start: int
    size: int


def part_size(size: int, wanted: int) -> int:
    """Bytes of a part: as wanted, or as many MiB as keep the parts of a huge file under S3's bound."""
    least = -(-size // _MOST_PARTS)
    return max(wanted, -(-least // MIB) * MIB)


def send_parts(
    client: Any,
    at: dict[str, str],
    source: Path,
    *,
    settings: StoreSettings,
    metadata: dict[str, str],
    advance: Advance,
) -> Sent:
    """Uploads a file, or what an earlier upload of it did not send.

    Args:
        client: Of boto3.
        at: Bucket and key.
        source: The file; it must not change meanwhile.
        settings: Size of a part, and parts at once.
        metadata: Of the object.
        advance: Told of bytes that are there, kept ones too.

    Raises:
        CorruptError: a part arrives otherwise than it was sent, three times.
    """
    size = source.stat().st_size
    step = part_size(size, settings.part_mib * MIB)
    parts = [_Part(1 + start // step, start, min(step, size - start)) for start in range(0, size, step)]
    upload_id = (
        _begun(client, at)
        or client.create_multipart_upload(**at, Metadata=metadata, ChecksumAlgorithm="SHA256")["UploadId"]
    )
    there = _parts_there(client, at, upload_id)

    def bring(part: _Part) -> tuple[str, str, int]:
        content = _read(source, part)
        md5 = hashlib.md5(content, usedforsecurity=False)
        sha256 = base64.b64encode(hashlib.sha256(content).digest()).decode()
        is_kept = there.get(part.number) == (md5.hexdigest(), part.size)
        if not is_kept:
            _send(client, {**at, "UploadId": upload_id, "PartNumber": part.number}, content, md5, sha256)
        advance(part.size)
        return md5.hexdigest(), sha256, 0 if is_kept else part.size

    done = side_by_side(bring, parts, workers=settings.workers)
    listed = [
        {"PartNumber": part.number, "ETag": f'"{md5}"', "ChecksumSHA256": sha256}
        for part, (md5, sha256, _) in zip(parts, done, strict=True)
    ]
    made = client.complete_multipart_upload(**at, UploadId=upload_id, MultipartUpload={"Parts": listed})
    num_sent = sum(sent for *_, sent in done)
    etag = _etag_of([md5 for md5, *_ in done])
    return Sent(etag, num_sent, size - num_sent, version_id=made.get("VersionId"))


def side_by_side(
    work: Callable[[_Piece], _Result], pieces: Sequence[_Piece], *, workers: int
) -> list[_Result]:
    """Results in the order of the pieces; at the first error what has not begun is left undone."""
    with ThreadPoolExecutor(workers, thread_name_prefix="parts") as pool:
        futures: list[Future[_Result]] = [pool.submit(work, piece) for piece in pieces]
        done, waiting = wait(futures, return_when=FIRST_EXCEPTION)
        for future in waiting:
            future.cancel()
    for future in done:
        future.result()
    return [future.result() for future in futures]


def _begun(client: Any, at: dict[str, str]) -> str | None:
    """The newest unfinished upload of the key."""
    pages = client.get_paginator("list_multipart_uploads").paginate(Bucket=at["Bucket"], Prefix=at["Key"])
    found = [one for page in pages for one in page.get("Uploads", ()) if one["Key"] == at["Key"]]
    newest = max(found, key=lambda one: one["Initiated"], default=None)
    return newest["UploadId"] if newest else None


def _parts_there(client: Any, at: dict[str, str], upload_id: str) -> dict[int, tuple[str, int]]:
    pages = client.get_paginator("list_parts").paginate(**at, UploadId=upload_id)
    parts = (part for page in pages for part in page.get("Parts", ()))
    return {part["PartNumber"]: (part["ETag"].strip('"'), part["Size"]) for part in parts}


def _read(source: Path, part: _Part) -> bytes:
    with source.open("rb") as file:
        content = os.pread(file.fileno(), part.size, part.start)
    if len(content) != part.size:
        raise CorruptError(f"{source}: has become shorter while it was stored; store it again")
    return content


def _send(client: Any, where: dict[str, Any], content: bytes, md5: Any, sha256: str) -> None:
    content_md5 = base64.b64encode(md5.digest()).decode()
    put = partial(client.upload_part, **where, Body=content, ContentMD5=content_md5, ChecksumSHA256=sha256)
    until_whole(client, f"part {where['PartNumber']} of {where['Key']}", put)


def until_whole(client: Any, what: str, put: Callable[[], _Result]) -> _Result:
    """Sends something again while the server finds that it has arrived damaged.

    Raises:
        CorruptError: three times.
    """
    trying = Retrying(retry=retry_if_exception(_is_damaged), stop=stop_after_attempt(_TRIES), reraise=True)
    try:
        return trying(put)
    except client.exceptions.ClientError as error:
        if not _is_damaged(error):
            raise
        raise CorruptError(
            f"{what} arrived {_TRIES} times otherwise than it was sent; look at the network between"
        ) from error


def _is_damaged(error: BaseException) -> bool:
    response = getattr(error, "response", None)
    return isinstance(response, dict) and response.get("Error", {}).get("Code") in _DAMAGED


def _etag_of(md5s: Sequence[str]) -> str:
    """S3's ETag of an object in parts: the MD5 of their MD5s, and how many they are."""
    joined = b"".join(bytes.fromhex(md5) for md5 in md5s)
    return f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(md5s)}"

"""A store in an S3 bucket, Amazon's or another's, by boto3 and its transfer manager.

Large files go and come in parts, several at once, in bounded memory. Every request signs the SHA-256 of its
body, which any S3 server must check, so a part that arrives damaged is refused; it is then sent again.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.artifacts.backend import (
    MOST_BYTES,
    Advance,
    Blob,
    CorruptError,
    Entry,
    MovedError,
    StoreError,
    UnsafeEndpointError,
    refuse_large,
)
from pipeline.artifacts.layout import MODELS, OBJECTS, UPLOADS
from pipeline.artifacts.local import set_under_lock
from pipeline.artifacts.settings import MIB, StoreSettings

_MOST_COPIED = 5 << 30  # bytes of one CopyObject
_DAMAGED = ("BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch")
_TRIES = 3  # of a request that arrives damaged
_IN_PARTS = (OBJECTS, MODELS, "probe/")  # what is uploaded in parts
_OF_UPLOAD = "?uploadId="  # between an object's key and an upload's id
_LOCK = (
    "so a pointer moved here could be lost; set MARCH_ARTIFACTS_LOCK to a file on a disk that all who move "
    "pointers share"
)


def make_client(settings: StoreSettings) -> Any:
    """A client; who it is comes from boto3's own chain each time: `boto3.client` keeps its first keys."""
    from boto3 import Session
    from botocore.config import Config

    config = Config(
        retries={"mode": settings.retries, "max_attempts": settings.max_attempts},
        connect_timeout=settings.timeout_s,
        read_timeout=settings.timeout_s,
        max_pool_connections=settings.workers + 4,
        # Over TLS, too: trailing checksums, which boto3 sends there instead, are refused by many servers.
        s3={"addressing_style": "path" if settings.endpoint else "auto", "payload_signing_enabled": True},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    region = "us-east-1" if settings.endpoint else None  # None: of boto3's own chain
    client = Session().client("s3", endpoint_url=settings.endpoint, region_name=region, config=config)
    for operation in ("PutObject", "UploadPart"):
        client.meta.events.register(f"needs-retry.s3.{operation}", _again_if_damaged)
    return client


class S3Backend:
    """A bucket, or what is under a prefix of one."""

    def __init__(self, settings: StoreSettings, client: Any = None) -> None:
        from boto3.s3.transfer import TransferConfig

        self.settings = settings
        self.client = client or make_client(settings)
        part = settings.part_mib * MIB
        sizes = {"multipart_threshold": part + 1, "multipart_chunksize": part}
        self._transfer = TransferConfig(max_concurrency=settings.workers, **sizes)
        self._copying = TransferConfig(multipart_threshold=_MOST_COPIED + 1, multipart_chunksize=_MOST_COPIED)

    @property
    def address(self) -> str:
        return f"s3://{self.settings.bucket}/{self.settings.prefix}".rstrip("/")

    def store(self, source: Path, key: str, *, advance: Advance) -> None:
        with _named(f"{self.address}: {source.name}"):
            self.client.upload_file(str(source), **self._at(key), Config=self._transfer, Callback=advance)

    def fetch(self, key: str, target: Path, *, advance: Advance) -> None:
        with _named(f"{self.address}: {key}"), target.open("wb") as file:
            self.client.download_fileobj(
                **self._at(key), Fileobj=file, Config=self._transfer, Callback=advance
            )

    def stat(self, key: str) -> Entry | None:
        head = self._unless_missing(key, self.client.head_object)
        return Entry(key, head["ContentLength"], head["LastModified"]) if head else None

    def touch(self, entry: Entry) -> None:
        """Copies an object onto itself, above 5 GiB in parts, if it is there."""
        more = {"ExtraArgs": {"MetadataDirective": "REPLACE"}, "Config": self._copying}
        self._unless_missing(entry.key, partial(self.client.copy, self._at(entry.key), **more))

    def read(self, key: str) -> Blob | None:
        found = self._unless_missing(key, self.client.get_object)
        if found is None:
            return None
        with _named(f"{self.address}: {key}"):
            content = found["Body"].read(MOST_BYTES + 1)
        refuse_large(key, max(len(content), found["ContentLength"]))
        return Blob(content, found["ETag"])

    def write(self, key: str, content: bytes) -> None:
        with _named(f"{self.address}: {key}"):
            self._put(key, content)

    def compare_and_set(self, key: str, content: bytes, *, tag: str | None) -> None:
        """By PUT with IfMatch or IfNoneMatch; under the lock where one is set.

        Raises:
            MovedError: another one is there.
            UnsafeEndpointError: the endpoint cannot do so safely.
        """
        if self.settings.pointer_lock is not None:
            return set_under_lock(self, self.settings.pointer_lock, key, content, tag)
        condition = {"IfMatch": tag} if tag else {"IfNoneMatch": "*"}
        with _named(f"{self.address}: {key}"):
            try:
                self._put(key, content, **condition)
            except self.client.exceptions.ClientError as error:
                if status(error) == 501:
                    raise UnsafeEndpointError(
                        f"{self.address}: has no conditional writes, {_LOCK}"
                    ) from error
                if status(error) not in (404, 409, 412):
                    raise
                # A retry of a write that did succeed gets the same answer: look whose content is there.
                found = self.read(key)
                if found is None or found.content != content:
                    raise MovedError(f"{key}: somebody else has moved it; look again") from None

    def demand_conditions(self) -> None:
        """Tries conditions, which some endpoints ignore, unless a lock is set: `UnsafeEndpointError`."""
        if self.settings.pointer_lock is not None:
            return
        with _named(self.address):
            lacks = missing_conditions(self.client, self.settings.bucket, self.settings.prefix)
        if lacks:
            raise UnsafeEndpointError(f"{self.address}: the endpoint lacks {', '.join(lacks)}, {_LOCK}")

    def entries(self, prefix: str) -> Iterator[Entry]:
        with _named(self.address):
            pages = self.client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self.settings.bucket, Prefix=self.settings.prefix + prefix):
                for one in page.get("Contents", ()):
                    yield Entry(self._key(one["Key"]), one["Size"], one["LastModified"])
            if UPLOADS.startswith(prefix):
                yield from self._unfinished()

    def delete(self, key: str) -> None:
        """By DELETE; a versioned bucket keeps the version behind a marker. An upload is aborted."""
        with _named(f"{self.address}: {key}"):
            name, is_upload, upload_id = key.removeprefix(UPLOADS).partition(_OF_UPLOAD)
            if is_upload:
                with suppress(self.client.exceptions.NoSuchUpload):  # it ended meanwhile
                    self.client.abort_multipart_upload(**self._at(name), UploadId=upload_id)
            else:
                self.client.delete_object(**self._at(key))

    def begin_upload(self, key: str) -> str:
        """Begins an upload in parts, and returns the key by which `delete` aborts it."""
        with _named(f"{self.address}: {key}"):
            return _upload_key(key, self.client.create_multipart_upload(**self._at(key)))

    def _unfinished(self) -> Iterator[Entry]:
        """Uploads, under keys of their own; how much each has sent is not known."""
        pages = self.client.get_paginator("list_multipart_uploads")
        for page in pages.paginate(Bucket=self.settings.bucket, Prefix=self.settings.prefix):
            for one in page.get("Uploads", ()):
                key = self._key(one["Key"])
                if key.startswith(_IN_PARTS):  # a bucket without a prefix may hold what is not ours
                    yield Entry(_upload_key(key, one), 0, one["Initiated"])

    def _unless_missing(self, key: str, ask: Callable[..., Any]) -> Any:
        """What the server says of a key; None for nothing there."""
        with _named(f"{self.address}: {key}"):
            try:
                return ask(**self._at(key))
            except self.client.exceptions.ClientError as error:
                if status(error) != 404:
                    raise
        return None

    def _put(self, key: str, content: bytes, **more: Any) -> None:
        self.client.put_object(**self._at(key), Body=content, **more)

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self.settings.bucket, "Key": self.settings.prefix + key}

    def _key(self, name: str) -> str:
        return name.removeprefix(self.settings.prefix)


def missing_conditions(client: Any, bucket: str, prefix: str) -> list[str]:
    """What an endpoint lacks, by behaviour, since some ignore what they accept. Swift has no IfMatch."""
    at = {"Bucket": bucket, "Key": f"{prefix}probe/{uuid.uuid4().hex}"}
    try:
        tag = client.put_object(**at, Body=b"1")["ETag"]
        if_none_match = not _is_written(client, **at, Body=b"2", IfNoneMatch="*")
        other = '"00000000000000000000000000000000"'
        if_match = not _is_written(client, **at, Body=b"3", IfMatch=other)
        if_match = if_match and _is_written(client, **at, Body=b"4", IfMatch=tag)
        found = {"IfNoneMatch": if_none_match, "IfMatch": if_match}
        return [name for name, holds in found.items() if not holds]
    finally:
        client.delete_object(**at)


def _is_written(client: Any, **call: Any) -> bool:
    """Whether a conditional write is done; refused conditions and unknown ones are not."""
    try:
        client.put_object(**call)
    except client.exceptions.ClientError as error:
        if status(error) in (400, 404, 409, 412, 501):
            return False
        raise
    return True


def _upload_key(key: str, upload: dict[str, Any]) -> str:
    return f"{UPLOADS}{key}{_OF_UPLOAD}{upload['UploadId']}"


def status(error: Any) -> int:
    """HTTP status of a ClientError."""
    return int(error.response["ResponseMetadata"]["HTTPStatusCode"])


def _again_if_damaged(response: Any, attempts: int, **_event: Any) -> int | None:
    """Seconds to wait before botocore sends a request again; None: what botocore itself says."""
    code = response[1].get("Error", {}).get("Code") if response else None
    return 0 if code in _DAMAGED and attempts < _TRIES else None


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Gives errors of the wire and of the server a line of ours; retries are over by then."""
    from boto3.exceptions import S3UploadFailedError
    from botocore.exceptions import BotoCoreError, ClientError
    from s3transfer.exceptions import RetriesExceededError, S3DownloadFailedError
    from urllib3.exceptions import HTTPError

    try:
        try:
            yield
        except (S3UploadFailedError, RetriesExceededError) as error:
            raise (getattr(error, "last_exception", None) or error.__context__ or error) from None
    except ClientError as error:
        found = error.response["Error"]
        if found.get("Code") in _DAMAGED:
            raise CorruptError(
                f"{what} arrived {_TRIES} times otherwise than it was sent; look at the network between"
            ) from error
        fix = _FIXES.get(found.get("Code", ""), _GOES_ON)
        raise StoreError(f"{what}: {found.get('Code')}: {found.get('Message')}; {fix}") from error
    except (BotoCoreError, HTTPError, S3DownloadFailedError) as error:  # the last: it was touched meanwhile
        fix = _FIXES.get(type(error).__name__, _GOES_ON)
        raise StoreError(f"{what}: {' '.join(str(error).split())}; {fix}") from error


_GOES_ON = "the same command goes on"
_FIXES = {  # by S3's code, or the name of botocore's error
    "AccessDenied": "give credentials that may do so",
    "InvalidAccessKeyId": "fix AWS_ACCESS_KEY_ID",
    "NoSuchBucket": "make the bucket, or fix its name",
    "SignatureDoesNotMatch": "fix AWS_SECRET_ACCESS_KEY",
    "RequestTimeTooSkewed": "set this machine's clock",
    "SSLError": "set AWS_CA_BUNDLE to the file of the server's authority",
    "NoCredentialsError": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "EndpointConnectionError": f"start the server, or fix AWS_ENDPOINT_URL; {_GOES_ON}",
}

"""A store in an S3 bucket, Amazon's or another's, by boto3."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pipeline.artifacts.backend import MOST_BYTES, Advance, Blob, Entry, Stored, Unfinished
from pipeline.artifacts.conditions import RACERS, Conditions, locked, probe
from pipeline.artifacts.failures import (
    AlreadyThereError,
    CorruptError,
    MovedError,
    StoreError,
    UnsafeEndpointError,
    refuse_large,
)
from pipeline.artifacts.multipart import Sent, send_parts, until_whole
from pipeline.artifacts.ranges import fetch_ranges
from pipeline.artifacts.settings import MIB, StoreSettings, refuse_secret

SHA256_METADATA = "sha256"
_CHUNK = 1 << 20
_MOST_COPIED = 5 << 30  # bytes of one CopyObject


def make_client(settings: StoreSettings) -> Any:
    """A client; who it is comes from boto3's own chain, asked anew: `boto3.client` keeps its first keys."""
    from boto3 import Session
    from botocore.config import Config

    refuse_secret("endpoint", settings.endpoint or "")
    config = Config(
        retries={"mode": settings.retries, "max_attempts": settings.max_attempts},
        connect_timeout=settings.timeout_s,
        read_timeout=settings.timeout_s,
        max_pool_connections=max(settings.workers, RACERS) + 4,
        s3={"addressing_style": "path" if settings.endpoint else "auto"},
        # The checksums are ours, of whole parts and in headers: other servers often refuse trailing ones.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    region = settings.region or ("us-east-1" if settings.endpoint else None)
    return Session().client("s3", endpoint_url=settings.endpoint, region_name=region, config=config)


class S3Backend:
    """A bucket, or what is under a prefix of one."""

    def __init__(self, settings: StoreSettings, client: Any = None) -> None:
        self.settings = settings
        self.client = client or make_client(settings)

    @property
    def address(self) -> str:
        """`s3://bucket/prefix`."""
        return f"s3://{self.settings.bucket}/{self.settings.prefix}".rstrip("/")

    @cached_property
    def conditions(self) -> Conditions:
        """What the endpoint was found to do with conditional writes; asked once, before the first."""
        with _named(self.address):
            return probe(self.client, self.settings.bucket, self.settings.prefix)

    @cached_property
    def _is_versioned(self) -> bool:
        with _named(self.address):
            found = self.client.get_bucket_versioning(Bucket=self.settings.bucket)
        return bool(found.get("Status") == "Enabled")

    def store(self, source: Path, key: str, sha256: str, *, advance: Advance) -> Stored:
        """In one request where it is small, else in parts side by side; verified when it is there."""
        size, before = source.stat().st_size, _identity(source)
        with _named(f"{self.address}: {source.name}"):
            if size <= self.settings.part_mib * MIB:
                sent = self._store_whole(source, key, sha256)
                advance(size)
            else:
                sent = send_parts(
                    self.client,
                    self._at(key),
                    source,
                    settings=self.settings,
                    metadata={SHA256_METADATA: sha256},
                    advance=advance,
                )
            if _identity(source) != before:
                self.delete(key)
                raise CorruptError(f"{source}: has changed while it was stored; store it again")
            version_id = self._verify(key, sha256, size, sent)
        return Stored(sha256, size, num_sent=sent.num_sent, num_kept=sent.num_kept, version_id=version_id)

    def fetch(self, key: str, target: Path, *, size: int, advance: Advance) -> int:
        """Reads ranges side by side, those alone that are missing."""
        with _named(f"{self.address}: {key}"):
            return fetch_ranges(
                self.client, self._at(key), target, size=size, settings=self.settings, advance=advance
            )

    def stat(self, key: str) -> Entry | None:
        """By HEAD."""
        head = self._head(key)
        if head is None:
            return None
        return Entry(key, head["ContentLength"], head["LastModified"], head.get("VersionId"))

    def touch(self, entry: Entry) -> None:
        """Copies an object onto itself. One too large for that keeps its age: `store.py` looks again."""
        if entry.size > _MOST_COPIED:
            return
        head = self._head(entry.key)
        if head is None:
            return
        with _named(f"{self.address}: {entry.key}"):
            self.client.copy_object(
                **self._at(entry.key),
                CopySource={"Bucket": self.settings.bucket, "Key": self.settings.prefix + entry.key},
                Metadata=head["Metadata"],
                MetadataDirective="REPLACE",
            )

    def read(self, key: str) -> Blob | None:
        """By GET."""
        with _named(f"{self.address}: {key}"):
            try:
                found = self.client.get_object(**self._at(key))
            except self.client.exceptions.ClientError as error:
                if status(error) == 404:
                    return None
                raise
            content = found["Body"].read(MOST_BYTES + 1)
            refuse_large(key, max(len(content), found["ContentLength"]))
            return Blob(content, found["ETag"])

    def write(self, key: str, content: bytes) -> None:
        """By PUT."""
        with _named(f"{self.address}: {key}"):
            self._put(key, content)

    def create(self, key: str, content: bytes) -> None:
        """By PUT with IfNoneMatch; an endpoint that ignores it is asked first what is there."""
        if not self.conditions.if_none_match:
            if self._head(key) is not None:
                raise AlreadyThereError(f"{key}: is there already")
            return self.write(key, content)
        with _named(f"{self.address}: {key}"):
            try:
                self._put(key, content, IfNoneMatch="*")
            except self.client.exceptions.ClientError as error:
                if status(error) in (409, 412):
                    raise AlreadyThereError(f"{key}: is there already") from None
                raise

    def compare_and_set(self, key: str, content: bytes, *, tag: str | None) -> None:
        """By PUT with IfMatch or IfNoneMatch where they are atomic; else under the lock that is set."""
        if self.conditions.can_compare_and_set:
            return self._set_if(key, content, tag)
        if self.settings.pointer_lock is None:
            raise UnsafeEndpointError(
                f"{self.address}: {self.conditions.describe()}; a pointer moved here could be lost. Set "
                "MARCH_ARTIFACTS_LOCK to a file on a disk that all who move pointers share"
            )
        with locked(self.settings.pointer_lock):
            found = self.read(key)
            if (found.tag if found else None) != tag:
                raise MovedError(f"{key}: somebody else has moved it; look again")
            self.write(key, content)

    def entries(self, prefix: str) -> Iterator[Entry]:
        """By ListObjectsV2."""
        with _named(self.address):
            pages = self.client.get_paginator("list_objects_v2")
            where = {"Bucket": self.settings.bucket, "Prefix": self.settings.prefix + prefix}
            for page in pages.paginate(**where):
                for one in page.get("Contents", ()):
                    yield Entry(self._key(one["Key"]), one["Size"], one["LastModified"])

    def delete(self, key: str) -> None:
        """By DELETE; a versioned bucket keeps the version behind a marker."""
        with _named(f"{self.address}: {key}"):
            self.client.delete_object(**self._at(key))

    def unfinished(self) -> Iterator[Unfinished]:
        """By ListMultipartUploads."""
        with _named(self.address):
            pages = self.client.get_paginator("list_multipart_uploads")
            for page in pages.paginate(Bucket=self.settings.bucket, Prefix=self.settings.prefix):
                for one in page.get("Uploads", ()):
                    yield Unfinished(self._key(one["Key"]), one["UploadId"], one["Initiated"])

    def give_up(self, upload: Unfinished) -> None:
        """By AbortMultipartUpload."""
        with _named(f"{self.address}: {upload.key}"):
            self.client.abort_multipart_upload(**self._at(upload.key), UploadId=upload.upload_id)

    def _store_whole(self, source: Path, key: str, sha256: str) -> Sent:
        content = source.read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise CorruptError(f"{source}: has changed while it was stored; store it again")
        put = self._put(key, content, Metadata={SHA256_METADATA: sha256})
        etag = hashlib.md5(content, usedforsecurity=False).hexdigest()
        return Sent(etag=etag, num_sent=len(content), num_kept=0, version_id=put.get("VersionId"))

    def _verify(self, key: str, sha256: str, size: int, sent: Sent) -> str | None:
        """Holds what is there against what was sent; returns its version."""
        head = self._head(key)
        problem = "is not there" if head is None else ""
        if head and head["ContentLength"] != size:
            problem = f"has {head['ContentLength']:,} bytes instead of {size:,}"
        # An ETag is no digest of the content where the bucket encrypts by KMS.
        elif head and head["ETag"].strip('"') != sent.etag and "aws:kms" not in head.get(_KMS, ""):
            problem = f"has the ETag {head['ETag']} instead of {sent.etag}"
        elif head and self.settings.read_back and self._digest(key) != sha256:
            problem = "reads back as something else"
        if problem or head is None:
            self.delete(key)
            raise CorruptError(f"{self.address}: {key} {problem} after it was stored; store it again")
        return head.get("VersionId", sent.version_id) if self._is_versioned else None

    def _digest(self, key: str) -> str:
        found = hashlib.sha256()
        for chunk in self.client.get_object(**self._at(key))["Body"].iter_chunks(_CHUNK):
            found.update(chunk)
        return found.hexdigest()

    def _head(self, key: str) -> Any:
        with _named(f"{self.address}: {key}"):
            try:
                return self.client.head_object(**self._at(key))
            except self.client.exceptions.ClientError as error:
                if status(error) == 404:
                    return None
                raise

    def _set_if(self, key: str, content: bytes, tag: str | None) -> None:
        condition = {"IfMatch": tag} if tag else {"IfNoneMatch": "*"}
        with _named(f"{self.address}: {key}"):
            try:
                self._put(key, content, **condition)
            except self.client.exceptions.ClientError as error:
                if status(error) not in (404, 409, 412):
                    raise
                # A retry of a write that did succeed is told the same: look whose content is there.
                found = self.read(key)
                if found is None or found.content != content:
                    raise MovedError(f"{key}: somebody else has moved it; look again") from None

    def _put(self, key: str, content: bytes, **more: Any) -> Any:
        digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
        put = partial(self.client.put_object, **self._at(key), Body=content, ChecksumSHA256=digest, **more)
        return until_whole(self.client, key, put)

    def _at(self, key: str) -> dict[str, str]:
        return {"Bucket": self.settings.bucket, "Key": self.settings.prefix + key}

    def _key(self, name: str) -> str:
        return name.removeprefix(self.settings.prefix)


_KMS = "ServerSideEncryption"


def _identity(source: Path) -> tuple[int, int, int]:
    found = source.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def status(error: Any) -> int:
    """HTTP status of a ClientError."""
    return int(error.response["ResponseMetadata"]["HTTPStatusCode"])


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Gives errors of the wire and of the server a line of ours; retries are over by then."""
    from botocore.exceptions import BotoCoreError, ClientError
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ClientError as error:
        found = error.response["Error"]
        fix = _FIXES.get(found.get("Code", ""), "the same command goes on")
        raise StoreError(f"{what}: {found.get('Code')}: {found.get('Message')}; {fix}") from error
    except (BotoCoreError, HTTPError) as error:
        raise StoreError(f"{what}: {' '.join(str(error).split())}; the same command goes on") from error


_FIXES = {
    "AccessDenied": "give credentials that may do so",
    "InvalidAccessKeyId": "fix AWS_ACCESS_KEY_ID",
    "NoSuchBucket": "make the bucket, or fix its name",
    "SignatureDoesNotMatch": "fix AWS_SECRET_ACCESS_KEY",
}

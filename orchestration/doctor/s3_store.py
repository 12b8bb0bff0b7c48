"""The artifact store: a bucket and what may be done in it, tried on keys that are removed again; or a folder.

The keys lie under `PREFIX/probe/`, where the store itself keeps nothing.
"""

from __future__ import annotations

import importlib.util
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from orchestration.doctor.asking import place_of
from orchestration.doctor.records import Finding, failed, ok, skipped, warning
from pipeline.artifacts.conditions import Conditions, probe
from pipeline.artifacts.settings import ENDPOINT_VARIABLES, STORE_VARIABLE, StoreSettings
from reward.offline.excerpt import printable

_BUCKET, _RIGHTS, _VERSIONS, _CONDITIONS = "S3 bucket", "S3 rights", "S3 versioning", "S3 conditions"
_CONTENT = b"march doctor"
_MOST_TIMEOUT_S = 5.0  # of one request: several must fit in the time of the check
_LINE_CHARS = 160
# What the store does, and the right that it takes (docs/artifacts.md).
_ACTIONS = {
    "put": "s3:PutObject",
    "get": "s3:GetObject",
    "list": "s3:ListBucket",
    "copy": "s3:PutObject and s3:GetObject",
    "multipart": "s3:PutObject, s3:ListBucketMultipartUploads and s3:ListMultipartUploadParts",
    "abort": "s3:AbortMultipartUpload",
    "delete": "s3:DeleteObject",
}


@dataclass(frozen=True)
class S3Facts:
    """What the bucket let us do."""

    address: str
    endpoint: str
    problem: str | None = None  # with the bucket itself
    status: int | None = None  # HTTP, where it answered
    versioning: str = ""  # Enabled, Suspended, nothing; or why it was not told
    refused: dict[str, str] = field(default_factory=dict)  # by action: why
    conditions: Conditions | None = None
    took_s: float = 0.0


def gather_s3(settings: StoreSettings, *, timeout_s: float, client: Any = None) -> S3Facts:
    """Tries each thing that the store does, and removes what it wrote.

    Args:
        settings: Of a store in a bucket.
        timeout_s: Of a request, five seconds at most.
        client: Of boto3; made from the settings if there is none.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from pipeline.artifacts.s3 import make_client, status

    short = {"timeout_s": min(timeout_s, _MOST_TIMEOUT_S), "max_attempts": 2, "retries": "standard"}
    address = f"s3://{settings.bucket}/{settings.prefix}".rstrip("/")
    endpoint = place_of(settings.endpoint) if settings.endpoint else "Amazon"
    client, begun = client or make_client(settings.model_copy(update=short)), time.monotonic()
    try:
        client.head_bucket(Bucket=settings.bucket)
    except ClientError as error:
        return S3Facts(address, endpoint, problem=_line(error), status=status(error))
    except BotoCoreError as error:
        return S3Facts(address, endpoint, problem=_line(error))
    took_s = time.monotonic() - begun
    trial = _Trial(client, settings)
    return S3Facts(
        address,
        endpoint,
        versioning=trial.versioning(),
        refused=trial.refused(),
        conditions=trial.conditions(),
        took_s=took_s,
    )


def check_s3(facts: S3Facts, *, has_lock: bool) -> Iterator[Finding]:
    """Judges them.

    Args:
        facts: What was tried.
        has_lock: Whether MARCH_ARTIFACTS_LOCK stands in for conditional writes.
    """
    where = f"{facts.address} at {facts.endpoint}"
    if facts.problem is not None:
        yield failed(_BUCKET, f"{where}: {facts.problem}", _fix_of(facts))
        return
    yield ok(_BUCKET, f"{where}; answers in {facts.took_s * 1000:.0f} ms")
    yield _rights(facts)
    yield _versioning(facts)
    if "put" not in facts.refused:
        yield _conditions(facts, has_lock)


def check_no_bucket(settings: StoreSettings) -> Finding:
    """Where the store is a folder."""
    return skipped(_BUCKET, f"{STORE_VARIABLE} names no bucket; the store is the folder {settings.location}")


def has_client() -> bool:
    """Whether boto3 is installed."""
    return importlib.util.find_spec("boto3") is not None


def check_no_client(settings: StoreSettings) -> Finding:
    """Where a bucket is configured and cannot be spoken to."""
    found = f"boto3 is not installed, and {STORE_VARIABLE} is s3://{settings.bucket}"
    return failed(_BUCKET, found, "install march-pipeline[train-cpu], or [train-gpu]")


class _Trial:
    """What the store does, on keys of the doctor's own."""

    def __init__(self, client: Any, settings: StoreSettings) -> None:
        self._client, self._bucket, self._prefix = client, settings.bucket, settings.prefix
        self._base = f"{settings.prefix}probe/doctor-{uuid.uuid4().hex}"

    def versioning(self) -> str:
        """Enabled, Suspended, or nothing; a right that many have not."""
        try:
            return str(self._client.get_bucket_versioning(Bucket=self._bucket).get("Status", ""))
        except self._client.exceptions.ClientError as error:
            return _line(error)

    def refused(self) -> dict[str, str]:
        """What did not work, with the reason; after a refused put nothing else is tried."""
        steps: dict[str, Callable[[], None]] = {
            "put": self._put,
            "get": self._get,
            "list": self._list,
            "copy": self._copy,
            "multipart": self._multipart,
            "abort": self._abort,
            "delete": self._delete,
        }
        found: dict[str, str] = {}
        for name, step in steps.items():
            try:
                step()
            except (self._client.exceptions.ClientError, ValueError) as error:
                found[name] = _line(error)
                if name == "put":
                    break
        self._forget_versions()
        return found

    def conditions(self) -> Conditions | None:
        """What `pipeline.artifacts.conditions` finds; None where nothing may be written."""
        try:
            return probe(self._client, self._bucket, self._prefix)
        except self._client.exceptions.ClientError:
            return None

    def _put(self) -> None:
        self._client.put_object(**self._at("one"), Body=_CONTENT)

    def _get(self) -> None:
        self._client.head_object(**self._at("one"))
        if self._client.get_object(**self._at("one"))["Body"].read() != _CONTENT:
            raise ValueError("reads back as something else")

    def _list(self) -> None:
        found = self._client.list_objects_v2(Bucket=self._bucket, Prefix=self._base)
        if not found.get("Contents"):
            raise ValueError("does not show what was written")

    def _copy(self) -> None:
        at = self._at("one")
        self._client.copy_object(**at, CopySource=at, MetadataDirective="REPLACE", Metadata={"doctor": "1"})

    def _multipart(self) -> None:
        at = self._at("parts")
        upload = {**at, "UploadId": self._client.create_multipart_upload(**at)["UploadId"]}
        try:
            tag = self._client.upload_part(**upload, PartNumber=1, Body=_CONTENT)["ETag"]
            self._client.list_multipart_uploads(Bucket=self._bucket, Prefix=at["Key"])
            self._client.list_parts(**upload)
            parts = {"Parts": [{"PartNumber": 1, "ETag": tag}]}
            self._client.complete_multipart_upload(**upload, MultipartUpload=parts)
        except self._client.exceptions.ClientError:
            self._client.abort_multipart_upload(**upload)
            raise

    def _abort(self) -> None:
        at = self._at("abandoned")
        upload_id = self._client.create_multipart_upload(**at)["UploadId"]
        self._client.abort_multipart_upload(**at, UploadId=upload_id)

    def _delete(self) -> None:
        for name in ("one", "parts"):
            self._client.delete_object(**self._at(name))

    def _forget_versions(self) -> None:
        """Removes what a versioned bucket keeps behind a marker, where that is allowed."""
        try:
            found = self._client.list_object_versions(Bucket=self._bucket, Prefix=self._base)
            for one in (*found.get("Versions", ()), *found.get("DeleteMarkers", ())):
                at = {"Bucket": self._bucket, "Key": one["Key"], "VersionId": one["VersionId"]}
                self._client.delete_object(**at)
        except self._client.exceptions.ClientError:
            return  # a right that the store needs not have; the bucket's lifecycle ends them

    def _at(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{self._base}/{name}"}


def _rights(facts: S3Facts) -> Finding:
    if not facts.refused:
        return ok(_RIGHTS, f"{', '.join(_ACTIONS)}: tried, and removed again")
    found = "; ".join(f"{name}: {why}" for name, why in facts.refused.items())
    rights = "; ".join(_ACTIONS[name] for name in facts.refused)
    return failed(_RIGHTS, found, f"allow {rights} on {facts.address}/*")


def _versioning(facts: S3Facts) -> Finding:
    if facts.versioning == "Enabled":
        return ok(_VERSIONS, "on: what is overwritten or deleted can be brought back")
    if facts.versioning in ("", "Suspended"):
        fix = "turn it on (aws s3api put-bucket-versioning) where a lost bucket would cost a training"
        return warning(_VERSIONS, "off: what is deleted is gone", fix)
    return skipped(_VERSIONS, f"may not be asked ({facts.versioning}); allow s3:GetBucketVersioning")


def _conditions(facts: S3Facts, has_lock: bool) -> Finding:
    if facts.conditions is None:
        return failed(_CONDITIONS, "could not be tried", f"allow s3:PutObject on {facts.address}/*")
    found = facts.conditions.describe()
    if facts.conditions.can_compare_and_set:
        return ok(_CONDITIONS, found)
    if has_lock:
        return ok(_CONDITIONS, f"{found}; MARCH_ARTIFACTS_LOCK stands in")
    fix = "set MARCH_ARTIFACTS_LOCK to a file on a disk that all who move pointers share"
    return failed(_CONDITIONS, f"{found}, so pointers do not move", fix)


def _fix_of(facts: S3Facts) -> str:
    if facts.status == 404:
        return f"make the bucket, or fix its name in {STORE_VARIABLE}"
    if facts.status in (401, 403):
        return "fix AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or allow s3:ListBucket; look at the clock"
    if "credentials" in (facts.problem or "").lower():
        return "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return f"start the server, or fix {ENDPOINT_VARIABLES[1]}"


def _line(error: Exception) -> str:
    """What an error says, without what botocore says around it."""
    said = getattr(error, "response", {}).get("Error", {})
    text = f"{said.get('Code')}: {said.get('Message')}" if said else str(error)
    return printable(" ".join(text.split()))[:_LINE_CHARS]

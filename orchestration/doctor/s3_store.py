"""The artifact store: a bucket and what may be done in it, tried on keys that are removed again; or a folder.

The keys lie under `PREFIX/probe/`, where the store itself keeps nothing.
"""

from __future__ import annotations

import importlib.util
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from orchestration.doctor.report import Finding, failed, ok, skipped
from pipeline.artifacts.conditions import Conditions, probe
from pipeline.artifacts.settings import ENDPOINT_VARIABLES, STORE_VARIABLE, StoreSettings
from pipeline.redaction import redact
from reward.offline.excerpt import printable

_BUCKET, _RIGHTS, _CONDITIONS = "S3 bucket", "S3 rights", "S3 conditions"
_CONTENT = b"march doctor"
_LINE_CHARS = 160
_REFUSED_S = 900.0  # S3 refuses what was signed a quarter of an hour ago (RequestTimeTooSkewed)
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
    skew_s: float = 0.0  # by which its clock is ahead of ours, where it refused us
    refused: dict[str, str] = field(default_factory=dict)  # by action: why
    conditions: Conditions | None = None
    took_s: float = 0.0


def check_store(settings: StoreSettings, *, timeout_s: float) -> Iterator[Finding]:
    """Looks at the store, whatever it is.

    Args:
        settings: The store's.
        timeout_s: Of a request; several must fit in the time of the check.
    """
    if not settings.is_s3:
        found = f"{STORE_VARIABLE} names no bucket; the store is the folder {settings.location}"
        yield skipped(_BUCKET, found)
    elif importlib.util.find_spec("boto3") is None:
        found = f"boto3 is not installed, and {STORE_VARIABLE} is s3://{settings.bucket}"
        yield failed(_BUCKET, found, "install march-pipeline[train-cpu], or [train-gpu]")
    else:
        facts = gather_s3(settings, timeout_s=timeout_s)
        yield from check_s3(facts, has_lock=settings.pointer_lock is not None)


def gather_s3(settings: StoreSettings, *, timeout_s: float) -> S3Facts:
    """Tries each thing that the store does in its bucket, and removes what it wrote."""
    from botocore.exceptions import BotoCoreError, ClientError

    from pipeline.artifacts.s3 import make_client, status

    short = {"timeout_s": timeout_s, "max_attempts": 2, "retries": "standard"}
    address = f"s3://{settings.bucket}/{settings.prefix}".rstrip("/")
    endpoint = redact(settings.endpoint) if settings.endpoint else "Amazon"
    client, begun = make_client(settings.model_copy(update=short)), time.monotonic()
    try:
        client.head_bucket(Bucket=settings.bucket)
    except (BotoCoreError, ClientError) as error:
        answered = isinstance(error, ClientError)
        return S3Facts(
            address,
            endpoint,
            problem=_line(error),
            status=status(error) if answered else None,
            skew_s=_skew(error.response) if answered else 0.0,
        )
    took_s = time.monotonic() - begun
    base = f"{settings.prefix}probe/doctor-{uuid.uuid4().hex}"
    return S3Facts(
        address,
        endpoint,
        refused=_refused(client, settings.bucket, base),
        conditions=_conditions_of(client, settings),
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
    if "put" not in facts.refused:
        yield _conditions(facts, has_lock)


def _conditions_of(client: Any, settings: StoreSettings) -> Conditions | None:
    """None where nothing may be written."""
    try:
        return probe(client, settings.bucket, settings.prefix)
    except client.exceptions.ClientError:
        return None


def _refused(client: Any, bucket: str, base: str) -> dict[str, str]:
    """What did not work, with the reason; after a refused put nothing else is tried."""
    one, parts, abandoned = ({"Bucket": bucket, "Key": f"{base}/{name}"} for name in ("one", "parts", "left"))
    new = {"MetadataDirective": "REPLACE", "Metadata": {"doctor": "1"}}
    steps: dict[str, Callable[[], object]] = {
        "put": lambda: client.put_object(**one, Body=_CONTENT),
        "get": lambda: client.get_object(**one)["Body"].read(),
        "list": lambda: client.list_objects_v2(Bucket=bucket, Prefix=base),
        "copy": lambda: client.copy_object(**one, CopySource=one, **new),
        "multipart": lambda: _upload_parts(client, parts),
        "abort": lambda: client.abort_multipart_upload(**_begun(client, abandoned)),
        "delete": lambda: [client.delete_object(**at) for at in (one, parts)],
    }
    found: dict[str, str] = {}
    for name, step in steps.items():
        try:
            step()
        except client.exceptions.ClientError as error:
            found[name] = _line(error)
            if name == "put":
                break
    _forget_versions(client, bucket, base)
    return found


def _begun(client: Any, at: dict[str, str]) -> dict[str, str]:
    return {**at, "UploadId": client.create_multipart_upload(**at)["UploadId"]}


def _upload_parts(client: Any, at: dict[str, str]) -> None:
    upload = _begun(client, at)
    try:
        tag = client.upload_part(**upload, PartNumber=1, Body=_CONTENT)["ETag"]
        client.list_multipart_uploads(Bucket=at["Bucket"], Prefix=at["Key"])
        client.list_parts(**upload)
        parts = {"Parts": [{"PartNumber": 1, "ETag": tag}]}
        client.complete_multipart_upload(**upload, MultipartUpload=parts)
    except client.exceptions.ClientError:
        client.abort_multipart_upload(**upload)
        raise


def _forget_versions(client: Any, bucket: str, base: str) -> None:
    """Removes what a versioned bucket keeps behind a marker, where that is allowed."""
    try:
        found = client.list_object_versions(Bucket=bucket, Prefix=base)
        for one in (*found.get("Versions", ()), *found.get("DeleteMarkers", ())):
            client.delete_object(Bucket=bucket, Key=one["Key"], VersionId=one["VersionId"])
    except client.exceptions.ClientError:
        return  # a right that the store needs not have; the bucket's lifecycle ends them


def _rights(facts: S3Facts) -> Finding:
    if not facts.refused:
        return ok(_RIGHTS, f"{', '.join(_ACTIONS)}: tried, and removed again")
    found = "; ".join(f"{name}: {why}" for name, why in facts.refused.items())
    rights = "; ".join(_ACTIONS[name] for name in facts.refused)
    return failed(_RIGHTS, found, f"allow {rights} on {facts.address}/*")


def _conditions(facts: S3Facts, has_lock: bool) -> Finding:
    if facts.conditions is None:
        return failed(_CONDITIONS, "could not be tried", f"allow s3:PutObject on {facts.address}/*")
    found = facts.conditions.describe()
    if facts.conditions.can_compare_and_set:
        return ok(_CONDITIONS, found)
    if has_lock:
        return ok(_CONDITIONS, f"{found}; MARCH_ARTIFACTS_LOCK replaces them")
    fix = "set MARCH_ARTIFACTS_LOCK to a file on a disk that all who move pointers share"
    return failed(_CONDITIONS, f"{found}, so pointers do not move", fix)


def _skew(response: Any) -> float:
    headers = response["ResponseMetadata"].get("HTTPHeaders", {})
    return parsedate_to_datetime(headers["date"]).timestamp() - time.time() if "date" in headers else 0.0


def _fix_of(facts: S3Facts) -> str:
    if abs(facts.skew_s) >= _REFUSED_S:
        minutes = f"{abs(facts.skew_s) / 60:,.0f} minutes {'behind' if facts.skew_s > 0 else 'ahead of'}"
        return f"synchronise the clock, which is {minutes} the server's (Debian: apt-get install chrony)"
    if facts.status == 404:
        return f"make the bucket, or fix its name in {STORE_VARIABLE}"
    if facts.status in (401, 403):
        return "fix AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or allow s3:ListBucket"
    if "credentials" in (facts.problem or "").lower():
        return "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return f"start the server, or fix {ENDPOINT_VARIABLES[1]}"


def _line(error: Exception) -> str:
    """What an error says, without what botocore says around it."""
    said = getattr(error, "response", {}).get("Error", {})
    text = f"{said.get('Code')}: {said.get('Message')}" if said else str(error)
    return printable(" ".join(text.split()))[:_LINE_CHARS]

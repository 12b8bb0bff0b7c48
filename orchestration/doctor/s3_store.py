"""The artifact store: a bucket and what may be done in it, tried on keys that are removed again; or a folder.

The keys lie under `PREFIX/probe/`, where the store itself keeps nothing.
"""

from __future__ import annotations

import importlib.util
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from orchestration.doctor.report import Finding, failed, ok, skipped
from pipeline.artifacts.conditions import Conditions, probe
from pipeline.artifacts.settings import ENDPOINT_VARIABLES, STORE_VARIABLE, StoreSettings
from reward.offline.excerpt import printable

_BUCKET, _RIGHTS, _CONDITIONS = "S3 bucket", "S3 rights", "S3 conditions"
_CONTENT = b"march doctor"
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


def check_store(settings: StoreSettings, *, timeout_s: float) -> Iterator[Finding]:
    """Tries each thing that the store does in its bucket, and removes what it wrote.

    Args:
        settings: The store's.
        timeout_s: Of a request.
    """
    if not settings.is_s3:
        found = f"{STORE_VARIABLE} names no bucket; the store is the folder {settings.location}"
        yield skipped(_BUCKET, found)
        return
    if importlib.util.find_spec("boto3") is None:
        found = f"boto3 is not installed, and {STORE_VARIABLE} is s3://{settings.bucket}"
        yield failed(_BUCKET, found, "install march-pipeline[train-cpu], or [train-gpu]")
        return
    from botocore.exceptions import BotoCoreError, ClientError

    from pipeline.artifacts.s3 import make_client

    address = f"s3://{settings.bucket}/{settings.prefix}".rstrip("/")
    where = f"{address} at {settings.endpoint or 'Amazon'}"
    short = {"timeout_s": timeout_s, "max_attempts": 2, "retries": "standard"}
    client = make_client(settings.model_copy(update=short))
    try:
        client.head_bucket(Bucket=settings.bucket)
    except (BotoCoreError, ClientError) as error:
        yield failed(_BUCKET, f"{where}: {_line(error)}", fix_of(error))
        return
    yield ok(_BUCKET, f"{where}; answers")
    refused = _refused(client, settings.bucket, f"{settings.prefix}probe/doctor-{uuid.uuid4().hex}")
    yield check_rights(refused, address)
    if "put" not in refused:
        conditions = probe(client, settings.bucket, settings.prefix)
        yield check_conditions(conditions, has_lock=settings.pointer_lock is not None)


def check_rights(refused: dict[str, str], address: str) -> Finding:
    """Judges what was tried.

    Args:
        refused: Why, by action.
        address: Of the store.
    """
    if not refused:
        return ok(_RIGHTS, f"{', '.join(_ACTIONS)}: tried, and removed again")
    found = "; ".join(f"{name}: {why}" for name, why in refused.items())
    rights = "; ".join(_ACTIONS[name] for name in refused)
    return failed(_RIGHTS, found, f"allow {rights} on {address}/*")


def check_conditions(conditions: Conditions, *, has_lock: bool) -> Finding:
    """Judges conditional writes; with MARCH_ARTIFACTS_LOCK a lock stands in for them."""
    found = conditions.describe()
    if conditions.can_compare_and_set:
        return ok(_CONDITIONS, found)
    if has_lock:
        return ok(_CONDITIONS, f"{found}; MARCH_ARTIFACTS_LOCK replaces them")
    fix = "set MARCH_ARTIFACTS_LOCK to a file on a disk that all who move pointers share"
    return failed(_CONDITIONS, f"{found}, so pointers do not move", fix)


def fix_of(error: Exception) -> str:
    """What to do about a bucket that does not answer."""
    from pipeline.artifacts.s3 import status

    code = status(error) if hasattr(error, "response") else None
    if code == 404:
        return f"make the bucket, or fix its name in {STORE_VARIABLE}"
    if code in (401, 403) or "credentials" in str(error).lower():
        return (
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, allow s3:ListBucket, and look at this "
            "machine's clock"
        )
    return f"start the server, or fix {ENDPOINT_VARIABLES[1]}"


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


def _line(error: Exception) -> str:
    """What an error says, without what botocore says around it."""
    said = getattr(error, "response", {}).get("Error", {})
    text = f"{said.get('Code')}: {said.get('Message')}" if said else str(error)
    return printable(" ".join(text.split()))[:_LINE_CHARS]

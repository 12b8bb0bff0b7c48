"""The artifact store: a bucket and what may be done in it, tried on keys that are removed again; or a folder.

The keys lie under `PREFIX/probe/`, where the store itself keeps nothing.
"""

from __future__ import annotations

import importlib.util
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from orchestration.doctor.report import Finding, failed, ok, skipped
from pipeline.artifacts.backend import Entry, StoreError, UnsafeEndpointError
from pipeline.artifacts.layout import UPLOADS
from pipeline.artifacts.local import locked
from pipeline.artifacts.settings import STORE_VARIABLE, StoreSettings

if TYPE_CHECKING:
    from pipeline.artifacts.s3 import S3Backend

_BUCKET, _RIGHTS, _CONDITIONS = "S3 bucket", "S3 rights", "S3 conditions"
_CONTENT = b"march doctor"
# What the store does, and the right that it takes (docs/artifacts.md).
_ACTIONS = {
    "put": "s3:PutObject",
    "get": "s3:GetObject",
    "copy": "s3:PutObject and s3:GetObject",
    "list uploads": "s3:ListBucketMultipartUploads",
    "abort": "s3:AbortMultipartUpload",
    "delete": "s3:DeleteObject",
}


def check_store(settings: StoreSettings, *, timeout_s: float) -> Iterator[Finding]:
    """Tries each thing that the store does in its bucket, and removes what it wrote."""
    if not settings.is_s3:
        found = f"{STORE_VARIABLE} names no bucket; the store is the folder {settings.location}"
        yield skipped(_BUCKET, found)
        return
    if importlib.util.find_spec("boto3") is None:
        found = f"boto3 is not installed, and {STORE_VARIABLE} is s3://{settings.bucket}"
        yield failed(_BUCKET, found, "pip install '.[orchestrator]'")
        return
    from pipeline.artifacts.s3 import S3Backend

    short = {"timeout_s": timeout_s, "max_attempts": 2, "retries": "standard"}
    backend = S3Backend(settings.model_copy(update=short))
    key = f"probe/doctor-{uuid.uuid4().hex}"
    try:
        next(backend.entries(key), None)
    except StoreError as error:
        found, _, fix = str(error).partition("; ")
        yield failed(_BUCKET, found, fix)
        return
    yield ok(_BUCKET, f"{backend.address} at {settings.endpoint or 'Amazon'}; answers")
    refused = _refused(backend, key)
    yield check_rights(refused, backend.address)
    if "put" not in refused:
        yield check_conditions(backend)


def check_rights(refused: dict[str, str], address: str) -> Finding:
    """Judges what was tried: `refused` says why, by action."""
    if not refused:
        return ok(_RIGHTS, f"{', '.join(_ACTIONS)}: tried, and removed again")
    found = "; ".join(f"{name}: {why}" for name, why in refused.items())
    rights = "; ".join(_ACTIONS[name] for name in refused)
    return failed(_RIGHTS, found, f"allow {rights} on {address}/*")


def check_conditions(backend: S3Backend) -> Finding:
    """Tries conditional writes; with MARCH_ARTIFACTS_LOCK a lock stands in for them."""
    try:
        backend.demand_conditions()
    except UnsafeEndpointError as error:
        found, _, fix = str(error).partition("; ")
        return failed(_CONDITIONS, found, fix)
    lock = backend.settings.pointer_lock
    if lock is not None:
        try:
            with locked(lock):
                pass
        except OSError as error:
            fix = "name a file on a disk that all who move pointers share"
            return failed(_CONDITIONS, f"MARCH_ARTIFACTS_LOCK: {lock}: {error.strerror}", fix)
        return ok(_CONDITIONS, "MARCH_ARTIFACTS_LOCK replaces them")
    return ok(_CONDITIONS, "the endpoint has them")


def _refused(backend: S3Backend, key: str) -> dict[str, str]:
    """What did not work, with the reason; after a refused put nothing else is tried."""
    steps: dict[str, Callable[[], object]] = {
        "put": lambda: backend.write(key, _CONTENT),
        "get": lambda: backend.read(key),
        "copy": lambda: backend.touch(Entry(key, len(_CONTENT), datetime.now(UTC))),
        "list uploads": lambda: list(backend.entries(UPLOADS)),
        "abort": lambda: backend.delete(backend.begin_upload(key)),
        "delete": lambda: backend.delete(key),
    }
    found: dict[str, str] = {}
    for name, step in steps.items():
        try:
            step()
        except StoreError as error:
            found[name] = str(error).partition("; ")[0]
            if name == "put":
                break
    return found

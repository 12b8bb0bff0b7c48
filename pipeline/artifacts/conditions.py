"""What an endpoint does with conditional writes: found out by behaviour, since some ignore what they accept.

`march doctor` and the first decision about a model ask. Else the store takes them for granted, unless its
setting `pointer_lock` says otherwise.

Amazon's S3 has all of them. OpenStack Swift's s3api has no IfMatch.
"""

from __future__ import annotations

import fcntl
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def missing_conditions(client: Any, bucket: str, prefix: str) -> list[str]:
    """What an endpoint lacks; writes to a key of its own, and removes it.

    Args:
        client: Of boto3.
        bucket: Where.
        prefix: Under what.
    """
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


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a file's lock; waits for whoever has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_written(client: Any, **call: Any) -> bool:
    """Whether a conditional write is done; refused conditions and unknown ones are not."""
    try:
        client.put_object(**call)
    except client.exceptions.ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] in (400, 404, 409, 412, 501):
            return False
        raise
    return True

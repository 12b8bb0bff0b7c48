"""What an endpoint does with conditional writes: found out by behaviour, since some ignore what they accept.

`march doctor` and the first decision about a model ask. Else the store takes them
for granted, unless its setting `pointer_lock` says otherwise.

Amazon's S3 has all of them. OpenStack Swift's s3api knows IfNoneMatch, but several of many writers at once
win; it has no IfMatch. A race that shows one winner is evidence, not proof.
"""

from __future__ import annotations

import fcntl
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RACERS, _ROUNDS = 8, 3


@dataclass(frozen=True)
class Conditions:
    """What an endpoint lacks."""

    lacks: tuple[str, ...] = ()

    @property
    def can_compare_and_set(self) -> bool:
        """Whether a pointer can move safely without a lock."""
        return not self.lacks

    def describe(self) -> str:
        """The same in one line."""
        lacks = f"lacks {', '.join(self.lacks)}" if self.lacks else "has conditional writes"
        return f"the endpoint {lacks}"


def probe(client: Any, bucket: str, prefix: str) -> Conditions:
    """Writes to keys of its own, and removes them.

    Args:
        client: Of boto3.
        bucket: Where.
        prefix: Under what.
    """
    base = f"{prefix}probe/{uuid.uuid4().hex}"
    keys = [f"{base}.{number}" for number in range(1 + _ROUNDS)]
    try:
        at = {"Bucket": bucket, "Key": keys[0]}
        tag = client.put_object(**at, Body=b"1")["ETag"]
        if_none_match = not _is_written(client, **at, Body=b"2", IfNoneMatch="*")
        other = '"00000000000000000000000000000000"'
        if_match = not _is_written(client, **at, Body=b"3", IfMatch=other)
        if_match = if_match and _is_written(client, **at, Body=b"4", IfMatch=tag)
        races = (_num_winners(client, bucket, key) for key in keys[1:])
        is_atomic = if_none_match and all(num == 1 for num in races)
        found = {"IfNoneMatch": if_none_match, "IfMatch": if_match, "atomic conditions": is_atomic}
        return Conditions(tuple(name for name, holds in found.items() if not holds))
    finally:
        for key in keys:
            client.delete_object(Bucket=bucket, Key=key)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a file's lock; waits for whoever has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _num_winners(client: Any, bucket: str, key: str) -> int:
    def write(number: int) -> bool:
        return _is_written(client, Bucket=bucket, Key=key, Body=str(number).encode(), IfNoneMatch="*")

    with ThreadPoolExecutor(RACERS) as pool:
        return sum(pool.map(write, range(RACERS)))


def _is_written(client: Any, **call: Any) -> bool:
    """Whether a conditional write is done; refused conditions and unknown ones are not."""
    try:
        client.put_object(**call)
    except client.exceptions.ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] in (400, 404, 409, 412, 501):
            return False
        raise
    return True

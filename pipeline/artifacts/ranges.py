"""A large object from S3 in ranges, side by side; which ones are whole stands in a journal beside the file.

    NAME          the bytes, at their places
    NAME.ranges   size of a range, then the number of each that is whole, a line each

After a kill only the ranges that the journal lacks are read again. It is no proof: who calls holds the whole
file against its digest.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from pipeline.artifacts.backend import Advance
from pipeline.artifacts.failures import StoreError
from pipeline.artifacts.multipart import part_size, side_by_side
from pipeline.artifacts.settings import MIB, StoreSettings

_CHUNK = 256 << 10
_TRIES = 5  # of a range whose answer breaks off; botocore retries only until the answer begins


def journal_of(target: Path) -> Path:
    """Where it stands which ranges are whole."""
    return target.with_name(f"{target.name}.ranges")


def fetch_ranges(
    client: Any, at: dict[str, str], target: Path, *, size: int, settings: StoreSettings, advance: Advance
) -> int:
    """Brings what is missing of an object into a file; returns the bytes received.

    Args:
        client: Of boto3.
        at: Bucket and key.
        target: The file, whole or begun.
        size: Of the object.
        settings: Size of a range, and ranges at once.
        advance: Told of bytes that are there, earlier ones too.
    """
    step = part_size(size, settings.part_mib * MIB)
    done = _read_journal(target, step)
    lock = threading.Lock()
    with target.open("r+b" if target.exists() else "w+b") as file, journal_of(target).open("a") as journal:
        file.truncate(size)
        if not done:
            journal.truncate(0)
            print(step, file=journal, flush=True)

        def bring(number: int) -> int:
            start = number * step
            length = min(step, size - start)
            if number in done:
                advance(length)
                return 0
            num_received = _fetch(client, at, file.fileno(), start, length, advance)
            with lock:
                print(number, file=journal, flush=True)
            return num_received

        return sum(side_by_side(bring, range(-(-size // step)), workers=settings.workers))


def _read_journal(target: Path, step: int) -> set[int]:
    """The ranges that are whole; none if they were of another size. A torn last line is left out."""
    path = journal_of(target)
    if not (path.exists() and target.exists()):
        return set()
    first, *lines = path.read_text().split("\n")
    return {int(line) for line in lines[:-1] if line.isdigit()} if first == str(step) else set()


def _fetch(client: Any, at: dict[str, str], file: int, start: int, length: int, advance: Advance) -> int:
    """Reads a range into its place; an answer that breaks off is asked for again from there."""
    from botocore.exceptions import BotoCoreError
    from urllib3.exceptions import HTTPError

    num_received = 0
    for left in reversed(range(_TRIES)):
        wanted = f"bytes={start + num_received}-{start + length - 1}"
        try:
            body = client.get_object(**at, Range=wanted)["Body"]
            for chunk in body.iter_chunks(_CHUNK):
                os.pwrite(file, chunk, start + num_received)
                num_received += len(chunk)
                advance(len(chunk))
        except (BotoCoreError, HTTPError):
            if not left:
                raise
        if num_received == length:
            break
    if num_received != length:
        raise StoreError(f"{at['Key']}: {num_received:,} of {length:,} bytes came; the same command goes on")
    return num_received

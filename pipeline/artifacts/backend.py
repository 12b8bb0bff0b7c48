"""What a place to keep things in must be able to do; `local.py` and `s3.py` do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

Advance = Callable[[int], None]  # bytes more
MOST_BYTES = 64 << 20  # of a manifest or a pointer: some 300,000 files


def no_progress(_num_bytes: int) -> None:
    """Shows nothing."""


@dataclass(frozen=True)
class Entry:
    """Something that is there."""

    key: str
    size: int
    modified: datetime


@dataclass(frozen=True)
class Blob:
    """A small content, and the tag by which it can be replaced."""

    content: bytes
    tag: str


class Backend(Protocol):
    """A bucket or a folder. Keys are those of `layout.py`."""

    @property
    def address(self) -> str:
        """Where it is, without secrets."""
        ...

    def store(self, source: Path, key: str, *, advance: Advance) -> None:
        """Brings a file under a key, whole or not at all."""
        ...

    def fetch(self, key: str, target: Path, *, advance: Advance) -> None:
        """Brings an object into a file, over what is there."""
        ...

    def stat(self, key: str) -> Entry | None:
        """What is there; None for nothing."""
        ...

    def touch(self, entry: Entry) -> None:
        """Makes what is there as new as if it were written now, so that gc's grace begins again."""
        ...

    def read(self, key: str) -> Blob | None:
        """A small content; None for nothing.

        Raises:
            CorruptError: it is larger than `MOST_BYTES`, and so none of ours.
        """
        ...

    def write(self, key: str, content: bytes) -> None:
        """Writes a small content, over what is there."""
        ...

    def compare_and_set(self, key: str, content: bytes, *, tag: str | None) -> None:
        """Writes a small content in place of the one with this tag; None: of nothing.

        Raises:
            MovedError: another one is there.
            UnsafeEndpointError: the endpoint cannot do so safely.
        """
        ...

    def demand_conditions(self) -> None:
        """Finds out whether `compare_and_set` is safe here.

        Raises:
            UnsafeEndpointError: it is not.
        """
        ...

    def entries(self, prefix: str) -> Iterator[Entry]:
        """What is under a prefix; under `UPLOADS` what was begun and not finished."""
        ...

    def delete(self, key: str) -> None:
        """Removes what is there, if anything is."""
        ...

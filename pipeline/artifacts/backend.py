"""Where things are kept: `local.py` is a folder, `s3.py` a bucket; both do the same. How that fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pipeline.artifacts.local import LocalBackend
    from pipeline.artifacts.s3 import S3Backend

Backend: TypeAlias = "LocalBackend | S3Backend"
Advance = Callable[[int], None]  # bytes more
MOST_BYTES = 64 << 20  # of a manifest or a pointer: some 300,000 files


def no_progress(_num_bytes: int) -> None:
    """Shows nothing."""


@dataclass(frozen=True)
class Entry:
    key: str
    size: int
    modified: datetime


@dataclass(frozen=True)
class Blob:
    """A small content, and the tag by which it can be replaced."""

    content: bytes
    tag: str


class MovedError(ValueError):
    """A compare-and-set found something else than what it was to replace."""


class CorruptError(ValueError):
    """Content that is not what its name says."""


class UnsafeEndpointError(ValueError):
    """The endpoint lacks a condition that the write needs."""


class StoreError(ValueError):
    """The store does not answer, or refuses."""


def refuse_large(key: str, size: int) -> None:
    """Raises `CorruptError` for what no manifest or pointer can be."""
    if size > MOST_BYTES:
        raise CorruptError(f"{key}: has more than {MOST_BYTES >> 20} MiB, which no manifest or pointer has")

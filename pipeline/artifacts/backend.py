"""Where things are kept: `local.py` is a folder, `s3.py` a bucket; both do the same."""

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
    """Something that is there."""

    key: str
    size: int
    modified: datetime


@dataclass(frozen=True)
class Blob:
    """A small content, and the tag by which it can be replaced."""

    content: bytes
    tag: str

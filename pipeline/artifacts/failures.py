"""What can go wrong with a store, by name; each says what to do."""

from __future__ import annotations

from pipeline.artifacts.backend import MOST_BYTES


class MovedError(ValueError):
    """A compare-and-set found something else than what it was to replace."""


class CorruptError(ValueError):
    """Content that is not what its name says."""


class UnsafeEndpointError(ValueError):
    """The endpoint lacks a condition that the write needs."""


class StoreError(ValueError):
    """The store does not answer, or refuses."""


def refuse_large(key: str, size: int) -> None:
    """Refuses what no manifest or pointer can be.

    Raises:
        CorruptError: it is too large.
    """
    if size > MOST_BYTES:
        raise CorruptError(f"{key}: has more than {MOST_BYTES >> 20} MiB, which no manifest or pointer has")

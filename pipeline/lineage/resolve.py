"""Whose lineage is meant: a run folder, a registered model, a pointer or a digest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipeline.artifacts.store import ArtifactStore
from pipeline.lineage.collect import collect
from pipeline.lineage.publish import read_lineage
from pipeline.lineage.record import Lineage

Registered = Callable[[str], str]  # the digest of the lineage of MODEL@ALIAS


def resolve_lineage(ref: str, store: Callable[[], ArtifactStore], registered: Registered) -> Lineage:
    """The lineage that a reference names.

    Args:
        ref: A run's folder, MODEL@ALIAS, a pointer, or a digest or its first digits.
        store: Opens the store; not called for a run's folder.
        registered: Looks a registered model up.

    Raises:
        ValueError: nothing has that name.
    """
    if Path(ref).is_dir():
        return collect(Path(ref))
    opened = store()
    return read_lineage(opened, registered(ref) if "@" in ref else opened.resolve(ref))

"""Whose lineage is meant: a run folder, a registered model, a pointer or a digest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipeline.artifacts.address import Artifact, OpenStore, named_artifact
from pipeline.lineage.collect import collect
from pipeline.lineage.publish import read_lineage
from pipeline.lineage.record import Lineage

Registered = Callable[[str], Artifact]  # the lineage of MODEL@ALIAS


@dataclass(frozen=True)
class Found:
    """A lineage, and the store that it came from; None of a run's folder."""

    lineage: Lineage
    store: str | None = None


def resolve_lineage(ref: str, store: OpenStore, registered: Registered) -> Found:
    """The lineage that a reference names.

    Args:
        ref: A run's folder, MODEL@ALIAS, a pointer, a digest or its first digits, or an address.
        store: Opens the store; not called for a run's folder.
        registered: Looks a registered model up.

    Raises:
        ValueError: nothing has that name.
    """
    if Path(ref).is_dir():
        return Found(collect(Path(ref)))
    found = registered(ref) if "@" in ref else named_artifact(ref, store)
    return Found(read_lineage(found.store, found.digest), found.store.backend.address)

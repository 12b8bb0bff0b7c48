"""What the gates look at: two whole evaluations, read and verified, and the digests of what was evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.evaluate.results import ItemResult, Manifest, read_all_results, read_manifest


@dataclass(frozen=True)
class Evidence:
    """One evaluation."""

    manifest: Manifest
    items: Mapping[str, Sequence[ItemResult]]  # by benchmark
    artifact: str | None = None  # digest of its manifest in the store; None in a dry run

    @property
    def measured(self) -> list[str]:
        """The benchmarks that measure the model, by name."""
        return sorted(self.manifest.measured)

    def primary_of(self, benchmark: str) -> str:
        """Name of a benchmark's primary score."""
        return self.manifest.benchmarks[benchmark].card.primary


@dataclass(frozen=True)
class Contest:
    """A candidate and whom it shall replace; `champion` is None for the first one."""

    candidate: Evidence
    champion: Evidence | None
    candidate_weights: str  # SHA-256 as registered
    champion_weights: str | None = None


def read_evidence(folder: Path, artifact: str | None = None) -> Evidence:
    """Reads an evaluation; every file is held against the digest in its manifest.

    Args:
        folder: Where it is.
        artifact: Digest of its manifest in the store.

    Raises:
        FileNotFoundError: it is not there, or not whole.
        ValueError: it is of another version, or has changed.
    """
    manifest = read_manifest(folder)
    return Evidence(manifest, read_all_results(folder, manifest), artifact)

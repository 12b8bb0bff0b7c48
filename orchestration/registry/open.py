"""The decisions and versions that a command's options name."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.registry.decisions import Decisions
    from orchestration.registry.store import ModelVersion
    from pipeline.artifacts.store import ArtifactStore


def open_decisions(
    model: str, registry: str | None, store: ArtifactStore, *, by: str | None = None
) -> Decisions:
    """Decisions about a model, which are in the store; raises as `Registry` does."""
    from orchestration.registry.chain import Chain
    from orchestration.registry.decisions import Decisions
    from orchestration.registry.store import Registry

    return Decisions(Registry(registry), Chain(store, model), by)


def open_version(
    reference: str, registry: str | None, store: ArtifactStore
) -> tuple[Decisions, ModelVersion]:
    """The version that MODEL@ALIAS, MODEL@NUMBER or MODEL (its champion) names."""
    model, _, wanted = reference.partition("@")
    decisions = open_decisions(model, registry, store)
    return decisions, decisions.version(wanted if wanted.isdigit() else f"@{wanted or 'champion'}")


def approval_command(
    model: str, version: str, *, registry: str | None = None, store: str | None = None
) -> str:
    """What approves a version that waits."""
    words = ["march", "model", "approve", model, version]
    for option, value in (("--mlflow", registry), ("--store", store)):
        words += [option, value] if value is not None else []
    return shlex.join(words)

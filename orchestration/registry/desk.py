"""The registry that a command's options name."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.registry.decisions import Desk
    from orchestration.registry.store import ModelVersion

HISTORY = Path("runs/registry")


def open_desk(model: str, registry: str | None, history: Path = HISTORY, *, by: str | None = None) -> Desk:
    """Where decisions about a model are made.

    Raises:
        ValueError: no registry is named, or its server is remote and nothing says who asks.
    """
    from orchestration.registry.decisions import KEY_ENV, Desk
    from orchestration.registry.store import Registry
    from reward.serving.signing import read_signing_key

    if registry is None:
        raise ValueError("--registry: missing; give MLflow's address, or set MLFLOW_TRACKING_URI")
    key = read_signing_key(KEY_ENV)
    return Desk(Registry(registry, has_key=key is not None), model, history, key=key, by=by)


def open_version(reference: str, registry: str | None, history: Path = HISTORY) -> tuple[Desk, ModelVersion]:
    """The version that MODEL@ALIAS, MODEL@NUMBER or MODEL (its champion) names.

    Raises:
        ValueError: there is none, or no registry is named.
    """
    model, _, wanted = reference.partition("@")
    desk = open_desk(model, registry, history)
    return desk, desk.version(wanted if wanted.isdigit() else f"@{wanted or 'champion'}")


def approval_command(model: str, version: str, policy: Path | None) -> str:
    """What approves a version that waits, by the policy that it was judged by, which names who is told."""
    from orchestration.promotion.policy import POLICY_FILE

    words = ["march", "approve", model, version]
    if policy is not None and policy != POLICY_FILE:
        words += ["--policy", str(policy)]
    return shlex.join(words)

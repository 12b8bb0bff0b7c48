"""Shared by the tests of decisions: a real chain in a folder, and MLflow's side in memory, which can fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from orchestration.promotion.policy import ApprovalPolicy, GatePolicy
from orchestration.promotion.records import GateReport, GateResult, GateState
from orchestration.registry.chain import Chain, Made, State
from orchestration.registry.decisions import Decisions
from orchestration.registry.store import ModelVersion, Registry
from orchestration.registry.trial import Trial
from pipeline.artifacts.local import LocalBackend
from pipeline.artifacts.store import ArtifactStore

AWAY = ValueError("--mlflow http://registry: does not answer")


@dataclass
class MemoryRegistry:
    """Aliases, tags and versions of one model."""

    numbers: str = "1234"
    place: str = "s3://b"
    alias: dict[str, str] = field(default_factory=dict)
    tags: dict[tuple[str, str], str] = field(default_factory=dict)
    failures: list[Exception] = field(default_factory=list)  # one a write

    def models(self) -> list[str]:
        return ["shop"]

    def aliases(self, _model: str) -> dict[str, str]:
        return dict(self.alias)

    def set_alias(self, _model: str, alias: str, version: str | None) -> None:
        self._may_fail()
        if version is None:
            self.alias.pop(alias, None)
        else:
            self.alias[alias] = version

    def set_tag(self, _model: str, version: str, key: str, value: str) -> None:
        self._may_fail()
        self.tags[version, key] = value

    def versions(self, _model: str) -> list[ModelVersion]:
        return [
            ModelVersion(
                number,
                f"{self.place}/{number}",
                number * 64,
                tuple(alias for alias, version in self.alias.items() if version == number),
                {key: value for (version, key), value in self.tags.items() if version == number},
                0,
            )
            for number in self.numbers
        ]

    def _may_fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)


def version(number: str) -> ModelVersion:
    """A version of the model."""
    return ModelVersion(number, f"s3://b/{number}", number * 64, (), {}, 0)


def decisions_over(registry: MemoryRegistry, store: Path, *, by: str = "ann") -> Decisions:
    """Decisions in a folder, shown by the registry in memory."""
    chain = Chain(ArtifactStore(LocalBackend(store)), "shop")
    return Decisions(cast(Registry, registry), chain, by)


def promote(
    decisions: Decisions,
    candidate: ModelVersion | str,
    state: str = "passed",
    seen: State | None = None,
    **approval: bool,
) -> Made:
    """Decides about a version whose gates say the state."""
    gates = (GateResult(gate="primary", state=GateState(state), reason="by chance"),)
    report = GateReport(gates=gates, policy_sha256="p" * 64)
    policy = GatePolicy(approval=ApprovalPolicy(**approval))
    candidate = version(candidate) if isinstance(candidate, str) else candidate
    trial = Trial(candidate, report, seen or decisions.state())
    return decisions.promote(trial, policy)

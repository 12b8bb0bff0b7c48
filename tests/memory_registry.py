"""Shared by the tests of decisions: a real desk over a registry in memory whose server can fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from orchestration.promotion.policy import ApprovalPolicy, GatePolicy
from orchestration.promotion.records import GateReport, GateResult, GateState
from orchestration.registry.decisions import Desk
from orchestration.registry.log import Entry, Numbered
from orchestration.registry.store import ModelVersion, Registry

AWAY = ValueError("--registry http://registry: does not answer")


@dataclass
class MemoryRegistry:
    """The log, aliases and versions of one model."""

    log: list[Entry] = field(default_factory=list)
    alias: dict[str, str] = field(default_factory=dict)
    failures: dict[str, list[Exception]] = field(default_factory=dict)  # by what is called, one a call
    after_append: Callable[[], None] = lambda: None

    def entries(self, _model: str) -> list[tuple[int, Entry]]:
        self._may_fail("entries")
        return list(enumerate(self.log, start=1))

    def append(self, _model: str, entry: Entry) -> None:
        self._may_fail("append")
        self.log.append(Entry.model_validate_json(entry.model_dump_json()))
        self.after_append()

    def aliases(self, _model: str) -> dict[str, str]:
        return dict(self.alias)

    def set_alias(self, _model: str, alias: str, version: str | None) -> None:
        self._may_fail("set_alias")
        if version is None:
            self.alias.pop(alias, None)
        else:
            self.alias[alias] = version

    def set_tag(self, *_given: str) -> None:
        """No test reads tags."""

    def versions(self, _model: str) -> list[ModelVersion]:
        return [version(number) for number in "1234"]

    def _may_fail(self, called: str) -> None:
        if left := self.failures.get(called):
            raise left.pop(0)


def version(number: str) -> ModelVersion:
    """A version of the model."""
    return ModelVersion(number, f"s3://b/{number}", number * 64, (), {}, 0)


def desk_over(registry: MemoryRegistry, history: Path, *, by: str = "ann", key: str | None = None) -> Desk:
    """A real desk over it."""
    return Desk(cast(Registry, registry), "shop", history, key=key, by=by)


def promote(desk: Desk, number: str, **approval: bool) -> Numbered:
    """Decides about a version that passed its gates."""
    gates = (GateResult(gate="primary", state=GateState.PASSED, reason="better"),)
    report = GateReport(gates=gates, policy_sha256="p" * 64, candidate_sha256="c" * 64)
    policy = GatePolicy(approval=ApprovalPolicy(**approval))
    return desk.promote(version(number), report, policy, desk.fix())

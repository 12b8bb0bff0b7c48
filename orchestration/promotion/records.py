"""What the gates look at: two whole evaluations; and what they say: only what passed is promoted."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import Field

from pipeline.evaluate.results import ItemResult, Manifest, read_all_results, read_manifest
from reward.offline.bootstrap import Interval
from reward.types import Record


@dataclass(frozen=True)
class Evidence:
    manifest: Manifest
    items: Mapping[str, Sequence[ItemResult]]  # by benchmark
    artifact: str | None = None  # digest of its manifest in the store; None in a dry run

    @property
    def measured(self) -> list[str]:
        return sorted(self.manifest.measured)

    def primary_of(self, benchmark: str) -> str:
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

    Raises:
        FileNotFoundError: it is not there, or not whole.
        ValueError: it is of another version, or has changed.
    """
    manifest = read_manifest(folder)
    return Evidence(manifest, read_all_results(folder, manifest), artifact)


class GateState(StrEnum):
    """What a gate found; the states are kept apart on purpose."""

    PASSED = "passed"
    INCONCLUSIVE = "inconclusive"  # too little is known: never promotes
    FAILED = "failed"  # the evidence is against the candidate
    ERROR = "error"  # the gate itself failed: never promotes


_WORST_FIRST = (GateState.ERROR, GateState.FAILED, GateState.INCONCLUSIVE)


class GateResult(Record):
    """One gate. Example: `slice ragtruth/qa`, passed, lower bound -0.03, bound -0.1."""

    gate: str
    state: GateState
    figures: dict[str, float | None] = Field(default_factory=dict, description="What it looked at.")
    bound: str = Field(default="", description="What the figures were held against.")
    reason: str = Field(description="One line for a person.")


class GateReport(Record):
    """All gates of one candidate against one champion."""

    gates: tuple[GateResult, ...]
    policy_sha256: str

    @property
    def state(self) -> GateState:
        """The worst of the gates; without any gate nothing was shown."""
        found = {one.state for one in self.gates} or {GateState.ERROR}
        return next((state for state in _WORST_FIRST if state in found), GateState.PASSED)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it does not promote, one line a gate, the worst first."""
        return tuple(
            f"{one.gate}: {one.state}: {one.reason}"
            for state in _WORST_FIRST
            for one in self.gates
            if one.state is state
        )


def by_interval(interval: Interval | None, *, least: float = -math.inf, most: float = math.inf) -> GateState:
    """Whether a figure is known to lie from `least` to `most`, known to lie elsewhere, or neither."""
    if interval is None:
        return GateState.INCONCLUSIVE
    if least <= interval.low and interval.high <= most:
        return GateState.PASSED
    is_outside = interval.high < least or interval.low > most
    return GateState.FAILED if is_outside else GateState.INCONCLUSIVE


def ends_of(interval: Interval | None) -> dict[str, float | None]:
    return {"low": interval.low, "high": interval.high} if interval else {"low": None, "high": None}


def demand_documents(found: GateResult, num_documents: int, *, least: int) -> GateResult:
    """Adds the number of documents; what passes on fewer than `least` is inconclusive."""
    state, reason = found.state, f"{found.reason} on {num_documents} documents"
    if state is GateState.PASSED and num_documents < least:
        state, reason = GateState.INCONCLUSIVE, f"{reason}, too few"
    figures = {**found.figures, "documents": num_documents}
    bound = f"{found.bound}, >= {least} documents"
    return found.model_copy(update={"state": state, "reason": reason, "figures": figures, "bound": bound})

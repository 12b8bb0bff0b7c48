"""Which answers of a run `march inspect` shows, and in which order: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orchestration.inspect.run import Entry
from reward.offline.report import WORST_FIRST
from reward.types import ClaimState, Outcome


@dataclass(frozen=True)
class Wanted:
    """What answers must be, to be shown, and what comes first."""

    outcome: Outcome | None = None
    query_id: str | None = None
    worst: bool = False  # false accepts first, then the outcomes from refuted to supported


@dataclass(frozen=True)
class Totals:
    """Counts over answers; named as in `reward.offline.figures.Figures`."""

    num_rows: int
    outcomes: dict[Outcome, int]
    rates: dict[Outcome, float]
    num_claims: int
    claim_states: dict[ClaimState, int]
    has_uncovered: bool


def choose(entries: Sequence[Entry], wanted: Wanted) -> list[Entry]:
    """Returns the entries that fit, in order."""
    fitting = [
        entry
        for entry in entries
        if wanted.outcome in (None, entry.outcome) and wanted.query_id in (None, entry.query_id)
    ]
    return sorted(fitting, key=_badness) if wanted.worst else fitting


def few(entries: Sequence[Entry], most: int) -> list[Entry]:
    """Returns the worst of them, at most so many, in the order that they have."""
    kept = {(entry.step, entry.place) for entry in sorted(entries, key=_badness)[:most]}
    return [entry for entry in entries if (entry.step, entry.place) in kept]


def totals(entries: Sequence[Entry]) -> Totals:
    """Counts outcomes and claims."""
    outcomes = Counter(entry.outcome for entry in entries)
    states = Counter(state for entry in entries for state in entry.claims)
    return Totals(
        num_rows=len(entries),
        outcomes={outcome: outcomes[outcome] for outcome in Outcome},
        rates={outcome: outcomes[outcome] / max(len(entries), 1) for outcome in Outcome},
        num_claims=states.total(),
        claim_states={state: states[state] for state in ClaimState},
        has_uncovered=any(entry.has_uncovered for entry in entries),
    )


def _badness(entry: Entry) -> tuple[Any, ...]:
    """A sort key: among equals the lowest reward, then the latest step."""
    worst = WORST_FIRST.index(entry.outcome)
    return (not entry.false_accept, worst, entry.reward or 0, -entry.step, entry.place)

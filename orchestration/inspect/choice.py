"""Which answers of a run `march inspect` shows, and in which order: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Any

from orchestration.inspect.run import Entry
from reward.offline.report import WORST_FIRST
from reward.types import ClaimState, Outcome, Role


class Order(StrEnum):
    """What answers are sorted by; figures of turns are those of `Wanted.role`, else the Solver's."""

    STEP = "step"  # then by place
    WORST = "worst"  # false accepts, then the outcomes from refuted to supported; the latest step first
    REWARD = "reward"  # the lowest first
    LENGTH = "length"  # the most tokens first
    CLAIMS = "claims"  # the most first
    ADVANTAGE = "advantage"  # the lowest first
    QUERY = "query"  # answers to one query beside each other


@dataclass(frozen=True)
class Wanted:
    """What answers must be, to be shown."""

    steps: tuple[int, int] | None = None  # first and last
    outcome: Outcome | None = None
    role: Role | None = None  # a turn of it was trained
    query_id: str | None = None
    changed: bool = False  # the query has answers of other outcomes, too
    order: Order = Order.STEP


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
    fitting = [entry for entry in entries if _fits(entry, wanted)]
    if wanted.changed:
        several = _changed(entries)
        fitting = [entry for entry in fitting if entry.query_id in several]
    return sorted(fitting, key=_key(wanted.order, wanted.role or Role.SOLVER))


def spread(entries: Sequence[Entry], most: int) -> list[Entry]:
    """Returns at most so many: of each step its worst, equally many; of too many steps every so many-th."""
    by_step: dict[int, list[Entry]] = {}
    for entry in sorted(entries, key=_key(Order.WORST, Role.SOLVER)):
        by_step.setdefault(entry.step, []).append(entry)
    steps = sorted(by_step)
    if len(steps) > most:
        steps = [steps[place * len(steps) // most] for place in range(most)]
    rounds = zip_longest(*(by_step[step] for step in steps))
    picked = [entry for one_each in rounds for entry in one_each if entry is not None][:most]
    return sorted(picked, key=lambda entry: entry.step)


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


def _fits(entry: Entry, wanted: Wanted) -> bool:
    first, last = wanted.steps or (entry.step, entry.step)
    turn = entry.turns.get(wanted.role) if wanted.role else None
    return (
        first <= entry.step <= last
        and wanted.outcome in (None, entry.outcome)
        and wanted.query_id in (None, entry.query_id)
        and (wanted.role is None or (turn is not None and turn.trained))
    )


def _changed(entries: Sequence[Entry]) -> set[str]:
    outcomes: dict[str, set[Outcome]] = {}
    for entry in entries:
        outcomes.setdefault(entry.query_id, set()).add(entry.outcome)
    return {query_id for query_id, found in outcomes.items() if len(found) > 1}


def _key(order: Order, role: Role) -> Callable[[Entry], Any]:
    """The sort key; what has no such figure comes last, and ties are in order of the steps."""

    def by_turn(entry: Entry, name: str, sign: int) -> tuple[bool, float]:
        value = getattr(entry.turns.get(role), name, None)
        return (value is None, sign * (value or 0))

    def by_badness(entry: Entry) -> tuple[Any, ...]:
        return (not entry.false_accept, WORST_FIRST.index(entry.outcome), entry.reward or 0, -entry.step)

    keys: dict[Order, Callable[[Entry], Any]] = {
        Order.STEP: lambda entry: (),
        Order.WORST: by_badness,
        Order.REWARD: lambda entry: (entry.reward is None, entry.reward or 0),
        Order.LENGTH: lambda entry: by_turn(entry, "num_response_tokens", -1),
        Order.CLAIMS: lambda entry: -len(entry.claims),
        Order.ADVANTAGE: lambda entry: by_turn(entry, "advantage", 1),
        Order.QUERY: lambda entry: entry.query_id,
    }
    first = keys[order]
    return lambda entry: (first(entry), entry.step, entry.place)

"""The figures of an offline audit: outcomes, claims, coverage and, where people labelled the responses, how
well the audit agrees with them.

Agreement takes REFUTED for "hallucinated". A row that could not be scored is no prediction: it is counted
apart and is in none of the four cells. A ratio without a denominator is None, never NaN and never a made-up
0 or 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Self

from pydantic import Field

from reward.offline.rows import AuditRow
from reward.types import ClaimState, Outcome, Record, Verdict

OVERALL = "overall"


class Agreement(Record):
    """How REFUTED agrees with what people marked, over the rows that were scored."""

    n: int = Field(description="Scored rows with human labels.")
    num_unscored: int = Field(description="Rows with human labels that could not be scored; not in n.")
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    precision: float | None
    recall: float | None
    f1: float | None

    @classmethod
    def from_cells(cls, cells: Counter[tuple[bool, bool]], *, num_unscored: int) -> Self:
        """Builds it from counts of (people marked it, the audit refuted it)."""
        hit, false_alarm, miss = cells[True, True], cells[False, True], cells[True, False]
        return cls(
            n=cells.total(),
            num_unscored=num_unscored,
            true_positives=hit,
            false_positives=false_alarm,
            false_negatives=miss,
            true_negatives=cells[False, False],
            precision=_ratio(hit, hit + false_alarm),
            recall=_ratio(hit, hit + miss),
            f1=_ratio(2 * hit, 2 * hit + false_alarm + miss),
        )


class Figures(Record):
    """What an audit found, over all rows."""

    num_rows: int
    outcomes: dict[str, int] = Field(description="Rows an outcome; all outcomes are listed.")
    rates: dict[str, float] = Field(description="The same as shares of all rows.")
    reasons: dict[str, int] = Field(description="Rows a reason.")
    unscored_reasons: dict[str, int] = Field(description="The same of the rows that could not be scored.")
    num_claims: int
    claim_states: dict[str, int] = Field(description="Claims a state; all states are listed.")
    num_numbers: int
    num_uncovered: int = Field(description="Numbers of responses that no claim covers.")
    num_rows_with_uncovered: int
    num_dropped_claims: int
    agreement: dict[str, Agreement] = Field(
        description='With human labels, by task type and "overall"; empty without.'
    )


def count_figures(audited: Iterable[tuple[AuditRow, Verdict]]) -> Figures:
    """Counts rows and their verdicts in one pass."""
    outcomes, reasons, unscored_reasons, states, totals = (Counter[str]() for _ in range(5))
    cells: dict[str, Counter[tuple[bool, bool]]] = {}
    unscored = Counter[str]()
    for row, verdict in audited:
        outcomes[verdict.outcome] += 1
        reasons[verdict.reason] += 1
        unscored_reasons[verdict.reason] += verdict.outcome is Outcome.UNSCORED
        states.update(claim.state for claim in verdict.claims)
        totals["numbers"] += verdict.num_numbers
        totals["uncovered"] += len(verdict.uncovered)
        totals["rows_with_uncovered"] += bool(verdict.uncovered)
        totals["dropped_claims"] += verdict.num_dropped_claims
        if row.human_refuted is None:
            continue
        for name in dict.fromkeys((OVERALL, row.task_type or OVERALL)):
            cell = cells.setdefault(name, Counter())
            if verdict.outcome is Outcome.UNSCORED:
                unscored[name] += 1
            else:
                cell[row.human_refuted, verdict.outcome is Outcome.REFUTED] += 1
    num_rows = outcomes.total()
    return Figures(
        num_rows=num_rows,
        outcomes={outcome: outcomes[outcome] for outcome in Outcome},
        rates={outcome: outcomes[outcome] / num_rows if num_rows else 0.0 for outcome in Outcome},
        reasons=dict(sorted(reasons.items())),
        unscored_reasons=dict(sorted((+unscored_reasons).items())),
        num_claims=states.total(),
        claim_states={state: states[state] for state in ClaimState},
        num_numbers=totals["numbers"],
        num_uncovered=totals["uncovered"],
        num_rows_with_uncovered=totals["rows_with_uncovered"],
        num_dropped_claims=totals["dropped_claims"],
        agreement={n: Agreement.from_cells(c, num_unscored=unscored[n]) for n, c in cells.items()},
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None

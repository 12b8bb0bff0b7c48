"""The figures of an offline audit: outcomes, claims, coverage, what was left unread, and what made it."""

from collections import Counter
from collections.abc import Iterable, Mapping

from pydantic import Field

from reward.offline.agreement import Human, HumanCounts
from reward.offline.bootstrap import share
from reward.offline.rows import AuditRow
from reward.types import ClaimState, Outcome, Provenance, Record, Verdict

_MOST_PROVENANCES = 8


class Figures(Record):
    """What an audit found, over all rows."""

    num_rows: int
    outcomes: dict[str, int] = Field(description="Rows an outcome; all outcomes are listed.")
    rates: dict[str, float] = Field(description="The same as shares of all rows.")
    reasons: dict[str, int] = Field(description="Rows a reason.")
    unscored_reasons: dict[str, int] = Field(description="The same of the rows that could not be scored.")
    num_claims: int
    claim_states: dict[str, int] = Field(description="Claims a state; all states are listed.")
    claim_kinds: dict[str, dict[str, int]] = Field(
        description="The same for each kind of claim that occurs, the most frequent first."
    )
    num_mentions: int = 0
    num_uncovered: int = Field(default=0, description="Numbers of responses that no claim covers.")
    num_rows_with_uncovered: int = 0
    num_dropped_claims: int = 0
    num_malformed_claims: int = Field(default=0, description="Lines of Proposers that could not be used.")
    num_rows_with_malformed: int = 0
    num_rows_unread: int = Field(
        default=0, description="Rows with a part of a document that no voter was shown."
    )
    num_unproven: int = Field(
        default=0, description="Claims whose evidence does not hold the consensus number."
    )
    human: dict[str, Human] = Field(
        description='Agreement with human labels, by task type and "overall"; empty without labels.'
    )
    provenances: tuple[Provenance, ...] = Field(description="What made the verdicts; the first eight kinds.")

    @property
    def has_other_kinds(self) -> bool:
        """Whether some claim is about something else than a number."""
        return bool(self.claim_kinds.keys() - {"number"})

    @property
    def uncovered_rate(self) -> float | None:
        """Share of the numbers that no claim covers; None without numbers."""
        return share(self.num_uncovered, self.num_mentions)

    @property
    def malformed_rate(self) -> float:
        """Share of the rows whose Proposer wrote a line that could not be used."""
        return self.num_rows_with_malformed / self.num_rows if self.num_rows else 0.0


def count_figures(audited: Iterable[tuple[AuditRow, Verdict]]) -> Figures:
    """Counts rows and their verdicts in one pass."""
    outcomes, reasons, unscored_reasons, totals = (Counter[str]() for _ in range(4))
    kinds: dict[str, Counter[str]] = {}
    human = HumanCounts()
    provenances: dict[Provenance, None] = {}
    for row, verdict in audited:
        outcomes[verdict.outcome] += 1
        reasons[verdict.reason] += 1
        unscored_reasons[verdict.reason] += verdict.outcome is Outcome.UNSCORED
        for claim in verdict.claims:
            kinds.setdefault(claim.claim.kind, Counter())[claim.state] += 1
        totals.update(_totals(verdict))
        human.add(row, verdict)
        if verdict.provenance is not None and len(provenances) < _MOST_PROVENANCES:
            provenances[verdict.provenance] = None
    num_rows = outcomes.total()
    states = sum(kinds.values(), Counter[str]())
    by_frequency = sorted(kinds.items(), key=lambda item: (-item[1].total(), item[0]))
    return Figures(
        num_rows=num_rows,
        outcomes=_each(Outcome, outcomes),
        rates={outcome: outcomes[outcome] / max(num_rows, 1) for outcome in Outcome},
        reasons=dict(sorted(reasons.items())),
        unscored_reasons=dict(sorted((+unscored_reasons).items())),
        num_claims=states.total(),
        claim_states=_each(ClaimState, states),
        claim_kinds={kind: _each(ClaimState, counts) for kind, counts in by_frequency},
        **totals,
        human=human.figures(),
        provenances=tuple(provenances),
    )


def _each(names: Iterable[str], counts: Mapping[str, int]) -> dict[str, int]:
    """The counts of all names, those that did not occur too."""
    return {name: counts[name] for name in names}


def _totals(verdict: Verdict) -> dict[str, int]:
    """What one verdict adds to the figures of the same names."""
    return {
        "num_mentions": verdict.num_mentions,
        "num_uncovered": len(verdict.uncovered),
        "num_rows_with_uncovered": bool(verdict.uncovered),
        "num_dropped_claims": verdict.num_dropped_claims,
        "num_malformed_claims": verdict.num_malformed_claims,
        "num_rows_with_malformed": bool(verdict.num_malformed_claims),
        "num_rows_unread": bool(verdict.unread),
        "num_unproven": sum(c.evidence_holds_consensus is False for c in verdict.claims),
    }

"""Whether production answers are known to be unfaithful more often than allowed: one look at their verdicts.

The figure is the share of refuted answers among those that were scored; failed audits are counted apart, and
too many of them make a look say nothing. It is compared by a lower bound, not by itself: Clopper and
Pearson's, for as many answers as the clustered ones are worth (Korn and Graubard 1998, Survey Methodology
24:193, with the degrees of freedom of the clusters), since answers about one source share its difficulty.

Look k between two retrainings is made at alpha / (k (k + 1)), which sums to alpha: many looks do not make a
false start likelier. `verdicts.py` makes one at every `min_answers` new verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pydantic import Field

from orchestration.retrain.triggers import DriftSettings
from reward.types import Outcome, Record


class DriftState(StrEnum):
    """What a look found."""

    TOO_FEW = "too few answers"
    TOO_MANY_UNSCORED = "too many unscored"
    WITHIN = "not shown to drift"
    DRIFTED = "drifted"


class Drift(Record):
    """One look."""

    state: DriftState
    num_scored: int
    num_refuted: int
    num_no_claims: int = Field(description="Scored answers without a number; they count as not refuted.")
    num_unscored: int = Field(description="Failed audits; in no share.")
    num_documents: int = Field(description="Sources of the scored answers.")
    num_unmatched: int = Field(default=0, description="Verdicts whose answer was not found.")
    num_new: int = Field(default=0, description="Verdicts that no retraining has settled.")
    low: float | None = Field(default=None, description="Lower bound of the share; None: no look was spent.")
    alpha: float | None = Field(default=None, description="Of this look.")
    allowed: float = Field(description="The share that is allowed.")

    @property
    def rate(self) -> float | None:
        """Share of refuted answers; None without any."""
        return self.num_refuted / self.num_scored if self.num_scored else None

    def __str__(self) -> str:
        """In one line."""
        if self.rate is None:
            return f"{self.state}: no scored answers"
        bound = "" if self.low is None else f", known to be {self.low:.1%} or more"
        unscored = f"; {self.num_unscored:,} unscored apart" if self.num_unscored else ""
        return (
            f"{self.state}: {self.rate:.1%} of {self.num_scored:,} answers refuted{bound}, "
            f"{self.allowed:.1%} allowed{unscored}"
        )


@dataclass(frozen=True)
class Judged:
    """One answer's verdict, and what the answer is about."""

    outcome: Outcome
    source: str


@dataclass(frozen=True)
class Tally:
    """Answers about one source."""

    num_refuted: int
    num_scored: int


def look(answers: Sequence[Judged], settings: DriftSettings, *, num_looks: int) -> Drift:
    """Looks at verdicts.

    Args:
        answers: All that are looked at.
        settings: Of the trigger.
        num_looks: Looks since the last retraining, before this one.
    """
    outcomes = [one.outcome for one in answers]
    tallies = _tallies(answers)
    num_unscored = outcomes.count(Outcome.UNSCORED)
    alpha = look_alpha(settings, num_looks)
    state, low = DriftState.WITHIN, None
    if len(answers) - num_unscored < settings.min_answers or len(tallies) < settings.min_documents:
        state = DriftState.TOO_FEW
    if num_unscored > settings.max_unscored * len(answers):
        state = DriftState.TOO_MANY_UNSCORED
    if state is DriftState.WITHIN:
        low = lower_bound(tallies, alpha)
        state = DriftState.DRIFTED if low > settings.max_unfaithful else state
    return Drift(
        state=state,
        num_scored=len(answers) - num_unscored,
        num_refuted=outcomes.count(Outcome.REFUTED),
        num_no_claims=outcomes.count(Outcome.NO_CLAIMS),
        num_unscored=num_unscored,
        num_documents=len(tallies),
        low=low,
        alpha=None if low is None else alpha,
        allowed=settings.max_unfaithful,
    )


def look_alpha(settings: DriftSettings, num_looks: int) -> float:
    """The share of alpha that the next look has; all shares together are alpha."""
    return settings.alpha / ((num_looks + 1) * (num_looks + 2))


def lower_bound(tallies: Sequence[Tally], alpha: float) -> float:
    """One-sided lower bound of the share of refuted answers, by source.

    Args:
        tallies: Two sources or more, each with a scored answer.
        alpha: Chance that the true share lies below.
    """
    from scipy.special import betaincinv

    num_scored = sum(one.num_scored for one in tallies)
    rate = sum(one.num_refuted for one in tallies) / num_scored
    if rate == 0:
        return 0.0
    size = _effective_size(tallies, rate, num_scored)
    refuted = rate * size
    return float(betaincinv(refuted, size - refuted + 1, alpha))


def _effective_size(tallies: Sequence[Tally], rate: float, num_scored: int) -> float:
    """How many independent answers tell as much; at most as many as there are, at least the sources' number
    where the answers of each are alike."""
    from scipy.special import stdtrit

    num_sources = len(tallies)
    spread = sum((one.num_refuted - rate * one.num_scored) ** 2 for one in tallies)
    variance = spread * num_sources / (num_sources - 1) / num_scored**2
    if not variance:
        return float(num_sources)
    size = rate * (1 - rate) / variance
    few = stdtrit(num_scored - 1, 0.975) / stdtrit(num_sources - 1, 0.975)
    return float(min(num_scored, size * few**2))


def _tallies(answers: Iterable[Judged]) -> list[Tally]:
    sources: dict[str, list[bool]] = {}
    for one in answers:
        if one.outcome is not Outcome.UNSCORED:
            sources.setdefault(one.source, []).append(one.outcome is Outcome.REFUTED)
    return [Tally(sum(found), len(found)) for found in sources.values()]

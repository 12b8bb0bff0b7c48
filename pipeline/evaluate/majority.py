"""The majority over the generations of a prompt, by which a benchmark decides (paper, section 4.1).

Each generation is judged by itself; the verdict of the prompt is what more than half of the judged
generations have. A tie is not passed, and it is counted. A generation whose judgement could not be read is no
vote; where fewer than half of them could be judged, there is no verdict.

An audit's verdicts are counted the same way. An answer without numbers takes no part, and how often that
happens is a figure of its own, since saying nothing is the easiest way not to be refuted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from reward.offline.bootstrap import share
from reward.types import ClaimState, Outcome, Record, Verdict

Scores = Mapping[str, float | None]  # each in [0, 1]; None: not scored


class Judgement(Record):
    """What one generation was found to be."""

    passed: bool = Field(description="Consistent, accurate or correct; the primary score counts it.")
    label: str = Field(description="The benchmark's own word for it, from a closed set.")
    reason: str = Field(default="", description="The judge's explanation, for people.")


@dataclass(frozen=True)
class Majority:
    """What the generations of one prompt come to. Example: 4 of 7 passed, one unjudged: passed."""

    num_passed: int
    num_judged: int
    num_generations: int

    @property
    def passed(self) -> float | None:
        """1 if more than half of the judged passed, else 0; None where fewer than half could be judged."""
        if not self.num_judged or 2 * self.num_judged < self.num_generations:
            return None
        return float(2 * self.num_passed > self.num_judged)

    @property
    def tie(self) -> float | None:
        """1 if exactly half of the judged passed, else 0; None where there is no verdict."""
        return None if self.passed is None else float(2 * self.num_passed == self.num_judged)

    @property
    def mean(self) -> float | None:
        """The share that passed of the judged, what one generation is expected to score."""
        return share(self.num_passed, self.num_judged)

    @property
    def unjudged(self) -> float | None:
        """The share of the generations that could not be judged."""
        return share(self.num_generations - self.num_judged, self.num_generations)


def majority(judged: Sequence[Judgement | None]) -> Majority:
    """Counts the judgements of the generations of one prompt; None: no reply could be read."""
    judgements = [one for one in judged if one is not None]
    return Majority(sum(one.passed for one in judgements), len(judgements), len(judged))


def majority_scores(judged: Sequence[Judgement | None], primary: str) -> dict[str, float | None]:
    """The scores that every judged benchmark has, from the judgements of one prompt's generations.

    Returns:
        The verdict under the name `primary`, the mean over the generations as `{primary}_mean`, and the
        shares `tie` and `unjudged`, which are counted and are no quality.
    """
    found = majority(judged)
    return {
        primary: found.passed,
        f"{primary}_mean": found.mean,
        "tie": found.tie,
        "unjudged": found.unjudged,
    }


def means(measured: Sequence[Scores]) -> dict[str, float | None]:
    """The mean of each value over the generations that have it; None where none has."""
    names = dict.fromkeys(name for one in measured for name in one)
    values = {name: [value for one in measured if (value := one.get(name)) is not None] for name in names}
    return {name: sum(found) / len(found) if found else None for name, found in values.items()}


def numeric_scores(auditor: str, verdicts: Sequence[Verdict]) -> dict[str, float | None]:
    """Scores of one item from the audits of its generations.

    Returns:
        `numeric_lexical` (or `numeric_model`, by the auditor): whether more than half of the audited
        generations with numbers are SUPPORTED; `..._mean`: their share; `..._claims`: the share of supported
        claims among all that have a state; `..._no_numbers`: the share of generations without a number to
        check, among the audited; `..._unscored`: the share whose audit failed.
    """
    counts = Counter(verdict.outcome for verdict in verdicts)
    num_unscored, num_silent = counts[Outcome.UNSCORED], counts[Outcome.NO_CLAIMS]
    audited = [verdict for verdict in verdicts if verdict.outcome is not Outcome.UNSCORED]
    claims = Counter(claim.state for verdict in audited for claim in verdict.claims)
    num_decided = claims.total() - claims[ClaimState.FAILED]
    with_numbers = Majority(counts[Outcome.SUPPORTED], len(audited) - num_silent, len(verdicts) - num_silent)
    name = f"numeric_{auditor}"
    return {
        name: with_numbers.passed,
        f"{name}_mean": with_numbers.mean,
        f"{name}_claims": share(claims[ClaimState.SUPPORTED], num_decided),
        f"{name}_no_numbers": share(num_silent, len(audited)),
        f"{name}_unscored": share(num_unscored, len(verdicts)),
    }

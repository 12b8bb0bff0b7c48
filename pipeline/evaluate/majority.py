"""The majority over the generations of a prompt, by which a benchmark decides (paper, section 4.1).

Each generation is judged by itself; the verdict of the prompt is what more than half of the judged
generations have. A tie is not passed, and it is counted. A generation whose judgement could not be read is no
vote; where fewer than half of them could be judged, there is no verdict.

An audit's verdicts are counted the same way. An answer without numbers takes no part, and how often that
happens is a figure of its own, since saying nothing is the easiest way not to be refuted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import Field

from reward.offline.bootstrap import share
from reward.types import ClaimState, Outcome, Record, Verdict

Scores = Mapping[str, float | None]  # each in [0, 1]; None: not scored


class Judgement(Record):
    """What one generation was found to be."""

    passed: bool = Field(description="Consistent, accurate or correct; the primary score counts it.")
    label: str = Field(description="The benchmark's own word for it, from a closed set.")
    reason: str = Field(default="", description="The judge's explanation, for people.")


class Majority(NamedTuple):
    """What the generations of one prompt come to; no verdict where fewer than half of them were judged."""

    passed: float | None  # 1 if more than half of the judged passed, else 0
    tie: float | None  # 1 if exactly half of the judged passed, else 0
    mean: float | None  # the share that passed of the judged
    unjudged: float | None  # the share that could not be judged


def counted(num_passed: int, num_judged: int, num_generations: int) -> Majority:
    """The majority by counts. Example: 4 of 7 passed, one unjudged: passed."""
    is_decided = bool(num_judged) and 2 * num_judged >= num_generations
    return Majority(
        passed=float(2 * num_passed > num_judged) if is_decided else None,
        tie=float(2 * num_passed == num_judged) if is_decided else None,
        mean=share(num_passed, num_judged),
        unjudged=share(num_generations - num_judged, num_generations),
    )


def majority(judged: Sequence[Judgement | None]) -> Majority:
    """The majority of the judgements of the generations of one prompt; None: no reply could be read."""
    judgements = [one for one in judged if one is not None]
    return counted(sum(one.passed for one in judgements), len(judgements), len(judged))


def majority_scores(judged: Sequence[Judgement | None], primary: str) -> dict[str, float | None]:
    """The scores that every judged benchmark has; `tie` and `unjudged` are counted and are no quality."""
    passed, tie, mean, unjudged = majority(judged)
    return {primary: passed, f"{primary}_mean": mean, "tie": tie, "unjudged": unjudged}


def means(measured: Sequence[Scores]) -> dict[str, float | None]:
    """The mean of each value over the generations that have it; None where none has."""
    names = dict.fromkeys(name for one in measured for name in one)
    values = {name: [value for one in measured if (value := one.get(name)) is not None] for name in names}
    return {name: sum(found) / len(found) if found else None for name, found in values.items()}


def numeric_scores(
    auditor: str, verdicts: Sequence[Verdict], num_missing: int = 0
) -> dict[str, float | None]:
    """Scores of one item from the audits of its generations; `num_missing` generations have failed.

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
    num_asked = len(verdicts) + num_missing - num_silent
    with_numbers = counted(counts[Outcome.SUPPORTED], len(audited) - num_silent, num_asked)
    name = f"numeric_{auditor}"
    return {
        name: with_numbers.passed,
        f"{name}_mean": with_numbers.mean,
        f"{name}_claims": share(claims[ClaimState.SUPPORTED], num_decided),
        f"{name}_no_numbers": share(num_silent, len(audited)),
        f"{name}_unscored": share(num_unscored, len(verdicts)),
    }

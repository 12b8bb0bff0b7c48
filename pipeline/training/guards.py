"""The guards of a run: what tells, from the figures of its steps, that it can no longer be trusted.

A rising reward hides every collapse of self-checking: answers without claims, audits that fail, voters who
agree among themselves only, a policy far from its start, answers that shrink or grow. Each guard follows one
figure of `steps.jsonl` and acts when it stays over its limit for `patience` steps in a row.

Pure: the record of the steps goes in, what was found comes out, so a resumed run judges as if it had never
ended. `pipeline.training.trainer` acts on it. A step without a guard's figure (a canary that did not answer)
counts neither for nor against it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.settings.guards import GrowthGuard, Guard, GuardAction, GuardSettings, LengthGuard
from reward.types import Role

Step = Mapping[str, float]
_KL = tuple(f"{role}/kl" for role in Role)
_FIGURES = {  # of several, the largest counts
    "no_claims": ("audit/no_claims_rate",),
    "unscored": ("audit/unscored_rate",),
    "canary_gap": ("canary/support_gap",),
    "kl": _KL,
    "length": ("solver/tokens_per_turn",),
    "growth": ("solver/tokens_per_turn",),
}


@dataclass(frozen=True)
class Finding:
    """What one guard sees after a step."""

    name: str
    guard: Guard
    what: str  # the figure and its value, for a person
    num_over: int  # steps in a row over the limit, up to the last one that has the figure
    is_current: bool  # whether that is the latest step

    @property
    def is_quiet(self) -> bool:
        """Whether the latest step's figure, if it has one, is within the limit, or the guard only warns."""
        return not self.is_current or self.num_over == 0 or self.guard.action is GuardAction.WARN

    @property
    def is_due(self) -> bool:
        return self.is_current and self.num_over >= self.guard.patience

    def __str__(self) -> str:
        return f"guard {self.name}: {self.what}, for {self.num_over} steps in a row"


def findings(settings: GuardSettings, steps: Sequence[Step]) -> list[Finding]:
    """Returns what each guard sees that has a figure; `steps` are all from the first to the latest."""
    found = (_finding(name, guard, steps) for name, guard in settings.by_name.items())
    return [finding for finding in found if finding is not None]


def due(found: Sequence[Finding]) -> Finding | None:
    """The guard that ends the run now, if one does; one that rolls back goes first."""
    ending = [finding for finding in found if finding.is_due and finding.guard.action is not GuardAction.WARN]
    return min(ending, key=lambda finding: finding.guard.action is GuardAction.STOP, default=None)


def guard_metrics(found: Sequence[Finding]) -> dict[str, float]:
    """`guards/NAME`: the share of its patience that is used up; 0 is quiet, from 1 on it acts."""
    return {f"guards/{finding.name}": finding.num_over / finding.guard.patience for finding in found}


def _finding(name: str, guard: Guard, steps: Sequence[Step]) -> Finding | None:
    found = ([step[key] for key in _FIGURES[name] if key in step] for step in steps)
    # What is no number is above all numbers.
    figures = [max(values, key=lambda value: (math.isnan(value), value)) for values in found if values]
    is_current = bool(steps) and any(key in steps[-1] for key in _FIGURES[name])
    if isinstance(guard, LengthGuard | GrowthGuard):
        return _length_finding(name, guard, figures, is_current=is_current)
    if not figures:
        return None
    keys = " or ".join(key for key in _FIGURES[name] if key in steps[-1]) or _FIGURES[name][0]
    what = f"{keys} {figures[-1]:.3g} is over {guard.limit:g}"
    over = [not figure <= guard.limit for figure in figures]
    return Finding(name, guard, what, _num_last(over), is_current)


def _length_finding(
    name: str, guard: LengthGuard | GrowthGuard, lengths: Sequence[float], *, is_current: bool
) -> Finding | None:
    first, judged = lengths[: guard.baseline_steps], lengths[guard.baseline_steps :]
    if not judged:
        return None
    usual = sum(first) / len(first)
    bound, grows = guard.limit * usual, isinstance(guard, GrowthGuard)
    how = f"over {guard.limit:g} times" if grows else f"under {guard.limit:g} of"
    what = f"{_FIGURES[name][0]} {judged[-1]:.3g} is {how} {usual:.3g}, as it began"
    within = [length <= bound if grows else length >= bound for length in judged]
    return Finding(name, guard, what, _num_last([not one for one in within]), is_current)


def _num_last(over: Sequence[bool]) -> int:
    """How many of the latest are true, without a break."""
    return next((num for num, is_over in enumerate(reversed(over)) if not is_over), len(over))

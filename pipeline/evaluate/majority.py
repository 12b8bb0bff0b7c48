"""The majority over the generations of a prompt, by which a benchmark decides (paper, section 4.1).

Each generation is judged by itself; the verdict of the prompt is what more than half of the judged
generations have. With eight generations four can stand against four: a tie is not passed, and it is
counted. A generation whose judgement could not be read is no vote; where fewer than half of them could be
judged, there is no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from reward.offline.bootstrap import share
from reward.types import Record


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
        return 1 - self.num_judged / self.num_generations if self.num_generations else None


def majority(judged: Sequence[Judgement | None]) -> Majority:
    """Counts the judgements of the generations of one prompt; None: no reply could be read."""
    judgements = [one for one in judged if one is not None]
    return Majority(sum(one.passed for one in judgements), len(judgements), len(judged))


def majority_scores(judged: Sequence[Judgement | None], primary: str) -> dict[str, float | None]:
    """The scores that every judged benchmark has.

    Args:
        judged: Of the generations of one prompt.
        primary: Name of the majority's verdict, e.g. `consistent`.

    Returns:
        The verdict under `primary`, the mean over the generations as `{primary}_mean`, and the shares
        `tie` and `unjudged`, which are counted and are no quality.
    """
    found = majority(judged)
    return {
        primary: found.passed,
        f"{primary}_mean": found.mean,
        "tie": found.tie,
        "unjudged": found.unjudged,
    }


def means(measured: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The mean of each value over the generations that have it; None where none has."""
    names = dict.fromkeys(name for one in measured for name in one)
    values = {name: [value for one in measured if (value := one.get(name)) is not None] for name in names}
    return {name: sum(found) / len(found) if found else None for name, found in values.items()}

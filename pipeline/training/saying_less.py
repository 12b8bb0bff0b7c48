"""Saying less is no way out: an answer that mentions less than most answers to its query is paid as refuted.

Zero tolerance pays for claims that are not made: an answer to half of a question has half the chances to be
refuted. SmolLM2, trained without this, answered one of two facts after eighteen steps (docs/log.md). What
most answers of a group mention is a measure that needs no label, and it does not fall while only some say
less. What is masked stays so, a refuted answer is paid no worse, and an answer without a claim, an abstention
above all, has settings of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any

from reward.types import Outcome

SAYS_LESS_REWARD = -1.0  # that of a refuted answer


def refuse_less(samples: Sequence[Any]) -> int:
    """Lowers the Solver's reward of answers that mention less than the median of their query's answers.

    Args:
        samples: a step's answers, as `pipeline.training.experience.MarchSamplesGenerator` makes them.

    Returns:
        How many rewards were lowered.
    """
    groups: dict[str, list[Any]] = defaultdict(list)
    for sample in samples:
        groups[sample.rollout.query_id].append(sample)
    num = 0
    for group in groups.values():
        usual = median(sample.rollout.verdict.num_mentions for sample in group)
        for sample in group:
            verdict = sample.rollout.verdict
            reward = verdict.reward
            is_paid = reward is not None and reward > SAYS_LESS_REWARD
            if is_paid and verdict.outcome is not Outcome.NO_CLAIMS and verdict.num_mentions < usual:
                sample.rewards = sample.rewards.new_full(sample.rewards.shape, SAYS_LESS_REWARD)
                sample.rollout = sample.rollout.model_copy(update={"says_less": True})
                num += 1
    return num

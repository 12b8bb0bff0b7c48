"""Equal answers to a query share one audit under way; its turns are shared out among them.

The reward server gives the turns of a shared audit to the answer that began it, and the verdict to all. Three
voters took part, one voter's turn is trained, so the other two are there for the copies: without them a
sure Solver, whose answers are mostly equal, would leave its Checker next to nothing to train on. Each turn is
still trained once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from reward.types import Role


def share_turns(samples: Sequence[Any]) -> None:
    """Gives answers without a turn of a role one that an equal answer has to spare.

    Args:
        samples: a step's answers, as `pipeline.training.experience.MarchSamplesGenerator` makes them.
    """
    equal: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for sample in samples:
        equal[sample.rollout.query_id, sample.rollout.response].append(sample)
    for group in equal.values():
        for taker in group:
            for role in taker.turns:
                for giver in group:
                    _hand_over(giver, taker, role)


def _hand_over(giver: Any, taker: Any, role: Role) -> None:
    """One turn, to an answer of the same audit that has none."""
    spare = giver.rollout.spare_turns.get(role, ())
    is_of_this_audit = giver.rollout.verdict == taker.rollout.verdict
    if giver is taker or not spare or taker.rollout.turns.get(role) or not is_of_this_audit:
        return
    turn, rest = spare[0], spare[1:]
    taker.turns[role] = giver.spare[role].pop(0)
    versions = giver.rollout.weights_versions
    taker.rollout = taker.rollout.model_copy(
        update={
            "turns": taker.rollout.turns | {role: turn},
            "weights_versions": versions | taker.rollout.weights_versions,
        }
    )
    giver.rollout = giver.rollout.model_copy(update={"spare_turns": giver.rollout.spare_turns | {role: rest}})

"""The turns of an audit as token records, for whoever trains on them."""

from __future__ import annotations

from collections.abc import Sequence

from reward.config import AuditConfig
from reward.roles.hearing import Round, own_rewards
from reward.types import Role, SampleGroup, Trajectory


def trajectories(
    proposed: SampleGroup | None, rounds: Sequence[Round], config: AuditConfig
) -> tuple[Trajectory, ...]:
    """The Proposer's turn that was used, if any, then the Checker's by round, part and voter.

    A request's turns are left out unless the sampler gave the token ids of all its samples.
    """
    turns = _turns(Role.PROPOSER, proposed, [None] * len(proposed.samples)) if proposed else []
    for one in rounds:
        if not any(map(_has_tokens, one.groups)):
            continue
        rewards = own_rewards(one, config)
        for group, first in zip(one.groups, one.first_voters, strict=True):
            turns += _turns(Role.CHECKER, group, rewards[first : first + len(group.samples)])
    return tuple(turns)


def _turns(role: Role, group: SampleGroup, own_rewards: Sequence[float | None]) -> list[Trajectory]:
    if not _has_tokens(group):
        return []
    return [
        Trajectory(
            role=role,
            prompt_token_ids=group.prompt_token_ids or (),
            response_token_ids=sample.token_ids or (),
            logprobs=sample.logprobs,
            finish_reason=sample.finish_reason,
            weights_version=group.weights_version,
            own_reward=own_reward,
        )
        for sample, own_reward in zip(group.samples, own_rewards, strict=True)
    ]


def _has_tokens(group: SampleGroup) -> bool:
    return bool(group.prompt_token_ids) and all(sample.token_ids for sample in group.samples)

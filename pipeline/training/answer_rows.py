"""The rows of one answer in the PPO buffer, as the dicts that OpenRLHF makes experiences of: the Solver's,
those of the other roles' turns, and fillers in place of turns that are not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.record.rollout_record import RolloutRecord
from reward.types import Role, Trajectory

_FILLER_TOKENS = 2  # the shortest row that has one action


def solver_row(response: dict[str, Any]) -> dict[str, Any]:
    """Returns the Solver's row; without a reward it has no action to train."""
    if response["reward"] is not None:
        return response
    return {**response, **_UNTRAINED}


def turn_rows(response: dict[str, Any], record: RolloutRecord, role: Role, num: int) -> list[dict[str, Any]]:
    """Returns a role's `num` rows of an answer: its turns with the terminal reward, then fillers."""
    turns = () if response["reward"] is None else record.turns.get(role, ())
    assert len(turns) <= num, f"{len(turns)} turns of the {role}, rows for {num}"
    return [turn_row(response, record, turn) for turn in turns] + [_filler(response)] * (num - len(turns))


def turn_row(response: dict[str, Any], record: RolloutRecord, turn: Trajectory) -> dict[str, Any]:
    """Returns the row of one turn, with its terminal reward."""
    num_prompt = len(turn.prompt_token_ids)
    tokens = [*turn.prompt_token_ids, *turn.response_token_ids]
    return {
        **response,
        "reward": record.turn_reward(turn),
        "scores": record.turn_reward(turn),
        "observation_tokens": tokens,
        "action_ranges": [(num_prompt, len(tokens))],
        "rollout_log_probs": _rollout_log_probs(response, turn),
        "truncated": turn.finish_reason == "length",
    }


def rows_turns(
    records: Sequence[RolloutRecord], role: Role, num: int
) -> list[tuple[RolloutRecord, Trajectory | None]]:
    """What each of a role's rows is of, in the order of a step; None for the Solver's, and for a filler."""
    places = [(place, record) for place in range(num) for record in records]
    return [(record, next(iter(record.turns.get(role, ())[place:]), None)) for place, record in places]


def _filler(response: dict[str, Any]) -> dict[str, Any]:
    tokens = response["observation_tokens"][:_FILLER_TOKENS]
    log_probs = None if response["rollout_log_probs"] is None else [0.0] * len(tokens)
    return {**response, **_UNTRAINED, "observation_tokens": tokens, "rollout_log_probs": log_probs}


# The zero stands for "nothing" only together with the empty action range: every use of it is multiplied by
# the mask.
_UNTRAINED: dict[str, Any] = {"reward": 0.0, "scores": 0.0, "action_ranges": [], "truncated": False}


def _rollout_log_probs(response: dict[str, Any], turn: Trajectory) -> list[float] | None:
    if response["rollout_log_probs"] is None:
        return None
    if turn.logprobs is None:
        raise ValueError(
            f"the {turn.role}'s trajectory lacks log-probabilities, which off-policy correction needs"
        )
    return [0.0] * len(turn.prompt_token_ids) + list(turn.logprobs)

"""The rows of one answer in the PPO buffer, as the dicts that OpenRLHF makes experiences of: the Solver's,
those of the other roles' turns, and fillers in place of turns that are not there.
"""

from typing import Any

from pipeline.record.rollout_record import RolloutRecord
from reward.types import Role, Trajectory

_FILLER_TOKENS = 2  # the shortest row that has one action


def solver_row(response: dict[str, Any]) -> dict[str, Any]:
    """Returns the Solver's row; without a reward it has no action to train."""
    if response["reward"] is not None:
        return response
    return {**response, **_UNTRAINED}


def role_row(response: dict[str, Any], record: RolloutRecord, role: Role) -> dict[str, Any]:
    """Returns a role's row of an answer: its turn with the terminal reward, or a filler."""
    turn = record.turns.get(role)
    return _filler(response) if turn is None else turn_row(response, record, turn)


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

"""Which of an answer's turns are trained, and what each is paid."""

from __future__ import annotations

import random
from collections.abc import Sequence

from pipeline.settings.ppo import CheckerCredit
from reward.types import Role, Trajectory, Verdict

ENDED = ("stop", "length")  # by itself, or at its token limit; anything else is an engine's failure


def turn_reward(turn: Trajectory, verdict: Verdict, credit: CheckerCredit) -> float | None:
    """What a turn is paid, from -1 to 0; None where it is not to be trained.

    Nothing of an UNSCORED answer is, and no voter whose votes cannot be read: it would be paid for what the
    others said.
    """
    if verdict.reward is None:
        return None
    if turn.role is Role.CHECKER and (turn.own_reward is None or credit is CheckerCredit.VOTE):
        return turn.own_reward
    return verdict.reward


def valid_turns(turns: Sequence[Trajectory]) -> list[Trajectory]:
    """Returns those that ended by themselves, or, where none did, those that were cut at their limit."""
    ended = [t for t in turns if t.finish_reason in ENDED]
    return [t for t in ended if t.finish_reason == "stop"] or ended


def choose_turns(turns: Sequence[Trajectory], num: int, *, seed: str) -> tuple[Trajectory, ...]:
    """Picks at most `num` of a role's valid turns: a seeded choice, so that no place is favoured."""
    valid = valid_turns(turns)
    return tuple(random.Random(seed).sample(valid, min(num, len(valid))))


def left_out(turns: Sequence[Trajectory], chosen: Sequence[Trajectory]) -> tuple[Trajectory, ...]:
    """Returns the turns that are not among the chosen ones, in order."""
    places = {id(turn) for turn in chosen}
    return tuple(turn for turn in turns if id(turn) not in places)

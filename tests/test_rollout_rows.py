"""What a rollout's row says of its turns is what the PPO buffer trains."""

import pytest

from pipeline.record.rollout_rows import RolloutTurn
from reward.types import Role
from tests.experience_rows import PLAIN, THREE_ROLES, Maker, answer, rows_of, turn


def turns_of(maker: Maker, place: int) -> list[RolloutTurn]:
    return list(maker.answers[place].turns)


def test_each_turn_has_its_own_lengths_reward_and_advantage() -> None:
    maker = Maker()
    batches = maker.make_experience_batch([answer(-1.0, checker=6), answer(0.0, checker=3), answer(-1.0)])
    rows = rows_of(batches)
    for place in range(3):
        solver, checker = turns_of(maker, place)
        assert (solver.role, checker.role) == (Role.SOLVER, Role.CHECKER)
        assert solver.reward == checker.reward == maker.records[place].verdict.reward
        assert checker.num_prompt_tokens == 8
        assert checker.num_response_tokens == int(rows[3 + place].action_mask.sum())
        mask = rows[place].action_mask
        whitened = (rows[place].advantages * mask).sum() / mask.sum()
        assert solver.advantage is not None
        assert solver.advantage * float(whitened) > 0  # of the same sign; the loss's weight is left out


def test_an_unscored_answer_has_a_masked_turn_and_fillers_have_none() -> None:
    maker = Maker()
    maker.make_experience_batch([answer(None), answer(0.0, checker=None)])
    (masked,) = turns_of(maker, 0)
    assert (masked.trained, masked.reward, masked.advantage) == (False, None, None)
    (solver,) = turns_of(maker, 1)
    assert solver.role is Role.SOLVER and solver.trained


def test_turns_of_three_roles_are_told_apart() -> None:
    asked = turn(Role.PROPOSER, prompt=4, length=7)
    answers = [
        answer(0.0, checker=5, train_roles=THREE_ROLES, more=[asked]),
        answer(-1.0, checker=4, train_roles=THREE_ROLES),
    ]
    maker = Maker(PLAIN, THREE_ROLES)
    maker.make_experience_batch(answers)
    lengths = [(one.role.value, one.num_response_tokens) for one in turns_of(maker, 0)[1:]]
    assert lengths == [("checker", 5), ("proposer", 7)]
    assert [one.reward for one in turns_of(maker, 1)] == [-1.0, -1.0]


@pytest.mark.parametrize("reward", [0.0, None])
def test_the_answer_keeps_its_label(reward: float | None) -> None:
    maker = Maker()
    maker.make_experience_batch([answer(reward), answer(-1.0)])
    assert [one.label for one in maker.answers] == ["l", "l"]

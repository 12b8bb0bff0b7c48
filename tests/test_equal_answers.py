"""Equal answers to a query: one Solver row with the weight of all, and a voter of their audit for each."""

from typing import Any

import torch

from pipeline.settings.ppo import AdvantageEstimator, PpoSettings
from reward.types import Role, Trajectory
from tests.experience_rows import Experience, Generator, Maker, answer, rows_of, trained, turn

from pipeline.training.micro_batches import copies_of  # isort: skip
from pipeline.training.step_answers import share_turns  # isort: skip

RLOO = PpoSettings(estimator=AdvantageEstimator.RLOO, gamma=1.0, kl_coef=0.0)


def with_spare(sample: Experience, *spare: Trajectory) -> Experience:
    """The answer that began a shared audit, with turns that were not chosen."""
    sample.rollout = sample.rollout.model_copy(update={"spare_turns": {Role.CHECKER: spare}})
    response: dict[str, Any] = {
        "prompt": "p",
        "label": "l",
        "reward": sample.rollout.verdict.reward,
        "scores": 0.0,
        "observation_tokens": sample.sequences[0].tolist(),
        "action_ranges": [(5, 9)],
        "rollout_log_probs": None,
        "truncated": False,
        "extra_logs": {},
        "rollout": sample.rollout,
    }
    made: Experience = Generator()._process_response_into_experience(response, max_len=64)
    return made


def voters(*firsts: int) -> list[Trajectory]:
    return [turn(Role.CHECKER, prompt=8, length=5, first=first) for first in firsts]


def checker_rows(samples: list[Experience]) -> list[list[int]]:
    """The trained tokens of each answer's Checker row; [] for a filler."""
    rows = [sample.turns[Role.CHECKER] for sample in samples]
    return [row.sequences[:, 1:][row.action_mask.bool()].tolist() for row in rows]


def test_each_copy_brings_a_voter_of_its_own_as_long_as_there_are_some() -> None:
    first = with_spare(answer(-1.0, checker=5), *voters(20, 30))
    samples = [answer(-1.0, checker=None), first, answer(-1.0, checker=None), answer(-1.0, checker=None)]
    share_turns(samples)
    assert checker_rows(samples) == [
        [20, 21, 22, 23, 24],
        [1, 2, 3, 4, 5],
        [30, 31, 32, 33, 34],
        [],  # three voters for four answers
    ]
    assert [Role.CHECKER in sample.rollout.turns for sample in samples] == [True, True, True, False]
    assert first.rollout.spare_turns[Role.CHECKER] == ()


def test_other_answers_and_other_verdicts_get_none() -> None:
    first = with_spare(answer(-1.0, checker=5), *voters(20, 30))
    supported, unscored = answer(0.0, checker=None), answer(None, checker=None)
    other = answer(-1.0, checker=None)
    other.rollout = other.rollout.model_copy(update={"response": "something else"})
    share_turns([first, supported, unscored, other])
    assert checker_rows([supported, unscored, other]) == [[], [], []]
    assert len(first.rollout.spare_turns[Role.CHECKER]) == 2


def test_an_answer_with_a_turn_of_its_own_keeps_it() -> None:
    first, second = with_spare(answer(-1.0, checker=5), *voters(20)), answer(-1.0, checker=3)
    share_turns([first, second])
    assert checker_rows([first, second]) == [[1, 2, 3, 4, 5], [1, 2, 3]]


def test_copies_are_one_solver_row_with_the_weight_of_all() -> None:
    first = with_spare(answer(-1.0, checker=5), *voters(20))
    samples = [first, answer(-1.0, checker=None), answer(0.0, solver=7, checker=None)]
    share_turns(samples)
    maker = Maker(RLOO, samples=3, critic=None)
    laid_out = maker.lay_out(samples)
    (part,) = maker.to_train(laid_out)
    rows = [row for row in rows_of([part]) if row.action_mask.any()]
    assert len(rows) == 2 + 2  # of the Solver two texts, of the Checker two voters
    (copies,) = (row for row in rows if int(row.action_mask.sum()) == 4)
    first_two = [trained(row) for row in rows_of(laid_out)[:2]]
    assert torch.equal(trained(copies), (first_two[0] + first_two[1]) / 2)
    assert [int(copies_of(row)) for row in rows].count(2) == 1 and int(copies_of(copies)) == 2
